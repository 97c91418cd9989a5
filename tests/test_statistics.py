"""Numbers in, estimates out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.statistics import (
    average_ranks,
    by_cluster,
    cluster_draws,
    competition_ranks,
    half_width,
    pearson,
    spearman,
)

NONE = float("nan")
finite = st.floats(min_value=-100, max_value=100, allow_nan=False)


def test_a_mean_weighs_every_measured_value_the_same_and_leaves_gaps_out():
    """Clusters (4, 5) and (3, gap): (4 + 5 + 3) / 3 = 4, from two clusters."""
    sums = by_cluster(np.array([[4.0, 5.0], [3.0, NONE]]))
    assert float(sums.means()) == 4.0
    assert int(sums.clusters()) == 2


def test_a_mean_of_nothing_is_not_a_number_and_has_no_cluster():
    sums = by_cluster(np.array([[NONE], [NONE]]))
    assert math.isnan(float(sums.means()))
    assert int(sums.clusters()) == 0


def test_a_paired_difference_uses_only_what_both_sides_have():
    """a - b on the one place that both have: 5 - 2; the 1 of `a` and the 4 of `b` stay out."""
    a = np.array([[5.0], [1.0], [NONE]])
    b = np.array([[2.0], [NONE], [4.0]])
    assert float(by_cluster(a - b).means()) == 3.0


def test_a_draw_repeats_and_leaves_out_whole_clusters():
    """Twice the first cluster, never the second: its two values alone make the mean."""
    sums = by_cluster(np.array([[1.0, 2.0], [9.0, 9.0]]))
    assert sums.redrawn(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist() == [1.5, 5.25]


def test_a_draw_without_a_value_gives_no_estimate():
    sums = by_cluster(np.array([[1.0], [NONE]]))
    redrawn = sums.redrawn(np.array([[0.0, 2.0], [1.0, 1.0]]))
    assert math.isnan(redrawn[0])
    assert redrawn[1] == 1.0


def test_every_draw_takes_as_many_clusters_as_there_are():
    draws = cluster_draws(7, 50, seed=3)
    assert draws.shape == (50, 7)
    assert set(draws.sum(axis=1)) == {7.0}


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    assert (cluster_draws(10, 20, seed=1) == cluster_draws(10, 20, seed=1)).all()
    assert (cluster_draws(10, 20, seed=1) != cluster_draws(10, 20, seed=2)).any()


@pytest.mark.parametrize(("clusters", "draws"), [(0, 100), (3, 1)])
def test_no_cluster_or_a_single_draw_is_refused(clusters, draws):
    with pytest.raises(ValueError, match="at least 1 cluster and 2 draws"):
        cluster_draws(clusters, draws, seed=0)


def test_the_half_width_is_t_times_the_root_times_the_standard_error():
    """Draws 1, 3: standard error sqrt(2); C = 2: t(1) = 12.7062, root sqrt(2): 25.4124."""
    assert float(half_width(np.array([1.0, 3.0]), np.array(2))) == pytest.approx(25.4124, abs=1e-4)


def test_the_interval_of_equal_clusters_is_the_classical_t_interval():
    """Cluster means 1..10: sd sqrt(82.5/9) = 3.02765, t(9) = 2.262157: 2.262157*3.02765/sqrt(10).

    That is 2.16585; 20,000 draws come within 2 %.
    """
    sums = by_cluster(np.arange(1.0, 11.0)[:, None])
    redrawn = sums.redrawn(cluster_draws(10, 20_000, seed=0))
    assert float(half_width(redrawn, sums.clusters())) == pytest.approx(2.16585, rel=0.02)


def test_one_cluster_has_no_interval():
    assert math.isnan(float(half_width(np.array([2.0, 2.0]), np.array(1))))


def test_draws_without_a_value_are_left_out_while_half_of_them_remain():
    """Of (1, 3, gap, gap) two count, as above; of (1, 3, gap, gap, gap) too few are left."""
    few = half_width(np.array([1.0, 3.0, NONE, NONE]), np.array(2))
    fewer = half_width(np.array([1.0, 3.0, NONE, NONE, NONE]), np.array(2))
    assert float(few) == pytest.approx(25.4124, abs=1e-4)
    assert math.isnan(float(fewer))


def test_equal_values_share_the_mean_of_their_places():
    """Sorted 1, 2, 2, 5: places 1, (2 + 3) / 2 twice, 4."""
    assert average_ranks([2, 5, 2, 1]).tolist() == [2.5, 4.0, 2.5, 1.0]


def test_a_difference_in_the_last_bits_is_a_tie():
    assert average_ranks([0.1 + 0.2, 0.3]).tolist() == [1.5, 1.5]
    assert competition_ranks([0.1 + 0.2, 0.3]) == [1, 1]


def test_competition_ranks_count_the_larger_values():
    assert competition_ranks([3, 5, 3, 1]) == [2, 1, 2, 4]


def test_spearman_compares_ranks():
    """Ranks (1, 2, 3) and (1, 3, 2): 1 - 6 * (0 + 1 + 1) / (3 * 8) = 0.5."""
    assert spearman([10, 20, 90], [1, 300, 2]).value == pytest.approx(0.5)


def test_spearman_with_a_tie_is_pearson_of_the_shared_ranks():
    """Ranks (1, 2, 3), (1.5, 1.5, 3): 1.5 / sqrt(2 * 1.5) = 0.8660."""
    assert spearman([1, 2, 3], [4, 4, 7]).value == pytest.approx(0.8660254)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([1, 2], [1, 2], "fewer than three candidates"),
        ([1, 2, NONE], [1, 2, 3], "fewer than three candidates"),
        ([2, 2, 2], [1, 2, 3], "constant: all candidates are equal in one of the two"),
        ([1, 2, 3], [0.1 + 0.2, 0.3, 0.3], "constant: all candidates are equal in one of the two"),
        ([], [], "fewer than three candidates"),
    ],
)
def test_an_undefined_correlation_is_none_with_its_reason(first, second, reason):
    for correlation in (spearman, pearson):
        found = correlation(first, second, "candidates")
        assert found.value is None
        assert found.reason == reason


def test_pearson_leaves_out_pairs_with_a_gap():
    """(1, 2), (2, 4), (3, 5): sums of products 3, of squares 2 and 14/3: 3 / sqrt(28/3)."""
    found = pearson([1, 2, NONE, 3], [2, 4, 9, 5])
    assert found.n == 3
    assert found.value == pytest.approx(3 / math.sqrt(28 / 3))


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=12))
def test_spearman_is_the_same_both_ways_and_under_any_rising_change(pairs):
    first = np.array([a for a, _ in pairs], dtype=float)
    second = np.array([b for _, b in pairs], dtype=float)
    one, other = spearman(first, second), spearman(second, first**3 + 5)
    assert one.value == pytest.approx(other.value)
    assert one.value is None or -1 <= one.value <= 1


@given(st.lists(st.lists(finite, min_size=2, max_size=2), min_size=2, max_size=6), finite)
def test_shifting_every_value_shifts_the_mean_and_keeps_the_width(values, shift):
    array = np.array(values)
    weights = cluster_draws(len(array), 50, seed=0)
    here, there = by_cluster(array), by_cluster(array + shift)
    assert float(there.means()) == pytest.approx(float(here.means()) + shift, abs=1e-6)
    assert float(half_width(there.redrawn(weights), there.clusters())) == pytest.approx(
        float(half_width(here.redrawn(weights), here.clusters())), abs=1e-4
    )
