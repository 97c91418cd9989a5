"""Agreement with people: pairs within a session, pooled per user, averaged over users (Table 3)."""

import random

import pytest

from palate.errors import InputError
from palate.histories import split
from palate.studies.agreement_rows import ConditionScore, LabelRow, held_out_labels
from palate.studies.human_agreement import agreement
from palate.types import Session, Turn

EPS = 1e-12


def rows(user, session, labels):
    return [LabelRow(user, session, n, label) for n, label in enumerate(labels)]


def scored(condition, user, session, values):
    return [ConditionScore(condition, user, session, n, value) for n, value in enumerate(values)]


def world(sessions=6, replies=8, users=("u1", "u2", "u3"), seed=5):
    """Labels of some people, drawn by a seed."""
    draw = random.Random(seed)
    return [
        row
        for user in users
        for n in range(sessions)
        for row in rows(user, f"s{n}", [draw.randint(1, 5) for _ in range(replies)])
    ]


def judged(labels, condition, score):
    return [ConditionScore(condition, *row[:3], score(row)) for row in labels]


def test_ties_of_the_judge_count_half_and_users_weigh_the_same():
    """u1: (1 + 0.5 + 0) / 3 = 0.5 with one tie. u2 pools two sessions: (1 + 1) / (1 + 1) = 1."""
    labels = [*rows("u1", "a", [1, 2, 3]), *rows("u2", "a", [1, 5]), *rows("u2", "b", [4, 2])]
    scores = [
        *scored("p", "u1", "a", [2, 3, 2]),
        *scored("p", "u2", "a", [0.1, 0.2]),
        *scored("p", "u2", "b", [9, -9]),
    ]
    found = agreement(labels, scores).conditions["p"]
    assert found.users["u1"].agreement == 0.5
    assert (found.users["u1"].pairs, found.users["u1"].judge_ties) == (3, 1)
    assert found.users["u1"].agreement_without_ties == 0.5
    assert found.users["u2"].agreement == 1.0
    assert found.macro == 0.75
    assert (found.pairs, found.judge_ties, found.missing) == (5, 1, 0)


def test_pairs_of_a_user_are_pooled_over_sessions_not_averaged():
    """Session a: 0 of 1 pair; session b: 3 of 3: 3 / 4, where the mean of sessions would be 1/2."""
    labels = [*rows("u1", "a", [1, 2]), *rows("u1", "b", [1, 2, 3])]
    scores = [*scored("p", "u1", "a", [2, 1]), *scored("p", "u1", "b", [1, 2, 3])]
    assert agreement(labels, scores).conditions["p"].macro == 0.75


def test_pairs_of_different_sessions_or_users_are_none():
    labels = [LabelRow("u1", "a", 0, 1), LabelRow("u1", "b", 1, 5), LabelRow("u2", "a", 2, 3)]
    found = agreement(labels, judged(labels, "p", lambda row: row.label)).conditions["p"]
    assert (found.macro, found.low, found.pairs) == (None, None, 0)
    assert found.reason is not None


def test_a_missing_score_drops_its_pairs_and_is_counted_whether_blank_or_absent():
    """Labels 1, 2, 3, 4: six pairs; without the second and the fourth one is left."""
    labels = rows("u1", "a", [1, 2, 3, 4])
    scores = scored("p", "u1", "a", [1, None, 3])
    own = agreement(labels, scores).conditions["p"].users["u1"]
    assert (own.agreement, own.pairs, own.missing, own.missing_pairs) == (1.0, 1, 2, 5)


def test_a_user_without_pairs_is_null_and_outside_the_macro_mean():
    labels = [*rows("u1", "a", [1, 2]), *rows("u2", "a", [3, 3]), *rows("u3", "a", [1, 5])]
    scores = [
        *scored("p", "u1", "a", [1, 2]),
        *scored("p", "u2", "a", [1, 2]),
        *scored("p", "u3", "a", [None, 2]),
    ]
    found = agreement(labels, scores).conditions["p"]
    assert found.macro == 1.0
    assert [found.users[user].agreement for user in ("u1", "u2", "u3")] == [1.0, None, None]
    assert found.users["u2"].missing_pairs == 0
    assert found.users["u3"].missing_pairs == 1


