"""Character cards from JSON: V1 (flat), V2 and V3 of the SillyTavern formats.

Real cards have nulls, blank openings, lists where text belongs and text where lists belong. What
has one reading is read; the rest is refused in a sentence. Nothing is made up: a card without an
opening has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from palate import language
from palate.cards.macros import filled, is_blank, unknown
from palate.errors import InputError
from palate.json_input import parsed
from palate.types import Card

MAX_BYTES = 8 * 1024 * 1024  # a card with a large lorebook has two
_PNG = b"\x89PNG"
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


class Opening(NamedTuple):
    """A first message that a card offers, its placeholders still in it.

    `number` 0 is first_mes; n is the n-th alternate greeting, counted from 1 with the blank ones.
    """

    number: int
    text: str


def read(path: Path) -> Card:
    """The card in a file; its id is the file's name without the ending.

    Raises:
        InputError: the file is missing, too large, not JSON or not a card.
    """
    return from_json(_parsed(_bytes(path), path), card_id=path.stem, where=str(path))


def from_json(value: object, *, card_id: str, where: str) -> Card:
    """The card that a parsed JSON object holds, whatever carried it; `where` names the carrier.

    Raises:
        InputError: it is not a card, or a field has a type that cannot be read as meant.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where} holds no character card: its JSON is not an object")
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
    macros = unknown("\n".join([*_all_texts(card), *(o.text for o in openings(card))]))
    if macros:
        found.append(f"card {card.id} uses macros that stay as they are: {', '.join(macros)}")
    if body.get("character_book"):
        found.append(f"card {card.id} has a lorebook, which the candidate's prompt does not use")
    version = card.original.get("spec_version")
    if isinstance(version, str) and _is_newer(version):
        found.append(f"card {card.id} has version {version}, newer than what palate knows (3.0)")
    return tuple(found)


def _is_newer(version: str) -> bool:
    try:
        return float(version) > _NEWEST
    except ValueError:
        return False


def _all_texts(card: Card) -> list[str]:
    return [getattr(card, field) for field in _FIELDS]


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for without end
            raise InputError(f"{path} cannot be read as a card: it is no file")
        if path.exists() and path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path} is larger than {MAX_BYTES // 1024**2} MB, which no card needs; "
                "check that it is a character card"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path of the card") from None
    except OSError as error:
        reason = error.strerror or "it is not readable"
        raise InputError(f"{path} cannot be read as a card: {reason}") from None


def _parsed(raw: bytes, path: Path) -> object:
    if raw.startswith(_PNG):
        raise InputError(f"{path} is a picture; export the card as JSON, the carrier read so far")
    return parsed(raw, str(path))


def _body(value: Mapping[str, object]) -> Mapping[str, object]:
    """The fields of the card: under "data" since V2, at the top in V1."""
    data = value.get("data")
    return data if isinstance(data, dict) else value


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
        return language.of_text(filled("\n".join(texts.values()), char="", user=""))
    found = language.named(tag) if isinstance(tag, str) else None
    if found is None:
        raise InputError(
            f"{where}: extensions.palate.language is {tag!r}, but cards are judged in "
            '"en" or "zh" only'
        )
    return found


def _own_extension(body: Mapping[str, object]) -> Mapping[str, object]:
    extensions = body.get("extensions")
    own = extensions.get("palate") if isinstance(extensions, dict) else None
    return own if isinstance(own, dict) else {}
