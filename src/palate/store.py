"""The run folder: a manifest and append-only JSON Lines, so that a kill costs only calls in flight.

    manifest.json       what is run: settings and digests; a changed study is refused
    messages.jsonl      one accepted message a line, written before the next call is made
    judgements.jsonl    one verdict a line
    cells.jsonl         one line a finished cell
    failures.jsonl      one line a call that did not come back; its cell stays open
    results.json, report.html

One process writes at a time. A line is one `write`; where it fails half-way (disk full), the file
is cut back to its last whole line. A tail torn by a kill is cut off when the folder is opened
again, a doubled record counts once (the first one), and both are warned of.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import orjson
from filelock import FileLock, Timeout

from palate.disk import disk, whole_length, write_atomically
from palate.errors import InputError, StoreError, StudyChanged

Journal = Literal["messages", "judgements", "cells", "failures"]
JOURNALS: tuple[Journal, ...] = ("messages", "judgements", "cells", "failures")
SCHEMA = "palate.run/1"
MOST_WARNINGS = 20

Json = dict[str, Any]


class RunReader:
    """A run folder opened for reading; damaged lines are skipped and named in `warnings`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._told: dict[str, None] = {}

    @property
    def warnings(self) -> list[str]:
        """What was wrong with the folder, each thing once, and only the first of very many."""
        told = list(self._told)
        if len(told) > MOST_WARNINGS:
            more = f"{len(told) - MOST_WARNINGS} more of the journals' lines were ignored"
            return [*told[:MOST_WARNINGS], more]
        return told

    def warn(self, warning: str) -> None:
        """Keep a warning; the journals are read more than once, each is told once."""
        self._told[warning] = None

    def damaged(self, journal: Journal, number: int) -> None:
        """Warn of a line that does not hold what it should."""
        self.warn(
            f"{journal}.jsonl line {number} is damaged and was ignored; `palate run` makes up for "
            "it"
        )

    def manifest(self) -> Json:
        """The settings and digests that the run was begun with."""
        file = self.path / "manifest.json"
        try:
            manifest = orjson.loads(file.read_bytes())
        except FileNotFoundError:
            raise InputError(
                f"{self.path} is not a run folder: it has no manifest.json; name a folder that "
                "`palate run` wrote"
            ) from None
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}); mend its path") from None
        except orjson.JSONDecodeError:
            raise InputError(f"{file} is damaged; begin a new run with --out") from None
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            raise InputError(
                f"{file} was not written by this version of palate ({SCHEMA}); use the version "
                "that wrote it, or begin a new run with --out"
            )
        return manifest

    def records(self, journal: Journal) -> Iterator[Json]:
        """Every whole record of a journal, in the order written."""
        return (record for _, record in self.numbered(journal))

    def numbered(self, journal: Journal) -> Iterator[tuple[int, Json]]:
        """Every whole record of a journal with the number of its line, from 1.

        Raises:
            InputError: the journal is there and cannot be read.
        """
        file = self.path / f"{journal}.jsonl"
        try:
            lines = file.open("rb")
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}); mend its path") from None
        with lines:
            for number, line in enumerate(lines, start=1):
                record = self._parse(line)
                if record is None:
                    self.damaged(journal, number)
                else:
                    yield number, record

    @staticmethod
    def _parse(line: bytes) -> Json | None:
        if not line.endswith(b"\n"):
            return None
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        return record if isinstance(record, dict) else None


