"""Estimates from numbers: cluster bootstrap, intervals, ranks, correlations. No domain type.

Observations come in clusters (here: cards) that are drawn as a whole. An array of observations has
the shape (..., clusters, repeats) with NaN where nothing was measured; what stands before the last
two axes is free, so that thousands of numbers share one draw. A paired difference needs no function
of its own: `by_cluster(a - b)` counts only what both sides have, because NaN spreads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAME = 1e-9  # values closer than this are equal: sums of the same scores differ in the last bits
LEAST_KEPT = 0.5  # share of draws that must hold a value before their spread is believed


class ClusterSums(NamedTuple):
    """Sum and number of the measured values of each cluster, both of shape (..., clusters)."""

    total: Floats
    number: Floats

    def means(self) -> Floats:
        """Mean over all measured values; NaN where there is none. Shape (...)."""
        return ratio(self.total.sum(axis=-1), self.number.sum(axis=-1))

    def clusters(self) -> Ints:
        """Number of clusters that hold at least one value. Shape (...)."""
        return np.asarray((self.number > 0).sum(axis=-1), dtype=np.int64)

    def redrawn(self, weights: Floats) -> Floats:
        """The mean in each bootstrap draw; NaN in a draw without a value. Shape (..., draws)."""
        return ratio(self.total @ weights.T, self.number @ weights.T)


class Correlation(NamedTuple):
    """A coefficient in -1..1 over `n` pairs, or None with the reason why it is undefined."""

    value: float | None
    n: int
    reason: str | None = None


def by_cluster(values: Floats) -> ClusterSums:
    """Sums within clusters of values of shape (..., clusters, repeats), NaN left out."""
    measured = np.isfinite(values)
    return ClusterSums(
        np.where(measured, values, 0.0).sum(axis=-1),
        measured.sum(axis=-1, dtype=np.float64),
    )


def cluster_draws(clusters: int, draws: int, seed: int) -> Floats:
    """How often each cluster occurs in each bootstrap draw, of shape (draws, clusters).

    One such array serves every number of a table: what the numbers have in common through the
    clusters then stays in their spread.

    Raises:
        ValueError: no cluster, or fewer than two draws.
    """
    if clusters < 1 or draws < 2:
        raise ValueError(f"needs at least 1 cluster and 2 draws, not {clusters} and {draws}")
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    return counts.astype(np.float64)


def half_width(redrawn: Floats, clusters: Ints) -> Floats:
    """Half of the 95 % interval's width: t(C-1) * sqrt(C/(C-1)) * bootstrap standard error.

    The root undoes the bootstrap's bias with few clusters, and t allows for a spread that is itself
    estimated from C clusters. Draws without a value (NaN) are left out.

    Args:
        redrawn: the estimate in each draw, shape (..., draws).
        clusters: C of each estimate, shape (...).

    Returns:
        Shape (...); NaN where C < 2, or where fewer than half of the draws hold a value.
    """
    from scipy.special import stdtrit  # much lighter than scipy.stats, which loads 50 MB

    freedom = np.maximum(clusters - 1.0, 1.0)
    return np.asarray(stdtrit(freedom, 0.975) * standard_error(redrawn, clusters))


def standard_error(redrawn: Floats, clusters: Ints) -> Floats:
    """sqrt(C/(C-1)) * bootstrap standard error; arguments, shape and NaN as in `half_width`."""
    held = np.isfinite(redrawn)
    kept = held.sum(axis=-1)
    mean = ratio(np.where(held, redrawn, 0.0).sum(axis=-1), kept)
    squares = np.where(held, redrawn - mean[..., None], 0.0) ** 2
    error = np.sqrt(ratio(squares.sum(axis=-1), kept - 1.0))
    defined = (clusters >= 2) & (kept >= LEAST_KEPT * redrawn.shape[-1])
    freedom = np.where(defined, clusters - 1.0, 1.0)
    return np.where(defined, np.sqrt((freedom + 1) / freedom) * error, np.nan)


def average_ranks(values: Sequence[float] | Floats) -> Floats:
    """Ranks from 1, the smallest first; equal values share the mean of their places."""
    array = np.asarray(values, dtype=np.float64)
    order = np.argsort(array, kind="stable")
    # A new group starts wherever the step from the value before is more than rounding.
    steps = np.diff(array[order], prepend=-np.inf) > SAME
    group = np.cumsum(steps) - 1
    sizes = np.bincount(group, minlength=1)
    last = np.cumsum(sizes)
    ranks = np.empty(len(array))
    ranks[order] = (last - (sizes - 1) / 2)[group]
    return ranks


def competition_ranks(values: Sequence[float] | Floats) -> list[int]:
    """Ranks from 1, the largest first: one more than the number of larger values ("1224")."""
    array = np.asarray(values, dtype=np.float64)
    return [1 + int((array > value + SAME).sum()) for value in array]


def spearman(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, unit: str = "values"
) -> Correlation:
    """Spearman's rank correlation over the pairs in which neither side is NaN.

    Undefined for fewer than three pairs (two always give 1 or -1) and where one side is constant.
    `unit` names in the reason what is ranked.
    """
    return _correlation(first, second, unit, ranked=True)


def pearson(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, unit: str = "values"
) -> Correlation:
    """Pearson's correlation, under the rules of `spearman`."""
    return _correlation(first, second, unit, ranked=False)


def _correlation(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, unit: str, *, ranked: bool
) -> Correlation:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    x, y, n = x[both], y[both], int(both.sum())
    if n < 3:
        return Correlation(None, n, f"fewer than three {unit}")
    if np.ptp(x) <= SAME or np.ptp(y) <= SAME:
        return Correlation(None, n, f"constant: all {unit} are equal in one of the two")
    if ranked:
        x, y = average_ranks(x), average_ranks(y)
    x, y = x - x.mean(), y - y.mean()
    value = float((x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum()))
    return Correlation(min(1.0, max(-1.0, value)), n)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, NaN where the denominator is not positive."""
    quotient = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient
