"""Pairs counted by sorting, macro ratios with their intervals, and random signs."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.pairwise import pair_counts, sign_flips, strata_ratios

NONE = math.nan


def counted(groups, labels, scores):
    """pairs, concordant and ties of each group."""
    found = pair_counts(
        np.array(groups), np.array(labels), np.array(scores, dtype=float), max(groups) + 1
    )
    return [tuple(map(int, one)) for one in zip(*found, strict=True)]


def brute(groups, labels, scores):
    found = [[0, 0, 0] for _ in range(max(groups) + 1)]
    for i, j in combinations(range(len(groups)), 2):
        if groups[i] != groups[j] or labels[i] == labels[j]:
            continue
        if math.isnan(scores[i]) or math.isnan(scores[j]):
            continue
        order = (labels[i] - labels[j]) * np.sign(scores[i] - scores[j])
        found[groups[i]][0] += 1
        found[groups[i]][1] += order > 0
        found[groups[i]][2] += order == 0
    return [tuple(map(int, one)) for one in found]


def test_a_pair_in_order_counts_one_and_a_tie_half():
    """Labels 1, 2, 3 with scores 2, 3, 2: (1,2) agrees, (1,3) ties, (2,3) disagrees."""
    assert counted([0, 0, 0], [1, 2, 3], [2, 3, 2]) == [(3, 1, 1)]
    found = pair_counts(np.zeros(3, int), np.array([1, 2, 3]), np.array([2.0, 3, 2]), 1)
    assert found.credit().tolist() == [1.5]


def test_equal_labels_make_no_pair_and_groups_do_not_meet():
    """Group 0 has labels 4, 4, 5: two pairs. Group 1 has one item. Group 2 has nothing."""
    found = pair_counts(np.array([0, 1, 0, 0]), np.array([4, 1, 4, 5]), np.array([1.0, 9, 2, 3]), 3)
    assert found.pairs.tolist() == [2, 0, 0]
    assert found.concordant.tolist() == [2, 0, 0]


def test_an_item_without_a_score_drops_its_pairs():
    assert counted([0, 0, 0], [1, 2, 3], [1, NONE, 2]) == [(1, 1, 0)]
    assert counted([0, 0], [1, 2], [NONE, NONE]) == [(0, 0, 0)]


def test_scores_that_differ_by_rounding_alone_are_equal():
    """0.1 + 0.2 is 0.30000000000000004; small and large scores are compared all the same."""
    assert counted([0, 0], [1, 2], [0.1 + 0.2, 0.3]) == [(1, 0, 1)]
    assert counted([0, 0], [1, 2], [1e-30, 2e-30]) == [(1, 1, 0)]
    assert counted([0, 0], [1, 2], [-1.7e308, 1.7e308]) == [(1, 1, 0)]
    assert counted([0, 0], [1, 2], [1e9, 1e9 + 1]) == [(1, 1, 0)]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(1, 5),
            st.sampled_from([NONE, -1.5, 0.0, 1.0, 2.0, 2.5, 3.0, 1e6]),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_counts_are_those_of_going_through_all_pairs(items):
    groups, labels, scores = zip(*items, strict=True)
    assert counted(groups, labels, scores) == brute(groups, labels, scores)


def test_ten_thousand_items_of_one_group_have_all_their_pairs():
    """2,000 of each label, scored by the label: 10 pairs of labels with 2,000 · 2,000 each."""
    labels = np.arange(10_000) % 5 + 1
    found = pair_counts(np.zeros(10_000, int), labels, labels.astype(float), 1)
    assert found.pairs.tolist() == found.concordant.tolist() == [40_000_000]


def test_pairs_are_pooled_in_a_stratum_and_strata_weigh_the_same():
    """Stratum 0: (1 + 2) / (1 + 3) = 0.75; stratum 1: 1 / 4; their mean 0.5; stratum 2 has none."""
    top, bottom = np.array([[1.0, 2, 1, 0]]), np.array([[1.0, 3, 4, 0]])
    found = strata_ratios(top, bottom, [2, 1, 1], draws=10, seed=0)
    assert found.own[0, :2].tolist() == [0.75, 0.25]
    assert math.isnan(found.own[0, 2])
    assert found.macro.tolist() == [0.5]
    assert found.clusters.tolist() == [[2, 1, 0]]


def test_an_interval_of_one_stratum_is_t_times_the_standard_error():
    """Clusters 0 and 1: standard error of their mean 0.5, t(1) = 12.706: half-width 6.353."""
    found = strata_ratios(np.array([[0.0, 1]]), np.ones((1, 2)), [2], draws=40_000, seed=1)
    assert found.half_widths[0] == pytest.approx(6.353, rel=0.02)
    assert found.own_half_widths[0, 0] == found.half_widths[0]


def test_an_interval_over_strata_pools_their_variances_and_their_freedom():
    """Two strata with error 0.5 from two clusters each: t(2) · sqrt(0.5) / 2 = 1.521."""
    found = strata_ratios(np.array([[0.0, 1, 1, 0]]), np.ones((1, 4)), [2, 2], draws=40_000, seed=1)
    assert found.half_widths[0] == pytest.approx(4.3027 * math.sqrt(0.5) / 2, rel=0.02)


def test_strata_of_one_cluster_each_are_spread_as_they_lie_around_their_mean():
    """0.4 and 0.8: standard error of the mean 0.2, t(1) = 12.706; a single one has no interval."""
    found = strata_ratios(np.array([[0.4, 0.8]]), np.ones((1, 2)), [1, 1], draws=10, seed=0)
    assert found.half_widths[0] == pytest.approx(12.706 * 0.2, rel=1e-4)
    alone = strata_ratios(np.array([[0.4]]), np.ones((1, 1)), [1], draws=10, seed=0)
    assert alone.macro.tolist() == [0.4]
    assert math.isnan(alone.half_widths[0])


def test_what_never_varies_has_an_interval_of_no_width():
    found = strata_ratios(np.full((1, 6), 0.5), np.ones((1, 6)), [3, 3], draws=50, seed=0)
    assert (found.macro[0], found.half_widths[0]) == (0.5, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("users", "sessions"), [(5, 5), (1, 10), (1, 40), (20, 2), (20, 1)])
def test_about_95_of_100_intervals_hold_the_truth(users, sessions):
    """Sessions of 1 to 19 pairs, each agreeing in a share of 0.3, 0.6 or 0.9: 0.6 in the mean."""
    draw = np.random.default_rng(1)
    held = 0
    for seed in range(300):
        pairs = draw.integers(1, 20, size=(1, users * sessions))
        agreed = draw.binomial(pairs, draw.choice([0.3, 0.6, 0.9], size=pairs.shape))
        found = strata_ratios(
            agreed.astype(float), pairs.astype(float), [sessions] * users, draws=300, seed=seed
        )
        held += abs(found.macro[0] - 0.6) <= found.half_widths[0]
    assert 0.91 <= held / 300 <= 0.99


def test_few_differences_are_flipped_in_every_way():
    """1, 1, 1: of 8 sums of signs two reach 3 or -3: p = 0.25. Zeros change nothing."""
    differences = np.array([[1.0, 0, 1, 1], [1, -1, 0, 0], [0, 0, 0, 0]])
    assert sign_flips(differences, draws=10, seed=0) == [(0.25, True), (1.0, True), (1.0, True)]


def test_many_differences_are_flipped_at_random_and_p_is_never_nought():
    """Twenty of one sign: one draw in 500,000 reaches as far, so p is 1 / (1 + 999)."""
    same, mixed = np.ones(20), np.array([1.0, -1] * 10)
    found = sign_flips(np.stack([same, mixed]), draws=999, seed=0)
    assert [one.exact for one in found] == [False, False]
    assert found[0].p == pytest.approx(0.001)
    assert found[1].p == 1.0
    assert found == sign_flips(np.stack([same, mixed]), draws=999, seed=0)


def test_random_signs_agree_with_every_sign():
    """A seventeenth difference too small to matter is what makes the signs drawn."""
    sixteen = np.array([3.0, -1, 2, -4, 5, 1, 1, -2, 3, 3, -1, 2, 1, -3, 2, 2])
    [every] = sign_flips(sixteen[None], draws=2, seed=0)
    [drawn] = sign_flips(np.concatenate((sixteen, [1e-15]))[None], draws=100_000, seed=1)
    assert (every.exact, drawn.exact) == (True, False)
    assert drawn.p == pytest.approx(every.p, abs=0.01)
