"""What an aggregation says: the object that `palate aggregate --json` prints.

A column is `user:ID`, `generic`, `session`, `u_score`, `g_score` or `overall`. Scores lie in 1..5,
so the three indices lie in 20..100. None stands for "not measured", and a reason stands beside it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from palate.types import Record, Track

FEW_CARDS = 5  # intervals that rest on fewer cards are marked
COVERAGE_LIMIT = 0.9  # a candidate with less of its replies or sessions scored is marked

FORMULA = "mean over trajectories of the mean over their scored replies, then over users"
SCALE = "scores lie in 1..5, the indices u_score, g_score and overall in 20..100"


class Interval(Record):
    """An estimate with its 95 % interval, clipped to the scale.

    `low` and `high` are None where `reason` says why there is no interval. `cards`: how many cards
    the number rests on (for a mean over users, of the user who has the fewest).
    """

    mean: float
    low: float | None
    high: float | None
    cards: int
    few_cards: bool
    reason: str | None = None


class PersonalScore(Record):
    """P_u(c): one user's satisfaction with one candidate, 1..5; None without a scored reply.

    `replies` and `trajectories` are what the mean rests on; `unscored` replies and
    `trajectories_planned` are what it could have rested on.
    """

    mean: float | None
    low: float | None
    high: float | None
    replies: int
    unscored: int
    trajectories: int
    trajectories_planned: int
    cards: int
    few_cards: bool
    reason: str | None = None


class TrackCoverage(Record):
    """Verdicts of one track."""

    scored: int
    unscored: int


class Coverage(Record):
    """How much of what was planned for a candidate has a score.

    A reply counts as scored when every track that judged it gave a score; a session, when every
    track that judged it gave at least one. `sessions_planned` counts the cells (user, card,
    repetition) that any candidate has: a cell missing for one candidate alone is not forgotten.
    """

    scored: int
    replies: int
    sessions_scored: int
    sessions_planned: int
    tracks: dict[Track, TrackCoverage]


class Mark(Record):
    """A warning that stands beside a candidate's name wherever it is ranked."""

    kind: Literal["incomplete", "low coverage", "few cards"]
    text: str


class DimensionScore(Record):
    """One dimension of a candidate, aggregated like a track; `n` answers, `na` declared n/a."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    na: int
    reason: str | None = None


class CandidateResult(Record):
    """The evaluation profile of one candidate in numbers; `reasons` says why a column is None."""

    name: str
    personal: dict[str, PersonalScore]
    p_bar: Interval | None
    generic: Interval | None
    session: Interval | None
    u_score: Interval | None
    g_score: Interval | None
    overall: Interval | None
    coverage: Coverage
    marks: tuple[Mark, ...]
    reasons: dict[str, str]
    dimensions: dict[str, DimensionScore] = Field(default_factory=dict)


class Behind(Record):
    """The best minus this candidate, paired on the cells that both have."""

    mean: float
    low: float | None
    high: float | None


class Standing(Record):
    """A candidate's place in a column: 1 for the best and all that are not told apart from it."""

    name: str
    rank: int | None
    behind: Behind | None
    reason: str | None = None


class Mismatch(Record):
    """A candidate that stands at one rank in one column and at another in a second."""

    candidate: str
    column_a: str
    rank_a: int
    column_b: str
    rank_b: int


class Stability(Record):
    """Spearman's coefficient between repetitions (mean over their pairs), or why there is none."""

    spearman: float | None
    reason: str | None


class NoiseFloor(Record):
    """The smallest difference between two candidates that this panel tells apart.

    Half of the width of the paired interval, in the unit of the column: the median over all pairs
    of candidates, and the smallest and largest of them.
    """

    difference: float | None
    smallest: float | None
    largest: float | None
    reason: str | None


class Results(Record):
    """Everything that is computed from a table of scores (paper 3.3)."""

    candidates: tuple[CandidateResult, ...]
    winners: dict[str, tuple[str, ...]]
    mismatches: tuple[Mismatch, ...]
    rank_stability: dict[str, Stability]
    ranking: dict[str, tuple[Standing, ...]]
    noise_floor: dict[str, NoiseFloor]
    users: tuple[str, ...]
    cards: tuple[str, ...]
    repetitions: tuple[int, ...]
    seed: int
    draws: int
    coverage_limit: float = COVERAGE_LIMIT
    formula: str = FORMULA
    scale: str = SCALE

    def ranks(self, column: str) -> dict[str, int | None]:
        """Rank of each candidate in `column`; None for those that cannot be ranked."""
        return {place.name: place.rank for place in self.ranking[column]}
