"""The columns of a profile, and how candidates differ in them (paper 3.3).

A column is a linear function of the per-user values of the three tracks, so one function serves
the estimates, every bootstrap draw and the paired differences alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palate.aggregate.panel import Panel
from palate.statistics import Floats, Ints, by_cluster, half_width
from palate.types import MAX_SCORE, MIN_SCORE, Track

PER_POINT = 100 / MAX_SCORE  # an index has 100 for the highest score
INDEX_COLUMNS = ("u_score", "g_score", "overall")
# The tracks that a column over all users is made of, in the order in which `combine` returns them.
PARTS: dict[str, tuple[Track, ...]] = {
    "generic": ("generic",),
    "session": ("session",),
    "u_score": ("personal",),
    "g_score": ("generic", "session"),
    "overall": ("personal", "generic", "session"),
}


class Scale(NamedTuple):
    """The lowest and highest value that a column can take."""

    low: float
    high: float


class Comparison(NamedTuple):
    """Paired differences, row minus column, on the cells that both candidates have.

    Both (K, N, N) for K columns and N candidates; NaN where two share too little, and in
    `half_widths` where there is no interval.
    """

    differences: Floats
    half_widths: Floats


def names(users: tuple[str, ...]) -> tuple[str, ...]:
    """The K columns in order."""
    return (*(f"user:{user}" for user in users), *PARTS)


def scale(column: str) -> Scale:
    """1..5 for users and tracks, 20..100 for the indices."""
    if column in INDEX_COLUMNS:
        return Scale(MIN_SCORE * PER_POINT, MAX_SCORE * PER_POINT)
    return Scale(MIN_SCORE, MAX_SCORE)


def combine(values: Floats) -> Floats:
    """Columns (K, ...) from values (tracks, users, ...): users weigh the same.

    One user without a value (NaN) leaves every mean over users without one.
    """
    personal = values[0]
    p, g, s = values.mean(axis=1)
    indices = [PER_POINT * p, PER_POINT / 2 * (g + s), PER_POINT / 3 * (p + g + s)]
    return np.concatenate([personal, np.stack([g, s, *indices])])


def fewest(counts: Ints) -> Ints:
    """The smallest count among the parts of each column, (K, ...) from (tracks, users, ...).

    A mean over users is no surer than the user with the fewest cards.
    """
    p, g, s = counts.min(axis=1)
    indices = [p, np.minimum(g, s), np.minimum(np.minimum(g, s), p)]
    return np.concatenate([counts[0], np.stack([g, s, *indices])])


def compare(panel: Panel, weights: Floats) -> Comparison:
    """Every candidate against every other, with the draws of `weights` (draws, cards)."""
    n = len(panel.candidates)
    shape = (len(names(panel.users)), n, n)
    differences, widths = np.full(shape, np.nan), np.full(shape, np.nan)
    for i in range(
        n - 1
    ):  # one candidate at a time: all pairs at once would hold N times the draws
        rest = slice(i + 1, n)
        paired = by_cluster(panel.values[:, :, i : i + 1] - panel.values[:, :, rest])
        difference = combine(paired.means())
        width = half_width(combine(paired.redrawn(weights)), fewest(paired.clusters()))
        differences[:, i, rest], differences[:, rest, i] = difference, -difference
        widths[:, i, rest] = widths[:, rest, i] = width
    return Comparison(differences, widths)


def differences(values: Floats) -> Floats:
    """Paired differences alone, (K, N, N), from values (tracks, users, N, cards, repetitions)."""
    paired = by_cluster(values[:, :, :, None] - values[:, :, None, :])
    return combine(paired.means())
