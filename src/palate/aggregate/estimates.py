"""Means with their intervals, for every column and candidate at once."""

from __future__ import annotations

import math
from typing import NamedTuple

from palate.aggregate.columns import Scale, combine, fewest
from palate.aggregate.results import FEW_CARDS, Interval
from palate.statistics import Floats, Ints, by_cluster, half_width

DRAWS = 2000  # of the bootstrap

ONE_CARD = "no interval: the number rests on one card"
EMPTY_DRAWS = "no interval: more than half of the bootstrap draws lack a score"


class Estimates(NamedTuple):
    """Means, half-widths (NaN: none) and cards behind them, each (K, N) or any other shape."""

    means: Floats
    half_widths: Floats
    cards: Ints


def estimate(values: Floats, weights: Floats) -> Estimates:
    """Columns (K, N) from values (tracks, users, N, cards, repetitions) and the joint draws.

    A draw that leaves a user without a score is left out of every number with that user in it.
    """
    sums = by_cluster(values)
    cards = fewest(sums.clusters())
    return Estimates(
        combine(sums.means()), half_width(combine(sums.redrawn(weights)), cards), cards
    )


def interval(mean: float, half: float, cards: int, scale: Scale) -> Interval:
    """`mean` ± `half`, clipped to the scale; without bounds, and with the reason, for NaN."""
    known = not math.isnan(half)
    reason = None if known else ONE_CARD if cards < 2 else EMPTY_DRAWS
    return Interval(
        mean=mean,
        low=max(scale.low, mean - half) if known else None,
        high=min(scale.high, mean + half) if known else None,
        cards=cards,
        few_cards=cards < FEW_CARDS,
        reason=reason,
    )
