"""ShareGPT: {"conversations": [{"from", "value"}]}, and its spellings with other key names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken

NAME = "sharegpt"

_LISTS = ("conversations", "conversation", "messages", "dialogue", "dialog")
_SPEAKERS = ("from", "role", "speaker")
_TEXTS = ("value", "content", "text")
_USUAL = ("conversations", "from", "value")


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such chats."""
    return any(isinstance(value, dict) and _keys(value) is not None for value in values)


def chats(records: Iterable[Record], notes: Notes) -> Iterator[Chat]:
    """The chats of a file."""
    for value, place in records:
        keys = _keys(value) if isinstance(value, dict) else None
        if keys is None or not isinstance(value, dict):
            notes.add("torn", place, "no conversation")
            continue
        if keys != _USUAL:
            notes.add("keys", place, " / ".join(f'"{key}"' for key in keys))
        yield _chat(value, keys, place, notes)


def _keys(value: Mapping[str, object]) -> tuple[str, str, str] | None:
    """Under which keys the list, the speakers and the texts of this chat are."""
    for container in _LISTS:
        for message in fields.objects(value.get(container)):
            speaker = next((key for key in _SPEAKERS if key in message), None)
            text = next((key for key in _TEXTS if key in message), None)
            if speaker and text:
                return container, speaker, text
    return None


def _first(message: Mapping[str, object], *keys: str) -> object:
    """What a message holds under the chat's key, else under another: merged logs mix them."""
    return next((message[key] for key in keys if key in message), None)


def _chat(
    value: Mapping[str, object], keys: tuple[str, str, str], place: str, notes: Notes
) -> Chat:
    container, speaker, text = keys
    before = f"{place}, " if place else ""
    spoken = []
    system = fields.text(value.get("system"), place, notes)
    if system.strip():
        spoken.append(Spoken("system", system, f"{before}system"))
    listed = value[container]
    for number, message in enumerate(listed if isinstance(listed, list) else (), 1):
        where = f"{before}message {number}"
        if not isinstance(message, dict):
            spoken.append(Spoken("unknown:", fields.text(message, where, notes), where))
            continue
        spoken.append(
            Spoken(
                speaker=fields.speaker(_first(message, speaker, *_SPEAKERS)),
                text=fields.text(_first(message, text, *_TEXTS), where, notes),
                place=where,
                rating=message.get("satisfaction"),
                note=fields.comment(message.get("note")),
            )
        )
    own_id = fields.label(value.get("session_id") or value.get("id"))
    return Chat(tuple(spoken), place=place, own_id=own_id)
