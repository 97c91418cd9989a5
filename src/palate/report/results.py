"""The aggregate's JSON object (`palate report --json`) with types, as the page reads it.

Read from JSON and not from the aggregate's own classes, so that a report can be made from a
`results.json` of any age. Keys that the page does not show are ignored.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from palate.errors import InputError


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Estimate(_Read):
    """A mean with its 95 % interval; bounds None where `reason` says why there is no interval."""

    mean: float
    low: float | None = None
    high: float | None = None
    few_cards: bool = False
    reason: str | None = None


class PersonalScore(_Read):
    """P_u of one user and candidate, 1..5, and what it rests on; None without a scored reply."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    replies: int = 0
    trajectories: int = 0
    few_cards: bool = False
    reason: str | None = None


class DimensionScore(_Read):
    """One dimension of one candidate, 1..5: `n` scores, `na` declared not applicable."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    na: int = 0


class Coverage(_Read):
    """Replies scored of those to be scored, and sessions scored of those planned."""

    scored: int = 0
    replies: int = 0
    sessions_scored: int = 0
    sessions_planned: int = 0


class Mark(_Read):
    """A warning that stands beside a candidate's name."""

    kind: str
    text: str


class CandidateScores(_Read):
    """A candidate's profile; tracks in 1..5, indices in 20..100.

    None where not measured; `reasons` then says why, by column.
    """

    name: str
    personal: dict[str, PersonalScore | None] = Field(default_factory=dict)
    p_bar: Estimate | None = None
    generic: Estimate | None = None
    session: Estimate | None = None
    u_score: Estimate | None = None
    g_score: Estimate | None = None
    overall: Estimate | None = None
    coverage: Coverage = Coverage()
    marks: tuple[Mark, ...] = ()
    reasons: dict[str, str] = Field(default_factory=dict)
    dimensions: dict[str, DimensionScore] = Field(default_factory=dict)

    def column(self, name: str) -> Estimate | None:
        """The estimate of one column, "p_bar" to "overall"."""
        value: Estimate | None = getattr(self, name)
        return value


class Standing(_Read):
    """A place in a column: 1 for the best and for all that are not told apart from it."""

    name: str
    rank: int | None = None


class Mismatch(_Read):
    """A candidate that two columns rank differently."""

    candidate: str
    column_a: str
    rank_a: float
    column_b: str
    rank_b: float


class Stability(_Read):
    """Spearman's rank correlation between repetitions, -1..1, or the reason for none."""

    spearman: float | None = None
    reason: str | None = None


class NoiseFloor(_Read):
    """The smallest difference that this panel tells apart, in the unit of the column."""

    difference: float | None = None
    smallest: float | None = None
    largest: float | None = None
    reason: str | None = None


class Results(_Read):
    """The whole object."""

    candidates: tuple[CandidateScores, ...] = ()
    winners: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    mismatches: tuple[Mismatch, ...] = ()
    rank_stability: dict[str, Stability] = Field(default_factory=dict)
    ranking: dict[str, tuple[Standing, ...]] = Field(default_factory=dict)
    noise_floor: dict[str, NoiseFloor] = Field(default_factory=dict)
    formula: str = ""

    def standing(self, column: str, candidate: str) -> str:
        """The candidate's place in a column in words; empty where it is not ranked."""
        ranks = {place.name: place.rank for place in self.ranking.get(column, ())}
        rank = ranks.get(candidate)
        if rank is None:
            return ""
        return f"rank {rank}, shared" if list(ranks.values()).count(rank) > 1 else f"rank {rank}"


def read_results(value: dict[str, Any]) -> Results:
    """The results in `value`.

    Raises:
        InputError: it is not the object that `palate report --json` prints.
    """
    try:
        return Results.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise InputError(
            f"results: {where}: {first['msg']}; make them again with `palate report`"
        ) from None
