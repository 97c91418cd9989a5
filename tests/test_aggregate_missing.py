"""Missing scores: never 0, never silently left out, never an advantage without a mark."""

import pytest

from palate.aggregate import aggregate
from palate.errors import InputError
from palate.types import ScoreRow

# Candidate -> user -> sessions (card 1 twice, card 2 twice); None: the judge failed on that reply.
SESSIONS = {
    "A": {
        "U1": [[4, 4, 5], [3, 4], [4, 4, 4, 4], [5]],
        "U2": [[2, 3, 3], [3], [2, 2], [3, 3, 4, 4, 4, 4]],
    },
    "B": {
        "U1": [[5, 5, None], [5, None], [None, 5, 5, None], [5]],
        "U2": [[3, None, 4], [4], [None, 4], [4, 4, 4, 4]],
    },
    "C": {"U1": [[5, 5, 5], [5, 5], [], [4, 5]], "U2": [[], [], [], []]},
}


def rows_of(sessions):
    for name, users in sessions.items():
        for user, trajectories in users.items():
            for i, scores in enumerate(trajectories):
                cell = (user, f"k{i // 2 + 1}", name, i % 2 + 1)
                if not scores:
                    yield ScoreRow(*cell, "personal", None, None)
                for reply, score in enumerate(scores):
                    yield ScoreRow(*cell, "personal", reply, score)


def of(results, name):
    return next(found for found in results.candidates if found.name == name)


def scored_cards(name, values, track="personal", user="u1"):
    """One reply a card; a value None leaves the card without a row."""
    return [
        ScoreRow(user, f"k{i + 1}", name, 1, track, 0, value)
        for i, value in enumerate(values)
        if value is not None
    ]


def test_means_are_means_of_session_means():
    """A, U1: (13/3 + 3.5 + 4 + 5)/4 = 4.2083; U2: (8/3 + 3 + 2 + 11/3)/4 = 2.8333; U-Score 70.4167.

    B: 5.0 and (3.5 + 4 + 4 + 4)/4 = 3.875, U-Score 88.75. C, U1: (5 + 5 + 4.5)/3 = 4.8333.
    """
    results = aggregate(rows_of(SESSIONS))
    a, b, c = (of(results, name) for name in "ABC")
    assert a.personal["U1"].mean == pytest.approx(4.208333333333333)
    assert a.personal["U2"].mean == pytest.approx(2.833333333333333)
    assert a.u_score.mean == pytest.approx(70.41666666666666)
    assert (b.personal["U1"].mean, b.personal["U2"].mean) == (5.0, 3.875)
    assert b.u_score.mean == 88.75
    assert c.personal["U1"].mean == pytest.approx(4.833333333333333)
    assert results.formula.startswith("mean over trajectories of the mean")


@pytest.mark.parametrize(
    ("name", "coverage"), [("A", (22, 22, 8, 8)), ("B", (14, 20, 8, 8)), ("C", (7, 7, 3, 8))]
)
def test_coverage_stands_beside_every_candidate(name, coverage):
    found = of(aggregate(rows_of(SESSIONS)), name).coverage
    counts = (found.scored, found.replies, found.sessions_scored, found.sessions_planned)
    assert counts == coverage


def test_what_a_users_mean_rests_on_stands_beside_it():
    results = aggregate(rows_of(SESSIONS))
    b, c = of(results, "B").personal["U1"], of(results, "C").personal["U1"]
    assert (b.replies, b.unscored, b.trajectories, b.trajectories_planned) == (6, 4, 4, 4)
    assert (c.replies, c.unscored, c.trajectories, c.trajectories_planned) == (7, 0, 3, 4)


def test_a_candidate_without_a_users_scores_has_no_index_and_no_rank():
    results = aggregate(rows_of(SESSIONS))
    c = of(results, "C")
    assert (c.p_bar, c.u_score, c.overall) == (None, None, None)
    assert c.personal["U2"].mean is None
    assert c.personal["U2"].reason == "no scored reply of user U2"
    assert c.reasons["u_score"] == c.reasons["p_bar"] == "personal: no score of user U2"
    assert results.ranks("u_score")["C"] is None
    assert "C" not in results.winners["U2"]


def test_a_candidate_below_the_coverage_limit_is_marked():
    """B: 14 of 20 replies, 70 %; C: 3 of 8 sessions; A is complete."""
    results = aggregate(rows_of(SESSIONS))
    marks = {name: {mark.kind: mark.text for mark in of(results, name).marks} for name in "ABC"}
    assert marks["B"]["low coverage"] == "low coverage: 14 of 20 replies scored (limit 90 %)"
    assert marks["C"]["low coverage"] == "low coverage: 3 of 8 sessions scored (limit 90 %)"
    assert "low coverage" not in marks["A"]


def test_no_further_failed_reply_raises_a_rank_without_a_mark():
    rows = list(rows_of(SESSIONS))
    columns = ("user:U1", "user:U2", "u_score")
    before = aggregate(rows, draws=100)
    for i, row in enumerate(rows):
        if row.score is None:
            continue
        after = aggregate([*rows[:i], row._replace(score=None), *rows[i + 1 :]], draws=100)
        kinds = {mark.kind for mark in of(after, row.candidate).marks}
        for column in columns:
            old, new = before.ranks(column)[row.candidate], after.ranks(column)[row.candidate]
            raised = new is not None and (old is None or new < old)
            assert not raised or kinds & {"incomplete", "low coverage"}


