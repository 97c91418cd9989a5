"""The results of an aggregation as tables for a terminal.

Names come from files: they are printed as plain text, and characters that would steer the terminal
are replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palate.aggregate.results import CandidateResult, Interval, PersonalScore, Results

INDICES = ("u_score", "g_score", "overall")
TITLES = {
    "u_score": "U-Score",
    "g_score": "G-Score",
    "overall": "Overall",
    "generic": "Generic",
    "session": "Session",
}
GAPS = " †"  # beside a candidate whose scores have gaps
NAME_WIDTH = 24
FEW = "°"  # beside an interval on few cards


def print_results(results: Results, console: Console) -> None:
    """Indices, users, winners, mismatches, stability and noise floor, with every mark beside them.

    A candidate whose scores have gaps carries † wherever it is named with a rank.
    """
    console.print(_indices(results))
    console.print(_users(results))
    gaps = {candidate.name for candidate in results.candidates if _has_gaps(candidate)}
    for heading, lines in (
        ("Scored", _coverage(results)),
        ("Winners", _winners(results, gaps)),
        ("Rank differs between tracks", _mismatches(results, gaps)),
        ("Rank stability between repetitions (Spearman)", _stability(results)),
        ("Noise floor: half-width of the paired interval", _noise_floor(results)),
        ("Marks († gaps in the scores, ° few cards)", _marks(results)),
        ("Not available", _reasons(results)),
        ("How to read this", _notes(results)),
    ):
        _print_section(console, heading, list(lines))


def _print_section(console: Console, heading: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(Text(heading, style="bold"))
        for line in lines:
            console.print(Text("  " + line))
        console.print()


def shown(text: str) -> str:
    """`text` on one line without control characters, which could rewrite the screen."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _table(title: str, columns: Iterable[str], names: Iterable[str]) -> Table:
    """`names` fill the first column: it is kept wide enough for any but very long ones."""
    widest = min(max(map(len, ("Candidate", *names))), NAME_WIDTH)
    table = Table(
        title=Text(title),
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
        title_justify="left",
        title_style="bold",
    )
    for i, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if i else "left", overflow="fold")
    # A fixed width: rich narrows `min_width` first, puts it back, and then crops the last column.
    table.columns[0].width = widest
    return table


def _indices(results: Results) -> Table:
    order = ("rank", "U-Score", "G-Score", "Overall", "Generic", "Session")
    names = [_name(candidate) for candidate in results.candidates]
    table = _table("Candidates, by U-Score", ("Candidate", *order), names)
    by_name = {candidate.name: candidate for candidate in results.candidates}
    for place in results.ranking["u_score"]:
        candidate = by_name[place.name]
        cells = [
            _name(candidate),
            "n/a" if place.rank is None else str(place.rank),
            *(_cell(_column(candidate, column)) for column in (*INDICES, "generic", "session")),
        ]
        table.add_row(*map(Text, cells))
    return table


def _users(results: Results) -> Table:
    """One row a candidate, one column a user; winners are marked with a star."""
    table = _table(
        "Satisfaction of each user, 1..5 (* best for that user, or not told apart from it)",
        ("Candidate", *map(shown, results.users)),
        [_name(candidate) for candidate in results.candidates],
    )
    for candidate in results.candidates:
        cells = [
            _cell(score, " *" if candidate.name in results.winners[user] else "")
            for user, score in candidate.personal.items()
        ]
        table.add_row(*map(Text, (_name(candidate), *cells)))
    return table


def _name(candidate: CandidateResult) -> str:
    return shown(candidate.name) + (GAPS if _has_gaps(candidate) else "")


def _has_gaps(candidate: CandidateResult) -> bool:
    return any(mark.kind != "few cards" for mark in candidate.marks)


def _column(candidate: CandidateResult, column: str) -> Interval | None:
    return {
        "generic": candidate.generic,
        "session": candidate.session,
        "u_score": candidate.u_score,
        "g_score": candidate.g_score,
        "overall": candidate.overall,
    }[column]


def _cell(score: Interval | PersonalScore | None, mark: str = "") -> str:
    """For example "4.21 *" above "3.90–4.52°"; two decimals for scores, one for indices."""
    if score is None or score.mean is None:
        return "n/a"
    digits = 2 if score.mean <= 5 else 1
    if score.low is None or score.high is None:
        return f"{score.mean:.{digits}f}{mark}\nno interval"
    few = FEW if score.few_cards else ""
    return f"{score.mean:.{digits}f}{mark}\n{score.low:.{digits}f}–{score.high:.{digits}f}{few}"


def _title(column: str) -> str:
    return TITLES.get(column, shown(column.removeprefix("user:")))


def _coverage(results: Results) -> Iterable[str]:
    for candidate in results.candidates:
        found = candidate.coverage
        yield (
            f"{_name(candidate)}: {found.scored} of {found.replies} replies, "
            f"{found.sessions_scored} of {found.sessions_planned} sessions"
        )


def _winners(results: Results, gaps: set[str]) -> Iterable[str]:
    for user, names in results.winners.items():
        listed = ", ".join(shown(name) + (GAPS if name in gaps else "") for name in names)
        yield f"{shown(user)}: {listed or 'n/a (nothing scored)'}"


def _mismatches(results: Results, gaps: set[str]) -> Iterable[str]:
    ordered = sorted(results.mismatches, key=lambda mismatch: mismatch.candidate)
    for name, found in groupby(ordered, key=lambda mismatch: mismatch.candidate):
        pairs = (f"{_title(m.column_a)} {m.rank_a}, {_title(m.column_b)} {m.rank_b}" for m in found)
        yield f"{shown(name)}{GAPS if name in gaps else ''}: {'; '.join(pairs)}"


def _stability(results: Results) -> Iterable[str]:
    for column, found in results.rank_stability.items():
        value = "n/a" if found.spearman is None else f"{found.spearman:.3f}"
        yield f"{_title(column)}: {value}" + (f" ({shown(found.reason)})" if found.reason else "")


def _noise_floor(results: Results) -> Iterable[str]:
    for column, floor in results.noise_floor.items():
        if floor.difference is None:
            yield f"{_title(column)}: n/a ({floor.reason})"
        else:
            spread = f"{floor.smallest:.2f} to {floor.largest:.2f} over all pairs"
            yield f"{_title(column)}: {floor.difference:.2f} ({spread})"


def _marks(results: Results) -> Iterable[str]:
    for candidate in results.candidates:
        if candidate.marks:
            texts = "; ".join(mark.text for mark in candidate.marks)
            yield f"{shown(candidate.name)}: {texts}"


def _reasons(results: Results) -> Iterable[str]:
    """Why values are missing, one line for all the candidates that share a reason."""
    names: dict[str, list[str]] = {}
    for candidate in results.candidates:
        for column in (*(f"user:{user}" for user in results.users), *TITLES):
            if reason := candidate.reasons.get(column):
                names.setdefault(f"{_title(column)}: {shown(reason)}", []).append(candidate.name)
    for reason, candidates in names.items():
        everyone = len(candidates) == len(results.candidates)
        yield f"{'all' if everyone else ', '.join(map(shown, candidates))}: {reason}"


def _notes(results: Results) -> Iterable[str]:
    yield f"Means: {results.formula}; {results.scale}."
    yield (
        f"Ranges: 95 % intervals from {results.draws} draws of {len(results.cards)} cards"
        f" (seed {results.seed}): what other cards would change, for these users."
    )
    yield (
        "Ranks: pairs on the cells that both have; candidates whose difference to the best is"
        " within its interval share rank 1."
    )
