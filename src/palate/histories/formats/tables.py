"""CSV as spreadsheets write it: any of four delimiters, a `sep=` line, quoted line breaks."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path

from palate.errors import InputError
from palate.histories.formats import source
from palate.histories.formats.normal import Record

_DELIMITERS = ",;\t|"


def rows(path: Path, delimiter: str | None = None) -> Iterator[Record]:
    """The rows of a table as objects by its heading; places are lines, those of a row's start.

    Raises:
        InputError: no heading, two columns of one name, a row with more cells than the heading,
            or text that is not UTF-8 or UTF-16.
    """
    texts = _texts(path)
    heading = next(texts, None)
    skipped = 0
    if heading is not None and heading.lower().startswith("sep=") and len(heading.strip()) <= 5:
        delimiter = delimiter or heading.rstrip("\r\n")[4:]
        heading = next(texts, None)
        skipped = 1
    if heading is None or not heading.strip():
        raise InputError(f"{path} has no heading; its first line must name the columns")
    csv.field_size_limit(source.MAX_LINE)
    lines = _Lines(heading, texts)
    reader = csv.reader(lines, delimiter=delimiter or _delimiter(heading))
    yield from _rows(reader, lines, path, skipped)


class _Lines:
    """Lines for a reader of CSV, which asks beyond the last one only inside open quotes."""

    def __init__(self, first: str, rest: Iterator[str]) -> None:
        self._lines = itertools.chain([first], rest)
        self.given = 0
        self.ended = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines, None)
        if line is None:
            self.ended = True
            raise StopIteration
        self.given += 1
        return line


def _rows(reader: Iterator[list[str]], lines: _Lines, path: Path, skipped: int) -> Iterator[Record]:
    names: list[str] = []
    while True:
        start = skipped + lines.given + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{path} line {start} is not CSV: {error}") from None
        if cells is None:
            return
        if lines.ended:
            raise InputError(
                f"{path} line {start} has a quote that is never closed; close it, or write a quote "
                'in a text as ""'
            )
        if not names:
            names = _names(cells, path)
        elif any(cell.strip() for cell in cells):
            if len(cells) > len(names) and any(cell.strip() for cell in cells[len(names) :]):
                raise InputError(
                    f"{path} line {start} has {len(cells)} cells and the heading {len(names)}; put "
                    "texts with a delimiter in quotes"
                )
            # Spreadsheets leave empty cells at the end of a row out.
            whole = itertools.zip_longest(names, cells[: len(names)], fillvalue="")
            yield Record(dict(whole), f"line {start}")


def _names(cells: list[str], path: Path) -> list[str]:
    names = [cell.strip() for cell in cells]
    doubled = [name for name in names if name and names.count(name) > 1]
    if doubled:
        raise InputError(f"{path} has two columns called {doubled[0]!r}; rename one")
    return names


def _texts(path: Path) -> Iterator[str]:
    for line in source.lines(path):
        try:
            text = line.raw.decode()
        except UnicodeDecodeError:
            raise InputError(
                f"{path} line {line.number} is not UTF-8 text; save the table as UTF-8 "
                '("CSV UTF-8" in a spreadsheet)'
            ) from None
        # The end stays on: it may stand inside quotes. Spreadsheets leave NULs at times, and those
        # of old Macs end lines with a carriage return alone.
        for part in text.replace("\0", "").split("\r"):
            yield part + "\n"


def _delimiter(heading: str) -> str:
    counts = {mark: len(next(csv.reader([heading], delimiter=mark))) for mark in _DELIMITERS}
    return max(_DELIMITERS, key=lambda mark: counts[mark])
