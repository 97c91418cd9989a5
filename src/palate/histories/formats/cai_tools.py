"""CAI Tools' dumps of Character.AI: {"info", "histories": {"histories": [{"msgs"}]}}."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken

NAME = "cai-tools"


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such exports."""
    return any(isinstance(value, dict) and _histories(value) for value in values)


def chats(records: Iterable[Record], notes: Notes) -> Iterator[Chat]:
    """The chats of a file: each history is one."""
    for value, place in records:
        if not isinstance(value, dict) or not _histories(value):
            notes.add("torn", place, "no histories")
            continue
        before = f"{place}, " if place else ""
        for number, history in enumerate(_histories(value), 1):
            where = f"{before}history {number}"
            listed = history.get("msgs")
            spoken = tuple(
                _message(message, f"{where}, message {position}", notes)
                for position, message in enumerate(listed if isinstance(listed, list) else (), 1)
            )
            own_id = fields.label(history.get("external_id"))
            yield Chat(spoken, place=where, own_id=own_id, character=_character(value))


def _histories(value: dict[str, object]) -> Sequence[dict[str, object]]:
    listed = value.get("histories")
    if isinstance(listed, dict):
        listed = listed.get("histories")
    return [one for one in fields.objects(listed) if isinstance(one, dict) and "msgs" in one]


def _message(value: object, place: str, notes: Notes) -> Spoken:
    if not isinstance(value, dict):
        return Spoken("unknown:", fields.text(value, place, notes), place)
    source = value.get("src")
    is_human = source.get("is_human") if isinstance(source, dict) else None
    name = fields.label(source.get("name")) if isinstance(source, dict) else ""
    speaker = fields.unknown(name)
    if isinstance(is_human, bool):
        speaker = "user" if is_human else "character"
    return Spoken(speaker, fields.text(value.get("text"), place, notes), place, name=name)


def _character(value: dict[str, object]) -> str:
    info = value.get("info")
    about = info.get("character") if isinstance(info, dict) else None
    return fields.label(about.get("name")) if isinstance(about, dict) else ""
