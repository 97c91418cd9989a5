"""Character cards: V1 (flat), V2 and V3 of the SillyTavern formats, whatever carries them.

Flat cards may have the field names of Pygmalion and oobabooga (`palate.cards.oobabooga`). Real
cards have nulls, blank openings, lists where text belongs and text where lists belong. What has
one reading is read; the rest is refused in a sentence. Nothing is made up: a card without an
opening has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from palate import language
from palate.cards import lorebook, oobabooga
from palate.cards.bounds import MAX_BYTES, object_in
from palate.cards.carriers import Carrier, contents
from palate.cards.macros import filled, is_blank, unknown
from palate.errors import InputError
from palate.types import Card

__all__ = [
    "MAX_BYTES",
    "Loaded",
    "Opening",
    "from_json",
    "load",
    "nickname",
    "openings",
    "read",
    "warnings",
]

_FIELDS = {
    "persona": "description",
    "personality": "personality",
    "scenario": "scenario",
    "example_dialogue": "mes_example",
    "system_prompt": "system_prompt",
    "post_history_instructions": "post_history_instructions",
}
_GREETINGS = ("first_mes", "alternate_greetings")
_NEWEST = 3.0
_TELLING = 100_000  # characters that the language is told from; counting takes memory


class Opening(NamedTuple):
    """A first message that a card offers, its placeholders still in it.

    `number` 0 is first_mes; n is the n-th alternate greeting, counted from 1 with the blank ones.
    """

    number: int
    text: str


class Loaded(NamedTuple):
    """A card, what a person who imports it should know, and the kind of file it came in.

    `warnings` are those of the file (a damaged copy, a wrong checksum) and then of the card.
    """

    card: Card
    warnings: tuple[str, ...]
    carrier: Carrier


def load(path: Path) -> Loaded:
    """The card in a JSON, PNG, APNG, CHARX or YAML file, told by its content.

    The card's id is the file's name without the ending. Where a picture holds several copies, a
    damaged one gives way to the next with a warning.

    Raises:
        InputError: the file is missing, no file, too large, damaged or not a card.
    """
    found = _found(path)
    return found._replace(warnings=(*found.warnings, *warnings(found.card)))


def read(path: Path) -> Card:
    """The card in a file, without its warnings; see `load`."""
    return _found(path).card


def from_json(value: object, *, card_id: str, where: str) -> Card:
    """The card that a parsed JSON object holds, whatever carried it; `where` names the carrier.

    Raises:
        InputError: it is not a card, or a field has a type that cannot be read as meant.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where} holds no character card: its JSON is not an object")
    if str(value.get("spec")).startswith("lorebook"):
        raise InputError(
            f"{where} holds no character card: it is a lorebook alone; put it into a card as its "
            "character_book"
        )
    body = _body(value)
    if not any(key in body for key in ("name", *_FIELDS.values(), *_GREETINGS)):
        raise InputError(
            f"{where} holds no character card: it has neither a name, a description nor a "
            "first message; export the card as V1, V2 or V3 JSON"
        )
    texts = {field: _text(body, key, where) for field, key in _FIELDS.items()}
    offered = _openings(body, where)
    texts["opening"] = offered[0].text if offered else ""
    name = _text(body, "name", where)
    return Card(
        id=card_id,
        language=_language(body, texts, where),
        name=card_id if is_blank(name) else name,
        original=value,
        **texts,
    )


def openings(card: Card) -> tuple[Opening, ...]:
    """The openings a card offers, blank ones left out and their numbers kept."""
    return _openings(_body(card.original), card.id) or (
        (Opening(0, card.opening),) if not is_blank(card.opening) else ()
    )


def nickname(card: Card) -> str:
    """What {{char}} stands for: the V3 nickname if there is one, else the name."""
    value = _body(card.original).get("nickname")
    return value if isinstance(value, str) and not is_blank(value) else card.name


def warnings(card: Card) -> tuple[str, ...]:
    """What a person who imports the card should know, a sentence each; normally nothing."""
    body = _body(card.original)
    found = []
    if is_blank(_text(body, "name", card.id)):
        found.append(f"card {card.id} has no name; it is called {card.name!r}, after its file")
    if not openings(card):
        found.append(f"card {card.id} has no opening; a run needs one")
    lore = lorebook.checked(card)
    texts = [*_all_texts(card), *(o.text for o in openings(card)), *lore.texts]
    macros = dict.fromkeys(macro for text in texts for macro in unknown(text))
    if macros:
        found.append(f"card {card.id} uses macros that stay as they are: {', '.join(macros)}")
    found += lore.notices
    version = card.original.get("spec_version")
    if isinstance(version, str) and _is_newer(version):
        found.append(
            f"card {card.id} has version {version[:20]}, newer than what palate knows (3.0)"
        )
    return tuple(found)


def _found(path: Path) -> Loaded:
    """The first copy that reads, with the file's warnings alone."""
    carried = contents(path)
    notes = list(carried.notes)
    refused: InputError | None = None
    for copy in carried.copies:
        try:
            value = object_in(copy.text, copy.where)
            card = from_json(value, card_id=path.stem, where=copy.where)
        except InputError as error:
            refused = refused or error
            continue
        if refused:
            notes.append(f"{refused}; another copy of the card is used: {copy.where}")
        return Loaded(card, tuple(notes), carried.carrier)
    assert refused is not None  # contents() gives at least one copy
    raise refused


def _is_newer(version: str) -> bool:
    try:
        return float(version) > _NEWEST
    except ValueError:
        return False


def _all_texts(card: Card) -> list[str]:
    return [getattr(card, field) for field in _FIELDS]


def _body(value: Mapping[str, object]) -> Mapping[str, object]:
    """The fields of the card: under "data" since V2, at the top in V1 and its relatives."""
    data = value.get("data")
    return data if isinstance(data, dict) else oobabooga.standard(value)


def _text(body: Mapping[str, object], key: str, where: str) -> str:
    value = body.get(key)
    if isinstance(value, list):
        return "\n".join(_plain(item, key, where) for item in value)
    return _plain(value, key, where)


def _plain(value: object, key: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{where}: {key} holds {_kind(value)} where text belongs; mend the card")


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else "true or false"


def _openings(body: Mapping[str, object], where: str) -> tuple[Opening, ...]:
    alternates = body.get("alternate_greetings")
    # A lone text is one greeting, never a list of its letters.
    listed = alternates if isinstance(alternates, list) else [alternates]
    texts = [_text(body, "first_mes", where)]
    texts += [_plain(item, "alternate_greetings", where) for item in listed]
    return tuple(Opening(i, text) for i, text in enumerate(texts) if not is_blank(text))


def _language(
    body: Mapping[str, object], texts: Mapping[str, str], where: str
) -> language.Language:
    tag = _own_extension(body).get("language")
    if tag is None:
        text = "\n".join(texts.values())[:_TELLING]
        return language.of_text(filled(text, char="", user=""))
    found = language.named(tag) if isinstance(tag, str) else None
    if found is None:
        raise InputError(
            f"{where}: extensions.palate.language is {str(tag)[:40]!r}, but cards are judged in "
            '"en" or "zh" only'
        )
    return found


def _own_extension(body: Mapping[str, object]) -> Mapping[str, object]:
    extensions = body.get("extensions")
    own = extensions.get("palate") if isinstance(extensions, dict) else None
    return own if isinstance(own, dict) else {}
