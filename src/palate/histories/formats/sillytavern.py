"""SillyTavern chats: one message a line after a line about the chat, which may be missing.

A message has the shown text (`mes`), the texts that were offered (`swipes`) and the one chosen
(`swipe_id`); where they disagree, what was shown counts. Names in the first line may be "unused"
(chats that were converted). System notices have a type under `extra`; a message that is a system
message without one was hidden by the user: the two stayed in the file, but the character was not
told them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken
from palate.histories.mapping import plain

NAME = "sillytavern"

_HEADER = ("chat_metadata", "user_name", "character_name", "create_date")
_NO_NAMES = ("", "unused")


class _Names(NamedTuple):
    """Who speaks, by the file's first line; "" where it does not say.

    `main_chat` is the chat that this one was branched off.
    """

    user: str = ""
    character: str = ""
    main_chat: str = ""


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such a chat."""
    return any(
        isinstance(value, dict)
        and ("mes" in value or "swipes" in value)
        and ("is_user" in value or "name" in value)
        for value in values
    )


def chats(records: Iterable[Record], notes: Notes) -> Iterator[Chat]:
    """The chat of a file; several where several were put one after another."""
    names = _Names()
    spoken: list[Spoken] = []
    for value, place in records:
        if not isinstance(value, dict):
            notes.add("torn", place, "no message")
        elif "mes" not in value and "swipes" not in value:
            if not any(key in value for key in _HEADER):
                notes.add("torn", place, "no message")
                continue
            if spoken:
                yield _chat(names, spoken)
            names, spoken = _names(value), []
        else:
            spoken.append(_message(value, place, names, notes))
    if spoken:
        yield _chat(names, spoken)


def _chat(names: _Names, spoken: Sequence[Spoken]) -> Chat:
    extra = {"branch_of": names.main_chat} if names.main_chat else {}
    return Chat(tuple(spoken), place=spoken[0].place, character=names.character, extra=extra)


def _names(header: Mapping[str, object]) -> _Names:
    user, character = (
        "" if (name := fields.label(header.get(key))) in _NO_NAMES else name
        for key in ("user_name", "character_name")
    )
    about = header.get("chat_metadata")
    main_chat = fields.label(about.get("main_chat")) if isinstance(about, dict) else ""
    return _Names(user, character, main_chat)


def _message(value: Mapping[str, object], place: str, names: _Names, notes: Notes) -> Spoken:
    shown, alternates = _shown(value, place, notes)
    speaker = _speaker(value, names)
    return Spoken(
        speaker=speaker,
        text=shown,
        place=place,
        name=fields.label(value.get("name")),
        date=fields.date(value.get("send_date"), place, notes),
        alternates=alternates,
        hidden=value.get("is_system") is True and speaker != "system",
    )


def _speaker(value: Mapping[str, object], names: _Names) -> str:
    extra = value.get("extra")
    kind = extra.get("type") if isinstance(extra, dict) else None
    if kind == "narrator" or (value.get("is_system") is True and isinstance(kind, str) and kind):
        return "system"
    is_user, name = value.get("is_user"), fields.label(value.get("name"))
    if isinstance(is_user, bool):
        return "user" if is_user else "character"
    if name and name in (names.user, names.character):
        return "user" if name == names.user else "character"
    return fields.unknown(name)


def _shown(value: Mapping[str, object], place: str, notes: Notes) -> tuple[str, tuple[str, ...]]:
    """The text that was shown, and the others that were offered instead of it, each once."""
    listed = value.get("swipes")
    swipes = [fields.text(one, place, notes) for one in listed] if isinstance(listed, list) else []
    chosen = _chosen(value, swipes, place, notes)
    shown = fields.text(value.get("mes"), place, notes)
    if not shown.strip() and chosen is not None:
        shown = swipes[chosen]
    rejected = (
        text
        for number, text in enumerate(swipes)
        if number != chosen and text.strip() and text != shown
    )
    return shown, tuple(dict.fromkeys(rejected))


def _chosen(
    value: Mapping[str, object], swipes: Sequence[str], place: str, notes: Notes
) -> int | None:
    """The number of the chosen swipe; "1" and 1.0 are taken for 1, and said."""
    if "swipe_id" not in value:
        return None
    given = value["swipe_id"]
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(swipes):
        return given
    if given == 0 and not isinstance(given, bool) and not value.get("swipes"):
        return None  # a message that was never swiped
    notes.add("swipe", place, f"swipe_id {given!r}"[:60] + f" of {len(swipes)}")
    told = plain(given) if isinstance(given, (str, float)) else ""
    if told.isdecimal() and len(told) < 9:
        number = int(told)
        return number if number < len(swipes) else None
    return None
