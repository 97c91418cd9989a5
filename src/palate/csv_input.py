"""CSV as people's tools write it, read strictly: what is wrong, in which line, in one sentence.

UTF-8 with or without a byte order mark, any line ends, columns in any order; blank lines and white
space around a field do not count.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from palate.errors import InputError

WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)


class Table(NamedTuple):
    """Columns that the file has of those asked for, and its rows with the number of their line."""

    columns: frozenset[str]
    rows: Iterator[tuple[int, list[str]]]


def read_table(
    path: Path, required: Sequence[str], optional: Sequence[str] = (), *, others: bool = False
) -> Table:
    """The fields of each row in the order `required`, `optional`; "" for a column that is absent.

    A line's number counts from 1 and is that of the record's last line. Rows are read while they
    are gone through, and raise then.

    Args:
        others: whether the file may have further columns, which are passed over.

    Raises:
        InputError: the file cannot be read, is no CSV, lacks a column, or has one twice or unknown.
    """
    lines = _lines(path, _text(path))
    number, header = next(lines, (0, []))
    if not header:
        raise InputError(f"{path} is empty: give the columns {','.join(required)} and their rows")
    names = [name.strip() for name in header]
    _check_header(path, number, names, required, optional, others=others)
    places = [names.index(name) if name in names else -1 for name in (*required, *optional)]
    known = frozenset(names) & {*required, *optional}
    return Table(known, _rows(path, lines, len(header), places))


def wrong(path: Path, line: int, what: str) -> InputError:
    """The error to raise for a line; `what` goes on from "FILE, line N "."""
    return InputError(f"{path}, line {line} {what}")


def _rows(
    path: Path, lines: Iterator[tuple[int, list[str]]], width: int, places: Sequence[int]
) -> Iterator[tuple[int, list[str]]]:
    for number, fields in lines:
        if len(fields) != width:
            raise wrong(path, number, f"has {len(fields)} fields, not {width} like the header")
        yield number, [fields[at].strip() if at >= 0 else "" for at in places]


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}): check the path") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise wrong(path, line, "is not UTF-8: save the file as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise wrong(path, line, "holds a NUL character: save the file as UTF-8 text")
    return text


def _lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise wrong(
            path, reader.line_num, f"is not valid CSV ({error}): check its quotes"
        ) from error


def _check_header(
    path: Path,
    line: int,
    names: Sequence[str],
    required: Sequence[str],
    optional: Sequence[str],
    *,
    others: bool,
) -> None:
    missing = [name for name in required if name not in names]
    if missing:
        found = ", ".join(names)
        raise wrong(path, line, f"lacks the column {', '.join(missing)}: the header has {found}")
    known = (*required, *optional)
    for name in known:
        if names.count(name) > 1:
            raise wrong(path, line, f"has the column {name} twice: keep one")
    unknown = [name for name in names if name not in known]
    if unknown and not others:
        listed = ", ".join(known)
        raise wrong(path, line, f"has the column {unknown[0]!r}: palate reads {listed} alone")
