"""A model that answers without a network, from a script of replies.

A script is a JSON list; an entry says who speaks, where and what:

    {"role": "simulator", "cell": "u1/k1/A/1", "turn": 0, "text": "Who is there?"}

`track` and `attempt` are optional and narrow an entry down; `status` overrides what the text
would be read as. A verdict about the session has no turn. Nothing is made up: a call without an
entry is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from palate.errors import InputError, ScriptError
from palate.models.answers import spoken
from palate.models.client import Completion, Purpose, Request, Role, Status
from palate.types import Record, Track


class Entry(Record):
    """One reply of a script."""

    role: Role
    cell: str
    turn: int | None = Field(default=None, ge=0)
    text: str
    track: Track | None = None
    attempt: int | None = Field(default=None, ge=0)
    status: Status | None = None


class _Key(NamedTuple):
    role: Role
    cell: str
    turn: int | None
    track: Track | None
    attempt: int | None

    def __str__(self) -> str:
        named = zip(self._fields, self, strict=True)
        return ", ".join(f"{name} {value!r}" for name, value in named if value is not None)


_ENTRIES = TypeAdapter(list[Entry])


class ScriptedModel:
    """Answers from a script, as a pure function of the call's purpose."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, name: str, replies: dict[_Key, Completion], source: str) -> None:
        self.name = name
        self._replies = replies
        self._source = source

    @classmethod
    def read(cls, name: str, path: Path) -> ScriptedModel:
        """The model that `path` scripts.

        Raises:
            InputError: the file is missing, no JSON list of entries, or has two for one call.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"script {path} cannot be read ({error.strerror}); write it") from None
        try:
            entries = _ENTRIES.validate_json(content.removeprefix(b"\xef\xbb\xbf"))
        except ValidationError as error:
            raise InputError(f"script {path}: {_fault(error)}") from None
        return cls.from_entries(entries, name=name, source=str(path))

    @classmethod
    def from_entries(
        cls, entries: Sequence[Entry], *, name: str = "scripted", source: str = "the script"
    ) -> ScriptedModel:
        """The model that `entries` script; `source` names them in errors.

        Raises:
            InputError: two entries for one call.
        """
        replies: dict[_Key, Completion] = {}
        numbers: dict[_Key, int] = {}
        for number, entry in enumerate(entries, 1):
            key = _Key(entry.role, entry.cell, entry.turn, entry.track, entry.attempt)
            if key in replies:
                raise InputError(
                    f"script {source}: entries {numbers[key]} and {number} answer the same call "
                    f"({key}); remove one"
                )
            numbers[key] = number
            replies[key] = _completion(entry, name)
        return cls(name, replies, source)

    async def complete(self, request: Request) -> Completion:
        """See `palate.models.client.Model`; the most exact entry answers.

        Raises:
            ScriptError: no entry answers this call.
        """
        for key in _keys(request.purpose):
            reply = self._replies.get(key)
            if reply is not None:
                return reply
        wanted = _Key(*request.purpose)
        raise ScriptError(f"{self._source} has no entry for {wanted}; add one")

    async def close(self) -> None:
        """Nothing is open."""


def _keys(purpose: Purpose) -> tuple[_Key, ...]:
    """From the most exact to the least: without the track, then without the attempt."""
    exact = _Key(*purpose)
    return (
        exact,
        exact._replace(track=None),
        exact._replace(attempt=None),
        exact._replace(track=None, attempt=None),
    )


def _completion(entry: Entry, name: str) -> Completion:
    completion = Completion(*spoken(entry.text), model=name)
    return completion if entry.status is None else replace(completion, status=entry.status)


def _fault(error: ValidationError) -> str:
    """The first fault in a sentence, with the number of its entry."""
    fault = error.errors(include_url=False, include_input=False)[0]
    if not fault["loc"]:
        return f"it must be a JSON list of entries ({fault['msg']})"
    number, *place = fault["loc"]
    where = f"entry {int(number) + 1}"
    field = ".".join(map(str, place))
    if fault["type"] == "extra_forbidden":
        return f"{where}: {field!r} is not a field of an entry; remove it or mend its spelling"
    if fault["type"] == "missing":
        return f"{where} has no {field!r}; add it"
    return f"{where}: {field + ': ' if field else ''}{fault['msg']}"
