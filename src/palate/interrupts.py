"""Ctrl-C as a question instead of an axe: work that can stop tidily is asked to."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asked_to_stop(told: str) -> Iterator[Callable[[], bool]]:
    """Within it, the first interrupt is kept for the function given to tell; the next is raised.

    A polite kill counts as an interrupt (`palate.cli` makes it one). Outside the main thread, where
    Python gives no signals, nothing is kept.

    Args:
        told: said on standard error at the first interrupt: a person knows that they were heard.
    """
    asked = False
    descriptor = _standard_error()
    said = f"{told}\n".encode()
    if descriptor is not None and os.isatty(descriptor):
        # Below the line that is drawn there, and above the two that drawing it anew may wipe out.
        said = b"\n" + said + b"\n"

    def keep(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        # Past sys.stderr: the interrupt may have come within a write to it, where a second one is
        # an error that would end the work.
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.write(descriptor, said)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, keep)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _standard_error() -> int | None:
    """Its descriptor; None where it is closed or kept in memory."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None
