"""`palate cards list`: the library by its labels, or the cards of a study or folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate.card_commands import named_files, readable
from palate.cards import library, panel, read
from palate.cards.labels import Labels
from palate.cards.places import files_in, is_folder, is_study
from palate.errors import InputError
from palate.report.safe import terminal_safe
from palate.types import Card

_SHOWN = ("genre", "relationship", "mood", "role")


def list_cards(place: str | None, *, filters: Mapping[str, str], only_panel: bool) -> list[Card]:
    """The cards of a study, folder or `library:PATTERN`, else of the library, with these labels.

    Args:
        filters: label to value, of `language`, `genre`, `relationship`, `mood`, `rhythm`,
            `difficulty`; cards without labels pass that of the language alone.

    Raises:
        InputError: the place is neither a study nor a folder, or no card carries such a label.
    """
    if place is None:
        found = list(library.cards("panel" if only_panel else "*"))
    else:
        found = _cards_at(place)
        members = set(panel.panel().characters) if only_panel else set()
        found = [card for card in found if not only_panel or _character(card) in members]
    _check_values(filters)
    return [card for card in found if _carries(card, filters)]


def print_cards(found: Sequence[Card], *, as_json: bool) -> None:
    """Print a list of cards, one a line; what is on the panel carries a star."""
    labelled = any(library.labels(card) for card in found)
    members = set(panel.panel().characters) if labelled else set()
    rows = [_row(card, members) for card in found]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # a pipe has no width to cut ids and names to
    console.print(_table(rows, labelled))
    if any(row["panel"] for row in rows):
        frozen = panel.panel()
        console.print(Text(f"* the panel, version {frozen.version}, {frozen.sha256[:12]}"))
    console.print(Text(f"{len(rows)} cards"))


def _table(rows: Sequence[Mapping[str, object]], labelled: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("id", "name", *(_SHOWN if labelled else ())):
        texts = [_cell(row, column) for row in rows]
        # What one copies is never cut; the rest gives way in a narrow terminal.
        kept = column in ("id", "name")
        widest = max([len(column), *(Text(text).cell_len for text in texts)])
        table.add_column(column, no_wrap=True, min_width=widest if kept else None)
    for row in rows:
        table.add_row(*(Text(_cell(row, column.header)) for column in table.columns))
    return table


def _cell(row: Mapping[str, object], column: object) -> str:
    text = terminal_safe(str(row[str(column)] or ""))
    return f"{text} *" if column == "id" and row["panel"] else text


def _cards_at(place: str) -> list[Card]:
    if place.startswith(library.PREFIX):
        return [read(path) for path in named_files([place])]
    if not is_folder(Path(place)):
        raise InputError(
            f"{place} is no folder; name a study or a folder of cards, or give a single file to "
            "`palate cards check`"
        )
    paths = named_files([place]) if is_study(Path(place)) else files_in(Path(place))
    return [card for _, card in readable(paths)]


def _check_values(filters: Mapping[str, str]) -> None:
    """Refuse a value that no library card carries: a slip must not look like an empty shelf."""
    asked = {label: value for label, value in filters.items() if label != "language"}
    counted = library.coverage(library.characters(library.cards("*-en"))) if asked else {}
    for label, value in asked.items():
        known = counted[label]
        if value not in known:
            words = ", ".join(sorted(known))
            raise InputError(f"--{label} {value!r} is no {label} of the library; it has {words}")


def _carries(card: Card, filters: Mapping[str, str]) -> bool:
    held = library.labels(card)
    for label, value in filters.items():
        if label == "language":
            if card.language != value:
                return False
        elif held is None or value not in _values(held, label):
            return False
    return True


def _values(held: Labels, label: str) -> tuple[str, ...]:
    value = getattr(held, label)
    return value if isinstance(value, tuple) else (value,)


def _character(card: Card) -> str | None:
    held = library.labels(card)
    return held.character if held else None


def _row(card: Card, members: set[str]) -> dict[str, object]:
    held = library.labels(card)
    row: dict[str, object] = {"id": card.id, "name": card.name, "language": card.language}
    for field in Labels._fields[1:]:
        row[field] = getattr(held, field) if held else None
    row["panel"] = held is not None and held.character in members
    return row
