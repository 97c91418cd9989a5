"""What a person sees while a run works: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from palate.live_line import PLAIN_LINE_EVERY_S, LiveLine, clock
from palate.models.ledger import Ledger
from palate.models.spec import Price
from palate.report.safe import terminal_safe
from palate.run import Progress


class ProgressView(LiveLine[Progress]):
    """Shows cells, calls a second, tokens, money and time left.

    Money is the known part: where a model has no price it says "+ unpriced".
    """

    def __init__(self, console: Console, ledger: Ledger, prices: Mapping[str, Price]) -> None:
        super().__init__(console, first_after_s=PLAIN_LINE_EVERY_S)
        self._ledger = ledger
        self._prices = prices

    def drawn(self, progress: Progress, /) -> Grid:
        """A bar before the line, and the last failure below it."""
        grid = Grid.grid()
        grid.add_row(Text(_bar(progress)), Text(" " + self.line(progress)))
        if progress.last_failure:
            grid.add_row("", Text(f" last failure: {terminal_safe(progress.last_failure)[:160]}"))
        return grid

    def line(self, progress: Progress, /) -> str:
        """Counts, pace, tokens, money and time, in one line."""
        elapsed = max(time.monotonic() - progress.started, 1e-9)
        calls = self._ledger.calls
        parts = [
            f"{progress.done}/{progress.planned} cells",
            f"{calls} calls ({calls / elapsed:.1f}/s)",
            f"{_thousands(self._ledger.usage.prompt)} + "
            f"{_thousands(self._ledger.usage.completion)} tokens",
            self._money(),
            f"{clock(elapsed)} elapsed",
        ]
        left = _left(progress, elapsed)
        if left is not None:
            parts.append(f"{clock(left)} left")
        if progress.unjudged:
            parts.append(f"{progress.unjudged} cells wait for verdicts")
        if progress.failures:
            parts.append(f"{progress.failures} failed calls")
        return " · ".join(part for part in parts if part)

    def _money(self) -> str:
        known, complete = self._ledger.money(self._prices)
        if not complete:
            return f"${known:.2f} + unpriced" if known else "price unknown"
        return f"${known:.2f}"


def _left(progress: Progress, elapsed: float) -> float | None:
    """Seconds left at the pace of this call, once a cell has been finished."""
    through = progress.done + progress.unjudged
    worked = through - progress.found_done
    if not worked or through == progress.planned:
        return None
    return elapsed / worked * (progress.planned - through)


def _bar(progress: Progress, width: int = 20) -> str:
    filled = round(width * progress.done / max(progress.planned, 1))
    return "━" * filled + "─" * (width - filled)


def _thousands(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