def test_a_perfect_judge_reaches_one_a_constant_one_exactly_half_a_reversed_one_nought():
    labels = world()
    scores = [
        *judged(labels, "perfect", lambda row: row.label / 7),
        *judged(labels, "constant", lambda row: 3.0),
        *judged(labels, "reversed", lambda row: -row.label),
    ]
    found = agreement(labels, scores).conditions
    for name, value in (("perfect", 1.0), ("constant", 0.5), ("reversed", 0.0)):
        assert (found[name].macro, found[name].low, found[name].high) == (value, value, value)
    assert found["constant"].judge_ties == found["constant"].pairs
    assert found["constant"].macro_without_ties is None


def test_random_scores_have_chance_within_their_interval():
    labels = world(sessions=30)
    draw = random.Random(9)
    found = agreement(labels, judged(labels, "random", lambda row: draw.random()))
    one = found.conditions["random"]
    assert one.low < 0.5 < one.high
    assert 0.4 < one.macro < 0.6
    assert any("not told apart from chance" in remark for remark in found.remarks)


def test_the_order_of_rows_changes_nothing_and_the_seed_repeats():
    labels = world(sessions=20)
    draw = random.Random(2)
    scores = [
        *judged(labels, "a", lambda row: row.label + draw.gauss(0, 2)),
        *judged(labels, "b", lambda row: None if draw.random() < 0.1 else draw.gauss(0, 2)),
    ]
    found = agreement(labels, scores, seed=3, resamples=200)
    draw.shuffle(labels)
    draw.shuffle(scores)
    assert agreement(labels, scores, seed=3, resamples=200) == found
    other = agreement(labels, scores, seed=4, resamples=200)
    assert other.conditions["a"].macro == found.conditions["a"].macro
    assert other.conditions["a"].low != found.conditions["a"].low


def test_a_rising_transformation_of_scores_changes_no_agreement():
    labels = world()
    draw = random.Random(1)
    values = {row[:3]: draw.gauss(0, 1) for row in labels}
    plain = agreement(labels, judged(labels, "p", lambda row: values[row[:3]]), resamples=50)
    bent = agreement(
        labels, judged(labels, "p", lambda row: 7 + values[row[:3]] ** 3), resamples=50
    )
    assert plain == bent


def test_one_session_has_no_interval_and_says_why():
    found = agreement(rows("u1", "a", [1, 2]), scored("p", "u1", "a", [1, 2])).conditions["p"]
    assert (found.macro, found.low, found.high) == (1.0, None, None)
    assert found.reason == "no interval: all pairs lie in one session of one user"


def test_a_second_rating_gives_the_ceiling():
    """First 1, 2, 3, 4; again 1, 3, 3, none: (1,2) and (1,3) agree, (2,3) ties: 2.5 / 3."""
    again = [LabelRow("u1", "a", n, label, 2) for n, label in enumerate([1, 3, 3])]
    labels = [*again, *rows("u1", "a", [1, 2, 3, 4])]
    found = agreement(labels, scored("p", "u1", "a", [1, 2, 3, 4]))
    assert found.conditions["p"].macro == 1.0  # against the first rating
    assert found.ceiling.macro == pytest.approx(2.5 / 3, abs=EPS)
    own = found.ceiling.users["u1"]
    assert (own.pairs, own.judge_ties, own.missing, own.missing_pairs) == (3, 1, 1, 3)


def test_the_ceiling_is_unknown_where_nothing_was_rated_twice():
    found = agreement(rows("u1", "a", [1, 2]), scored("p", "u1", "a", [1, 2]))
    assert found.ceiling is None
    assert any("second time" in remark for remark in found.remarks)


def test_a_third_rating_counts_for_nothing():
    labels = [
        *(LabelRow("u1", "a", 0, label, n) for n, label in ((3, 5), (7, 1), (9, 5))),
        *(LabelRow("u1", "a", 1, label, n) for n, label in ((3, 4), (7, 2), (9, 1))),
    ]
    found = agreement(labels, scored("p", "u1", "a", [5, 4]))
    assert found.conditions["p"].macro == 1.0  # the lowest occasion is the label
    assert found.ceiling.macro == 0.0  # the next is the second rating


