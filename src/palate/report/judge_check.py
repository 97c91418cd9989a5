"""A judge check for a reader: tables for a terminal, and one HTML file that works from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate.report.plain import say
from palate.report.policy import inline, policy
from palate.report.safe import terminal_safe
from palate.report.templating import NOT_MEASURED, environment
from palate.report.writing import write_page
from palate.studies.judge_check import CHANGES, Kind
from palate.studies.judge_moves import JudgeCheck, Move

KIND_WORDS: dict[Kind, str] = {
    "first": "first answer",
    "again": "asked again",
    "reversed": "dimensions reversed",
    "padded": "padded",
    "injected": "instruction inside",
}
_SMALL_TRACKS = {"personal": "personal track", "generic": "generic track"}


class Group(NamedTuple):
    """The moves of one language and track: a row a dimension, a cell a change."""

    title: str
    kinds: tuple[Kind, ...]
    rows: tuple[tuple[str, tuple[Move | None, ...]], ...]
    forms: tuple[Move, ...]


def groups(found: JudgeCheck) -> Iterator[Group]:
    """The tables, in the order of languages and tracks."""
    for language, track in dict.fromkeys((one.language, one.track) for one in found.moves):
        own = [one for one in found.moves if (one.language, one.track) == (language, track)]
        whole = {(one.dimension, one.kind): one for one in own if one.form is None}
        kinds = tuple(kind for kind in CHANGES if any(one.kind == kind for one in own))
        dimensions = dict.fromkeys(dimension for dimension, _ in whole)
        yield Group(
            title=f"{_SMALL_TRACKS[track]}, {language}",
            kinds=kinds,
            rows=tuple((d, tuple(whole.get((d, kind)) for kind in kinds)) for d in dimensions),
            forms=tuple(one for one in own if one.form is not None),
        )


def print_judge_check(found: JudgeCheck, console: Console) -> None:
    """Every table, what was unscored, orders, remarks, and how to read it."""
    for group in groups(found):
        console.print(_table(group))
        for one in group.forms:
            say(f"instruction {one.form}: {cell(one)}" if one.form is not None else "", console)
    for title, lines in (
        ("Unscored", list(unscored_lines(found))),
        ("Two messages in both orders", list(order_lines(found))),
        ("Remarks", list(found.remarks)),
        ("How to read this", [_HOW]),
    ):
        if lines:
            console.print(Text(title, style="bold"))
            for line in lines:
                say(f"- {line}", console)


_HOW = (
    "a cell is the mean distance from the first answer in points of the scale 1..5, and in "
    "brackets the mean move with its 95 % interval over sessions; a judge that reads the reply "
    "alone has 0 everywhere."
)


def _table(group: Group) -> Table:
    table = Table(title=group.title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("dimension")
    for kind in group.kinds:
        table.add_column(KIND_WORDS[kind], justify="right")
    for dimension, moves in group.rows:
        table.add_row(Text(terminal_safe(dimension)), *(Text(cell(one)) for one in moves))
    return table


def cell(one: Move | None) -> str:
    """The mean distance, and the mean move with its interval."""
    if one is None or one.mean_abs is None or one.bias is None:
        return NOT_MEASURED
    if one.low is None or one.high is None:
        return f"{one.mean_abs:.2f} ({one.bias:+.2f})"
    return f"{one.mean_abs:.2f} ({one.bias:+.2f}; {one.low:+.2f} to {one.high:+.2f})"


def unscored_lines(found: JudgeCheck) -> Iterator[str]:
    """What gave no scores, with the reasons."""
    for one in found.unscored:
        if one.unscored:
            reasons = "; ".join(f"{why} ({n})" for why, n in sorted(one.reasons.items()))
            yield (
                f"{_SMALL_TRACKS[one.track]}, {one.language}, {KIND_WORDS[one.kind]}: "
                f"{one.unscored} of {one.asked}: {reasons}"
            )


def order_lines(found: JudgeCheck) -> Iterator[str]:
    """How often a choice changed with the order, by language."""
    for one in found.orders:
        share = NOT_MEASURED if one.share is None else f"{one.share:.0%}"
        yield (
            f"{one.language}: the choice went over with the order in {share} of "
            f"{one.pairs - one.unscored} pairs; cannot tell in {one.cannot_tell}, unscored "
            f"{one.unscored}"
        )


def write_judge_page(found: JudgeCheck, path: Path, *, title: str) -> Path:
    """Write the page to `path`, whole or not at all.

    Raises:
        StoreError: the file cannot be written.
    """
    style = inline("report.css", "agreement.css")
    page = (
        environment()
        .get_template("judge_check.html")
        .render(
            title=title,
            found=found,
            groups=list(groups(found)),
            kind_words=KIND_WORDS,
            cell=cell,
            unscored=list(unscored_lines(found)),
            orders=list(order_lines(found)),
            how=_HOW,
            policy=policy(style),
            style=style.text,
        )
    )
    return write_page(path, page)


def gate_lines(passed_by: Sequence[Move], most: float) -> Iterator[str]:
    """What a gate does not let pass, a line each."""
    for one in passed_by:
        where = f"{_SMALL_TRACKS[one.track]}, {one.language}, {KIND_WORDS[one.kind]}"
        form = "" if one.form is None else f", form {one.form}"
        what = (
            f"not measured ({one.reason})"
            if one.mean_abs is None
            else f"moves {one.mean_abs:.2f}, more than {most:g}"
        )
        yield f"{where}{form}, {one.dimension}: {what}"
