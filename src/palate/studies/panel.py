"""Several judges as one: the mean or median of those that answered, and how far they disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Literal

import numpy as np

from palate.pairwise import pair_counts
from palate.studies.judging_held_out import HeldOutVerdict, Place
from palate.types import Record

PanelRule = Literal["mean", "median"]


class Disagreement(Record):
    """Two judges on the replies that both scored, all conditions together.

    `difference` is the mean absolute difference of their scores, in points of 1..5. `same_order` is
    the share of pairs of replies, of one session and condition and scored differently by both, that
    both put in the same order; None without such a pair.
    """

    a: str
    b: str
    replies: int
    difference: float | None
    same_order: float | None
    pairs: int


def panel_score(scores: Sequence[float], rule: PanelRule) -> float | None:
    """The panel's score, 1..5; None where no judge gave one."""
    if not scores:
        return None
    return fmean(scores) if rule == "mean" else float(median(scores))


def disagreements(
    verdicts: Mapping[Place, Mapping[str, HeldOutVerdict]], judges: Sequence[str]
) -> Iterator[Disagreement]:
    """Every two judges set against each other."""
    for a, b in combinations(judges, 2):
        both: dict[Place, tuple[float, float]] = {}
        for place, given in verdicts.items():
            first, second = _score(given, a), _score(given, b)
            if first is not None and second is not None:
                both[place] = first, second
        yield _compared(a, b, both)


def _score(given: Mapping[str, HeldOutVerdict], judge: str) -> float | None:
    return given[judge].score if judge in given else None


def _compared(a: str, b: str, both: Mapping[Place, tuple[float, float]]) -> Disagreement:
    if not both:
        return Disagreement(a=a, b=b, replies=0, difference=None, same_order=None, pairs=0)
    numbers: dict[tuple[str, str, str], int] = {}
    group = [numbers.setdefault(place[:3], len(numbers)) for place in both]
    first, second = np.array(list(both.values())).T
    levels = np.unique(first, return_inverse=True)[1]
    counts = pair_counts(np.array(group), levels, second, len(numbers))
    pairs = int((counts.pairs - counts.ties).sum())
    return Disagreement(
        a=a,
        b=b,
        replies=len(both),
        difference=float(np.abs(first - second).mean()),
        same_order=int(counts.concordant.sum()) / pairs if pairs else None,
        pairs=pairs,
    )
