"""Numbers of pairwise agreement: counts of pairs, macro ratios with intervals, a paired test.

No domain type: an item has a label and a score and lies in a group (here a session), and groups lie
in strata (here users). `palate.studies.human_agreement` says what is what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palate.statistics import SAME, Floats, Ints, half_width, ratio, standard_error

ROUNDING = 1e-12  # of two scores' size: what nearer ones differ in is the rounding of their sums
EXACT_FLIPS = 16  # differences up to which all their signs are tried
_CELLS = 1 << 21  # of an array of draws: more are made in several pieces, to bound memory


class PairCounts(NamedTuple):
    """Of each group, the pairs of items with different labels, and how the scores order them."""

    pairs: Ints
    concordant: Ints  # ordered by the scores as by the labels
    ties: Ints  # not ordered by the scores

    def credit(self) -> Floats:
        """1 for a pair in the labels' order, 0.5 for a tie, 0 otherwise, summed. Shape (groups)."""
        return self.concordant + self.ties / 2


class StrataEstimates(NamedTuple):
    """Ratios of each stratum, and their mean over the strata that have one; NaN: none."""

    own: Floats  # (rows, strata)
    own_half_widths: Floats  # (rows, strata)
    clusters: Ints  # (rows, strata): how many have a positive denominator
    macro: Floats  # (rows)
    half_widths: Floats  # (rows)


class FlipTest(NamedTuple):
    """Two-sided p, and whether all signs were tried or some drawn."""

    p: float
    exact: bool


def pair_counts(groups: Ints, labels: Ints, scores: Floats, number: int) -> PairCounts:
    """Counts over the pairs within a group, in O(items log items) for each of the few labels.

    Args:
        groups: 0..`number`-1 of each item.
        labels: of each item, from a small set such as 1..5.
        scores: of each item; NaN leaves the item out. Those that differ by rounding alone are tied.
        number: of groups.
    """
    there = np.isfinite(scores)
    levels, label = np.unique(labels[there], return_inverse=True)
    order = np.lexsort((scores[there], groups[there]))
    group, label, score = groups[there][order], label[order], scores[there][order]
    first = np.diff(group, prepend=-1) != 0
    step = first | _above(score, np.roll(score, 1))
    starts, group_starts = _last(step), _last(first)
    concordant, discordant = (np.zeros(len(score), dtype=np.int64) for _ in range(2))
    for level in range(len(levels)):
        before = np.cumsum(label == level) - (label == level)  # earlier items with this label
        lower = before[starts] - before[group_starts]  # of the item's group, with a lower score
        concordant += np.where(label > level, lower, 0)
        discordant += np.where(label < level, lower, 0)
    held = np.bincount(group * len(levels) + label, minlength=number * len(levels))
    held = held.reshape(number, len(levels))
    pairs = (held.sum(axis=1) ** 2 - (held**2).sum(axis=1)) // 2
    agree = _summed(concordant, group, number)
    return PairCounts(pairs, agree, pairs - agree - _summed(discordant, group, number))


def strata_ratios(
    numerators: Floats, denominators: Floats, sizes: Sequence[int], *, draws: int, seed: int
) -> StrataEstimates:
    """Ratio of sums in each stratum, its mean over the strata, and 95 % intervals by bootstrap.

    Clusters are drawn within their stratum, the same draws for all rows; strata are fixed. The
    variance of the macro mean is the sum of the strata's over their number squared, and its t has
    the degrees of freedom of Satterthwaite. A stratum with one cluster says nothing of its spread:
    its distance to the macro mean stands for it, which is rather too large than too small, since it
    holds what sets the strata apart. One stratum with one cluster has no interval.

    Args:
        numerators: shape (rows, clusters), the clusters of a stratum side by side.
        denominators: the same shape; 0 where a cluster has nothing to say.
        sizes: clusters of each stratum.
    """
    rows = numerators.shape[:-1]
    own, half, error = (np.full((*rows, len(sizes)), np.nan) for _ in range(3))
    clusters = np.zeros((*rows, len(sizes)), dtype=np.int64)
    ends = np.cumsum(sizes)
    for n, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        if size == 0:
            continue
        top, bottom = numerators[:, end - size : end], denominators[:, end - size : end]
        own[:, n] = ratio(top.sum(axis=-1), bottom.sum(axis=-1))
        clusters[:, n] = (bottom > 0).sum(axis=-1)
        redrawn = _redrawn(top, bottom, draws, np.random.default_rng([seed, n]))
        half[:, n] = half_width(redrawn, clusters[:, n])
        error[:, n] = standard_error(redrawn, clusters[:, n])
    macro, half_widths = _macro(own, error, clusters)
    return StrataEstimates(own, half, clusters, macro, half_widths)


