"""The agreement study as tables for a terminal. Names come from files and are printed as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate.report.safe import terminal_safe
from palate.report.templating import NOT_MEASURED, number
from palate.studies.agreement_results import Agreement, ConditionAgreement
from palate.studies.held_out_results import HeldOutAgreement

CEILING_NAME = "(the people themselves, second rating)"
_USERS = 20  # further ones are in the JSON and on the page
_TESTS = 40
_DIGITS = 4
_NARROWEST = 80  # columns


def agreement_console() -> Console:
    """A console that is wide enough for the tables."""
    console = Console(highlight=False)
    return console if console.width >= _NARROWEST else Console(highlight=False, width=_NARROWEST)


def print_agreement(found: Agreement, console: Console) -> None:
    """Conditions, users, tests, the confident part, lengths, remarks, and how to read it."""
    if isinstance(found, HeldOutAgreement):
        _print_section(console, "Read this first", found.cautions)
    console.print(_conditions(found))
    console.print(_users(found))
    if isinstance(found, HeldOutAgreement):
        _print_judging(found, console)
    if found.tests:
        console.print(_tests(found))
    for heading, lines in (
        ("Not shown", list(_left_out(found))),
        ("Confident part", list(_confident(found))),
        ("Correlation with the length of the reply (Spearman)", list(_lengths(found))),
        ("Remarks", list(found.remarks)),
        ("How to read this", list(_notes(found))),
    ):
        _print_section(console, heading, lines)


def ranked(found: Agreement) -> list[tuple[str, ConditionAgreement]]:
    """Conditions by agreement, the best first; those without one last.

    A study on held-out ratings keeps the order of the paper's table.
    """
    if isinstance(found, HeldOutAgreement):
        return [(name, found.conditions[name]) for name in found.order]
    return sorted(
        found.conditions.items(),
        key=lambda item: (item[1].macro is None, -(item[1].macro or 0), item[0]),
    )


def _conditions(found: Agreement) -> Table:
    columns = ("Condition", "agreement", "95 % interval", "ties out", "pairs", "ties", "missing")
    table = _table("Agreement with the people, macro mean over users (0.5 is chance)", columns)
    rows = ranked(found)
    if found.ceiling is not None:
        rows.append((CEILING_NAME, found.ceiling))
    for name, one in rows:
        cells = (
            number(one.macro, _DIGITS),
            _range(one.low, one.high),
            number(one.macro_without_ties, _DIGITS),
            f"{one.pairs:,}",
            f"{one.judge_ties:,}",
            f"{one.missing_pairs:,}",
        )
        _add(table, name, cells)
    return table


def _users(found: Agreement) -> Table:
    columns = ("User", "Condition", "agreement", "95 % interval", "pairs", "ties", "missing")
    table = _table("Each user", columns, names=2)
    for user in _all_users(found)[:_USERS]:
        for name, one in ranked(found):
            own = one.users[user]
            cells = (
                terminal_safe(name),
                number(own.agreement, _DIGITS),
                _range(own.low, own.high),
                f"{own.pairs:,}",
                f"{own.judge_ties:,}",
                f"{own.missing_pairs:,}",
            )
            _add(table, user, cells)
    return table


def _print_judging(found: HeldOutAgreement, console: Console) -> None:
    columns = ("Judge", "form", "calls", "prompt tokens", "answer tokens", "USD", "scored")
    table = _table("Judges", columns, names=2)
    for one in found.judges:
        cost = "n/a" if one.cost is None else f"{one.cost:,.2f}"
        numbers = (one.calls, one.usage.prompt, one.usage.completion)
        _add(table, one.model, (one.form, *(f"{n:,}" for n in numbers), cost, f"{one.scored:,}"))
    console.print(table)
    _print_section(console, "Unscored replies", list(unscored_lines(found)))
    _print_section(console, "The panel", list(panel_lines(found)))


def unscored_lines(found: HeldOutAgreement) -> Iterator[str]:
    """Replies without a score, by condition and kind of reason."""
    for name in found.order:
        counts = found.counts[name]
        total = counts.scored + sum(counts.unscored.values())
        if counts.unscored:
            why = ", ".join(f"{kind} {count:,}" for kind, count in counts.unscored.items())
            yield f"{name}: {total - counts.scored:,} of {total:,} ({why})"


def panel_lines(found: HeldOutAgreement) -> Iterator[str]:
    """How a panel comes to its score, each member's own agreement, and how far they disagree."""
    if found.panel is None:
        return
    yield f"A score is the {found.panel} of the judges that gave one."
    for judge in found.judges:
        own = ", ".join(f"{name} {number(judge.agreement[name], _DIGITS)}" for name in found.order)
        missing = sum(judge.unscored.values())
        yield f"{judge.model} alone: {own}; verdicts without a score {missing:,}"
    for pair in found.disagreement:
        yield (
            f"{pair.a} and {pair.b}: {number(pair.difference)} points apart on average over "
            f"{pair.replies:,} verdicts; same order in {number(pair.same_order)} of {pair.pairs:,} "
            "pairs"
        )


