"""A line about work that goes on: written anew on a terminal, now and then elsewhere."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Self, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

PLAIN_LINE_EVERY_S = 10.0
_DRAWN_EVERY_S = 0.25

T = TypeVar("T")


class LiveLine(ABC, Generic[T]):
    """Shows the newest of what it is told; the last of it always stays on the screen."""

    def __init__(self, console: Console, *, first_after_s: float = 0.0) -> None:
        """`first_after_s`: where there is no terminal, the first line comes after this time."""
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._every_s = _DRAWN_EVERY_S if console.is_terminal else PLAIN_LINE_EVERY_S
        self._due = time.monotonic() + (0.0 if console.is_terminal else first_after_s)
        self._open: T | None = None  # told, and not yet in a line that stays

    @abstractmethod
    def line(self, newest: T, /) -> str:
        """What is said of it."""

    def drawn(self, newest: T, /) -> RenderableType:
        """The same for a terminal, where more than a line has room."""
        return Text(self.line(newest))

    def show(self, newest: T, /) -> None:
        """Take the newest; cheap enough to call after every step."""
        self._open = newest
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every_s
        if self._console.is_terminal:
            self._live.update(self.drawn(newest))
        else:
            self._print(newest)

    def __enter__(self) -> Self:
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
        if self._open is not None:
            self._print(self._open)

    def _print(self, newest: T) -> None:
        self._open = None
        self._console.print(Text(self.line(newest)), soft_wrap=True)


def clock(seconds: float) -> str:
    """A duration as 2:05, or 1:02:05 from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
