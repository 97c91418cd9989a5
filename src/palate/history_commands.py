"""`palate history import`: people's chats into the histories of a study."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click

from palate import cards
from palate.cards.files import nickname
from palate.cards.places import CARDS, is_study
from palate.config import users_of
from palate.errors import InputError
from palate.histories import adding
from palate.histories.card_choice import folded
from palate.histories.formats.normal import MEANING, Kind, Notes
from palate.histories.importing import Imported, Item, Options, read_file
from palate.histories.mapping import read_map
from palate.histories.ratings import Rating, rated, read_ratings
from palate.histories.sessions import Reading, Thumbs, preferences
from palate.report.safe import terminal_safe
from palate.study_rules import fault_of_id
from palate.types import Session, Turn

HISTORIES = "histories"  # the folder of a study that its histories are kept in
_PLACES = 8  # places that are listed of each kind of note
_SHOWN = 2  # first and last turns that a dry run shows
_WIDTH = 100  # characters of a turn on the terminal


@dataclass(frozen=True)
class ImportSettings:
    """The options of `palate history import`, as they were given; `thumbs` is "up=5,down=2"."""

    into: Path
    user: str | None = None
    card: str | None = None
    format: str | None = None
    mapping: Path | None = None
    ratings: Path | None = None
    thumbs: str | None = None
    keep_hidden: bool = False
    dry_run: bool = False


def import_history(files: Sequence[Path], settings: ImportSettings) -> int:
    """Read chat files and add their sessions to histories/USER.jsonl of the study.

    A file that is wrong is named and does not stop the others. A dry run writes nothing.

    Returns:
        0, or 2 if a file was refused.

    Raises:
        InputError: an option is wrong, or a history or ratings file that is there cannot be used.
        StoreError: the disk refuses.
    """
    options = _options(settings)
    ratings = read_ratings(settings.ratings, options.reading.thumbs) if settings.ratings else ()
    imported: list[Imported] = []
    refused = 0
    for path in dict.fromkeys(files):
        try:
            one = read_file(path, options)
        except InputError as error:
            refused += 1
            click.echo(f"refused  {terminal_safe(str(error))}")
            continue
        one, ratings = _with_ratings(one, ratings)
        imported.append(one)
        _say_file(one, dry_run=settings.dry_run)
    _say_unused(ratings)
    _add_all([item for one in imported for item in one.items], settings)
    return 2 if refused else 0


def _options(settings: ImportSettings) -> Options:
    if not settings.into.is_dir():
        raise InputError(
            f"{settings.into} is no folder; name the study's folder with --into, or make one with "
            "palate init"
        )
    for kind, name in (("user", settings.user), ("card", settings.card)):
        fault = fault_of_id(name) if name is not None else ""
        if fault:
            raise InputError(f"the {kind} id {name!r} cannot be used: {fault}")
    if settings.mapping is not None and settings.format is not None:
        raise InputError("--map already says how the file is read; leave --format out")
    return Options(
        user=settings.user,
        card=settings.card,
        format=settings.format,
        mapping=read_map(settings.mapping) if settings.mapping else None,
        reading=Reading(_thumbs(settings.thumbs), settings.keep_hidden),
        cards=_cards(settings.into),
    )


def _thumbs(text: str | None) -> Thumbs | None:
    if text is None:
        return None
    told = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if set(told) == {"up", "down"} and all(value in tuple("12345") for value in told.values()):
        thumbs = Thumbs(int(told["up"]), int(told["down"]))
        if thumbs.up > thumbs.down:
            return thumbs
    raise InputError(f"--thumbs is {text!r}, but must be like up=5,down=2, with up the higher")


def _cards(into: Path) -> Mapping[str, tuple[str, ...]]:
    """The ids of the study's cards by name and nickname; a card that is none has no name here."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    folder = into / CARDS
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            card = cards.read(path)
        except InputError:
            continue
        for name in dict.fromkeys((folded(card.name), folded(nickname(card)))):
            found[name].append(card.id)
    return {name: tuple(ids) for name, ids in found.items()}


def _with_ratings(
    one: Imported, ratings: tuple[Rating, ...]
) -> tuple[Imported, tuple[Rating, ...]]:
    if not ratings:
        return one, ratings
    items, unused = rated(one.items, ratings, one.notes)
    return one._replace(items=items), unused


def _say_file(one: Imported, *, dry_run: bool) -> None:
    sessions = [item.session for item in one.items]
    turns = [turn for session in sessions for turn in session.turns]
    mine = sum(turn.speaker == "user" for turn in turns)
    labels = sum(turn.satisfaction is not None for turn in turns)
    pairs = sum(len(preferences(session)) for session in sessions)
    click.echo(f"{terminal_safe(str(one.path))}: {one.format}")
    click.echo(
        f"  {_number(len(sessions), 'session')}, {_number(len(turns), 'turn')} "
        f"({len(turns) - mine} of the character, {mine} of the user), {_number(labels, 'rating')}"
        + (f", {_number(pairs, 'reply', 'replies')} chosen over swipes" if pairs else "")
    )
    _say_who(sessions)
    _say_notes(one.notes)
    if dry_run:
        _say_beginning(one.items[0])


