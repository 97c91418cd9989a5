"""The journal of a validation: one answer a line, written before the next call is made.

What was answered is not asked again: each answer has a key, and the key holds everything that the
answer depends on. A line torn by a kill is cut off and its call made again; a damaged line is left
out, and so is asked again too.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from palate.disk import disk, whole_length
from palate.errors import StoreError


class Answer(Protocol):
    """A record that can be journalled."""

    @property
    def key(self) -> str:
        """Equal for the same question, with the same words, to the same model."""
        ...

    def model_dump_json(self) -> str:
        """The record as one line of JSON."""
        ...

    @classmethod
    def model_validate_json(cls, json_data: bytes, /) -> Self:
        """The record of such a line; raises `ValidationError`."""
        ...


A = TypeVar("A", bound=Answer)


class Answers(Generic[A]):
    """The answers in one file, opened for appending by this process alone until `close`.

    `damaged` counts the lines that were left out.

    Raises:
        StoreError: another process writes to it, or the disk does not take it.
    """

    def __init__(self, path: Path, kind: type[A]) -> None:
        self.path = path
        self.damaged = 0
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path.with_name(f".{path.name}.lock"))
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                raise StoreError(
                    f"{path} is in use by another process; wait for it, or write elsewhere"
                ) from None
            self._kept = self._read(kind)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def get(self, key: str) -> A | None:
        """The answer that was given to this question."""
        return self._kept.get(key)

    def append(self, answer: A) -> None:
        """Keep an answer; it is in the operating system's hands when this returns."""
        line = answer.model_dump_json().encode() + b"\n"
        with disk(self.path):
            written = os.write(self._file, line)
            if written != len(line):
                os.truncate(self.path, whole_length(self.path))
                raise OSError("the disk took only part of an answer")
        self._kept[answer.key] = answer

    def close(self) -> None:
        """Flush to the disk and let others in."""
        with disk(self.path):
            os.fsync(self._file)
            os.close(self._file)
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, kind: type[A]) -> dict[str, A]:
        kept: dict[str, A] = {}
        if not self.path.exists():
            return kept
        os.truncate(self.path, whole_length(self.path))
        with self.path.open("rb") as lines:
            for line in lines:
                try:
                    answer = kind.model_validate_json(line)
                except ValidationError:
                    self.damaged += 1
                else:
                    kept.setdefault(answer.key, answer)
        return kept