def _all_users(found: Agreement) -> list[str]:
    return list(next(iter(found.conditions.values())).users)


def _left_out(found: Agreement) -> Iterator[str]:
    users, tests = len(_all_users(found)) - _USERS, len(found.tests) - _TESTS
    if users > 0:
        yield f"{users:,} more users: --json, or --out for a page"
    if tests > 0:
        yield f"{tests:,} more comparisons: --json, or --out for a page"


def _tests(found: Agreement) -> Table:
    columns = ("Condition", "against", "difference", "95 % interval", "p", "pairs")
    table = _table("Between conditions, on the pairs that both score", columns, names=2)
    for one in found.tests[:_TESTS]:
        _add(
            table,
            one.a,
            (
                terminal_safe(one.b),
                NOT_MEASURED if one.difference is None else f"{one.difference:+.4f}",
                _range(one.low, one.high),
                number(one.p, _DIGITS),
                f"{one.pairs:,}",
            ),
        )
    return table


def _confident(found: Agreement) -> Iterator[str]:
    for name, one in ranked(found):
        part = one.confident
        if part is not None:
            share = "no pairs" if part.share is None else f"{part.share:.0%} of the pairs"
            yield (
                f"{name}: {number(part.macro, _DIGITS)} ({_range(part.low, part.high)}) from "
                f"confidence {part.threshold:g} on, {share}"
            )


def _lengths(found: Agreement) -> Iterator[str]:
    for name, one in ranked(found):
        if one.length is not None:
            reason = f" ({one.length.reason})" if one.length.reason else ""
            yield (
                f"{name}: score {number(one.length.score)}, the people's label "
                f"{number(one.length.label)}, {one.length.replies:,} replies{reason}"
            )


def _notes(found: Agreement) -> Iterator[str]:
    yield (
        "A pair is two replies of one session that the user rated differently: 1 if the scores "
        "order it the same way, 0.5 if they are equal, 0 otherwise. Pairs are pooled per user, "
        "users weigh the same."
    )
    yield (
        f"Intervals: {found.resamples:,} bootstrap draws of sessions within each user (seed "
        f"{found.seed}): what other sessions of these users would change."
    )
    if found.tests:
        yield (
            "p: two-sided, from swapping the two conditions within sessions; not adjusted for "
            f"{len(found.tests)} comparisons."
        )


def _table(title: str, columns: Sequence[str], names: int = 1) -> Table:
    """`names` columns from the left hold names, the others numbers."""
    table = Table(
        title=Text(title),
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
        title_justify="left",
        title_style="bold",
    )
    for n, column in enumerate(columns):
        table.add_column(
            Text(terminal_safe(column)),
            justify="left" if n < names else "right",
            overflow="fold",
            no_wrap=n >= names,
        )
    return table


def _add(table: Table, name: str, cells: Iterable[str]) -> None:
    table.add_row(Text(terminal_safe(name)), *map(Text, cells))


def _range(low: float | None, high: float | None) -> str:
    return "no interval" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _print_section(console: Console, heading: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(Text(heading, style="bold"))
        for line in lines:
            console.print(Text("  " + terminal_safe(line)))
        console.print()
