"""The domain types: what is stored and what crosses from one stage to another.

Words are those of the paper. A *session* is a real, recorded conversation; a *trajectory* is a
simulated one; a *reply* is one message of the character; a *reaction* is the user's next message
after it. Speakers are "character" and "user", never "assistant": the role in an API call depends
on who looks, and `palate.chat` alone decides it.

Records refer to one another by content digest: `digest()` of their canonical JSON.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Speaker = Literal["character", "user"]
Track = Literal["personal", "generic", "session"]
SessionEnd = Literal["quit", "limit", "unknown"]
TrajectoryEnd = Literal[
    "quit", "depth_limit", "simulator_empty", "candidate_empty", "candidate_blocked"
]
SimulatorKind = Literal["raw", "prompted", "profile", "lora"]
ScoreKind = Literal["integer", "expected"]
Finish = Literal["ok", "length", "refused"]
# Of one message of a simulator: what was wrong with each draft of it that was not taken.
Rejected = tuple[tuple[str, ...], ...]

TRACKS: tuple[Track, ...] = ("personal", "generic", "session")
MIN_SCORE = 1
MAX_SCORE = 5  # the paper's s


class Record(BaseModel):
    """Frozen, and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def digest(self) -> str:
        """SHA-256 of the record's canonical JSON, in hexadecimal."""
        return digest(self.model_dump(mode="json"))


def digest(value: object) -> str:
    """SHA-256 of `value` as canonical JSON: sorted keys, no white space, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Card(Record):
    """A character as its author wrote it.

    `original` is the untouched source. Placeholders ({{char}}, {{user}}) are still in the texts:
    `palate.cards.filled` replaces them when a chat begins.
    """

    id: str
    language: Literal["en", "zh"]
    name: str
    persona: str = ""
    personality: str = ""
    scenario: str = ""
    opening: str = ""
    example_dialogue: str = ""
    system_prompt: str = ""
    post_history_instructions: str = ""
    original: dict[str, Any] = Field(default_factory=dict, repr=False)


class Scene(NamedTuple):
    """All that a simulator sees of a card besides its opening, placeholders filled (paper 3.1).

    A user does not see persona, lorebook or instructions, so neither does who plays the user.
    `user` is the name that the character calls them by.
    """

    language: Literal["en", "zh"]
    character: str
    scenario: str
    user: str


class Turn(Record):
    """One message of a real session; only a character turn may carry a satisfaction, 1..5."""

    speaker: Speaker
    text: str
    satisfaction: int | None = Field(default=None, ge=MIN_SCORE, le=MAX_SCORE)
    note: str | None = None


class Session(Record):
    """A real, recorded conversation of one user with one character (paper 3.1)."""

    session_id: str
    user_id: str
    card_id: str
    language: str = "en"
    ended_by: SessionEnd = "unknown"
    turns: tuple[Turn, ...]
    extra: dict[str, Any] = Field(default_factory=dict)


class TrainingSession(NamedTuple):
    """A session that the split gave to training: all that induction and training may read.

    Made by `palate.histories.split` alone, so that reading a held-out session is a type error.
    """

    session: Session


class Cell(NamedTuple):
    """The unit of work and of resuming (paper 3.2)."""

    user_id: str
    card_id: str
    candidate: str
    repetition: int  # from 1

    @property
    def key(self) -> str:
        """For example "u1/harbour/captain-v2/1"; its parts never hold a slash."""
        return f"{self.user_id}/{self.card_id}/{self.candidate}/{self.repetition}"


class Usage(NamedTuple):
    """Tokens as the endpoint reported them, summed over the attempts of one call."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0  # part of `prompt` read from the provider's cache

    def __add__(self, other: object) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(*(a + b for a, b in zip(self, other, strict=True)))


class Message(Record):
    """One message of a trajectory, after the opening.

    `flags` are facts beside the text, never scores: "repetition", "refusal_in_words", …
    """

    speaker: Speaker
    text: str
    finish: Finish = "ok"
    flags: tuple[str, ...] = ()


