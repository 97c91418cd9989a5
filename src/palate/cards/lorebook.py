"""What a card's lorebook says: its settings and entries, by the V2 and V3 specifications.

Entries come as an array, or as an object keyed by uid. Left out, and named by `checked`: chance
and grouping of entries (probability, group, sticky, cooldown, delay, vectors), outlets, and
decorators without effect here (`palate.cards.decorators`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from palate.cards import entries, patterns
from palate.cards.entries import Entry, Key
from palate.cards.lore_fields import Fields
from palate.cards.macros import Dice, filled, is_blank, scanned
from palate.errors import InputError
from palate.types import Card


class Lorebook(NamedTuple):
    """The enabled entries; `scan_depth` None: the whole chat; `token_budget` None: no limit."""

    entries: tuple[Entry, ...] = ()
    scan_depth: int | None = None
    token_budget: float | None = None
    recursive: bool = False


class _Read(NamedTuple):
    lorebook: Lorebook
    read: tuple[entries.Read, ...]


def lorebook(card: Card) -> Lorebook:
    """The lorebook in `card`, macros still in it; empty where it has none.

    Raises:
        InputError: a field has a type that cannot be read as meant.
    """
    return _read(card).lorebook


def settled(book: Lorebook, *, char: str, user: str, dice: Dice) -> Lorebook:
    """The lorebook with its macros replaced, in texts and keys, for one chat."""

    def settle(entry: Entry) -> Entry:
        place = f"lorebook {entry.number}"

        def named(text: str) -> str:
            return filled(text, char=char, user=user, dice=dice, place=place)

        def fill(key: Key) -> Key:
            if not key.is_pattern:
                return key._replace(text=named(key.text))
            escaped = {"char": patterns.escaped(char), "user": patterns.escaped(user)}
            return key._replace(text=filled(key.text, **escaped, dice=dice, place=place))

        return entry._replace(
            content=named(entry.content).strip(),
            scanned=scanned(entry.scanned, char=char, user=user, dice=dice, place=place),
            search=_with_keys(entry.search, fill),
        )

    return book._replace(entries=tuple(settle(entry) for entry in book.entries))


class Checked(NamedTuple):
    """What a person who imports a card should know of its lorebook, a sentence each.

    `texts`: those that may reach a prompt, macros in them.
    """

    texts: tuple[str, ...]
    notices: tuple[str, ...]


def checked(card: Card) -> Checked:
    """The lorebook's texts, and what of it has no effect here or cannot be read."""
    try:
        book, read = _read(card)
    except InputError as error:
        return Checked((), (str(error),))
    keys = [key for entry in book.entries for key in entry.search.all_keys()]
    parts = {
        "settings that have no effect here": [
            name for item in read for name in item.without_effect
        ],
        "patterns that cannot be read and match nothing": [
            key.text for key in keys if not key.can_be_found
        ],
        "entries that no chat brings in, having no key to find or being switched off": [
            str(entry.number) for entry in book.entries if not entry.can_match
        ],
    }
    notices = [
        f"card {card.id} has a lorebook with {what}: {', '.join(dict.fromkeys(names))}"
        for what, names in parts.items()
        if names
    ]
    return Checked(tuple(entry.content for entry in book.entries), tuple(notices))


def _with_keys(search: entries.Search, fill: Callable[[Key], Key]) -> entries.Search:
    return search._replace(
        keys=tuple(map(fill, search.keys)),
        secondary=tuple(map(fill, search.secondary)),
        excluded=tuple(map(fill, search.excluded)),
        additional=tuple(tuple(map(fill, group)) for group in search.additional),
    )


def _read(card: Card) -> _Read:
    where = f"card {card.id}: its lorebook"
    fields = Fields(_book(card), where)
    positions = {"before_desc", "after_desc"}
    positions |= {name for name in ("personality", "scenario") if not is_blank(getattr(card, name))}
    read = tuple(
        entries.read(
            number, values, where=f"{where}'s entry {number}", positions=frozenset(positions)
        )
        for number, values in enumerate(_listed(fields), 1)
    )
    budget = fields.number("token_budget")
    book = Lorebook(
        entries=tuple(item.entry for item in read if item.entry is not None),
        scan_depth=fields.count("scan_depth"),
        # Exporters write 0 for "none"; a budget that forbids every entry is nobody's wish.
        token_budget=budget if budget is not None and budget > 0 else None,
        recursive=fields.flag("recursive_scanning"),
    )
    return _Read(book, read)


def _book(card: Card) -> Mapping[str, object]:
    """The lorebook's own fields; also where it is wrapped as one that was exported alone."""
    data = card.original.get("data")
    book = (data if isinstance(data, dict) else card.original).get("character_book")
    if not book:
        return {}
    if isinstance(book, list):
        return {"entries": book}
    if not isinstance(book, dict):
        raise InputError(f"card {card.id}: character_book is no object; mend the card")
    wrapped = book.get("data")
    return wrapped if isinstance(wrapped, dict) and "entries" not in book else book


def _listed(fields: Fields) -> list[Mapping[str, object]]:
    value = fields.values.get("entries") or []
    listed = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise InputError(f"{fields.where}: entries is no list of objects; mend the card")
    return listed
