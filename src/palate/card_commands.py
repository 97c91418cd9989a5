"""The commands about character cards: check, import, export and list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate import cards
from palate.cards import library, panel
from palate.cards.export import ENDINGS, export
from palate.cards.lorebook import lorebook
from palate.cards.names import file_stem
from palate.cards.places import card_files, card_folder, check_target, files_in, is_folder
from palate.cards.versions import Version, as_v3
from palate.errors import InputError, PalateError
from palate.report.safe import terminal_safe
from palate.types import Card, digest

VERSIONS: Mapping[str, Version] = {"v1": 1, "v2": 2, "v3": 3}


@dataclass(frozen=True)
class Checked:
    """What `palate cards check` says of one file: either `refused`, or the card and its faults.

    `faults` keep a card from being played; `warnings` are what its author should know.
    """

    file: str
    refused: str | None = None
    name: str = ""
    language: str = ""
    carrier: str = ""
    openings: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_cards(places: Sequence[Path], *, as_json: bool, show: bool) -> int:
    """Check card files, folders of them or the cards folder of a study.

    Returns:
        0 all can be played; 1 one cannot; 2 one cannot be read.

    Raises:
        InputError: a place does not exist or holds no card file.
    """
    files = list(card_files(places))
    results = []
    for path in files:
        result = _checked(path)
        results.append(result)
        if not as_json:
            _say(result)
            if show and result.refused is None:
                click.echo(terminal_safe(preview(cards.read(path)), lines=True))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in results], ensure_ascii=False, indent=2))
    elif len(results) > 1:
        refused, unplayable = _count(results)
        played = len(results) - refused - unplayable
        click.echo(
            f"{len(results)} files: {played} can be played, {unplayable} cannot, {refused} refused"
        )
    return _verdict(results)


def import_cards(places: Sequence[Path], *, into: Path) -> int:
    """Copy cards into the cards folder of a study (or into any other folder) as V3 JSON.

    A card that is there already, under whatever name, is left as it is. What cannot be read is
    refused with its reason and does not stop the others.

    Returns:
        0, or 2 if a file was refused.

    Raises:
        InputError: a place does not exist or holds no card file, or `into` cannot be a folder.
        StoreError: the disk refuses.
    """
    folder = card_folder(into)
    check_target(folder)
    present = {_content(card): path for path, card in _readable(folder)}
    taken = {path.stem for path in folder.glob("*")} if folder.is_dir() else set()
    imported = refused = 0
    for path in card_files(places):
        try:
            loaded = cards.load(path)
            content = _content(loaded.card)
            there = present.get(content)
            if there is not None:
                click.echo(f"already there as {there.name}: {terminal_safe(str(path))}")
                continue
            target = folder / f"{file_stem(loaded.card.name, taken)}.json"
            lost = export(path, target)
        except InputError as error:
            refused += 1
            click.echo(f"refused: {terminal_safe(str(error))}")
            continue
        taken.add(target.stem)
        present[content] = target
        imported += 1
        click.echo(f"{terminal_safe(loaded.card.name)} -> {terminal_safe(str(target))}")
        for note in (*loaded.warnings, *lost):
            click.echo(f"  note: {terminal_safe(note)}")
    click.echo(f"{imported} imported, {refused} refused")
    return 2 if refused else 0


def export_cards(source: str, target: Path, *, version: str, overwrite: bool) -> None:
    """Write the card in a file, or cards of the library, to `target` in the form of its ending.

    Several library cards go into a folder, as JSON. `version` is one of `VERSIONS`.

    Raises:
        InputError: no such card, the target exists, or its ending is unknown.
    """
    if not source.startswith(library.PREFIX):
        _exported(Path(source), target, version, overwrite)
        return
    found = library.matching(source.removeprefix(library.PREFIX))
    if target.suffix.lower() in ENDINGS:
        if len(found) > 1:
            raise InputError(
                f"{source} names {len(found)} cards and {target} is one file; name a folder"
            )
        _exported(found[0], target, version, overwrite)
        return
    for path in found:
        _exported(path, target / path.name, version, overwrite)


def list_cards(place: Path | None, *, filters: Mapping[str, str], only_panel: bool) -> list[Card]:
    """The cards of a study or folder, else of the library, that carry these labels.

    Raises:
        InputError: the place is neither a study nor a folder.
    """
    if place is not None and not is_folder(place):
        raise InputError(
            f"{place} is no folder; name a study or a folder of cards, or give a single file to "
            "`palate cards check`"
        )
    if place is not None:
        return [card for _, card in _readable(place)]
    found = library.cards("panel" if only_panel else "*")
    return [card for card in found if _carries(card, filters)]


def print_cards(found: Sequence[Card], *, as_json: bool) -> None:
    """Print a list of cards, one a line; what is on the panel carries a star."""
    labelled = any(library.labels(card) for card in found)
    members = set(panel.panel().characters) if labelled else set()
    rows = [_row(card, members) for card in found]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    columns = ("id", "name", *(("genre", "relationship", "mood", "role") if labelled else ()))
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        star = " *" if row["panel"] else ""
        cells = (terminal_safe(str(row[column] or "")) for column in columns)
        table.add_row(*(Text(c + (star if i == 0 else "")) for i, c in enumerate(cells)))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # a pipe has no width to cut ids and names to
    console.print(table)
    if any(row["panel"] for row in rows):
        frozen = panel.panel()
        console.print(Text(f"* the panel, version {frozen.version}, {frozen.sha256[:12]}"))
    console.print(Text(f"{len(rows)} cards"))


def preview(card: Card) -> str:
    """What the candidate is sent when a chat with this card begins, message by message."""
    try:
        messages = cards.chat_prompt(card, ())
    except InputError as error:
        return f"--- nothing: {error}"
    return "\n".join(f"--- {one.role}\n{one.text}" for one in messages)


def coverage_table() -> str:
    """The library's characters counted by label, as a Markdown table for the docs."""
    lines = ["| label | characters |", "|---|---|"]
    for label, counts in library.coverage(library.characters(library.cards("*-en"))).items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        lines.append(f"| {label} | {', '.join(f'{name} {n}' for name, n in ordered)} |")
    return "\n".join(lines) + "\n"


