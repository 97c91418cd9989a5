"""What a person sees while a run works: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from palate.models.ledger import Ledger
from palate.models.spec import Price
from palate.report.safe import terminal_safe
from palate.run import Progress

PLAIN_LINE_EVERY_S = 10.0


class ProgressView(AbstractContextManager["ProgressView"]):
    """Shows cells, calls a second, tokens, money and time left.

    Money is the known part: where a model has no price it says "+ unpriced".
    """

    def __init__(self, console: Console, ledger: Ledger, prices: Mapping[str, Price]) -> None:
        self._console = console
        self._ledger = ledger
        self._prices = prices
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._printed_at = time.monotonic()
        self._latest: Progress | None = None

    def __enter__(self) -> ProgressView:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
        if self._latest is not None:
            self._console.print(self._line(self._latest), highlight=False, soft_wrap=True)

    def show(self, progress: Progress) -> None:
        """Take the newest counts; cheap enough to call after every model call."""
        self._latest = progress
        now = time.monotonic()
        pause = 0.25 if self._console.is_terminal else PLAIN_LINE_EVERY_S
        if now - self._printed_at < pause:
            return
        self._printed_at = now
        if self._console.is_terminal:
            self._live.update(self._grid(progress))
        else:
            self._console.print(self._line(progress), highlight=False, soft_wrap=True)

    def _grid(self, progress: Progress) -> Grid:
        grid = Grid.grid()
        grid.add_row(Text(_bar(progress)), Text(" " + self._line(progress)))
        if progress.last_failure:
            grid.add_row("", Text(f" last failure: {terminal_safe(progress.last_failure)[:160]}"))
        return grid

    def _line(self, progress: Progress) -> str:
        elapsed = max(time.monotonic() - progress.started, 1e-9)
        calls = self._ledger.calls
        parts = [
            f"{progress.done}/{progress.planned} cells",
            f"{calls} calls ({calls / elapsed:.1f}/s)",
            f"{_thousands(self._ledger.usage.prompt)} + "
            f"{_thousands(self._ledger.usage.completion)} tokens",
            self._money(),
            f"{_time(elapsed)} elapsed",
        ]
        left = _left(progress, elapsed)
        if left is not None:
            parts.append(f"{_time(left)} left")
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


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
