"""The validation of simulators for a terminal: verdicts, and the table of each person."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate.report.plain import say
from palate.report.safe import terminal_safe
from palate.report.validation_rows import CONDITION_WORDS, MEASURE_WORDS, Shown, rows, shown
from palate.simulators.validation.records import PersonResult, Validation

NARROWEST = 60  # columns; below it tables would break into single letters
_STYLE = {"fit": "green", "weak": "yellow", "unusable": "red", "cannot be told": "dim"}


def print_validation(found: Validation, console: Console) -> None:
    """Print every person's table and verdicts, and the own-against-others matrix."""
    if console.width < NARROWEST:
        console = Console(file=console.file, width=NARROWEST)
    for warning in found.warnings:
        say(f"Note: {warning}", console)
    for person in found.persons:
        console.print(_table(person))
        _verdicts(person, console)
    _matrix(found, console)


def _table(person: PersonResult) -> Table:
    grid = Table(
        title=Text(f"{terminal_safe(person.user_id)}, {person.contexts} contexts"),
        title_justify="left",
    )
    grid.add_column("measure", overflow="fold")
    for condition in person.conditions:
        grid.add_column(CONDITION_WORDS[condition.condition], justify="right", overflow="fold")
    for row in (row for row in rows(person) if row.brief):
        grid.add_row(
            row.name if row.leads else f"  {row.name}", *(_cell(cell) for cell in row.cells)
        )
    return grid


def _cell(cell: Shown) -> Text:
    return Text(cell.value + (f"\n{cell.interval}" if cell.interval else ""))


def _verdicts(person: PersonResult, console: Console) -> None:
    for condition in person.conditions:
        verdict = condition.verdict
        if verdict is None:
            continue
        line = Text(f"{CONDITION_WORDS[condition.condition]}: ")
        line.append(verdict.level, style=_STYLE[verdict.level])
        console.print(line)
        for reason in verdict.reasons:
            say(f"  - {reason}", console)
        if verdict.missing and condition.model is not None:
            say(f"  - Not measured: {', '.join(map(_named, verdict.missing))}.", console)
    console.print()


def _named(measure: object) -> str:
    return next(word for name, word in MEASURE_WORDS.items() if name == measure)


def _matrix(found: Validation, console: Console) -> None:
    matrix = found.own_against_others
    if matrix is None or not matrix.rows:
        return
    grid = Table(title="Own against others, nats a token", title_justify="left")
    grid.add_column("messages of", overflow="fold")
    for name in matrix.persons:
        grid.add_column(Text(terminal_safe(name)), justify="right", overflow="fold")
    grid.add_column("lead", justify="right")
    for row in matrix.rows:
        values = ("n/a" if value is None else f"{value:.3f}" for value in row.nll)
        lead = _cell(shown(row.margin, 3, signed=True))
        grid.add_row(Text(terminal_safe(row.user_id)), *values, lead)
    console.print(grid)
    if matrix.reason:
        say(f"Note: {matrix.reason}.", console)