def _readable(place: Path) -> Iterator[tuple[Path, Card]]:
    """The cards of a folder or study; what is none is named on standard error."""
    for path in files_in(place) if is_folder(place) else ():
        try:
            yield path, cards.read(path)
        except InputError as error:
            click.echo(f"refused: {terminal_safe(str(error))}", err=True)


def _content(card: Card) -> str:
    """The same for two files of one card, whatever version and carrier they are."""
    return digest(as_v3(card.original))


def _checked(path: Path) -> Checked:
    try:
        loaded = cards.load(path)
    except PalateError as error:
        return Checked(str(path), refused=str(error))
    card = loaded.card
    numbers = tuple(one.number for one in cards.openings(card))
    faults = tuple(_faults(card))
    return Checked(
        file=str(path),
        name=card.name,
        language=card.language,
        carrier=loaded.carrier,
        openings=numbers,
        faults=faults,
        warnings=tuple(
            one for one in loaded.warnings if "has no opening" not in one and one not in faults
        ),
    )


def _faults(card: Card) -> Iterator[str]:
    """What keeps a study from playing the card."""
    if not cards.openings(card):
        yield f"card {card.id} has no opening, so it cannot be played"
    try:
        lorebook(card)
    except InputError as error:
        yield str(error)


def _say(one: Checked) -> None:
    if one.refused is not None:
        click.echo(f"refused  {terminal_safe(one.refused)}")
        return
    mark = "fault  " if one.faults else "ok     "
    offered = ", ".join(map(str, one.openings)) or "none"
    click.echo(
        f"{mark}  {terminal_safe(one.file)}: {terminal_safe(one.name)} ({one.language}, "
        f"{one.carrier}; openings: {offered})"
    )
    for note in (*one.faults, *one.warnings):
        click.echo(f"         {terminal_safe(note)}")


def _count(results: Iterable[Checked]) -> tuple[int, int]:
    listed = list(results)
    refused = sum(one.refused is not None for one in listed)
    return refused, sum(bool(one.faults) for one in listed)


def _verdict(results: Iterable[Checked]) -> int:
    refused, unplayable = _count(results)
    return 2 if refused else int(unplayable > 0)


def _exported(source: Path, target: Path, version: str, overwrite: bool) -> None:
    for note in export(source, target, version=VERSIONS[version], overwrite=overwrite):
        click.echo(f"note: {terminal_safe(note)}", err=True)
    click.echo(f"Wrote {terminal_safe(str(target))}")


def _carries(card: Card, filters: Mapping[str, str]) -> bool:
    held = library.labels(card)
    if held is None:
        return False
    values = {**held._asdict(), "language": card.language}
    return all(values[key] == value for key, value in filters.items())


def _row(card: Card, members: set[str]) -> dict[str, str | bool | None]:
    held = library.labels(card)
    row: dict[str, str | bool | None] = {
        "id": card.id,
        "name": card.name,
        "language": card.language,
    }
    for field in ("genre", "relationship", "mood", "role"):
        row[field] = getattr(held, field) if held else None
    row["panel"] = held is not None and held.character in members
    return row
