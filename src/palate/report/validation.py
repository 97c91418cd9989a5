"""The validation of simulators as one HTML file that works from disk, without a network or script.

The verdicts stand first; whatever is missing stands where its number would, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from palate.report import validation_charts as charts
from palate.report.policy import inline, policy
from palate.report.templating import environment
from palate.report.validation_rows import (
    CONDITION_WORDS,
    MEASURE_WORDS,
    MeasureRow,
    Shown,
    rows,
    shown,
)
from palate.report.writing import write_page
from palate.simulators.validation import verdict_rules as rules
from palate.simulators.validation.fooling import LENGTH_RULE
from palate.simulators.validation.measures import Attribution
from palate.simulators.validation.measures import Row as MatrixRow
from palate.simulators.validation.records import ConditionResult, PersonResult, Validation


class Cell(NamedTuple):
    """A value of a table; `note` numbers the reason below the table, 0 for none."""

    value: str
    interval: str
    note: int


class Row(NamedTuple):
    """A row of a table of conditions."""

    name: str
    goal: str
    leads: bool
    cells: tuple[Cell, ...]


class DrawnCondition(NamedTuple):
    """A condition's verdict and pictures."""

    result: ConditionResult
    name: str
    missing: tuple[str, ...]
    lengths: tuple[charts.Column, ...]
    leaving: tuple[charts.LeavingPoint, ...]


class DrawnPerson(NamedTuple):
    """What the page shows of one person; `notes` are the numbered reasons of the table."""

    result: PersonResult
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    conditions: tuple[DrawnCondition, ...]
    curve: charts.DrawnCurve | None


class AuthorRow(NamedTuple):
    """How often the messages of one source were given to the right person."""

    source: str
    accuracy: Shown
    groups: int


def write_validation_page(
    found: Validation, path: Path, *, curves: Mapping[str, charts.LossCurve | None]
) -> Path:
    """Write the page of a validation to `path`, whole or not at all.

    Args:
        curves: the loss curve of each person's training, where there was one.

    Raises:
        StoreError: the file cannot be written.
    """
    style = inline("report.css", "history.css", "validation.css")
    page = (
        environment()
        .get_template("validation.html")
        .render(
            found=found,
            lead=_lead(found),
            persons=[_person(person, curves.get(person.user_id)) for person in found.persons],
            condition_words=CONDITION_WORDS,
            matrix=found.own_against_others,
            heat=charts.heat(found.own_against_others) if found.own_against_others else (),
            margins=[shown(row.margin, 3, signed=True) for row in _matrix_rows(found)],
            authors=_authors(found.attribution),
            rules=rules,
            length_rule=LENGTH_RULE,
            policy=policy(style),
            style=style.text,
        )
    )
    return write_page(path, page)


def _lead(found: Validation) -> str:
    people = "1 person" if len(found.persons) == 1 else f"{len(found.persons)} people"
    contexts = sum(person.contexts for person in found.persons)
    judge = f"judged by {found.judge}" if found.judge else "without a judge"
    return f"{people}, {contexts} places in held-out chats, {judge}."


def _matrix_rows(found: Validation) -> Sequence[MatrixRow]:
    return found.own_against_others.rows if found.own_against_others else ()


def _person(person: PersonResult, curve: charts.LossCurve | None) -> DrawnPerson:
    notes: dict[str, int] = {}
    return DrawnPerson(
        result=person,
        rows=tuple(_row(row, notes) for row in rows(person)),
        notes=tuple(notes),
        conditions=tuple(_condition(condition) for condition in person.conditions),
        curve=None if curve is None else charts.curve(curve),
    )


def _row(row: MeasureRow, notes: dict[str, int]) -> Row:
    cells = []
    for value, interval, reason in row.cells:
        note = notes.setdefault(reason, len(notes) + 1) if reason else 0
        cells.append(Cell(value, interval, note))
    return Row(row.name, row.goal, row.leads, tuple(cells))


def _condition(result: ConditionResult) -> DrawnCondition:
    missing = result.verdict.missing if result.verdict and result.model else ()
    lengths = (
        [d for d in result.surface.distributions if d.name == "characters"]
        if (result.surface)
        else []
    )
    return DrawnCondition(
        result=result,
        name=CONDITION_WORDS[result.condition],
        missing=tuple(MEASURE_WORDS[name] for name in missing),
        lengths=charts.columns(lengths[0]) if lengths else (),
        leaving=charts.leaving_curve(result.leaving) if result.leaving else (),
    )


def _authors(found: Attribution | None) -> tuple[AuthorRow, ...]:
    if found is None:
        return ()
    return tuple(
        AuthorRow(
            "The people themselves" if one.source == "human" else CONDITION_WORDS[one.source],
            shown(one.accuracy),
            one.accuracy.n,
        )
        for one in found.authors
    )
