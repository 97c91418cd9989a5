"""Agnai's chat exports: {"name", "greeting", "messages": [{"msg", "userId" or "characterId"}]}."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken

NAME = "agnai"


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such chats."""
    return any(
        isinstance(value, dict)
        and any("msg" in message for message in fields.objects(value.get("messages")))
        for value in values
    )


def chats(records: Iterable[Record], notes: Notes) -> Iterator[Chat]:
    """The chats of a file."""
    for value, place in records:
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            notes.add("torn", place, "no messages")
            continue
        messages = value["messages"]
        before = f"{place}, " if place else ""
        spoken = tuple(
            _message(message, f"{before}message {number}", notes)
            for number, message in enumerate(messages, 1)
        )
        yield Chat(spoken, place=place, character=_character(messages))


def _message(value: object, place: str, notes: Notes) -> Spoken:
    if not isinstance(value, dict):
        return Spoken("unknown:", fields.text(value, place, notes), place)
    name = fields.label(value.get("handle")) or fields.label(value.get("name"))
    speaker = fields.unknown(name)
    if value.get("userId"):
        speaker = "user"
    elif value.get("characterId"):
        speaker = "character"
    text, retries = fields.text(value.get("msg"), place, notes), value.get("retries")
    offered = retries if isinstance(retries, list) else []
    rejected = (one for one in offered if isinstance(one, str) and one.strip() and one != text)
    return Spoken(
        speaker=speaker,
        text=text,
        place=place,
        name=name,
        alternates=tuple(dict.fromkeys(rejected)),
        date=fields.date(value.get("createdAt"), place, notes),
        hidden=value.get("ooc") is True,  # beside the story; the character was not told it
    )


def _character(messages: Sequence[object]) -> str:
    """The chat's own character, whom an export calls "imported" instead of by an id."""
    for message in messages:
        if isinstance(message, Mapping) and message.get("characterId") == "imported":
            return fields.label(message.get("handle")) or fields.label(message.get("name"))
    return ""
