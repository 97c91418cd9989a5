"""The paper's grid, 5 users × 10 cards × 16 candidates × 2 repetitions, with planted scores.

Every card is worth b_k = (k - 4.5) / 10 to all (mean 0), replies alternate by ∓0.1 (mean 0), and
    personal  2 + c/16 + b_k, and 1 more where user u talks to their favourite, candidate 3u;
    generic   4 - c/16 + b_k;
    session   3 + b_k.
So P_u(c) = 2 + c/16 + [c = 3u], P̄ = 2 + c/16 + [c in 0, 3, 6, 9, 12]/5, G = 4 - c/16, S = 3.
"""

import time

import pytest

from palate.aggregate import aggregate
from palate.types import ScoreRow

FAVOURITES = (0, 3, 6, 9, 12)


def planted():
    for u in range(5):
        for k in range(10):
            for c in range(16):
                for repetition in (1, 2):
                    yield from trajectory(u, k, c, repetition)


def trajectory(u, k, c, repetition):
    card = (k - 4.5) / 10
    cell = (f"u{u}", f"k{k}", f"c{c}", repetition)
    personal, generic = 2 + c / 16 + (c == 3 * u) + card, 4 - c / 16 + card
    for reply in range(4):
        step = 0.1 if reply % 2 else -0.1
        yield ScoreRow(*cell, "personal", reply, personal + step)
        yield ScoreRow(*cell, "generic", reply, generic + step)
    yield ScoreRow(*cell, "session", None, 3 + card)


@pytest.fixture(scope="module")
def results():
    return aggregate(planted())


def test_every_index_is_as_planted(results):
    for c, candidate in enumerate(results.candidates):
        p_bar = 2 + c / 16 + (c in FAVOURITES) / 5
        assert candidate.name == f"c{c}"
        assert candidate.p_bar.mean == pytest.approx(p_bar)
        assert candidate.generic.mean == pytest.approx(4 - c / 16)
        assert candidate.session.mean == pytest.approx(3)
        assert candidate.u_score.mean == pytest.approx(20 * p_bar)
        assert candidate.g_score.mean == pytest.approx(10 * (7 - c / 16))
        assert candidate.overall.mean == pytest.approx(20 / 3 * (9 + (c in FAVOURITES) / 5))
        for u, personal in enumerate(candidate.personal.values()):
            assert personal.mean == pytest.approx(2 + c / 16 + (c == 3 * u))
            assert (personal.replies, personal.trajectories) == (80, 20)


def test_the_interval_is_that_of_the_ten_shared_cards(results):
    """sd(b) = sqrt(82.5/9)/10 = 0.302765; ± 2.262157 * 0.302765 / sqrt(10) = 0.216585.

    All users see the same cards, so a mean over five users is no surer than one user's; in
    per cent of 5 it is 20 times as wide. 2,000 draws come within 5 %.
    """
    for candidate in results.candidates:
        for score, width in (
            (candidate.personal["u2"], 0.216585),
            (candidate.p_bar, 0.216585),
            (candidate.u_score, 4.3317),
            (candidate.g_score, 4.3317),
            (candidate.overall, 4.3317),
        ):
            assert score.high - score.mean == pytest.approx(width, rel=0.05)
            assert score.mean - score.low == pytest.approx(width, rel=0.05)


def test_each_user_has_their_own_winner(results):
    """3 + 3u/16 is above 2 + 15/16 for every u; shared card effects cancel in the pairs."""
    assert results.winners == {f"u{u}": (f"c{3 * u}",) for u in range(5)}


def test_ranks_differ_between_the_tracks(results):
    """In sixteenths P̄ orders by c + 3.2 [favourite]: c12 (15.2), c15 (15), c14, c13, c9 (12.2) …"""
    ranks = results.ranks("u_score")
    assert [ranks[f"c{c}"] for c in (12, 15, 14, 13, 9)] == [1, 2, 3, 4, 5]
    assert results.ranks("generic") == {f"c{c}": c + 1 for c in range(16)}
    assert set(results.ranks("session").values()) == {1}
    found = {(m.candidate, m.column_a, m.rank_a, m.column_b, m.rank_b) for m in results.mismatches}
    assert ("c12", "u_score", 1, "generic", 13) in found
    assert ("c15", "u_score", 2, "session", 1) in found
    assert ("c15", "generic", 16, "session", 1) in found
    assert ("c15", "u_score", 2, "g_score", 16) in found


def test_equal_repetitions_rank_alike_and_a_constant_column_has_no_stability(results):
    stability = results.rank_stability
    for column in ("user:u0", "user:u4", "generic", "u_score", "g_score", "overall"):
        assert stability[column].spearman == pytest.approx(1)
    assert stability["session"].spearman is None
    assert stability["session"].reason.startswith("constant")


def test_coverage_counts_replies_once_and_every_trajectory(results):
    coverage = results.candidates[0].coverage
    assert (coverage.scored, coverage.replies) == (400, 400)
    assert (coverage.sessions_scored, coverage.sessions_planned) == (100, 100)
    assert coverage.tracks["generic"].scored == 400
    assert coverage.tracks["session"].scored == 100


def test_shared_card_effects_leave_no_noise_between_candidates(results):
    assert results.noise_floor["u_score"].largest == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_the_paper_grid_takes_under_two_seconds():
    rows = list(planted())
    start = time.perf_counter()
    aggregate(rows)
    assert time.perf_counter() - start < 2
