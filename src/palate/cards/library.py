"""The card library: 300 characters that come with palate, each in English and in Chinese.

A card's id is its file's stem: the character's id and the language, as in "gu-qiuping-zh". In a
study.toml the library is `library:PATTERN`, where PATTERN is `panel`, `panel-en` or `panel-zh` for
the frozen panel (`palate.cards.panel`), a card's id, or a glob of ids such as `*-en`.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from palate.cards.files import read
from palate.cards.labels import FOLDER, LANGUAGES, Labels
from palate.cards.panel import panel_files
from palate.errors import InputError
from palate.types import Card

PREFIX = "library:"
GENRES = (
    "everyday life", "workplace", "family and kin",
    "romance", "detective mystery", "crime and heist",
    "spies and suspense", "law and court", "medicine and care",
    "hard science fiction", "space opera", "near future and machines",
    "after the flood", "high fantasy", "urban fantasy",
    "fable and fairy tale", "ghosts and dread", "martial world",
    "immortal cultivation", "old China", "history elsewhere",
    "sea and expedition", "tutors and learning", "comedy and satire",
    "sport and play", "arts and stage", "land and village",
    "other histories", "company and comfort", "war and after",
)  # fmt: skip

_PANELS = {"panel": LANGUAGES, "panel-en": ("en",), "panel-zh": ("zh",)}


def paths() -> tuple[Path, ...]:
    """Every card file of the library, English before Chinese, by id."""
    return tuple(path for tag in LANGUAGES for path in sorted((FOLDER / tag).glob("*.json")))


def matching(pattern: str) -> tuple[Path, ...]:
    """The card files that `library:PATTERN` stands for; `pattern` comes without the prefix.

    Raises:
        InputError: no card of the library has such an id, or the panel's files were changed.
    """
    if pattern in _PANELS:
        return panel_files(_PANELS[pattern])
    found = tuple(path for path in paths() if fnmatch.fnmatchcase(path.stem, pattern))
    if not found:
        raise InputError(
            f"{PREFIX}{pattern[:200]} names no card of the library; `palate cards list` shows "
            f"their ids, and {PREFIX}panel, {PREFIX}panel-en and {PREFIX}panel-zh are the panel"
        )
    return found


def cards(pattern: str = "*") -> tuple[Card, ...]:
    """The library's cards with these ids, read."""
    return tuple(read(path) for path in matching(pattern))


def labels(card: Card) -> Labels | None:
    """A library card's labels; None for any other card."""
    held: object = card.original
    for key in ("data", "extensions", "palate", "library"):
        held = held.get(key) if isinstance(held, dict) else None
    if not isinstance(held, dict) or set(held) != set(Labels._fields):
        return None
    if not isinstance(held["difficulty"], list):
        return None
    texts = {key: str(held[key]) for key in Labels._fields if key != "difficulty"}
    return Labels(**texts, difficulty=tuple(str(item) for item in held["difficulty"]))


def characters(found: Iterable[Card]) -> tuple[Labels, ...]:
    """The characters of these library cards, each once, by the listed order of genres and id."""
    known = {one.character: one for card in found if (one := labels(card)) is not None}
    order = {genre: place for place, genre in enumerate(GENRES)}
    return tuple(
        sorted(known.values(), key=lambda one: (order.get(one.genre, len(order)), one.character))
    )


def coverage(library: Iterable[Labels]) -> Mapping[str, Mapping[str, int]]:
    """Characters counted by each label: {"genre": {...}, "relationship": {...}, …}."""
    listed = list(library)
    fields = ("genre", "relationship", "mood", "rhythm")
    counted = {field: dict(Counter(getattr(one, field) for one in listed)) for field in fields}
    counted["difficulty"] = dict(Counter(item for one in listed for item in one.difficulty))
    return counted
