"""The formulas of the method's section 6, on tables worked out by hand."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palate.aggregate import aggregate
from palate.errors import InputError
from palate.types import ScoreRow


def rows_of(candidate, track, table, repetition=1):
    """`table`: {user: {card: [scores]}}; the session track has one score a card."""
    return [
        ScoreRow(
            user, card, candidate, repetition, track, None if track == "session" else reply, score
        )
        for user, cards in table.items()
        for card, scores in cards.items()
        for reply, score in enumerate(scores)
    ]


def one_reply(candidate, values, track="personal", user="u1", repetition=1):
    """One reply a card: card k1 has the first of `values`, and so on."""
    table = {user: {f"k{i + 1}": [value] for i, value in enumerate(values)}}
    return rows_of(candidate, track, table, repetition)


HAND = [
    *rows_of(
        "A", "personal", {"u1": {"k1": [4, 5], "k2": [3]}, "u2": {"k1": [2], "k2": [4, 4, 4, 2]}}
    ),
    *rows_of("A", "generic", {"u1": {"k1": [4], "k2": [4]}, "u2": {"k1": [3], "k2": [3]}}),
    *rows_of("A", "session", {"u1": {"k1": [5], "k2": [4]}, "u2": {"k1": [4], "k2": [3]}}),
    *rows_of("B", "personal", {"u1": {"k1": [2], "k2": [2]}, "u2": {"k1": [5], "k2": [5]}}),
    *rows_of("B", "generic", {"u1": {"k1": [5], "k2": [5]}, "u2": {"k1": [4], "k2": [4]}}),
    *rows_of("B", "session", {"u1": {"k1": [2], "k2": [2]}, "u2": {"k1": [2], "k2": [2]}}),
]


def candidate(results, name):
    return next(found for found in results.candidates if found.name == name)


def test_the_indices_of_a_table_worked_out_by_hand():
    """A: P_u1 = ((4+5)/2 + 3)/2 = 3.75, P_u2 = (2 + 14/4)/2 = 2.75, P̄ = 3.25, G = 3.5, S = 4.

    U-Score 20 * 3.25 = 65, G-Score 10 * 7.5 = 75, Overall 20/3 * 10.75 = 71.6667.
    B: P̄ = (2 + 5)/2 = 3.5, G = 4.5, S = 2: 70, 65, 20/3 * 10 = 66.6667.
    """
    results = aggregate(HAND)
    a, b = candidate(results, "A"), candidate(results, "B")
    assert (a.personal["u1"].mean, a.personal["u2"].mean, a.p_bar.mean) == (3.75, 2.75, 3.25)
    assert (a.generic.mean, a.session.mean) == (3.5, 4.0)
    assert (a.u_score.mean, a.g_score.mean) == (65.0, 75.0)
    assert a.overall.mean == pytest.approx(71.6666667)
    assert (b.u_score.mean, b.g_score.mean) == (70.0, 65.0)
    assert b.overall.mean == pytest.approx(66.6666667)


def test_trajectories_weigh_the_same_whatever_their_length():
    """One trajectory of eight fives and one of a single 1: (5 + 1) / 2, not 41 / 9."""
    results = aggregate(rows_of("A", "personal", {"u1": {"k1": [5] * 8, "k2": [1]}}))
    assert results.candidates[0].personal["u1"].mean == 3.0


def test_an_interval_is_clipped_to_the_scale():
    """A for u1: cards 4.5 and 3: 12.706 * 0.75 = 9.53 on either side of 3.75, cut to 1..5."""
    personal = candidate(aggregate(HAND), "A").personal["u1"]
    assert (personal.low, personal.high) == (1.0, 5.0)
    index = aggregate(one_reply("A", [4.5, 3])).candidates[0].u_score
    assert (index.low, index.high) == (20.0, 100.0)


def test_one_draw_of_cards_serves_all_users():
    """A on card k2: 1.5 less for u1, 1.5 more for u2. P̄ is 3.25 whatever cards are drawn.

    Drawing cards for each user alone would give it the width of two independent users.
    """
    p_bar = candidate(aggregate(HAND), "A").p_bar
    assert (p_bar.low, p_bar.high) == pytest.approx((3.25, 3.25))


def test_few_cards_are_marked_under_five():
    four, five = (aggregate(one_reply("A", [3, 4, 3, 4, 3][:n])) for n in (4, 5))
    assert four.candidates[0].personal["u1"].few_cards
    assert [mark.kind for mark in four.candidates[0].marks] == ["few cards"]
    assert not five.candidates[0].personal["u1"].few_cards
    assert five.candidates[0].marks == ()


def test_a_mean_over_users_is_no_surer_than_the_user_with_the_fewest_cards():
    rows = [*one_reply("A", [3, 4, 3, 4, 3, 4]), *one_reply("A", [2, 5], user="u2")]
    (a,) = aggregate(rows).candidates
    assert (a.personal["u1"].cards, a.personal["u1"].few_cards) == (6, False)
    assert (a.p_bar.cards, a.u_score.cards, a.u_score.few_cards) == (2, 2, True)


def test_one_card_has_a_mean_and_no_interval():
    """Nobody can be told apart on one card: both candidates are the user's winners."""
    results = aggregate([*one_reply("A", [4]), *one_reply("B", [2])])
    u_score = candidate(results, "A").u_score
    assert (u_score.mean, u_score.low, u_score.high) == (80.0, None, None)
    assert u_score.reason == "no interval: the number rests on one card"
    assert results.winners == {"u1": ("A", "B")}
    assert results.noise_floor["u_score"].reason == "no pair with a paired interval"


