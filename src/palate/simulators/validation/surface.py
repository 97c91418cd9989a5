"""How messages look: length, marks, emoji, case; the simulator's beside the person's (paper 3.1).

Counted at the same contexts. A measure that differs here tells the two apart at a glance, whatever
the words say.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from palate.habits import (
    Habits,
    characters,
    habits,
    words,
)
from palate.simulators.validation.estimates import (
    DIFFERENCE,
    missing,
    per_session,
    pooled_difference,
)
from palate.simulators.validation.measures import (
    Bars,
    Distribution,
    Habit,
    Spread,
    Surface,
)
from palate.simulators.validation.speaking import Pair

# Steps of about one half, so that "ok" and "okay then" fall apart as far as two long messages do.
LENGTH_EDGES = (0, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450)
SHARE_EDGES = (0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)

_NO_LATIN = "no message with Latin letters on one of the two sides"


class _Measure(NamedTuple):
    name: str
    unit: str
    of: Callable[[str], float]
    edges: tuple[float, ...]


def marks(text: str) -> float:
    """Share of the characters, white space left out, that are punctuation; 0 of no characters."""
    visible = [character for character in text if not character.isspace()]
    found = sum(1 for character in visible if unicodedata.category(character).startswith("P"))
    return found / len(visible) if visible else 0.0


MEASURES = (
    _Measure("characters", "characters", characters, LENGTH_EDGES),
    _Measure("words", "words", words, LENGTH_EDGES),
    _Measure("marks", "share of characters", marks, SHARE_EDGES),
)


def surface(pairs: Sequence[Pair], *, seed: int) -> Surface:
    """The distributions and habits of both sides of these pairs, at least one."""
    return Surface(
        messages=len(pairs),
        distributions=tuple(_distribution(measure, pairs) for measure in MEASURES),
        habits=tuple(_habit(name, pairs, seed) for name in Habits.model_fields),
    )


def kolmogorov_smirnov(first: Sequence[float], second: Sequence[float]) -> float:
    """The largest gap between the shares of values up to any point, 0 (alike) to 1 (apart)."""
    points = np.concatenate([first, second])
    shares = [
        np.searchsorted(np.sort(values), points, side="right") / len(values)
        for values in (first, second)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


def _distribution(measure: _Measure, pairs: Sequence[Pair]) -> Distribution:
    from scipy.stats import wasserstein_distance  # loads 50 MB

    human = [float(measure.of(pair.human)) for pair in pairs]
    simulated = [float(measure.of(pair.simulated)) for pair in pairs]
    return Distribution(
        name=measure.name,
        unit=measure.unit,
        human=_spread(human),
        simulated=_spread(simulated),
        ks=kolmogorov_smirnov(human, simulated),
        wasserstein=float(wasserstein_distance(human, simulated)),
        bars=Bars(
            edges=measure.edges,
            human=_counts(human, measure.edges),
            simulated=_counts(simulated, measure.edges),
        ),
    )


def _spread(values: Sequence[float]) -> Spread:
    array = np.asarray(values, dtype=float)
    # Values that occur, as `habits.quantile` gives them; nothing is put between two.
    p10, p25, median, p75, p90 = np.quantile(
        array, [0.1, 0.25, 0.5, 0.75, 0.9], method="inverted_cdf"
    )
    return Spread(
        mean=float(array.mean()),
        p10=float(p10),
        p25=float(p25),
        median=float(median),
        p75=float(p75),
        p90=float(p90),
    )


def _counts(values: Sequence[float], edges: Sequence[float]) -> tuple[int, ...]:
    places = np.searchsorted(np.asarray(edges), np.asarray(values), side="right") - 1
    return tuple(int(count) for count in np.bincount(places, minlength=len(edges)))


def _habit(name: str, pairs: Sequence[Pair], seed: int) -> Habit:
    human = _holding(name, [(pair.session_id, pair.human) for pair in pairs])
    simulated = _holding(name, [(pair.session_id, pair.simulated) for pair in pairs])
    if not human or not simulated:
        return Habit(
            name=name,
            human=_share(human),
            simulated=_share(simulated),
            difference=missing(_NO_LATIN),
        )
    order = list(dict.fromkeys(pair.session_id for pair in pairs))
    difference = pooled_difference(
        per_session([value for _, value in simulated], [s for s, _ in simulated], order),
        per_session([value for _, value in human], [s for s, _ in human], order),
        seed=seed,
        scale=DIFFERENCE,
    )
    return Habit(name=name, human=_share(human), simulated=_share(simulated), difference=difference)


def _holding(name: str, texts: Sequence[tuple[str, str]]) -> list[tuple[str, float]]:
    """Session and 1 or 0 of each message; one that the habit cannot be seen in is left out."""
    found = ((session, getattr(habits([text]), name)) for session, text in texts)
    return [(session, value) for session, value in found if value is not None]


def _share(holding: Sequence[tuple[str, float]]) -> float | None:
    return sum(value for _, value in holding) / len(holding) if holding else None
