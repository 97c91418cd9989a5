"""Who is ahead in a column, as far as the panel can tell (paper 3.3).

Candidates meet in pairs, on the cells (user, card, repetition) that both have a score for. A
candidate's *smallest lead* is its difference to whichever other does best against it. With complete
data the order of the smallest leads is the order of the means; with missing cells it is the order
on shared cells, so that nobody gains by having been scored on the easy cards alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palate.aggregate.columns import Scale
from palate.aggregate.results import Behind, Mismatch, NoiseFloor, Stability, Standing
from palate.statistics import SAME, Floats, competition_ranks, spearman

Flags = NDArray[np.bool_]

# Personal against generic and session, the two against one another, and the two headline indices.
CROSS_TRACK = (
    ("u_score", "generic"),
    ("u_score", "session"),
    ("generic", "session"),
    ("u_score", "g_score"),
)
NO_SHARED_CELLS = "shares too few scored cells with the best to be compared"


def smallest_leads(differences: Floats, present: Flags) -> Floats:
    """Each candidate's difference to its strongest rival, (N) from (N, N).

    NaN for a candidate that is absent, or that shares no cell with any other that is present.
    """
    rivals = present[:, None] & present[None, :] & ~np.eye(len(present), dtype=bool)
    met = rivals & np.isfinite(differences)
    leads: Floats = np.where(met, differences, np.inf).min(axis=1)
    leads[~met.any(axis=1)] = np.nan
    if present.sum() == 1:
        leads[present] = 0.0
    return leads


def _first_of_the_best(leads: Floats) -> int:
    """Equal leads differ in their last bits, which must not choose who is compared with whom."""
    finite = np.isfinite(leads)
    if not finite.any():
        return 0
    return int(np.flatnonzero(finite & (leads >= leads[finite].max() - SAME))[0])


def standings(
    names: Sequence[str],
    differences: Floats,
    half_widths: Floats,
    absent: dict[str, str],
    scale: Scale,
) -> tuple[Standing, ...]:
    """The ranking of one column, best first; `absent` gives the reason of those without a value.

    The best has the largest smallest lead. It and every candidate whose paired difference to it
    has an interval that holds 0 (or no interval: too few cards to tell) share rank 1; the rank of
    another is one more than the number of candidates ahead of it.
    """
    present = np.array([name not in absent for name in names], dtype=bool)
    leads = smallest_leads(differences, present)
    best = _first_of_the_best(leads)
    gaps, widths = differences[best].copy(), half_widths[best].copy()
    gaps[best] = widths[best] = 0.0
    comparable = np.isfinite(leads) & np.isfinite(gaps)
    ranks = np.where(gaps - widths > SAME, np.maximum(2, competition_ranks(leads)), 1)
    # The best comes first among those of rank 1, whatever ties with it.
    order = np.lexsort((-leads, np.arange(len(names)) != best, ranks)).tolist()
    placed = [
        Standing(
            name=names[i],
            rank=int(ranks[i]),
            behind=None if i == best else _behind(float(gaps[i]), float(widths[i]), scale),
        )
        for i in order
        if comparable[i]
    ]
    unplaced = [
        Standing(name=name, rank=None, behind=None, reason=absent.get(name, NO_SHARED_CELLS))
        for name, compared in zip(names, comparable, strict=True)
        if not compared
    ]
    return (*placed, *unplaced)


def _behind(gap: float, width: float, scale: Scale) -> Behind:
    if not np.isfinite(width):
        return Behind(mean=gap, low=None, high=None)
    most = scale.high - scale.low
    low, high = max(-most, gap - width), min(most, gap + width)
    return Behind(mean=gap, low=low, high=high)


def winners(standing: Sequence[Standing]) -> tuple[str, ...]:
    """The best of a column and all that are not told apart from it."""
    return tuple(place.name for place in standing if place.rank == 1)


def mismatches(ranking: dict[str, tuple[Standing, ...]]) -> tuple[Mismatch, ...]:
    """Candidates whose ranks differ between two tracks; unranked ones have no mismatch."""
    found = []
    for column_a, column_b in CROSS_TRACK:
        ranks_b = {place.name: place.rank for place in ranking[column_b]}
        for place in ranking[column_a]:
            rank_a, rank_b = place.rank, ranks_b[place.name]
            if rank_a is not None and rank_b is not None and rank_a != rank_b:
                found.append(
                    Mismatch(
                        candidate=place.name,
                        column_a=column_a,
                        rank_a=rank_a,
                        column_b=column_b,
                        rank_b=rank_b,
                    )
                )
    return tuple(found)


def stability(by_repetition: Sequence[Floats]) -> Stability:
    """Spearman's coefficient of one column between repetitions, the mean over their pairs.

    Args:
        by_repetition: the smallest leads (N) within each repetition.
    """
    if len(by_repetition) < 2:
        return Stability(spearman=None, reason="one repetition: nothing to compare")
    pairs = [spearman(a, b, "candidates") for a, b in itertools.combinations(by_repetition, 2)]
    known = [pair.value for pair in pairs if pair.value is not None]
    reason = next((pair.reason for pair in pairs if pair.reason), None)
    if not known:
        return Stability(spearman=None, reason=reason)
    if reason:
        reason = (
            f"{len(pairs) - len(known)} of {len(pairs)} pairs of repetitions left out: {reason}"
        )
    return Stability(spearman=sum(known) / len(known), reason=reason)


def noise_floor(half_widths: Floats) -> NoiseFloor:
    """The paired half-widths of one column over all pairs of candidates, from (N, N)."""
    pairs = half_widths[np.triu_indices(len(half_widths), k=1)]
    known = pairs[np.isfinite(pairs)]
    if len(known) == 0:
        reason = "one candidate" if len(half_widths) < 2 else "no pair with a paired interval"
        return NoiseFloor(difference=None, smallest=None, largest=None, reason=reason)
    return NoiseFloor(
        difference=float(np.median(known)),
        smallest=float(known.min()),
        largest=float(known.max()),
        reason=None,
    )