class Trajectory(Record):
    """A finished simulated conversation (paper 3.2).

    `messages` begins after the opening, which is part of the card and never scored. User and
    character alternate, the user first; a farewell before `[QUIT]` is the last user message.
    """

    cell: Cell
    opening: str
    messages: tuple[Message, ...]
    ended_by: TrajectoryEnd

    def replies(self) -> tuple[int, ...]:
        """Positions in `messages` of the candidate's replies, in order; reply k is the k-th."""
        return tuple(i for i, m in enumerate(self.messages) if m.speaker == "character")


class Judgement(Record):
    """One verdict of one track (paper 3.3): a reply, or for the session track the whole chat.

    `scores` maps each dimension to 1..5, or to None where the judge declared a sparse dimension
    not applicable (with `score_kind` "expected": where the digits form did not ask for it); the
    personal track has the one dimension "satisfaction". `overall` is computed
    (the mean of the answered dimensions), never the judge's own; it is None exactly when
    `unscored` gives the reason.
    """

    cell: str
    track: Track
    reply: int | None  # from 0 over the candidate's replies; None for the session track
    trajectory: str  # digest
    rubric: str  # digest
    prompt: str  # digest of the prompt file
    judge: str
    judge_revision: str = ""
    reaction_shown: bool
    scores: dict[str, float | None] = Field(default_factory=dict)
    overall: float | None = None
    judge_overall: float | None = None
    score_kind: ScoreKind = "integer"
    unscored: str | None = None
    flags: tuple[str, ...] = ()
    reason: str = ""
    raw: str = ""
    ignored: tuple[str, ...] = ()  # dimensions the judge made up
    attempts: int = 1
    usage: Usage = Usage()

    @property
    def key(self) -> str:
        """Identity within a run: cell, track and reply."""
        return f"{self.cell}|{self.track}|{'' if self.reply is None else self.reply}"


class Evidence(Record):
    """A rule of a personal rubric and the turns that support it, as "SESSION#TURN"."""

    id: str
    rule: str
    weight: Literal["major", "minor"]
    evidence: tuple[str, ...] = ()


class Reaction(Record):
    """What one way of reacting means in this person: -1 displeased, 0 neutral, 1 pleased."""

    pattern: str
    meaning: str
    direction: Literal[-1, 0, 1]
    evidence: tuple[str, ...] = ()


class Provenance(Record):
    """Who made the rubric, and from what."""

    author: str  # "hand", or "model"
    model: str | None = None
    prompt_sha256: str | None = None
    training_sessions: dict[str, str] = Field(default_factory=dict)  # session id -> sha256


class PersonalRubric(Record):
    """One user's frozen rubric (paper 3.3), in the schema shared by all users."""

    schema_: Literal["palate.rubric/1"] = Field(alias="schema")
    track: Literal["personal"]
    user_id: str
    language: Literal["en", "zh"]
    summary: str
    rewards: tuple[Evidence, ...]
    penalties: tuple[Evidence, ...]
    reactions: tuple[Reaction, ...]
    anchors: dict[str, str]
    provenance: Provenance
    sha256: str

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Dimension(Record):
    """One dimension of a shared rubric; texts by language ("en", "zh").

    `id` ("G1") is what a verdict and a table use; `name` ("fluency") is taken for it too.
    """

    id: str
    name: str = ""
    label: dict[str, str]
    definition: dict[str, str]
    anchors: dict[str, dict[str, str]]  # language -> {"1", "3", "5"}
    sparse: bool = False


class SharedRubric(Record):
    """The generic rubric (12 dimensions of a reply) or the session rubric (11 of a whole chat)."""

    track: Literal["generic", "session"]
    version: str
    dimensions: tuple[Dimension, ...]


class ScoreRow(NamedTuple):
    """One score from anywhere: a row of SCORES.csv, or one judgement of a run.

    `score` None: unscored. `reply` and `score` None on a turn track: a planned cell whose
    trajectory has no reply.
    """

    user: str
    card: str
    candidate: str
    repetition: int
    track: Track
    reply: int | None
    score: float | None