def test_two_conditions_are_compared_by_swapping_them_within_sessions():
    """a is right and b wrong in three sessions of one pair: a - b = 1, p = 2 / 2**3."""
    labels = [row for n in range(3) for row in rows("u1", f"s{n}", [1, 2])]
    scores = [
        *judged(labels, "a", lambda row: row.label),
        *judged(labels, "b", lambda row: -row.label),
    ]
    [test] = agreement(labels, scores).tests
    assert (test.a, test.b, test.difference, test.p, test.exact) == ("a", "b", 1.0, 0.25, True)
    assert (test.low, test.high, test.pairs, test.sessions) == (1.0, 1.0, 3, 3)


def test_a_comparison_uses_only_pairs_that_both_score():
    """Alone, a has 1 of 3 pairs; on the pair that b scores too, both are right."""
    labels = rows("u1", "s", [1, 2, 3])
    scores = [*scored("a", "u1", "s", [2, 3, 1]), *scored("b", "u1", "s", [1, 2, None])]
    found = agreement(labels, scores)
    assert found.conditions["a"].macro == pytest.approx(1 / 3, abs=EPS)
    [test] = found.tests
    assert (test.difference, test.p, test.pairs) == (0.0, 1.0, 1)


def test_a_difference_weighs_users_the_same():
    """u1, 3 pairs: a gains all; u2, 1 pair: a loses it: (1 - 1) / 2 = 0, though a gains 2 of 4."""
    labels = [*rows("u1", "s", [1, 2, 3]), *rows("u2", "s", [1, 2])]
    scores = [
        *scored("a", "u1", "s", [1, 2, 3]),
        *scored("b", "u1", "s", [3, 2, 1]),
        *scored("a", "u2", "s", [2, 1]),
        *scored("b", "u2", "s", [1, 2]),
    ]
    [test] = agreement(labels, scores).tests
    assert test.difference == 0.0
    assert test.p == 1.0


def test_conditions_without_a_shared_pair_have_no_difference_and_no_p():
    labels = [*rows("u1", "a", [1, 2]), *rows("u1", "b", [1, 2])]
    scores = [*scored("a", "u1", "a", [1, 2]), *scored("b", "u1", "b", [1, 2])]
    [test] = agreement(labels, scores).tests
    assert (test.difference, test.p, test.exact, test.pairs) == (None, None, False, 0)
    assert test.reason is not None


def test_many_sessions_tell_a_better_judge():
    labels = world(sessions=40)
    draw = random.Random(8)
    scores = [
        row
        for name, noise in (("good", 1), ("poor", 9))
        for row in judged(labels, name, lambda row, noise=noise: row.label + draw.gauss(0, noise))
    ]
    [test] = agreement(labels, scores).tests
    assert test.p < 0.01
    assert test.low > 0
    assert not test.exact


def told_apart(seed):
    """Whether two judges with the same noise differ at p <= 0.05."""
    labels = world(sessions=10, users=("u1", "u2"), seed=seed)
    draw = random.Random(seed)
    scores = [
        row
        for name in ("a", "b")
        for row in judged(labels, name, lambda row: row.label + draw.gauss(0, 2))
    ]
    return agreement(labels, scores, resamples=200).tests[0].p <= 0.05


def test_equally_good_judges_are_rarely_told_apart():
    """About 2 of 40 worlds are expected; 7 or more come once in 300 times."""
    assert sum(told_apart(seed) for seed in range(40)) < 7


def test_the_confident_part_takes_pairs_of_which_both_are_sure():
    """Confidences 1, 2, 3, 4, median 2.5: of labels 1, 2, 3, 4 only (3,4) is left, and is right."""
    labels = rows("u1", "a", [1, 2, 3, 4])
    scores = [
        ConditionScore("p", "u1", "a", n, score, float(n + 1))
        for n, score in enumerate([9.0, 8.0, 1.0, 2.0])
    ]
    part = agreement(labels, scores).conditions["p"].confident
    assert (part.threshold, part.macro, part.pairs) == (2.5, 1.0, 1)
    assert part.share == pytest.approx(1 / 6, abs=EPS)
    wider = agreement(labels, scores, confidence=2).conditions["p"].confident
    assert (wider.macro, wider.pairs) == (pytest.approx(1 / 3, abs=EPS), 3)
    none = agreement(labels, scores, confidence=5).conditions["p"].confident
    assert (none.macro, none.pairs, none.share) == (None, 0, 0.0)
    assert agreement(labels, scored("p", "u1", "a", [1, 2])).conditions["p"].confident is None


