"""Writing to a disk that may be full, read-only or cut off in the middle of a line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from palate.errors import InputError, StoreError


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes `target`'s place when it is complete: a reader never sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_atomically(target: Path, text: str) -> None:
    """Write a whole text as UTF-8, or leave what was there."""
    with replacing(target) as file:
        file.write(text.encode())


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


def refuse_other_folder(folder: Path, *, journal: str, holds: str) -> None:
    """Work is begun in a new folder, or gone on with in its own, which has its `journal`.

    Raises:
        InputError: the folder has something else in it, or is none; `holds` names the work.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name another one with --out")
    if not folder.is_dir() or (folder / journal).exists():
        return
    if any(not file.name.startswith(".") for file in folder.iterdir()):
        raise InputError(
            f"{folder} is not empty and holds no {holds}; name a new folder with --out"
        )
