"""What the journals of a run folder hold, line by line, checked as it is read.

A line that does not hold what it should is damaged: it is left out with a warning, and the next
`palate run` makes up for it. So a journal that was torn, cut, doubled or edited costs calls, never
a wrong number: messages of a cell count in unbroken order alone, and a verdict counts only for the
very conversation that it was given about.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from palate.errors import InputError
from palate.models.client import Role
from palate.models.spec import Price
from palate.store import Journal, Json, RunReader
from palate.types import (
    MAX_SCORE,
    MIN_SCORE,
    Cell,
    Finish,
    Judgement,
    Message,
    Record,
    Rejected,
    Speaker,
    TrajectoryEnd,
    Usage,
)


class StepLine(Record):
    """A line of messages.jsonl: what one call of a conversation brought.

    `n` counts the steps of a cell from 0, the user's and the character's in turn. `text` None: the
    step ended the conversation without a word. `rejected`: what was wrong with each draft of a
    simulator that was not taken; absent before palate drew messages anew.
    """

    cell: str
    n: int = Field(ge=0)
    speaker: Speaker
    text: str | None
    finish: Finish | None
    flags: tuple[str, ...]
    ended_by: TrajectoryEnd | None
    usage: Usage
    attempts: int
    rejected: Rejected = ()
    model: str
    latency_s: float
    at: str

    @model_validator(mode="after")
    def _is_a_step(self) -> StepLine:
        if self.speaker != ("character" if self.n % 2 else "user"):
            raise ValueError("the speakers of a conversation take turns")
        if (self.text is None) != (self.finish is None) or self.text is self.ended_by is None:
            raise ValueError("a step is a message, an end, or both")
        if self.rejected and self.speaker == "character":
            raise ValueError("nothing of a candidate is drawn anew for its wording")
        return self

    @property
    def message(self) -> Message | None:
        """The message of the step, if it has one."""
        if self.text is None or self.finish is None:
            return None
        return Message(speaker=self.speaker, text=self.text, finish=self.finish, flags=self.flags)


class CellLine(Record):
    """A line of cells.jsonl: a cell that is done, and what the journals then held of it.

    `conversation` is the seal of its steps, "" if it had none; `verdicts` counts those on
    `trajectory`, which is its digest.
    """

    cell: str
    conversation: str
    trajectory: str
    verdicts: int
    at: str


class FailureLine(Record):
    """A line of failures.jsonl: a call that did not come back."""

    cell: str
    role: Role
    kind: str
    error: str
    at: str


class _JudgementLine(Judgement):
    """A line of judgements.jsonl: what `Judgement` promises is checked, not trusted."""

    @model_validator(mode="after")
    def _is_a_verdict(self) -> _JudgementLine:
        if (self.reply is None) != (self.track == "session") or (self.reply or 0) < 0:
            raise ValueError("a turn track is about a reply")
        if (self.overall is None) != (self.unscored is not None):
            raise ValueError("a verdict has an overall or a reason for none")
        answered = [score for score in self.scores.values() if score is not None]
        if not all(MIN_SCORE <= score <= MAX_SCORE for score in answered):
            raise ValueError("a score is off the scale")
        if self.overall is not None and not (
            answered and math.isclose(self.overall, sum(answered) / len(answered))
        ):
            raise ValueError("the overall is the mean of the answered dimensions")
        return self


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Protocol(_Part):
    repetitions: int = Field(ge=1)
    depth_limit: int = Field(ge=0)
    sampled_replies: int = Field(ge=1)
    seed: int = Field(ge=0)


class _Played(_Part):
    model: str
    temperature: float | None


class _Simulator(_Played):
    kind: str


class _User(_Part):
    simulator: _Simulator


class _Candidate(_Played):
    prompt: str


class _Settings(_Part):
    name: str
    protocol: _Protocol
    users: dict[str, _User]
    candidates: dict[str, _Candidate]
    cards: dict[str, Any]


class _CardLabel(_Part):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    language: str


class _Manifest(_Part):
    settings: _Settings
    run_id: str
    openings: dict[str, str]
    cards: dict[str, _CardLabel]
    message_forms: dict[str, str]
    prices: dict[str, Price]
    warnings: list[str]

    @model_validator(mode="after")
    def _is_whole(self) -> _Manifest:
        settings = self.settings
        pairs = {f"{user}/{card}" for user in settings.users for card in settings.cards}
        if not (
            pairs <= set(self.openings)
            and set(settings.cards) <= set(self.cards)
            and set(settings.candidates) <= set(self.message_forms)
        ):
            raise ValueError("a card, an opening or a message form is missing")
        return self


def manifest(reader: RunReader) -> Json:
    """The manifest of a run of this version, with all that a report needs.

    Raises:
        InputError: there is none, or it was changed since it was written.
    """
    value = reader.manifest()
    try:
        _Manifest.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise InputError(
            f"{reader.path / 'manifest.json'} was changed after it was written ({place or 'whole'}:"
            f" {fault['msg'].removeprefix('Value error, ')}); restore it, or begin a new run with "
            "--out"
        ) from None
    return value


def planned_cells(manifest: Json) -> list[Cell]:
    """Every cell of the study that the run belongs to, in the order of its plan."""
    settings = manifest["settings"]
    return [
        Cell(user, card, candidate, repetition)
        for repetition, card, user, candidate in itertools.product(
            range(1, settings["protocol"]["repetitions"] + 1),
            settings["cards"],
            settings["users"],
            settings["candidates"],
        )
    ]


def steps(reader: RunReader) -> Iterator[StepLine]:
    """The steps of every cell, each cell's in unbroken order; others are left out and named."""
    counts: dict[str, int] = {}
    ended: set[str] = set()
    for line in _lines(reader, "messages", StepLine):
        due = counts.get(line.cell, 0)
        if line.n != due or line.cell in ended:
            reader.warn(
                f"messages.jsonl has step {line.n} of cell {line.cell} where "
                f"{'nothing' if line.cell in ended else f'step {due}'} belongs; it was ignored"
            )
            continue
        counts[line.cell] = due + 1
        if line.ended_by is not None:
            ended.add(line.cell)
        yield line


def seal(messages: Iterable[Message], ended_by: TrajectoryEnd) -> str:
    """What a conversation is known by in cells.jsonl, made from its words and its end."""
    made = hashlib.sha256()
    for message in messages:
        made.update(_sealed(message.text))
    made.update(_sealed(ended_by))
    return made.hexdigest()


def seals(reader: RunReader) -> dict[str, str]:
    """The seal of each cell's conversation as far as it is there; no text is kept in memory."""
    made: dict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    for step in steps(reader):
        for text in (step.text, step.ended_by):
            if text is not None:
                made[step.cell].update(_sealed(text))
    return {cell: found.hexdigest() for cell, found in made.items()}


def _sealed(text: str) -> bytes:
    return f"{len(text)}:{text}".encode()


def judgements(reader: RunReader) -> Iterator[Judgement]:
    """Every verdict, in the order given."""
    return _lines(reader, "judgements", _JudgementLine)


def cells(reader: RunReader) -> Iterator[CellLine]:
    """Every cell that was done when its line was written."""
    return _lines(reader, "cells", CellLine)


def failures(reader: RunReader) -> Iterator[FailureLine]:
    """Every call that did not come back."""
    return _lines(reader, "failures", FailureLine)


_Line = TypeVar("_Line", bound=Record)


def _lines(reader: RunReader, journal: Journal, line: type[_Line]) -> Iterator[_Line]:
    for number, record in reader.numbered(journal):
        try:
            yield line.model_validate(record)
        except ValidationError:
            reader.damaged(journal, number)