class RunFolder(RunReader):
    """A run folder opened for writing, by this process alone, until `close`.

    Raises:
        StoreError: another process writes to it, or the disk does not take it.
        StudyChanged: it was begun with other settings.
    """

    def __init__(self, path: Path, settings: Json, *, about: Json | None = None) -> None:
        super().__init__(path)
        self._files: dict[Journal, int] = {}
        with disk(path):
            _refuse_other_folder(path)
            path.mkdir(parents=True, exist_ok=True)
            self._lock = self._acquire()
        try:
            self._begin_or_resume(settings, about or {})
            with disk(path):
                for journal in JOURNALS:
                    self._repair_tail(journal)
                    self._files[journal] = os.open(
                        self._journal(journal), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
                    )
        except BaseException:
            self.close()
            raise

    def append(self, journal: Journal, record: Json) -> None:
        """Write one record; it is in the operating system's hands when this returns."""
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        file = self._files[journal]
        try:
            written = os.write(file, line)
            if written != len(line):
                raise OSError("the disk took only part of a record")
        except OSError as error:
            self._cut_back(journal)
            raise StoreError(
                f"cannot write to {self._journal(journal)}: {error.strerror or error}; "
                "make room, then give the same command again"
            ) from None

    def write_text(self, name: str, text: str) -> Path:
        """Write a whole file of the folder, or leave the old one as it was."""
        target = self.path / name
        with disk(target):
            write_atomically(target, text)
        return target

    def close(self) -> None:
        """Flush to the disk and let others in; safe to call twice."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                os.fsync(file)
            os.close(file)
        self._files.clear()
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                self._owner_file().unlink()
            self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _journal(self, journal: Journal) -> Path:
        return self.path / f"{journal}.jsonl"

    def _owner_file(self) -> Path:
        return self.path / "writer.pid"

    def _acquire(self) -> FileLock:
        """The operating system frees the lock of a dead process, so a stale one is taken over."""
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            owner = "another process"
            with contextlib.suppress(OSError):
                owner = f"process {self._owner_file().read_text('utf-8').strip()}"
            raise StoreError(
                f"{self.path} is in use by {owner}; wait for it, or write elsewhere with --out"
            ) from None
        self._owner_file().write_text(str(os.getpid()), "utf-8")
        return lock

    def _begin_or_resume(self, settings: Json, about: Json) -> None:
        if (self.path / "manifest.json").exists() and not self._holds_nothing():
            changed = differences(self.manifest().get("settings"), settings)
            if changed:
                raise StudyChanged(
                    f"{self.path} was begun with another study ({'; '.join(changed[:3])}"
                    f"{' …' if len(changed) > 3 else ''}); restore it, or begin a new run with "
                    "--out"
                )
            return
        manifest = {"schema": SCHEMA, **about, "settings": settings}
        text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2).decode()
        self.write_text("manifest.json", text)

    def _holds_nothing(self) -> bool:
        """No call was answered yet: a study that was mended since may begin here anew."""
        written = (self._journal(journal) for journal in JOURNALS if journal != "failures")
        return not any(file.exists() and file.stat().st_size for file in written)

    def _repair_tail(self, journal: Journal) -> None:
        file = self._journal(journal)
        if not file.exists():
            return
        size, whole = file.stat().st_size, whole_length(file)
        if size != whole:
            self.warn(
                f"{file.name} ended in a torn line ({size - whole} bytes), which was cut off; its "
                "call is made again"
            )
            os.truncate(file, whole)

    def _cut_back(self, journal: Journal) -> None:
        with contextlib.suppress(OSError):
            os.truncate(self._journal(journal), whole_length(self._journal(journal)))


def _refuse_other_folder(path: Path) -> None:
    """A run begins in a new or empty folder: no other folder's files are mixed with its own.

    Raises:
        InputError: `path` is a file, or a folder with other things in it.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is not a folder; name another one with --out")
    if not path.is_dir() or (path / "manifest.json").exists():
        return
    ours = {"writer.pid"}
    if any(file.name not in ours and not file.name.startswith(".") for file in path.iterdir()):
        raise InputError(
            f"{path} is not empty and is no run folder (it has no manifest.json); name a new "
            "folder with --out"
        )


def differences(old: object, new: object, path: str = "") -> list[str]:
    """Where two JSON values differ, as "path was X, is Y", in the order of their keys."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[str] = []
        for key in sorted({*old, *new}):
            where = f"{path}.{key}" if path else str(key)
            found += differences(old.get(key), new.get(key), where)
        return found
    return [] if old == new else [f"{path or 'settings'} was {_short(old)}, is {_short(new)}"]


def _short(value: object) -> str:
    text = "absent" if value is None else orjson.dumps(value, default=str).decode()
    return text if len(text) <= 48 else f"{text[:45]}…"
