"""Numbers with 95 % intervals over sessions: messages of one session are drawn together.

The same interval as in a run's report, with sessions in the place of cards: estimate ±
t(C-1) · sqrt(C/(C-1)) · bootstrap standard error, clipped to the scale (`palate.statistics`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from palate.simulators.validation.measures import Estimate
from palate.statistics import ClusterSums, Floats, cluster_draws, half_width

DRAWS = 2000  # of the bootstrap
Z = 1.959963984540054  # of the standard normal distribution: 95 % lie within

ONE_SESSION = "no interval: the number rests on one session"
EMPTY_DRAWS = "no interval: more than half of the bootstrap draws lack a value"
NOTHING = "nothing was measured"


class Scale(NamedTuple):
    """The range that a number can lie in."""

    low: float = -math.inf
    high: float = math.inf


SHARE = Scale(0.0, 1.0)
DIFFERENCE = Scale(-1.0, 1.0)
PER_CENT = Scale(0.0, 100.0)
NATS = Scale(0.0)
ANY = Scale()


def missing(reason: str) -> Estimate:
    """No number, and why."""
    return Estimate(value=None, reason=reason)


def interval(
    value: float, redrawn: Floats, *, n: int, sessions: int, scale: Scale = ANY
) -> Estimate:
    """`value` with the interval that its values in the bootstrap draws give it."""
    if math.isnan(value):
        return missing(NOTHING)
    half = float(half_width(redrawn, np.asarray(sessions, dtype=np.int64)))
    if math.isnan(half):
        reason = ONE_SESSION if sessions < 2 else EMPTY_DRAWS
        return Estimate(value=value, n=n, sessions=sessions, reason=reason)
    return Estimate(
        value=value,
        low=max(scale.low, value - half),
        high=min(scale.high, value + half),
        n=n,
        sessions=sessions,
    )


def pooled(
    totals: Sequence[float], numbers: Sequence[float], *, seed: int, scale: Scale = ANY
) -> Estimate:
    """Sum of `totals` over sum of `numbers`, one of each a session; `n` is the latter sum.

    Sessions without a value have the number 0.
    """
    sums = _sums(totals, numbers)
    sessions = int(sums.clusters())
    if not sessions:
        return missing(NOTHING)
    redrawn = sums.redrawn(cluster_draws(len(totals), DRAWS, seed))
    return interval(
        float(sums.means()), redrawn, n=round(sum(numbers)), sessions=sessions, scale=scale
    )


def pooled_difference(
    first: Sequence[tuple[float, float]],
    second: Sequence[tuple[float, float]],
    *,
    seed: int,
    scale: Scale = ANY,
) -> Estimate:
    """The pooled value of `first` minus that of `second`, over the same sessions in one order.

    Each session brings (total, number) to both. Sessions are drawn once for both sides, so what
    the two have in common through them leaves the interval.
    """
    a, b = (_sums(*zip(*side, strict=True)) for side in (first, second))
    value = float(a.means() - b.means())
    draws = cluster_draws(len(first), DRAWS, seed)
    return interval(
        value,
        a.redrawn(draws) - b.redrawn(draws),
        n=round(float(a.number.sum())),
        sessions=int(min(a.clusters(), b.clusters())),
        scale=scale,
    )


def mean(
    values: Sequence[float], sessions: Sequence[Hashable], *, seed: int, scale: Scale = ANY
) -> Estimate:
    """Mean of `values`, each of the session that stands at its place in `sessions`."""
    by_session = per_session(values, sessions)
    return pooled(
        [total for total, _ in by_session],
        [number for _, number in by_session],
        seed=seed,
        scale=scale,
    )


def per_session(
    values: Sequence[float], sessions: Sequence[Hashable], order: Sequence[Hashable] | None = None
) -> list[tuple[float, float]]:
    """(sum, number) of each session's values, in `order` or in that of first appearance."""
    sums: dict[Hashable, tuple[float, float]] = dict.fromkeys(order or (), (0.0, 0.0))
    for value, session in zip(values, sessions, strict=True):
        total, number = sums.get(session, (0.0, 0.0))
        sums[session] = (total + value, number + 1)
    return list(sums.values())


def wilson(hits: float, of: float, *, n: int | None = None, sessions: int = 0) -> Estimate:
    """The share `hits` / `of` with Wilson's interval, which holds for few and for 0 of many.

    Args:
        of: how many independent observations the share is worth; weighted ones are worth fewer.
        n: how many were made; `of` unless said.
    """
    if of <= 0:
        return missing(NOTHING)
    share = hits / of
    middle = (share + Z**2 / (2 * of)) / (1 + Z**2 / of)
    half = Z / (1 + Z**2 / of) * math.sqrt(share * (1 - share) / of + Z**2 / (4 * of**2))
    return Estimate(
        value=share,
        low=max(0.0, min(share, middle - half)),
        high=min(1.0, max(share, middle + half)),
        n=round(of) if n is None else n,
        sessions=sessions,
    )


def weighted_share(holds: Sequence[bool], weights: Sequence[float], *, sessions: int) -> Estimate:
    """Share of the weight where `holds`; Wilson's interval at Kish's number of observations.

    Kish: (Σw)² / Σw², the number of equally weighted observations that would say as much.
    """
    total = sum(weights)
    if total <= 0:
        return missing(NOTHING)
    worth = total**2 / sum(weight**2 for weight in weights)
    share = sum(w for held, w in zip(holds, weights, strict=True) if held) / total
    return wilson(share * worth, worth, n=len(weights), sessions=sessions)


def _sums(totals: Sequence[float], numbers: Sequence[float]) -> ClusterSums:
    return ClusterSums(np.asarray(totals, dtype=np.float64), np.asarray(numbers, dtype=np.float64))
