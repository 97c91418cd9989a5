"""Single dimensions of the shared rubrics: their means, and how far they say the same thing.

    results = with_dimensions(results, dimension_table(rows))

A dimension is aggregated like a track: mean over a trajectory's answers, over a user's
trajectories, over users. A declared n/a is left out and counted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from palate.aggregate.columns import Scale
from palate.aggregate.estimates import DRAWS, interval
from palate.aggregate.panel import natural_order
from palate.aggregate.results import DimensionScore, Results
from palate.errors import InputError
from palate.statistics import Floats, by_cluster, cluster_draws, half_width, pearson
from palate.types import MAX_SCORE, MIN_SCORE, TRACKS, Record, Track

Table = dict[str, dict[str, DimensionScore]]  # candidate -> dimension -> score


class DimensionRow(NamedTuple):
    """One dimension of one verdict; `value` None: the judge declared it not applicable.

    `reply` as in `ScoreRow`: None for the session track. Unscored verdicts have no rows.
    """

    candidate: str
    user: str
    card: str
    repetition: int
    track: Track
    reply: int | None
    dimension: str
    value: float | None


class Correlations(Record):
    """Pearson's coefficients between the dimensions of a track, over verdicts of all candidates.

    `matrix[i][j]` is None where fewer than three verdicts (`pairs[i][j]`) answer both dimensions,
    or where one of them never varies.
    """

    dimensions: tuple[str, ...]
    matrix: tuple[tuple[float | None, ...], ...]
    pairs: tuple[tuple[int, ...], ...]


def dimension_table(rows: Iterable[DimensionRow], *, seed: int = 0, draws: int = DRAWS) -> Table:
    """Every candidate's dimensions with 95 % intervals, from the joint draw of cards.

    With the cards and the seed of `aggregate`, the draws are those of `aggregate`.

    Raises:
        InputError: a value off the scale.
    """
    ordered = sorted(rows, key=_identity)
    for row in ordered:
        if row.value is not None and not MIN_SCORE <= row.value <= MAX_SCORE:
            raise InputError(
                f"dimension {row.dimension} of candidate {row.candidate} (user {row.user}, card"
                f" {row.card}): the value {row.value} is not in 1..5, correct it"
            )
    if not ordered:
        return {}
    cards = natural_order(row.card for row in ordered)
    users = natural_order(row.user for row in ordered)
    weights = cluster_draws(len(cards), draws, seed)
    groups: dict[tuple[str, str], list[DimensionRow]] = defaultdict(list)
    for row in ordered:
        groups[row.candidate, row.dimension].append(row)
    dimensions = natural_order(row.dimension for row in ordered)
    return {
        name: {
            dimension: _score(groups[name, dimension], users, cards, weights)
            for dimension in dimensions
            if (name, dimension) in groups
        }
        for name in natural_order(row.candidate for row in ordered)
    }


def with_dimensions(results: Results, table: Table) -> Results:
    """`results` with each candidate's dimensions filled in."""
    candidates = tuple(
        candidate.model_copy(update={"dimensions": table.get(candidate.name, {})})
        for candidate in results.candidates
    )
    return results.model_copy(update={"candidates": candidates})


def dimension_correlations(rows: Iterable[DimensionRow]) -> dict[Track, Correlations]:
    """How alike the dimensions of each track are: near 1, one of the two could be dropped."""
    verdicts: dict[Track, dict[tuple[object, ...], dict[str, float]]] = defaultdict(dict)
    names: dict[Track, set[str]] = defaultdict(set)
    for row in rows:
        names[row.track].add(row.dimension)
        if row.value is not None:
            verdict = (row.candidate, row.user, row.card, row.repetition, row.reply)
            verdicts[row.track].setdefault(verdict, {})[row.dimension] = row.value
    return {
        track: _correlations(natural_order(names[track]), list(verdicts[track].values()))
        for track in TRACKS
        if track in names
    }


def _identity(row: DimensionRow) -> tuple[str, str, str, int, str, int, str]:
    reply = -1 if row.reply is None else row.reply
    place = (row.candidate, row.user, row.card, row.repetition)
    return (*place, row.track, reply, row.dimension)


def _score(
    rows: Sequence[DimensionRow], users: tuple[str, ...], cards: tuple[str, ...], weights: Floats
) -> DimensionScore:
    answers = [row.value for row in rows if row.value is not None]
    counts = {"n": len(answers), "na": len(rows) - len(answers)}
    sums = by_cluster(_trajectories(rows, users, cards))
    silent = [user for user, known in zip(users, sums.clusters(), strict=True) if not known]
    if silent:
        reason = f"no answer for user {', '.join(silent)}"
        return DimensionScore(mean=None, low=None, high=None, reason=reason, **counts)
    fewest = sums.clusters().min()
    half = half_width(sums.redrawn(weights).mean(axis=0), fewest)
    mean = math.fsum(sums.means()) / len(users)
    found = interval(mean, float(half), int(fewest), Scale(MIN_SCORE, MAX_SCORE))
    return DimensionScore(
        mean=found.mean, low=found.low, high=found.high, reason=found.reason, **counts
    )


def _trajectories(
    rows: Sequence[DimensionRow], users: tuple[str, ...], cards: tuple[str, ...]
) -> Floats:
    """Means over the answers of each trajectory: (users, cards, repetitions), NaN without one."""
    answers: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    user, card = ({name: i for i, name in enumerate(axis)} for axis in (users, cards))
    repetition = {r: i for i, r in enumerate(sorted({row.repetition for row in rows}))}
    for row in rows:
        if row.value is not None:
            place = (user[row.user], card[row.card], repetition[row.repetition])
            answers[place].append(row.value)
    means = np.full((len(users), len(cards), len(repetition)), np.nan)
    for place, values in answers.items():
        means[place] = math.fsum(values) / len(values)
    return means


def _correlations(names: tuple[str, ...], verdicts: Sequence[dict[str, float]]) -> Correlations:
    answers = {
        name: np.array([verdict.get(name, np.nan) for verdict in verdicts]) for name in names
    }
    found = [[pearson(answers[a], answers[b], "verdicts") for b in names] for a in names]
    return Correlations(
        dimensions=names,
        matrix=tuple(tuple(cell.value for cell in row) for row in found),
        pairs=tuple(tuple(cell.n for cell in row) for row in found),
    )
