"""OpenAI messages: {"messages": [{"role", "content"}]}, a list of those, one a line, or the bare
list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken

NAME = "openai"


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such chats or messages."""
    return any(
        _is_message(value)
        or any(_is_message(one) for one in fields.objects(value))
        or (
            isinstance(value, dict)
            and any(_is_message(one) for one in fields.objects(value.get("messages")))
        )
        for value in values
    )


def chats(records: Iterable[Record], notes: Notes) -> Iterator[Chat]:
    """The chats of a file; messages that stand alone, one a record, make one chat."""
    bare: list[Record] = []
    for record in records:
        value, place = record
        if isinstance(value, list):
            yield _chat({}, value, place, notes)
        elif isinstance(value, dict) and isinstance(value.get("messages"), list):
            yield _chat(value, value["messages"], place, notes)
        elif isinstance(value, dict) and "role" in value:
            bare.append(record)
        else:
            notes.add("torn", place, "no messages")
    if bare:
        spoken = tuple(_message(value, place, notes) for value, place in bare)
        yield Chat(spoken, place=bare[0].place)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value and ("content" in value or len(value) == 1)


def _chat(about: Mapping[str, object], messages: list[object], place: str, notes: Notes) -> Chat:
    before = f"{place}, " if place else ""
    return Chat(
        tuple(
            _message(message, f"{before}message {number}", notes)
            for number, message in enumerate(messages, 1)
        ),
        place=place,
        own_id=fields.label(about.get("session_id") or about.get("id")),
    )


def _message(value: object, place: str, notes: Notes) -> Spoken:
    if not isinstance(value, dict):
        return Spoken("unknown:", fields.text(value, place, notes), place)
    speaker = fields.speaker(value.get("role"))
    return Spoken(
        speaker=speaker,
        # A refusal in words is a reply.
        text=fields.text(value.get("content") or value.get("refusal"), place, notes),
        place=place,
        name=fields.label(value.get("name")),
        rating=value.get("satisfaction"),
        note=fields.comment(value.get("note")),
    )
