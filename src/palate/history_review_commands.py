"""The commands that look at histories: check, stats and split (paper 3.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate.cards import library
from palate.cards.places import CARDS, files_in
from palate.config import Study, read_study
from palate.errors import InputError
from palate.histories import Split, read_split
from palate.histories import read as read_history
from palate.histories.explained import Explained, explained
from palate.histories.figures import MAX_ENTROPY, Figures, Spread, figures
from palate.histories.findings import Finding
from palate.histories.review import Purpose, review
from palate.prepare import split_file, split_of, user_section
from palate.report.history import UserHistory, write_history_page
from palate.report.history_charts import HABIT_WORDS
from palate.report.safe import terminal_safe
from palate.report.templating import number as shown_number
from palate.types import Record, Session

SIDE_BY_SIDE = 3  # users beside one another in a terminal of 80 columns


class History(NamedTuple):
    """One user's sessions, the file that they are from, and what they are for."""

    user_id: str
    file: str
    sessions: tuple[Session, ...]
    purpose: Purpose


class Found(NamedTuple):
    """The histories of a place, and what a page of them is called."""

    title: str
    histories: Iterator[History]


class Checked(Record):
    """What `palate history check` says of one user; `ok` is false where a finding stops."""

    user_id: str
    file: str
    ok: bool
    sessions: int
    rated: int
    findings: tuple[Finding, ...]


def check_history(place: Path, *, as_json: bool) -> int:
    """Check the histories of a study, or one file of sessions.

    Returns:
        0 a simulator and a rubric can be made of each; 1 not of each.

    Raises:
        InputError: the study or a history cannot be read, or the study has no history.
    """
    checked = [_checked(history) for history in _found(place).histories]
    if as_json:
        _print_json([one.model_dump(mode="json") for one in checked])
    else:
        for one in checked:
            _say(one)
    return 0 if all(one.ok for one in checked) else 1


def show_stats(place: Path, *, as_json: bool, out: Path | None) -> None:
    """Print the figures of each user's history; draw them into the HTML file `out`.

    Raises:
        InputError: the study or a history cannot be read, the study has no history, or `out` is
            one of these files.
        StoreError: the page cannot be written.
    """
    found = _found(place)
    histories = []
    for history in found.histories:
        if out is not None and out.resolve() in (place.resolve(), Path(history.file).resolve()):
            raise InputError(f"--out is {out}, which the page would overwrite; name another file")
        histories.append(_figured(history))
    if as_json:
        _print_json([one.figures.model_dump(mode="json") for one in histories])
    else:
        for first in range(0, len(histories), SIDE_BY_SIDE):
            beside = histories[first : first + SIDE_BY_SIDE]
            Console(highlight=False).print(_stats_table([one.figures for one in beside]))
    if out is not None:
        write_history_page(histories, out, title=found.title)
        click.echo(f"Wrote {terminal_safe(str(out))}", err=as_json)


def show_split(study: Path, *, user: str, as_json: bool) -> None:
    """Show a user's split, which is made and recorded if it was not yet.

    Raises:
        InputError: no such user or no history, too few sessions, or the history has changed since
            the split was recorded.
    """
    loaded = read_study(study)
    section = user_section(loaded, user)
    file = split_file(loaded, user)
    if file.exists() and section.history is not None:
        sessions = read_history(loaded.path(section.history), user_id=user)
        parts = read_split(file, sessions)
    else:
        sessions, parts = split_of(loaded, section)
    told = explained(sessions, parts)
    remarks = list(_split_remarks(loaded, told, parts))
    if as_json:
        _print_json({**told.model_dump(mode="json"), "file": str(file), "remarks": remarks})
    else:
        _print_split(told, file, remarks)


def _found(place: Path) -> Found:
    """Each user's history of a study (a folder or a .toml), or of one file of sessions."""
    try:
        is_study = place.is_dir() or place.suffix == ".toml"
    except OSError as error:  # a name too long to be a file's
        raise InputError(f"{place} cannot be read ({error.strerror}); mend its path") from None
    if is_study:
        study = read_study(place)
        return Found(study.content.study.name, _of_study(study))
    return Found(place.stem, _of_file(place))


def _of_file(place: Path) -> Iterator[History]:
    sessions = sorted(read_history(place), key=lambda session: session.user_id)
    for user_id, own in groupby(sessions, key=lambda session: session.user_id):
        yield History(user_id, str(place), tuple(own), Purpose())


def _of_study(study: Study) -> Iterator[History]:
    panel = tuple(path.stem for path in study.panel_files())
    purpose = Purpose(study.content.protocol.seed, panel, _known_cards(study, panel))
    users = [user for user in study.content.users if user.history is not None]
    if not users:
        raise InputError(
            f'{study.file}: no user has a history; add history = "histories/….jsonl" to a user'
        )
    for user in users:
        file = study.path(user.history or "")
        yield History(user.id, str(file), read_history(file, user_id=user.id), purpose)


