"""Batch request files: one request a line, for services that answer files at a lower price.

    {"custom_id": "…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}

A file holds the requests of one model only, and no more than services take. Files appear in their
folder all together when they are complete, in the place of those that the same stage wrote before:
what lies in the folder is what is missing now. No file holds a key: keys travel in headers.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import orjson

from palate.disk import disk

MOST_REQUESTS = 50_000  # of one file, as OpenAI's batch service has it; so are the bytes
MOST_BYTES = 200_000_000
STEM = "palate-requests-"
PATTERN = f"{STEM}*.jsonl"  # of every stage
URL = "/v1/chat/completions"


@dataclass(slots=True)
class _Part:
    """A file that is being written, under another name until it is complete."""

    path: Path
    file: IO[bytes]
    requests: int = 0
    size: int = 0


class RequestFiles:
    """Writes requests into `folder`; as a context manager, complete files or none.

    `stage` tells files of several stages in one folder apart; letters and digits.

    Raises:
        StoreError: the folder cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        stage: str = "",
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.folder = folder
        self._stem = f"{STEM}{stage}-" if stage else STEM
        self.requests = 0
        self.files: tuple[Path, ...] = ()
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._open: dict[str, _Part] = {}
        self._parts: list[_Part] = []

    def add(self, custom_id: str, body: bytes, model: str) -> None:
        """Write one request; `body` is its JSON as it would be sent, `model` whom it is for."""
        line = orjson.dumps(
            {"custom_id": custom_id, "method": "POST", "url": URL, "body": orjson.Fragment(body)},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        with disk(self.folder):
            part = self._part(model, len(line))
            part.file.write(line)
        part.requests += 1
        part.size += len(line)
        self.requests += 1

    def _part(self, model: str, size: int) -> _Part:
        part = self._open.get(model)
        if (
            part is None
            or part.requests >= self._most_requests
            or (part.size + size > self._most_bytes and part.requests)
        ):
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{self._stem}{len(self._parts) + 1:03d}.jsonl"
            beside = path.with_name(f".{path.name}.{os.getpid()}.part")
            part = self._open[model] = _Part(path, beside.open("wb"))
            self._parts.append(part)
        return part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._complete()
        else:
            self._discard()

    def _complete(self) -> None:
        """Give every file its name, and take away those of the time before."""
        with disk(self.folder):
            before = [path for path in self.folder.glob(PATTERN) if self._ours(path)]
            for part in self._parts:
                part.file.flush()
                os.fsync(part.file.fileno())
                part.file.close()
                Path(part.file.name).replace(part.path)
            self.files = tuple(part.path for part in self._parts)
            for stale in set(before) - set(self.files):
                stale.unlink()

    def _ours(self, path: Path) -> bool:
        """Of this stage, not of another in the same folder."""
        return re.fullmatch(rf"{re.escape(self._stem)}\d{{3,}}\.jsonl", path.name) is not None

    def _discard(self) -> None:
        for part in self._parts:
            part.file.close()
            with contextlib.suppress(OSError):
                Path(part.file.name).unlink()
