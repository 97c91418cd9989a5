"""What a person sees while an adapter is trained: a live line, or plain ones off a terminal."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from palate.report.safe import terminal_safe
from palate.simulators.loss_curve import Seen

PLAIN_LINE_EVERY_S = 10.0
_SMOOTHING = 0.7  # of the loss shown: single steps are noisy


class TrainView(AbstractContextManager["TrainView"]):
    """Shows steps, loss, held-out loss, tokens a second and time left, on standard error."""

    def __init__(self, console: Console, user: str) -> None:
        self._console = console
        self._user = terminal_safe(user)
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._printed_at = 0.0
        self._printed: Seen | None = None
        self._first: Seen | None = None
        self._latest: Seen | None = None
        self._loss: float | None = None
        self._validation: float | None = None

    def __enter__(self) -> TrainView:
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
        if self._latest is not None and self._latest is not self._printed:
            self._print(self._latest)

    def show(self, seen: Seen) -> None:
        """Take the newest step; cheap."""
        self._first = self._first or seen
        self._latest = seen
        self._validation = seen.validation if seen.validation is not None else self._validation
        if seen.loss is not None:
            before = seen.loss if self._loss is None else self._loss
            self._loss = _SMOOTHING * before + (1 - _SMOOTHING) * seen.loss
        if self._console.is_terminal:
            self._live.update(Text(self._line(seen)))
        elif time.monotonic() - self._printed_at >= PLAIN_LINE_EVERY_S:
            self._printed_at = time.monotonic()
            self._print(seen)

    def _print(self, seen: Seen) -> None:
        self._printed = seen
        self._console.print(Text(self._line(seen)), soft_wrap=True)

    def _line(self, seen: Seen) -> str:
        parts = [f"{self._user}: step {seen.step}/{seen.steps}", f"epoch {seen.epoch:.1f}"]
        if self._loss is not None:
            parts.append(f"loss {self._loss:.3f}")
        if self._validation is not None:
            parts.append(f"held out {self._validation:.3f}")
        speed = self._speed(seen)
        if speed is not None:
            steps, tokens = speed
            parts.append(f"{tokens:.0f} tokens/s")
            parts.append(f"{_time((seen.steps - seen.step) / steps)} left")
        return " · ".join(parts)

    def _speed(self, seen: Seen) -> tuple[float, float] | None:
        """Steps and tokens a second since this call began; None before there is one."""
        assert self._first is not None
        seconds = seen.seconds - self._first.seconds
        steps = seen.step - self._first.step
        if steps < 1 or seconds <= 0:
            return None
        return steps / seconds, (seen.tokens - self._first.tokens) / seconds


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
