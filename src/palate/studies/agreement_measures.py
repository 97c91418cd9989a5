"""Counts of pairs by session, and the estimates of all rows from the same draws (paper 4.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palate.pairwise import PairCounts, StrataEstimates, pair_counts, strata_ratios
from palate.statistics import Floats, Ints
from palate.studies.agreement_rows import Labels, Scores

CEILING = ("ceiling",)  # the row of the second ratings; the others are CONDITION, NAME and so on
CONDITION, CONFIDENT, TEST = "condition", "confident", "test"


class Measured(NamedTuple):
    """One condition: its scores, its counts by session, and those of its confident part."""

    scores: Scores
    counts: PairCounts
    threshold: float  # NaN: no confidence is given
    confident: PairCounts


class Contrast(NamedTuple):
    """Two conditions by session, on the pairs that both score."""

    a: str
    b: str
    gained: Floats  # credit of a less that of b
    pairs: Ints


class Estimates(NamedTuple):
    """Estimates of many rows, and which row is whose."""

    found: StrataEstimates
    row: dict[tuple[str, ...], int]


def pairs_by_session(rated: Labels, scores: Floats) -> PairCounts:
    """Pairs of replies with different labels in each session; replies with a NaN are left out."""
    return pair_counts(rated.session, rated.label, scores, rated.sessions)


def measure(rated: Labels, scores: Scores, confidence: float | None) -> Measured:
    """One condition's counts; `confidence` None: the median of its scored replies is enough."""
    sure = np.where(np.isfinite(scores.score), scores.confidence, np.nan)
    held = sure[np.isfinite(sure)]
    threshold = math.nan
    if len(held):
        threshold = float(np.median(held)) if confidence is None else confidence
    confident = np.where(sure >= threshold, scores.score, np.nan)
    return Measured(
        scores=scores,
        counts=pairs_by_session(rated, scores.score),
        threshold=threshold,
        confident=pairs_by_session(rated, confident),
    )


def contrast(rated: Labels, measured: Mapping[str, Measured], a: str, b: str) -> Contrast:
    """Condition `a` against `b` on the replies that both score."""
    there = np.isfinite(measured[a].scores.score), np.isfinite(measured[b].scores.score)
    odd = np.bincount(rated.session, weights=there[0] != there[1], minlength=rated.sessions) > 0
    again = there[0] & there[1] & odd[rated.session]
    first, second = (_recounted(rated, measured[name], again, odd) for name in (a, b))
    return Contrast(a, b, first.credit() - second.credit(), first.pairs)


def _recounted(
    rated: Labels, one: Measured, again: NDArray[np.bool_], odd: NDArray[np.bool_]
) -> PairCounts:
    """The counts, those of the `odd` sessions from the replies `again` alone."""
    fewer = pairs_by_session(rated, np.where(again, one.scores.score, np.nan))
    return PairCounts(
        *(np.where(odd, new, old) for new, old in zip(fewer, one.counts, strict=True))
    )


def estimate(
    rated: Labels,
    measured: Mapping[str, Measured],
    contrasts: Sequence[Contrast],
    second: PairCounts,
    *,
    resamples: int,
    seed: int,
) -> Estimates:
    """All estimates from the same draws of sessions: what they share stays in their spread."""
    rows: dict[tuple[str, ...], tuple[Floats, Ints]] = {CEILING: (second.credit(), second.pairs)}
    for name, one in measured.items():
        rows[CONDITION, name] = one.counts.credit(), one.counts.pairs
        rows[CONFIDENT, name] = one.confident.credit(), one.confident.pairs
    for pair in contrasts:
        rows[TEST, pair.a, pair.b] = pair.gained, pair.pairs
    top = np.stack([credit for credit, _ in rows.values()])
    bottom = np.stack([pairs.astype(np.float64) for _, pairs in rows.values()])
    # Sessions without a pair are no clusters: drawing them would only empty some draws.
    held = (bottom > 0).any(axis=0)
    sizes = np.bincount(user_of_session(rated)[held], minlength=len(rated.users))
    found = strata_ratios(top[:, held], bottom[:, held], sizes.tolist(), draws=resamples, seed=seed)
    return Estimates(found, {key: n for n, key in enumerate(rows)})


def user_of_session(rated: Labels) -> Ints:
    """The number of each session's user."""
    return np.repeat(np.arange(len(rated.users)), rated.user_sessions)
