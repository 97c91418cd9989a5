"""What a report is made from: plain values, gathered by `palate.run`, no file and no model.

`ReportData.results` is the JSON object that `palate report --json` prints; the types that read it
are in `palate.report.results`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from palate.models.client import Role
from palate.types import (
    Cell,
    Judgement,
    Message,
    Record,
    Rejected,
    SharedRubric,
    SimulatorKind,
    Track,
    Trajectory,
    Usage,
)

NO_USAGE = Usage()
EMBEDDED = "local:"  # how the specification of an embedded model begins


class CardLabel(Record):
    """A panel card as the report names it; `file` is where the study found it."""

    id: str
    name: str
    language: str = "en"
    file: str = ""


class UserSetting(Record):
    """A user and the simulator that spoke for them."""

    user_id: str
    simulator: SimulatorKind
    model: str
    temperature: float | None = None  # None: the endpoint's default


class CandidateSetting(Record):
    """A candidate and how it was asked.

    `prompt` is "card", "none" or a file's name; `message_form` says in words in which roles the
    conversation was sent (back ends differ in what they accept).
    """

    name: str
    model: str
    prompt: str = "card"
    temperature: float | None = None  # None: the endpoint's default
    message_form: str = ""


class ModelUse(Record):
    """Calls, tokens and money of one model in one role.

    `revisions` are those the servers said they served. `cost` None: the price is not known.
    """

    role: Role
    model: str
    revisions: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = Usage()
    cost: float | None = None

    @property
    def embedded(self) -> bool:
        """Whether it is the model that comes with palate."""
        return self.model.startswith(EMBEDDED)


class Fact(Record):
    """A setting of the run: its name and its value, as text."""

    name: str
    value: str


class Fingerprint(Record):
    """The SHA-256 of something the numbers depend on: a prompt, rubric, card, simulator, …"""

    kind: str
    name: str
    sha256: str


class Failure(Record):
    """A call that did not come back; its cell stays open until the run is resumed."""

    cell: str
    role: Role
    error: str
    track: Track | None = None
    turn: int | None = None
    when: str = ""


class Matrix(Record):
    """How the dimensions of a track go together: Pearson r, or None where it is not defined."""

    track: Track
    dimensions: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    n: int | None = None


@dataclass(frozen=True, slots=True)
class CellRecord:
    """One planned cell and all that came of it.

    `trajectory` None: the cell is open, and `so_far` holds what was accepted up to now.
    `resampled` has an entry for each message of the simulator that was drawn anew.
    """

    cell: Cell
    trajectory: Trajectory | None
    opening: str = ""
    so_far: tuple[Message, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    failures: tuple[Failure, ...] = ()
    usage: Usage = NO_USAGE
    resampled: tuple[Rejected, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages after the opening, finished or not."""
        return self.so_far if self.trajectory is None else self.trajectory.messages


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """All of one run. `cells` is read once and may be a generator: it is never held in memory."""

    study_name: str
    results: dict[str, Any]
    cells: Iterable[CellRecord]
    cards: tuple[CardLabel, ...]
    users: tuple[UserSetting, ...]
    candidates: tuple[CandidateSetting, ...]
    repetitions: int
    depth_limit: int  # user turns
    sampled_replies: int
    seed: int
    resample: int = 0  # most times a message is drawn anew
    models: tuple[ModelUse, ...] = ()
    rubrics: tuple[SharedRubric, ...] = ()
    correlations: tuple[Matrix, ...] = ()
    settings: tuple[Fact, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    warnings: tuple[str, ...] = ()
    manifest: dict[str, Any] | None = None
    currency: str = "USD"
    finished: str = ""  # when the run last wrote, as the reader should see it

    @property
    def planned(self) -> int:
        """Cells of the plan."""
        return len(self.users) * len(self.cards) * len(self.candidates) * self.repetitions
