"""Standard output and error that no reader and no encoding can break.

`palate report RUN | head -1` closes its pipe early, a C locale cannot say "–", a service may have
no standard output at all: none of these is a fault of the run, and none may change its exit code.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TextIO


class _Pipe(io.FileIO):
    """A descriptor whose reader may go away: then there is nobody left to tell."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]  # whatever the buffer hands on
        except BrokenPipeError:
            return len(memoryview(data).cast("B"))  # type: ignore[arg-type]


def make_sturdy() -> None:
    """Replace the process's standard output and error, once, before anything is written."""
    sys.stdout = _sturdy(sys.stdout, 1)
    sys.stderr = _sturdy(sys.stderr, 2)


def silence() -> None:
    """Send what is still to be written to standard output nowhere, so that leaving cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _sturdy(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:  # closed before we began
        return Path(os.devnull).open("w", encoding="utf-8")
    stream.flush()
    raw = _Pipe(number, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=number == 2 or stream.isatty(),
    )
