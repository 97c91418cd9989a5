"""The baseline of the human-agreement study: a re-implementation of a public rubric (paper 4.3).

Three areas with weights: worlds 0.5, stories 0.25, user preferences 0.25, after the public
description of MiniMax's Role-play Benchmark. The texts are this project's own; the data file names
the source. Nothing but the study reads it.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping
from importlib import resources

from pydantic import Field

from palate.errors import RubricError
from palate.types import Dimension, Record


class Area(Record):
    """One area: its part of the whole, and the points that are asked, which weigh the same."""

    id: str
    weight: float = Field(gt=0, le=1)
    points: tuple[Dimension, ...] = Field(min_length=1)


class Baseline(Record):
    """The rubric; `source` is the public description that it was made after."""

    name: str
    version: str
    source: str
    areas: tuple[Area, ...]

    @property
    def points(self) -> tuple[Dimension, ...]:
        """What a judge is asked, in order."""
        return tuple(point for area in self.areas for point in area.points)

    def overall(self, scores: Mapping[str, float | None]) -> float | None:
        """Σ weight · mean of an area's points, in 1..5; None unless every point has a score."""
        given = {point.id: scores.get(point.id) for point in self.points}
        if any(score is None for score in given.values()):
            return None
        means = (
            area.weight * math.fsum(given[p.id] or 0.0 for p in area.points) / len(area.points)
            for area in self.areas
        )
        return math.fsum(means)


@functools.cache
def load_baseline() -> Baseline:
    """The baseline that comes with palate.

    Raises:
        RubricError: the installed file is damaged.
    """
    file = "baseline_minimax.toml"
    text = resources.files(__package__).joinpath("data", file).read_text("utf-8")
    rubric = Baseline.model_validate(tomllib.loads(text))
    if not math.isclose(math.fsum(area.weight for area in rubric.areas), 1):
        raise RubricError(f"{file}: the weights of the areas do not add up to 1; mend them")
    return rubric