def test_repetitions_stay_with_their_card():
    """Two repetitions are not two cards: one card stays without an interval."""
    results = aggregate([*one_reply("A", [4]), *one_reply("A", [2], repetition=2)])
    assert results.candidates[0].personal["u1"].mean == 3.0
    assert results.candidates[0].personal["u1"].low is None


def test_a_lead_on_every_card_wins_although_the_cards_differ_more_than_the_candidates():
    """Cards from 1 to 4.5, A half a point above B on each: the paired interval is 0.5 ± 0."""
    cards = [1, 2, 3, 4]
    results = aggregate([*one_reply("A", [k + 0.5 for k in cards]), *one_reply("B", cards)])
    assert results.winners == {"u1": ("A",)}
    behind = results.ranking["user:u1"][1].behind
    assert (behind.mean, behind.low, behind.high) == pytest.approx((0.5, 0.5, 0.5))
    assert results.noise_floor["user:u1"].difference == pytest.approx(0)


def test_a_lead_that_the_cards_do_not_agree_on_is_shared():
    """A - B is +2, -1, +2, -1 over the cards: 0.5 ± 3.182 * sqrt(3) / 2 holds 0."""
    results = aggregate([*one_reply("A", [5, 2, 5, 2]), *one_reply("B", [3, 3, 3, 3])])
    assert results.winners == {"u1": ("A", "B")}
    assert results.ranks("user:u1") == {"A": 1, "B": 1}
    assert results.noise_floor["user:u1"].difference == pytest.approx(2.756, rel=0.05)


def test_candidates_with_equal_scores_share_first_rank_and_the_next_is_third():
    rows = [*one_reply("A", [3, 4]), *one_reply("B", [3, 4]), *one_reply("C", [2, 3])]
    results = aggregate(rows)
    assert results.ranks("u_score") == {"A": 1, "B": 1, "C": 3}
    assert results.winners == {"u1": ("A", "B")}


def test_a_rank_that_differs_between_tracks_is_a_mismatch():
    rows = [
        *one_reply("A", [5, 5]),
        *one_reply("B", [4, 4]),
        *one_reply("A", [2, 2], "generic"),
        *one_reply("B", [3, 3], "generic"),
    ]
    found = [tuple(m.model_dump().values()) for m in aggregate(rows).mismatches]
    assert found == [("A", "u_score", 1, "generic", 2), ("B", "u_score", 2, "generic", 1)]


def test_ranks_that_agree_are_no_mismatch():
    rows = [*one_reply("A", [5, 5]), *one_reply("B", [4, 4])]
    rows += [row._replace(track="generic") for row in rows]
    assert aggregate(rows).mismatches == ()