def test_length_is_correlated_with_the_score_and_with_the_label():
    """Scores rise with length, labels fall: 1 and -1."""
    labels = rows("u1", "a", [3, 2, 1, 5])
    scores = [
        ConditionScore("p", "u1", "a", n, float(n), length=length)
        for n, length in enumerate([10.0, 20.0, 30.0, None])
    ]
    length = agreement(labels, scores).conditions["p"].length
    assert (length.score, length.label, length.replies) == (1.0, -1.0, 3)
    flat = [row._replace(score=2.0) for row in scores]
    assert agreement(labels, flat).conditions["p"].length.score is None
    assert "constant" in agreement(labels, flat).conditions["p"].length.reason


def test_scores_of_replies_that_nobody_rated_are_counted_and_left_out():
    labels = rows("u1", "a", [1, 2])
    scores = scored("p", "u1", "a", [1, 2, 3])
    found = agreement(labels, scores)
    assert (found.conditions["p"].unlabelled, found.conditions["p"].pairs) == (1, 1)
    assert "p: scores of replies that nobody rated, left out: 1." in found.remarks


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([], [("p", "u", "s", 0, 1.0)], "there is no label"),
        ([("u", "s", 0, 1)], [], "there is no score"),
        ([("u", "s", 0, 6)], [("p", "u", "s", 0, 1.0)], "has the label 6: give one in 1..5"),
        ([("u", "s", 0, 1)] * 2, [("p", "u", "s", 0, 1.0)], "two labels of one occasion"),
        ([("u", "s", 0, 1)], [("p", "u", "s", 0, 1.0)] * 2, "scores reply 0 .* twice"),
        ([("u", "s", 0, 1)], [("p", "u", "s", 0, float("nan"))], "the value nan"),
        ([("u", "s", 0, 1)], [("p", "u", "s", 0, None, float("inf"))], "the value inf"),
        ([("u", "s", 0, 1)], [("p", "U", "s", 0, 1.0)], "no score belongs to a labelled reply"),
    ],
)
def test_rows_that_make_no_sense_are_refused(labels, scores, message):
    with pytest.raises(InputError, match=message):
        agreement([LabelRow(*row) for row in labels], [ConditionScore(*row) for row in scores])


def test_all_scores_missing_is_no_number_but_no_fault():
    found = agreement(rows("u1", "a", [1, 2]), scored("p", "u1", "a", [None, None]))
    assert found.conditions["p"].macro is None
    assert found.conditions["p"].missing_pairs == 1


def test_ratings_of_held_out_replies_feed_it_and_openings_and_training_do_not():
    """Ten sessions of the user, each with a rated opening and two rated replies; two held out."""
    sessions = [
        Session(
            session_id=f"s{n}",
            user_id="u1",
            card_id="k1",
            ended_by="quit",
            turns=(
                Turn(speaker="character", text=f"Opening {n}", satisfaction=3),
                Turn(speaker="user", text=f"I knock, {n}"),
                Turn(speaker="character", text=f"Who, {n}?", satisfaction=1),
                Turn(speaker="user", text=f"Me, {n}"),
                Turn(speaker="character", text=f"Come in, {n}.", satisfaction=5),
                Turn(speaker="user", text=f"Thanks, {n}"),
                Turn(speaker="character", text=f"Sit, {n}."),
            ),
        )
        for n in range(10)
    ]
    parts = split(sessions, seed=7)
    labels = list(held_out_labels(parts))
    held = sorted(one.session.session_id for one in parts.held_out)
    assert len(held) == 2
    assert sorted(labels) == [
        row for name in held for row in (LabelRow("u1", name, 2, 1), LabelRow("u1", name, 4, 5))
    ]
    found = agreement(labels, judged(labels, "p", lambda row: row.label))
    assert (found.conditions["p"].macro, found.conditions["p"].pairs) == (1.0, 2)