def sign_flips(differences: Floats, *, draws: int, seed: int) -> list[FlipTest]:
    """How often sums of a row's `differences` under random signs lie as far from 0 as their own.

    The paired permutation test: without an effect, each cluster's difference could as well be the
    other way round. All signs are tried for up to 16 differences that are not 0; otherwise some are
    drawn, the same for all rows, and p = (1 + draws as far) / (1 + draws).

    Args:
        differences: shape (rows, clusters).
    """
    reached = np.abs(differences.sum(axis=1)) - SAME * np.abs(differences).sum(axis=1)
    moved = differences != 0
    exact = moved.sum(axis=1) <= EXACT_FLIPS
    far = _drawn_flips(differences[~exact], reached[~exact], draws, seed)
    drawn = iter((1 + far) / (1 + draws))
    return [
        FlipTest(_every_flip(values[held], least) if every else float(next(drawn)), bool(every))
        for values, held, least, every in zip(differences, moved, reached, exact, strict=True)
    ]


def _every_flip(moved: Floats, reached: float) -> float:
    sums = np.zeros(1)
    for value in moved:
        sums = np.concatenate((sums + value, sums - value))
    return float((np.abs(sums) >= reached).mean())


def _drawn_flips(differences: Floats, reached: Floats, draws: int, seed: int) -> Ints:
    """How many draws of signs reach as far, of each row."""
    generator = np.random.default_rng(seed)
    differences = differences[:, (differences != 0).any(axis=0)]
    rows, size = differences.shape
    far = np.zeros(rows, dtype=np.int64)
    for part in _parts(draws if rows else 0, size):
        bits = np.unpackbits(np.frombuffer(generator.bytes(part * size // 8 + 1), dtype=np.uint8))
        flipped = bits[: part * size].reshape(part, size).astype(np.float64)
        sums = differences.sum(axis=1) - 2 * (flipped @ differences.T)
        far += (np.abs(sums) >= reached).sum(axis=0)
    return far


def _macro(own: Floats, error: Floats, clusters: Ints) -> tuple[Floats, Floats]:
    """The mean over the strata with a value, and half of its 95 % interval's width."""
    from scipy.special import stdtrit

    there = np.isfinite(own)
    strata = there.sum(axis=-1)
    macro = ratio(np.where(there, own, 0.0).sum(axis=-1), strata)
    lone = there & ~np.isfinite(error)
    apart = np.where(lone, own - macro[..., None], 0.0) ** 2
    apart = apart.sum(axis=-1) * ratio(strata, strata - 1.0)  # NaN for a single stratum
    alone = lone.sum(axis=-1)
    variance = np.where(np.isfinite(error), error, 0.0) ** 2
    total = variance.sum(axis=-1) + np.where(alone > 0, apart, 0.0)
    spread = (variance**2 / np.maximum(clusters - 1, 1)).sum(axis=-1)
    spread += np.where(alone > 0, apart**2 / np.maximum(alone - 1, 1), 0.0)
    freedom = np.where(spread > 0, ratio(total**2, spread), 1.0)  # no spread: t times 0
    half = stdtrit(freedom, 0.975) * np.sqrt(total) / np.maximum(strata, 1)
    return macro, np.where(strata > 0, half, np.nan)


def _redrawn(top: Floats, bottom: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """The ratio of sums in each bootstrap draw of clusters, of shape (rows, draws)."""
    both = np.concatenate((top, bottom))
    size = both.shape[-1]
    sums = [np.empty((len(both), 0))]
    for part in _parts(draws, size):
        drawn = generator.integers(size, size=(part, size)) + np.arange(part)[:, None] * size
        # A third of the time of a multinomial draw, which matters with many sessions.
        weights = np.bincount(drawn.ravel(), minlength=part * size).reshape(part, size)
        sums.append(both @ weights.T.astype(np.float64))
    return ratio(*np.split(np.concatenate(sums, axis=1), 2))


def _parts(draws: int, size: int) -> Iterator[int]:
    """`draws` in pieces that keep an array of draws by `size` small."""
    most = max(1, _CELLS // max(1, size))
    for start in range(0, draws, most):
        yield min(most, draws - start)


def _above(scores: Floats, others: Floats) -> NDArray[np.bool_]:
    """Which scores are larger than the other by more than rounding."""
    with np.errstate(over="ignore"):  # a difference of scores near 1e308 is infinite, and larger
        return scores - others > ROUNDING * np.maximum(np.abs(scores), np.abs(others))


def _last(marks: NDArray[np.bool_]) -> Ints:
    """For each place the last one up to it that is marked."""
    return np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))


def _summed(values: Ints, groups: Ints, number: int) -> Ints:
    """Whole numbers summed by group; exact up to 2**53."""
    return np.bincount(groups, weights=values, minlength=number).astype(np.int64)
