"""Writing to a disk that may be full, read-only or cut off in the middle of a line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from palate.errors import StoreError


def write_atomically(target: Path, text: str) -> None:
    """Write to a neighbour and rename, so that a reader never sees half a file."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def whole_length(file: Path) -> int:
    """Bytes up to and with the last line break; reads backwards from the end."""
    with file.open("rb") as content:
        end = content.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            content.seek(start)
            found = content.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


@contextlib.contextmanager
def disk(path: Path) -> Iterator[None]:
    """Tell what the disk refuses in one sentence; raises `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write to {path}: {error.strerror or error}; make room or mend its "
            "permissions, then give the same command again"
        ) from None