def repeated(*repetitions):
    """One card and user; `repetitions`: the scores of candidates A, B, C, … in each of them."""
    return [
        row
        for r, scores in enumerate(repetitions, start=1)
        for name, score in zip("ABCDEF", scores, strict=False)
        for row in one_reply(name, [score], repetition=r)
    ]


def test_rank_stability_is_spearman_between_the_repetitions():
    """Ranks (1, 2, 3) and (1, 3, 2): 0.5."""
    stability = aggregate(repeated([1, 2, 3], [1, 5, 2])).rank_stability
    assert stability["user:u1"].spearman == pytest.approx(0.5)
    assert stability["u_score"].spearman == pytest.approx(0.5)
    assert stability["u_score"].reason is None


def test_rank_stability_of_three_repetitions_is_the_mean_over_their_pairs():
    """(1,2,3)-(1,3,2): 0.5; (1,2,3)-(3,2,1): -1; (1,3,2)-(3,2,1): -0.5; mean -1/3."""
    stability = aggregate(repeated([1, 2, 3], [1, 3, 2], [3, 2, 1])).rank_stability
    assert stability["u_score"].spearman == pytest.approx(-1 / 3)


@pytest.mark.parametrize(
    ("repetitions", "reason"),
    [
        ([[1, 2, 3]], "one repetition: nothing to compare"),
        ([[1, 2], [1, 2]], "fewer than three candidates"),
        ([[3, 3, 3], [1, 2, 3]], "constant: all candidates are equal in one of the two"),
    ],
)
def test_undefined_rank_stability_is_none_with_the_reason(repetitions, reason):
    found = aggregate(repeated(*repetitions)).rank_stability["u_score"]
    assert (found.spearman, found.reason) == (None, reason)


def test_undefined_pairs_of_repetitions_are_left_out_and_said():
    """Repetition 2 is constant, so that only the pair 1-3 is defined: 0.5."""
    found = aggregate(repeated([1, 2, 3], [3, 3, 3], [1, 3, 2])).rank_stability["u_score"]
    assert found.spearman == pytest.approx(0.5)
    assert found.reason.startswith("2 of 3 pairs of repetitions left out: constant")


def test_a_single_candidate_of_a_single_user_is_its_winner():
    results = aggregate(one_reply("A", [3, 4]))
    assert results.winners == {"u1": ("A",)}
    assert results.noise_floor["u_score"].reason == "one candidate"


def test_users_and_candidates_are_listed_in_the_order_of_their_numbers():
    rows = [row for user in ("u10", "u9") for row in one_reply("A", [3, 4], user=user)]
    assert aggregate(rows).users == ("u9", "u10")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no scores to aggregate"),
        (one_reply("A", [6]), "the score 6 is not in 1..5"),
        (one_reply("A", [float("nan")]), "the score nan is not in 1..5"),
        (one_reply("A", [3]) * 2, "candidate A, repetition 1, track personal, reply 0 is scored"),
    ],
)
def test_rows_that_cannot_be_scores_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        aggregate(rows)


@settings(max_examples=15, deadline=None)
@given(st.permutations(HAND))
def test_the_order_of_the_rows_changes_nothing(rows):
    assert aggregate(rows, draws=50) == aggregate(HAND, draws=50)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), min_size=3, max_size=3), min_size=2, max_size=4),
    st.floats(0, 1),
)
@example([[1, 1, 1], [2, 4, 4], [3, 3, 4]], 0.16239290413854526)  # two best that are equal
def test_shifting_every_score_shifts_the_indices_and_keeps_the_ranks(scores, shift):
    def table(by):
        return [
            row
            for i, values in enumerate(scores)
            for row in one_reply(f"c{i}", [value + by for value in values])
        ]

    before, after = aggregate(table(0), draws=50), aggregate(table(shift), draws=50)
    for old, new in zip(before.candidates, after.candidates, strict=True):
        assert new.u_score.mean == pytest.approx(old.u_score.mean + 20 * shift)
    assert before.ranks("u_score") == after.ranks("u_score")
