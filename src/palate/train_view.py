"""What a person sees while an adapter is trained: a live line, or plain ones off a terminal."""

from __future__ import annotations

from rich.console import Console

from palate.live_line import LiveLine, clock
from palate.report.safe import terminal_safe
from palate.simulators.loss_curve import Seen

_SMOOTHING = 0.7  # of the loss shown: single steps are noisy


class TrainView(LiveLine[Seen]):
    """Shows steps, loss, held-out loss, tokens a second and time left, on standard error."""

    def __init__(self, console: Console, user: str) -> None:
        super().__init__(console)
        self._user = terminal_safe(user)
        self._first: Seen | None = None
        self._loss: float | None = None
        self._validation: float | None = None

    def show(self, seen: Seen, /) -> None:
        """Take the newest step; every loss counts for the one shown."""
        self._first = self._first or seen
        self._validation = seen.validation if seen.validation is not None else self._validation
        if seen.loss is not None:
            before = seen.loss if self._loss is None else self._loss
            self._loss = _SMOOTHING * before + (1 - _SMOOTHING) * seen.loss
        super().show(seen)

    def line(self, seen: Seen, /) -> str:
        """How far it is, in one line."""
        parts = [f"{self._user}: step {seen.step}/{seen.steps}", f"epoch {seen.epoch:.1f}"]
        if self._loss is not None:
            parts.append(f"loss {self._loss:.3f} (smoothed)")
        if self._validation is not None:
            parts.append(f"held out {self._validation:.3f}")
        speed = self._speed(seen)
        if speed is not None:
            steps, tokens = speed
            parts.append(f"{tokens:.0f} tokens/s")
            parts.append(f"{clock((seen.steps - seen.step) / steps)} left")
        return " · ".join(parts)

    def _speed(self, seen: Seen) -> tuple[float, float] | None:
        """Steps and tokens a second since this call began; None before there is one."""
        assert self._first is not None
        seconds = seen.seconds - self._first.seconds
        steps = seen.step - self._first.step
        if steps < 1 or seconds <= 0:
            return None
        return steps / seconds, (seen.tokens - self._first.tokens) / seconds
