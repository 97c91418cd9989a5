"""From scores to profiles: P_u, G, S, the three indices, who wins and how sure that is (paper 3.3).

    results = aggregate(read_scores(Path("scores.csv")))
    results.winners["u1"]

Cards are the sampling unit and shared by all: one draw of card ids serves every user, candidate and
track at once, and the repetitions of a card stay with it. Users are fixed: an interval says what
other cards would change, not what other users would.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from palate.aggregate import columns, ranking
from palate.aggregate.dimensions import (
    Correlations,
    DimensionRow,
    dimension_correlations,
    dimension_table,
    with_dimensions,
)
from palate.aggregate.estimates import DRAWS, estimate
from palate.aggregate.panel import Panel, panel
from palate.aggregate.profiles import profile, reasons
from palate.aggregate.results import Results, Stability, Standing
from palate.aggregate.scores_file import read_scores
from palate.statistics import by_cluster, cluster_draws
from palate.types import ScoreRow

__all__ = [
    "DRAWS",
    "Correlations",
    "DimensionRow",
    "Results",
    "aggregate",
    "dimension_correlations",
    "dimension_table",
    "read_scores",
    "with_dimensions",
]


def aggregate(rows: Iterable[ScoreRow], *, seed: int = 0, draws: int = DRAWS) -> Results:
    """The profiles of all candidates, with the order of `rows` without influence.

    Args:
        rows: unscored verdicts and planned cells without a reply included: they make the coverage.
        seed: of the bootstrap draws.
        draws: how many.

    Raises:
        InputError: no rows, a score off the scale, or two scores for the same thing.
    """
    scores = panel(rows)
    weights = cluster_draws(len(scores.cards), draws, seed)
    estimates = estimate(scores.values, weights)
    order = _ranking(scores, comparison := columns.compare(scores, weights))
    return Results(
        candidates=tuple(profile(scores, estimates, n) for n in range(len(scores.candidates))),
        winners={user: ranking.winners(order[f"user:{user}"]) for user in scores.users},
        mismatches=ranking.mismatches(order),
        rank_stability=_stability(scores),
        ranking=order,
        noise_floor={
            column: ranking.noise_floor(comparison.half_widths[k]) for k, column in enumerate(order)
        },
        users=scores.users,
        cards=scores.cards,
        repetitions=scores.repetitions,
        seed=seed,
        draws=draws,
    )


def _ranking(scores: Panel, comparison: columns.Comparison) -> dict[str, tuple[Standing, ...]]:
    absent = {name: reasons(scores, n) for n, name in enumerate(scores.candidates)}
    return {
        column: ranking.standings(
            scores.candidates,
            comparison.differences[k],
            comparison.half_widths[k],
            {name: why[column] for name, why in absent.items() if column in why},
            columns.scale(column),
        )
        for k, column in enumerate(columns.names(scores.users))
    }


def _stability(scores: Panel) -> dict[str, Stability]:
    """Rank stability of each column, every repetition ranked by itself on its shared cells."""
    leads = []  # of each repetition: (K, N)
    for r in range(len(scores.repetitions)):
        once = scores.values[..., r : r + 1]
        present = np.isfinite(columns.combine(by_cluster(once).means()))
        met = columns.differences(once)
        leads.append([ranking.smallest_leads(d, p) for d, p in zip(met, present, strict=True)])
    return {
        column: ranking.stability([repetition[k] for repetition in leads])
        for k, column in enumerate(columns.names(scores.users))
    }