def test_a_single_failed_reply_of_many_is_marked_incomplete():
    rows = scored_cards("A", [3] * 20)
    rows[4] = rows[4]._replace(score=None)
    texts = [mark.text for mark in aggregate(rows).candidates[0].marks]
    assert texts == ["incomplete: 19 of 20 replies scored, 19 of 20 sessions scored"]


def test_a_planned_cell_without_a_reply_is_not_a_zero():
    rows = [*scored_cards("A", [4, 4]), ScoreRow("u1", "k3", "A", 1, "personal", None, None)]
    a = aggregate(rows).candidates[0]
    assert a.personal["u1"].mean == 4.0
    assert (a.coverage.replies, a.coverage.sessions_scored, a.coverage.sessions_planned) == (
        2,
        2,
        3,
    )


def test_a_cell_that_only_another_candidate_has_counts_as_planned():
    results = aggregate([*scored_cards("A", [4, 4]), *scored_cards("B", [4, None])])
    coverage = of(results, "B").coverage
    assert (coverage.sessions_scored, coverage.sessions_planned) == (1, 2)


def test_a_reply_counts_as_scored_when_every_track_scored_it():
    rows = [*scored_cards("A", [4, 4]), *scored_cards("A", [3, 3], "generic")]
    rows[3] = rows[3]._replace(score=None)
    coverage = aggregate(rows).candidates[0].coverage
    assert (coverage.scored, coverage.replies, coverage.sessions_scored) == (1, 2, 1)
    assert coverage.tracks["personal"].scored == 2
    assert (coverage.tracks["generic"].scored, coverage.tracks["generic"].unscored) == (1, 1)


def test_candidates_are_compared_on_the_cells_that_both_have():
    """A has 2 on five hard cards and 5 on five easy ones, mean 3.5; B 4 on the easy ones alone.

    B's own mean is higher, and on the cells that both have A is ahead by 1 on every card.
    """
    results = aggregate(
        [*scored_cards("A", [2] * 5 + [5] * 5), *scored_cards("B", [None] * 5 + [4] * 5)]
    )
    assert (of(results, "A").p_bar.mean, of(results, "B").p_bar.mean) == (3.5, 4.0)
    assert results.winners == {"u1": ("A",)}
    assert results.ranks("u_score") == {"A": 1, "B": 2}
    assert results.ranking["user:u1"][1].behind.mean == 1.0
    assert [mark.kind for mark in of(results, "B").marks] == ["low coverage"]


def test_candidates_without_a_shared_cell_are_not_ranked_against_one_another():
    results = aggregate([*scored_cards("A", [3, None]), *scored_cards("B", [None, 5])])
    assert results.ranks("user:u1") == {"A": None, "B": None}
    assert results.winners == {"u1": ()}
    assert "shares too few scored cells" in results.ranking["user:u1"][0].reason


def test_an_interval_counts_only_the_cards_that_hold_a_score():
    """Ten cards, scores on one: not ten equal cards with a width of 0, but no interval."""
    results = aggregate([*scored_cards("A", [3]), *scored_cards("B", [3] * 10)])
    a = of(results, "A").personal["u1"]
    assert (a.mean, a.low, a.cards, a.few_cards) == (3.0, None, 1, True)


def test_too_many_empty_draws_leave_no_interval():
    """Ten users with two of twenty cards each: 0.9^20 = 12 % of the draws miss any one of them.

    Only about a quarter of the draws hold a card of all ten.
    """
    rows = []
    for u in range(10):
        values = [None] * 20
        values[2 * u : 2 * u + 2] = [2, 4]
        rows += scored_cards("A", values, user=f"u{u}")
    u_score = aggregate(rows).candidates[0].u_score
    assert (u_score.mean, u_score.low) == (60.0, None)
    assert u_score.reason == "no interval: more than half of the bootstrap draws lack a score"


def test_all_unscored_gives_no_number_anywhere():
    rows = [row._replace(score=None) for row in scored_cards("A", [3, 3])]
    results = aggregate(rows)
    a = results.candidates[0]
    assert (a.p_bar, a.generic, a.session, a.g_score, a.overall) == (None,) * 5
    assert a.reasons["overall"].startswith("personal: no scores at all")
    assert results.winners == {"u1": ()}
    assert results.rank_stability["u_score"].spearman is None
    assert (a.coverage.scored, a.coverage.replies) == (0, 2)


def test_a_missing_track_leaves_out_only_what_needs_it():
    a = aggregate(scored_cards("A", [3, 4])).candidates[0]
    assert a.u_score.mean == 70.0
    assert (a.g_score, a.overall) == (None, None)
    assert a.reasons["g_score"] == "generic: no scores at all; session: no scores at all"


def test_a_table_whose_grid_would_not_fit_into_memory_is_refused():
    rows = [ScoreRow(f"u{i}", f"k{i}", f"c{i}", 1, "personal", 0, 3.0) for i in range(250)]
    with pytest.raises(InputError, match="250 users, 250 candidates, 250 cards"):
        aggregate(rows)
