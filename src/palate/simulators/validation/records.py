"""What a validation found, as it is stored: the one place where its numbers have names (paper 3.1).

    Validation              a study: its persons, and what sets them against one another
    ├── PersonResult        one person: what was held out, and the conditions side by side
    │   └── ConditionResult raw, prompted, profile or lora: each measure, or why it is not there
    ├── OwnAgainstOthers    each person's held-out messages under every person's adapter
    └── Attribution         whose messages a classifier of authors takes them for

The measures without a judge are in `measures`. What could not be measured is None and has its
reason; it is never a number.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from palate.simulators.validation.measures import (
    Attribution,
    Estimate,
    Leaving,
    Likelihood,
    OwnAgainstOthers,
    Spoken,
    Surface,
    TwoSample,
)
from palate.types import Record, SimulatorKind

SCHEMA = "palate.validation/1"
CONDITIONS: tuple[SimulatorKind, ...] = ("raw", "prompted", "profile", "lora")

Level = Literal["fit", "weak", "unusable", "cannot be told"]
Measure = Literal[
    "likelihood", "two_sample", "surface", "leaving", "fooling", "consistency", "verdict"
]


class Fooling(Record):
    """2AFC: the judge names the human's message of two, asked in both orders (paper 3.1).

    `rate` in 0..1: 0.5 is indistinguishable, far above it is a caricature; an answer that changes
    with the order, or "cannot tell", counts half. `flips`: share of pairs whose answer changed with
    the order. `unscored` pairs have an answer that could not be read. `length_matched`: the same
    over pairs of about equal length, by the rule `length_rule`.
    """

    judge: str
    judge_revision: str = ""
    counts_toward_verdict: bool
    form: Literal["json", "digits"]
    prompts: dict[str, str]  # prompt file -> SHA-256
    rate: Estimate
    distance: float | None  # |rate - 0.5|
    flips: Estimate
    cannot_tell: int
    pairs: int
    unscored: int
    length_matched: Estimate
    length_matched_flips: Estimate
    length_rule: str


class Consistency(Record):
    """Identity consistency, 0..100, and the controls that say what it is worth (paper 3.1).

    `own`: the simulator's messages; `ceiling`: the person's own held-out messages; `control`:
    another real person's, scored the same way. `over_control`: own minus control, paired.
    `tells_people_apart`: whether the ceiling lies above the control, None where it was not asked.
    """

    judge: str
    judge_revision: str = ""
    counts_toward_verdict: bool
    form: Literal["json", "digits"]
    prompts: dict[str, str]
    shown_messages: int  # K
    own: Estimate
    control: Estimate
    ceiling: Estimate
    over_control: Estimate
    tells_people_apart: bool | None
    unscored: int


class Verdict(Record):
    """In words: may this simulator stand for its person, and why."""

    level: Level
    reasons: tuple[str, ...]
    missing: tuple[Measure, ...] = ()


class ConditionResult(Record):
    """One condition of one person; a measure that is None has its reason in `absent`."""

    condition: SimulatorKind
    model: str | None  # None: the condition could not be set up at all
    adapter: str | None = None  # SHA-256 of its record
    spoken: Spoken | None = None
    likelihood: Likelihood | None = None
    two_sample: TwoSample | None = None
    surface: Surface | None = None
    leaving: Leaving | None = None
    fooling: Fooling | None = None
    consistency: Consistency | None = None
    verdict: Verdict | None = None
    absent: dict[Measure, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_what_is_missing(self) -> Self:
        measures: tuple[Measure, ...] = (
            "likelihood",
            "two_sample",
            "surface",
            "leaving",
            "fooling",
            "consistency",
            "verdict",
        )
        for name in measures:
            if (getattr(self, name) is None) != (name in self.absent):
                raise ValueError(f"{name} is there, or there is a reason in `absent`")
        return self


class PersonResult(Record):
    """One person's simulators side by side, on that person's held-out sessions."""

    user_id: str
    language: Literal["en", "zh"]
    training_sessions: int
    held_out_sessions: dict[str, str]  # session id -> SHA-256
    held_out_messages: int
    contexts: int
    left_contexts: int  # contexts where the person left
    conditions: tuple[ConditionResult, ...]


class Validation(Record):
    """validation.json: a study's simulators, and how near each comes to its person."""

    schema_: Literal["palate.validation/1"] = Field(default="palate.validation/1", alias="schema")
    study: str
    seed: int
    judge: str | None
    persons: tuple[PersonResult, ...]
    own_against_others: OwnAgainstOthers | None
    attribution: Attribution | None
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    made_at: str = ""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
