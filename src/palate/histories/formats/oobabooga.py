"""oobabooga's text-generation-webui: lists of pairs [user, character], shown or as sent.

What was shown (`visible`, before 2023-08 `data_visible`) wins over what was sent (`internal`,
`data`). Shown texts are HTML, so their entities are turned back. The first pair's user side may be
a mark that stands for no message; pairs before the mark are example dialogue that nobody said.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken

NAME = "oobabooga"

_SHOWN = ("data_visible", "visible")
_SENT = ("data", "internal")
_BEGIN = "<|BEGIN-VISIBLE-CHAT|>"


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such chats."""
    return any(isinstance(value, dict) and _key(value) is not None for value in values)


def chats(records: Iterable[Record], notes: Notes) -> Iterator[Chat]:
    """The chats of a file."""
    for value, place in records:
        key = _key(value) if isinstance(value, dict) else None
        if key is None or not isinstance(value, dict):
            notes.add("torn", place, "no pairs of messages")
            continue
        spoken = tuple(_spoken(value[key], key, place, notes))
        yield Chat(spoken, place=place)


def _key(value: dict[str, object]) -> str | None:
    """Under which key the pairs are."""
    for key in (*_SHOWN, *_SENT):
        pairs = value.get(key)
        if isinstance(pairs, list) and any(isinstance(pair, list) for pair in pairs):
            return key
    return None


def _spoken(pairs: object, key: str, place: str, notes: Notes) -> Iterator[Spoken]:
    listed = pairs if isinstance(pairs, list) else []
    begins = [n for n, pair in enumerate(listed) if isinstance(pair, list) and _BEGIN in pair[:1]]
    before = f"{place}, " if place else ""
    for number, pair in enumerate(listed):
        where = f"{before}pair {number + 1}"
        if begins and number < begins[0]:
            continue
        if not isinstance(pair, list) or len(pair) < 2:
            notes.add("torn", where, "no pair of messages")
            continue
        for speaker, said in zip(("user", "character"), pair, strict=False):
            text = fields.text(said, where, notes)
            # A side left empty is how the form writes that this side did not speak.
            if text and text != _BEGIN:
                yield Spoken(speaker, html.unescape(text) if key in _SHOWN else text, where)
