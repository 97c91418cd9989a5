"""Numbers with intervals over sessions, worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from palate.simulators.validation.estimates import (
    SHARE,
    mean,
    per_session,
    pooled,
    pooled_difference,
    weighted_share,
    wilson,
)
from palate.simulators.validation.measures import Estimate


def test_a_pooled_value_weighs_observations_the_same_and_not_sessions():
    """Sessions (6 of 2) and (2 of 2) and an empty one: 8 / 4 = 2, from two sessions."""
    estimate = pooled([6.0, 2.0, 0.0], [2.0, 2.0, 0.0], seed=1)
    assert (estimate.value, estimate.n, estimate.sessions) == (2.0, 4, 2)


def test_the_interval_of_a_mean_over_sessions_of_one_message_is_students():
    """Values 0, 1, 2, 3: mean 1.5, s = sqrt(5/3), s/sqrt(4) = 0.6455, t(3) = 3.1824.

    The bootstrap's standard error is that with n in the place of n-1, which sqrt(4/3) undoes.
    """
    estimate = mean([0.0, 1.0, 2.0, 3.0], ["a", "b", "c", "d"], seed=3)
    half = 3.1824 * 0.6455
    assert estimate.value == 1.5
    assert 1.5 - estimate.low == pytest.approx(half, rel=0.05)
    assert estimate.high - 1.5 == pytest.approx(half, rel=0.05)


def test_messages_of_one_session_are_one_draw():
    """The same values, pairs of equal ones in one session: half the sessions, a wider interval."""
    values = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    alone = mean(values, range(8), seed=1, scale=SHARE)
    together = mean(values, [0, 0, 1, 1, 2, 2, 3, 3], seed=1, scale=SHARE)
    assert together.high - together.low > alone.high - alone.low


def test_one_session_gives_a_value_without_an_interval_and_says_why():
    estimate = pooled([3.0], [2.0], seed=1)
    assert (estimate.value, estimate.low, estimate.sessions) == (1.5, None, 1)
    assert "one session" in estimate.reason


def test_nothing_measured_is_no_number():
    assert pooled([0.0, 0.0], [0.0, 0.0], seed=1).value is None
    assert wilson(0, 0).value is None
    assert weighted_share([], [], sessions=0).value is None


def test_what_two_conditions_share_through_their_sessions_leaves_the_interval_of_their_difference():
    """The second is the first less 0.5 in every session, which differ a lot: exactly -0.5."""
    first = [(1.0, 1.0), (9.0, 1.0), (4.0, 1.0)]
    second = [(1.5, 1.0), (9.5, 1.0), (4.5, 1.0)]
    estimate = pooled_difference(first, second, seed=1)
    assert estimate.value == pytest.approx(-0.5)
    assert estimate.low == pytest.approx(-0.5)
    assert estimate.high == pytest.approx(-0.5)


def test_wilson_by_hand():
    """2 of 4: middle (0.5 + z²/8) / (1 + z²/4) = 0.5, half z/(1 + z²/4) · sqrt(1/16 + z²/64).

    z² = 3.8415: half = 1.95996/1.96036 · sqrt(0.0625 + 0.060023) = 0.34996.
    """
    estimate = wilson(2, 4)
    assert estimate.value == 0.5
    assert estimate.low == pytest.approx(0.15004, abs=1e-4)
    assert estimate.high == pytest.approx(0.84996, abs=1e-4)


def test_none_of_many_has_an_interval_that_is_not_empty():
    """0 of 10: the upper end is z²/n / (1 + z²/n) = 0.38415 / 1.38415."""
    estimate = wilson(0, 10)
    assert (estimate.value, estimate.low) == (0.0, 0.0)
    assert estimate.high == pytest.approx(0.27753, abs=1e-4)


def test_a_weighted_share_has_the_interval_of_fewer_observations():
    """Weights 3, 1: (3 + 1)² / (9 + 1) = 1.6 observations; the share is 3/4."""
    estimate = weighted_share([True, False], [3.0, 1.0], sessions=2)
    assert (estimate.value, estimate.n) == (pytest.approx(0.75), 2)
    same = wilson(0.75 * 1.6, 1.6)
    assert estimate.low == pytest.approx(same.low)
    assert estimate.high == pytest.approx(same.high)


def test_equal_weights_are_no_weights():
    weighted = weighted_share([True, False, False], [2.0, 2.0, 2.0], sessions=3)
    plain = wilson(1, 3, sessions=3)
    assert weighted.low == pytest.approx(plain.low)
    assert weighted.high == pytest.approx(plain.high)


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilson_holds_its_share_and_stays_within_0_and_1(hits, more):
    of = hits + more
    estimate = wilson(hits, of)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert not math.isnan(estimate.low)


def test_sessions_come_in_the_order_asked_for():
    assert per_session([1.0, 2.0, 4.0], ["b", "a", "b"]) == [(5.0, 2), (2.0, 1)]
    assert per_session([1.0], ["b"], ["a", "b"]) == [(0.0, 0.0), (1.0, 1)]


def test_what_is_missing_must_have_a_reason():
    with pytest.raises(ValidationError, match="reason"):
        Estimate(value=None)
    with pytest.raises(ValidationError, match="reason"):
        Estimate(value=1.0)
    with pytest.raises(ValidationError, match="two ends"):
        Estimate(value=1.0, low=0.0)


def test_a_difference_rests_on_the_sessions_of_its_poorer_side():
    """4 / 2 less 2 / 1; the second side has values in one session alone."""
    estimate = pooled_difference([(1.0, 1.0), (3.0, 1.0)], [(2.0, 1.0), (0.0, 0.0)], seed=1)
    assert (estimate.value, estimate.low, estimate.sessions) == (0.0, None, 1)
    assert "one session" in estimate.reason


def test_a_difference_counts_the_observations_of_its_first_side():
    """(1 + 3) / 4 less (2 + 0) / 2."""
    estimate = pooled_difference([(1.0, 2.0), (3.0, 2.0)], [(2.0, 1.0), (0.0, 1.0)], seed=1)
    assert (estimate.value, estimate.n) == (0.0, 4)


def test_an_interval_ends_where_its_scale_does():
    """Values 0 and 1 of two sessions: t(1) = 12.7 makes it far wider than all shares."""
    estimate = mean([0.0, 1.0], ["a", "b"], seed=1, scale=SHARE)
    assert (estimate.low, estimate.high) == (0.0, 1.0)


def test_the_seed_draws_the_sessions_of_an_interval():
    values = [0.0, 1.0, 2.0, 3.0]
    ends = {pooled(values, [1.0] * 4, seed=seed).low for seed in (1, 2)}
    assert len(ends) == 2


def test_a_weighted_share_counts_what_was_made_not_what_it_is_worth():
    """Weights 9, 1, 1: 121 / 83 of an observation, from three."""
    assert weighted_share([True, False, False], [9.0, 1.0, 1.0], sessions=3).n == 3
