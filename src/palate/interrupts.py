"""Ctrl-C as a question instead of an axe: work that can stop tidily is asked to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asked_to_stop(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Within it, the first interrupt is kept for the function given to tell; the next is raised.

    A polite kill counts as an interrupt (`palate.cli` makes it one). Outside the main thread, where
    Python gives no signals, nothing is kept.

    Args:
        say: called at the first interrupt, so that a person knows that they were heard.
    """
    asked = False

    def keep(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say()

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, keep)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
