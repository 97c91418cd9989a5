"""A card in another version of its format: up by the specification's defaults, down by name.

Going up nothing is lost: fields that we do not know stay where they were. Going down, every field
with something in it that has no place is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from palate.cards import decorators, oobabooga

Version = Literal[1, 2, 3]

V1_FIELDS = ("name", "description", "personality", "scenario", "first_mes", "mes_example")
_TEXTS = (
    *V1_FIELDS,
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "creator",
    "character_version",
)
_LISTS_V2 = ("alternate_greetings", "tags")
_LISTS = (*_LISTS_V2, "group_only_greetings")
_V3_ONLY = (
    "assets",
    "nickname",
    "creator_notes_multilingual",
    "source",
    "group_only_greetings",
    "creation_date",
    "modification_date",
)
_IN_DATA = (*_TEXTS, *_LISTS, *_V3_ONLY, "extensions", "character_book")

_FRAME = ("spec", "spec_version", "data")

# The specification asks that a V2 copy beside a V3 card say so where its reader will look.
NOTICE = (
    "This is the V2 copy of a V3 character card: the program that shows it does not read V3, "
    "and parts of the character may be missing."
)


class Lowered(NamedTuple):
    """A card in an older version, and the fields that had no place there."""

    value: dict[str, object]
    lost: tuple[str, ...]


def as_v3(original: Mapping[str, object]) -> dict[str, object]:
    """The card as V3: missing and null fields get the specification's empty values.

    A text where a list belongs becomes a list of one, a list where text belongs its lines; unknown
    fields and extensions stay.
    """
    data = original.get("data")
    if isinstance(data, dict):
        rest: dict[str, object] = {key: original[key] for key in original if key != "data"}
        inner: Mapping[str, object] = data
    else:
        flat = oobabooga.standard(original)
        rest = {key: value for key, value in flat.items() if key not in _IN_DATA}
        inner = {key: value for key, value in flat.items() if key in _IN_DATA}
    head: dict[str, object] = {"spec": "chara_card_v3", "spec_version": "3.0"}
    if rest.get("spec") == "chara_card_v3":  # a version newer than 3.0 keeps its number
        head["spec_version"] = rest.get("spec_version", "3.0")
    return {
        **head,
        **{key: rest[key] for key in rest if key not in head},
        "data": _completed(inner),
    }


def as_v2(v3: Mapping[str, object], *, notice: bool = False) -> Lowered:
    """The V2 card in a V3 card; `notice` marks a copy that stands beside the V3 card."""
    data = _data(v3)
    lost = [key for key in _V3_ONLY if data.get(key)]
    kept = {key: value for key, value in data.items() if key not in _V3_ONLY}
    book = kept.get("character_book")
    if isinstance(book, dict):
        kept["character_book"] = _undecorated(book)
        lost += ["character_book decorators"] if kept["character_book"] != book else []
        lost += ["character_book use_regex"] if any(_regular(e) for e in _entries(book)) else []
    if notice:
        written = str(kept.get("creator_notes") or "")
        kept["creator_notes"] = f"{NOTICE}\n\n{written}" if written else NOTICE
    version = {"spec": "chara_card_v2", "spec_version": "2.0"}
    return Lowered({**v3, **version, "data": kept}, tuple(lost))


def as_v1(v3: Mapping[str, object]) -> Lowered:
    """The six fields of V1, with what stood unknown beside them."""
    data = _data(v3)
    lost = tuple(key for key in data if key not in V1_FIELDS and data[key])
    around = {key: value for key, value in v3.items() if key not in _FRAME}
    return Lowered({**around, **{key: data.get(key, "") for key in V1_FIELDS}}, lost)


def _data(v3: Mapping[str, object]) -> dict[str, object]:
    data = v3["data"]
    assert isinstance(data, dict)  # as_v3 made it
    return data


def _completed(data: Mapping[str, object]) -> dict[str, object]:
    whole = dict(data)
    for key in _TEXTS:
        whole[key] = _as_text(whole.get(key))
    for key in _LISTS:
        whole[key] = _as_list(whole.get(key))
    if not isinstance(whole.get("extensions"), dict):
        whole["extensions"] = {}
    book = whole.get("character_book")
    if book is None:
        whole.pop("character_book", None)
    elif isinstance(book, dict):
        whole["character_book"] = _completed_book(book)
    return whole


def _as_text(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value


def _as_list(value: object) -> object:
    if value is None:
        return []
    if isinstance(value, list):
        return ["" if item is None else item for item in value]  # numbers of greetings stay
    return [value] if isinstance(value, str) else value


def _completed_book(book: Mapping[str, object]) -> dict[str, object]:
    """V3 asks for `extensions`, and of each entry whether its keys are regular expressions."""
    entries = book.get("entries")
    if not isinstance(entries, list):
        return dict(book)  # entries by number, as world files have them, stay
    added = [{"use_regex": False, **e} if isinstance(e, dict) else e for e in entries]
    return {"extensions": {}, **book, "entries": added}


def _entries(book: Mapping[str, object]) -> list[object]:
    entries = book.get("entries")
    if isinstance(entries, dict):
        return list(entries.values())
    return entries if isinstance(entries, list) else []


def _regular(entry: object) -> bool:
    return isinstance(entry, dict) and entry.get("use_regex") is True


def _undecorated(book: Mapping[str, object]) -> dict[str, object]:
    entries = book.get("entries")
    if isinstance(entries, dict):
        return {**book, "entries": {key: _plain_entry(e) for key, e in entries.items()}}
    if isinstance(entries, list):
        return {**book, "entries": [_plain_entry(e) for e in entries]}
    return dict(book)


def _plain_entry(entry: object) -> object:
    content = entry.get("content") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(content, str) or "@@" not in content:
        return entry
    plain = decorators.read(content, positions=frozenset()).content
    return {**entry, "content": plain} if plain != content else entry