def _say_who(sessions: Sequence[Session]) -> None:
    for what, ids in (
        ("user", [session.user_id for session in sessions]),
        ("card", [session.card_id for session in sessions]),
        ("language", [session.language for session in sessions]),
    ):
        plural = "s" if len(set(ids)) > 1 else ""
        click.echo(f"  {what}{plural}: {_listed(ids)}")


def _say_notes(notes: Notes) -> None:
    for kind, count in notes.counts().items():
        click.echo(f"  {MEANING[kind]}: {count}; {_places(notes, kind)}")


def _places(notes: Notes, kind: Kind) -> str:
    mine = [note for note in notes.listed if note.kind == kind]
    listed = (
        f"{note.place} ({note.detail})" if note.place and note.detail else note.place or note.detail
        for note in mine[:_PLACES]
    )
    more = f" and {len(mine) - _PLACES} more" if len(mine) > _PLACES else ""
    return terminal_safe(", ".join(listed)) + more


def _say_beginning(item: Item) -> None:
    session = item.session
    click.echo(f"  session {terminal_safe(session.session_id)}, {len(session.turns)} turns:")
    last = len(session.turns) - _SHOWN
    for number, turn in enumerate(session.turns):
        if number < _SHOWN or number >= last:
            click.echo(f"    {number} {_line(turn)}")
        elif number == _SHOWN:
            click.echo("    …")


def _line(turn: Turn) -> str:
    text = terminal_safe(turn.text)
    short = text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
    rating = f" [{turn.satisfaction}]" if turn.satisfaction is not None else ""
    return f"{turn.speaker}{rating}: {short}"


def _say_unused(ratings: Sequence[Rating]) -> None:
    if not ratings:
        return
    click.echo(
        f"{_number(len(ratings), 'rating')} of sessions that are in none of the files: "
        f"{_listed([rating.session for rating in ratings])}"
    )


def _add_all(items: Sequence[Item], settings: ImportSettings) -> None:
    by_user: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_user[item.session.user_id].append(item)
    is_written = bool(items) and not settings.dry_run
    with adding.alone(settings.into / HISTORIES) if is_written else nullcontext():
        # All are read before one is written: a damaged history stops the import as a whole.
        results = {
            user: adding.added(adding.existing(_history(settings, user), user), found)
            for user, found in by_user.items()
        }
        named = _named_histories(settings.into)
        for user, result in results.items():
            if is_written and result.changes:
                adding.write(_history(settings, user), result.sessions)
            _say_added(result, _history(settings, user), dry_run=settings.dry_run)
            if named is not None and f"{HISTORIES}/{user}.jsonl" not in named:
                _say_unused_history(settings.into, user)
    if settings.dry_run and results:
        click.echo("Nothing was written: leave --dry-run out to import.")


def _history(settings: ImportSettings, user: str) -> Path:
    return settings.into / HISTORIES / f"{user}.jsonl"


def _say_added(result: adding.Added, history: Path, *, dry_run: bool) -> None:
    verb = "would get" if dry_run else "got"
    click.echo(
        f"{terminal_safe(str(history))} {verb} {_number(len(result.new), 'session')}"
        + (f"; already there: {_listed(result.already)}" if result.already else "")
        + (f"; new ratings for: {_listed(result.rated)}" if result.rated else "")
        + (
            f"; card or ending now known for: {_listed(result.completed)}"
            if result.completed
            else ""
        )
        + (f"; gone on: {_listed(result.grown)}" if result.grown else "")
    )
    for taken, given in result.renamed[:_PLACES]:
        click.echo(
            f"  another session is called {terminal_safe(taken)}; this one is "
            f"{terminal_safe(given)}"
        )
    if len(result.renamed) > _PLACES:
        click.echo(f"  and {len(result.renamed) - _PLACES} more")


def _named_histories(study: Path) -> set[str | None] | None:
    """The histories that users of the study have; None where no study says."""
    try:
        return {one.history for one in users_of(study)} if is_study(study) else None
    except InputError:  # the study is not ready; its own commands will say why
        return None


def _say_unused_history(study: Path, user: str) -> None:
    """A history that no user of the study names would be read by nothing, without a word."""
    click.echo(
        f"  no user of the study has this history yet: add a [[users]] with "
        f'history = "{HISTORIES}/{terminal_safe(user)}.jsonl" to {study}/study.toml'
    )


def _listed(names: Sequence[str]) -> str:
    """The first of these names, on one line, and how many more there are."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - _PLACES} more" if len(different) > _PLACES else ""
    return terminal_safe(", ".join(name[:_WIDTH] for name in different[:_PLACES])) + more


def _number(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