def _known_cards(study: Study, panel: Sequence[str]) -> frozenset[str]:
    """Ids of the cards that the study can find: its panel, its cards folder, the library."""
    folder = study.folder / CARDS
    kept = {path.stem for path in files_in(folder)} if folder.is_dir() else set()
    return frozenset({*panel, *kept, *(path.stem for path in library.paths())})


def _checked(history: History) -> Checked:
    numbers = figures(history.sessions)
    findings = review(history.sessions, numbers, history.purpose)
    return Checked(
        user_id=history.user_id,
        file=history.file,
        ok=all(finding.level != "stop" for finding in findings),
        sessions=numbers.sessions,
        rated=numbers.ratings.number,
        findings=findings,
    )


def _figured(history: History) -> UserHistory:
    numbers = figures(history.sessions)
    return UserHistory(numbers, review(history.sessions, numbers, history.purpose))


def _say(checked: Checked) -> None:
    verdict = "can be used" if checked.ok else "cannot be used"
    click.echo(
        f"{terminal_safe(checked.user_id)}: {checked.sessions:,} sessions, {checked.rated:,} rated "
        f"replies: {verdict} ({terminal_safe(checked.file)})"
    )
    for finding in checked.findings:
        click.echo(f"  {finding.level}: {terminal_safe(finding.text)}")
    if not checked.findings:
        click.echo("  nothing to remark")


def _stats_table(users: Sequence[Figures]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for user in users:
        table.add_column(Text(terminal_safe(user.user_id)), justify="right")
    columns = [list(_stats_rows(user)) for user in users]
    for row in zip(*columns, strict=True):
        table.add_row(row[0][0], *(Text(terminal_safe(value)) for _, value in row))
    return table


def _stats_rows(user: Figures) -> Iterator[tuple[str, str]]:
    yield "sessions", f"{user.sessions:,}"
    yield "turns", f"{user.turns:,}"
    yield "rated of all replies", f"{user.ratings.number:,} of {user.replies:,}"
    yield "ratings 1 2 3 4 5", " ".join(f"{number:,}" for number in user.ratings.counts)
    yield "mean", shown_number(user.ratings.mean)
    yield f"entropy of {MAX_ENTROPY:.2f} bits", shown_number(user.ratings.entropy)
    yield "pairs with different ratings", f"{user.pairs:,} of {user.rated_pairs:,}"
    yield "languages", ", ".join(f"{tag} {number:,}" for tag, number in user.languages.items())
    yield "quit, limit, unknown", " ".join(f"{number:,}" for number in user.endings.values())
    before = user.messages_before_leaving
    yield "messages before leaving", "n/a" if before is None else f"{before:,}"
    yield "words a message of the user", _spread(user.user.words)
    yield "characters", _spread(user.user.characters)
    yield "words a reply", _spread(user.character.words)
    yield "characters", _spread(user.character.characters)
    measured = {} if user.habits is None else user.habits.model_dump()
    for name, told in HABIT_WORDS.items():
        share = measured.get(name)
        yield f"messages {told}", "n/a" if share is None else f"{share:.0%}"
    yield "cards", f"{len(user.cards):,}"


def _spread(spread: Spread | None) -> str:
    return "n/a" if spread is None else f"{spread.median:,} ({spread.p10:,} – {spread.p90:,})"


def _split_remarks(study: Study, told: Explained, parts: Split) -> Iterator[str]:
    """What the reader must know of a recorded split: torn chats, panel cards learned from."""
    for group in told.torn:
        yield (
            f"{', '.join(group)} are branches of one chat but lie in both parts, so what is held "
            "out of it has been learned from; remove the split and what was made from it to split "
            "anew."
        )
    panel = parts.training_on([path.stem for path in study.panel_files()])
    if panel:
        yield (
            f"Sessions on panel cards are learned from ({', '.join(panel)}), which flatters the "
            "scores; every report says so."
        )


def _print_split(told: Explained, file: Path, remarks: Sequence[str]) -> None:
    console = Console(highlight=False)
    held_out = sum(1 for one in told.sessions if one.part == "held_out")
    click.echo(
        f"{terminal_safe(told.user_id)}: {len(told.sessions) - held_out:,} sessions train, "
        f"{held_out:,} are held out (seed {told.seed}; {terminal_safe(str(file))})"
    )
    rows = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for name in ("session", "card", "ended by", "part", "why"):
        rows.add_column(name, overflow="fold")
    for one in sorted(told.sessions, key=lambda one: one.part):
        part = "held out" if one.part == "held_out" else "training"
        values = (one.session_id, one.card_id, one.ended_by, part, one.why)
        rows.add_row(*(Text(terminal_safe(value)) for value in values))
    console.print(rows)
    strata = Table(box=None, pad_edge=False, header_style="bold")
    strata.add_column("card", overflow="fold")
    strata.add_column("ended by")
    for name in ("training", "held out"):
        strata.add_column(name, justify="right")
    for stratum in told.strata:
        numbers = (str(stratum.training), str(stratum.held_out))
        strata.add_row(Text(terminal_safe(stratum.card_id)), stratum.ended_by, *numbers)
    click.echo()
    console.print(strata)
    for remark in remarks:
        click.echo(f"note: {terminal_safe(remark)}")


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
