"""What a person sees while simulators are asked, and while their likelihoods are read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console

from palate.live_line import LiveLine, clock
from palate.report.safe import terminal_safe


class Step(NamedTuple):
    """What is being done, how much is done, and seconds left where that can be told."""

    doing: str
    done: int
    left: float | None


class StepsView(LiveLine[Step]):
    """Shows whose turn it is, steps of all, and time left; every ten seconds off a terminal.

    `of_all` says what the steps are: "of 96 sessions read".
    """

    def __init__(self, console: Console, title: str, total: int, of_all: str) -> None:
        super().__init__(console)
        self._title = title
        self._total = total
        self._of_all = of_all
        self._doing = ""
        self._done = self._kept = 0
        self._began = time.monotonic()

    def begins(self, user: str, what: str) -> None:
        """The next steps are about this."""
        self._doing = terminal_safe(f"{user}, {what}")
        self._tell()

    def add(self, steps: int, *, kept: bool = False) -> None:
        """So many steps are done with.

        Args:
            kept: an earlier call had done them: they took no time, and tell nothing of the pace.
        """
        self._done += steps
        self._kept += steps if kept else 0
        self._tell()

    def line(self, step: Step, /) -> str:
        """All of it, in one line."""
        parts = [f"{self._title}: {step.doing}", f"{step.done:,} {self._of_all}"]
        if step.left is not None:
            parts.append(f"{clock(step.left)} left")
        return " · ".join(parts)

    def _tell(self) -> None:
        self.show(Step(self._doing, self._done, self._left()))

    def _left(self) -> float | None:
        worked, open_ = self._done - self._kept, self._total - self._done
        seconds = time.monotonic() - self._began
        if worked <= 0 or open_ <= 0 or seconds <= 0:
            return None
        return seconds / worked * open_


class AskView(StepsView):
    """Shows who is asked, and answers of all.

    `calls` are the calls that were answered so far: questions that are done with before the first
    of them were answered by an earlier call of the command.
    """

    def __init__(self, console: Console, total: int, *, calls: Callable[[], int]) -> None:
        super().__init__(console, "Asking", total, f"of at most {total:,} answers")
        self._calls = calls
        self._before = calls()

    def answered(self) -> None:
        """One question more is done with."""
        self.add(1, kept=self._calls() == self._before)
