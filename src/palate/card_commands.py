"""The commands about character cards: check, import and export."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from palate import cards
from palate.cards import library
from palate.cards.export import ENDINGS, export
from palate.cards.lorebook import lorebook
from palate.cards.names import file_stem
from palate.cards.places import card_files, card_folder, check_target, files_in, is_folder, is_study
from palate.cards.versions import Version, as_v3
from palate.config import panel_of
from palate.errors import InputError, PalateError
from palate.report.safe import terminal_safe
from palate.types import Card, digest

VERSIONS: Mapping[str, Version] = {"v1": 1, "v2": 2, "v3": 3}


@dataclass(frozen=True)
class Checked:
    """What `palate cards check` says of one file: either `refused`, or the card and its faults.

    `faults` keep a card from being played; `warnings` are what its author should know; `sent` is
    what a candidate is told when the chat begins, (role, text) each, where that was asked for.
    """

    file: str
    refused: str | None = None
    name: str = ""
    language: str = ""
    carrier: str = ""
    openings: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sent: tuple[tuple[str, str], ...] = ()

    @property
    def exit_code(self) -> int:
        """2 it cannot be read, 1 it cannot be played, 0 it can."""
        return 2 if self.refused is not None else int(bool(self.faults))


def check_cards(places: Sequence[str], *, as_json: bool, show: bool) -> int:
    """Check card files, folders of them, studies (their cards folder and panel) or library cards.

    Returns:
        0 all can be played; 1 one cannot; 2 one cannot be read.

    Raises:
        InputError: a place does not exist or holds no card file.
    """
    results = []
    for path in named_files(places):
        results.append(_checked(path, show=show))
        if not as_json:
            _say(results[-1])
    codes = Counter(one.exit_code for one in results)
    if as_json:
        click.echo(json.dumps([asdict(one) for one in results], ensure_ascii=False, indent=2))
    elif len(results) > 1:
        click.echo(
            f"{len(results)} files: {codes[0]} can be played, {codes[1]} cannot, {codes[2]} refused"
        )
    return max(codes)


def named_files(places: Sequence[str]) -> tuple[Path, ...]:
    """The card files that paths, folders, studies and `library:PATTERN` name, each once.

    Raises:
        InputError: a place does not exist or holds no card file.
    """
    found: dict[Path, None] = {}
    for place in places:
        if place.startswith(library.PREFIX):
            found.update(dict.fromkeys(library.matching(place.removeprefix(library.PREFIX))))
        elif is_study(Path(place)):
            found.update(dict.fromkeys((*files_in(Path(place)), *panel_of(Path(place)))))
        else:
            found.update(dict.fromkeys(card_files([Path(place)])))
    same = {path.resolve(): path for path in reversed(found)}
    return tuple(reversed(same.values()))


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
    inside = files_in(folder) if is_folder(folder) else ()
    present = {_content(card): path for path, card in readable(inside)}
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


def readable(paths: Iterable[Path]) -> Iterator[tuple[Path, Card]]:
    """The cards in these files; a file that holds none is named on standard error."""
    for path in paths:
        try:
            yield path, cards.read(path)
        except InputError as error:
            click.echo(f"refused: {terminal_safe(str(error))}", err=True)


def _content(card: Card) -> str:
    """The same for two files of one card, whatever version and carrier they are."""
    return digest(as_v3(card.original))


def _checked(path: Path, *, show: bool) -> Checked:
    try:
        loaded = cards.load(path)
    except PalateError as error:
        return Checked(str(path), refused=str(error))
    card = loaded.card
    numbers = tuple(one.number for one in cards.openings(card))
    faults = tuple(_faults(card))
    # A fault says the same as these warnings, and more.
    said = {*faults, f"card {card.id} has no opening; a run needs one"}
    return Checked(
        file=str(path),
        name=card.name,
        language=card.language,
        carrier=loaded.carrier,
        openings=numbers,
        faults=faults,
        warnings=tuple(one for one in loaded.warnings if one not in said),
        sent=tuple(cards.chat_prompt(card, ())) if show and not faults else (),
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
    for role, text in one.sent:
        click.echo(f"--- {role}\n{terminal_safe(text, lines=True)}")


def _exported(source: Path, target: Path, version: str, overwrite: bool) -> None:
    for note in export(source, target, version=VERSIONS[version], overwrite=overwrite):
        click.echo(f"note: {terminal_safe(note)}", err=True)
    click.echo(f"Wrote {terminal_safe(str(target))}")
