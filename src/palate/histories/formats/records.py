"""The records of a history file: JSON Lines, one JSON value, or a table, told by content."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from palate.errors import InputError
from palate.histories.formats import source, tables
from palate.histories.formats.normal import Notes, Record
from palate.json_input import parsed

_TRIED = 20  # lines that are tried before a file counts as no JSON


class Records(NamedTuple):
    """What a file holds, read as it is asked for; torn lines are noted on the way."""

    shape: Literal["lines", "document", "table"]
    items: Iterator[Record]


def records(path: Path, notes: Notes) -> Records:
    """The records of a file.

    Raises:
        InputError: it cannot be read, is empty, or begins like JSON and is none.
    """
    start = list(
        itertools.islice((line for line in source.lines(path) if line.raw.strip(b" \t\r\0")), 2)
    )
    if not start:
        raise InputError(f"{path} is empty: no turns found")
    first = _value(start[0].raw)
    if isinstance(first, (dict, list)) and len(start) > 1:
        return Records("lines", _lines(path, notes))
    if isinstance(first, dict):
        return Records("lines", iter([Record(first, f"line {start[0].number}")]))
    if isinstance(first, list):
        return Records("document", _items(first))
    begins_like_json = start[0].raw.lstrip()[:1] in (b"{", b"[")
    refusal = None
    if begins_like_json:
        try:
            return Records("document", _items(parsed(source.document(path), str(path))))
        except InputError as error:
            refusal = error
    if _has_objects(path):  # the first line is torn
        return Records("lines", _lines(path, notes))
    if refusal is not None:
        raise refusal
    return Records("table", tables.rows(path))


def _items(value: object) -> Iterator[Record]:
    if not isinstance(value, list):
        yield Record(value, "")
        return
    for number, item in enumerate(value, 1):
        yield Record(item, f"item {number}")


def _lines(path: Path, notes: Notes) -> Iterator[Record]:
    for line in source.lines(path):
        if not line.raw.strip():
            continue
        place = f"line {line.number}"
        try:
            yield Record(parsed(line.raw, place), place)
        except InputError as error:
            whole, rest = _joined(line.raw, place)
            if rest:
                notes.add("torn", place, str(error).removeprefix(place).removeprefix(" is "))
            if len(whole) > 1:
                notes.add("joined", place)
            for value in whole:
                yield Record(value, place)


def _joined(raw: bytes, place: str) -> tuple[list[object], bool]:
    """The objects that stand on one line, as after a crash without a line break, and whether
    anything is left that is none."""
    text, at = raw.decode(errors="replace").strip(), 0
    found: list[object] = []
    while at < len(text):
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
            if not isinstance(value, dict) or "\ufffd" in text[at:end]:
                break
            found.append(parsed(text[at:end].encode("utf-8", "surrogatepass"), place))
        except (ValueError, RecursionError, InputError):
            break
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return found, at < len(text)


def _value(raw: bytes) -> object:
    try:
        return parsed(raw, "")
    except InputError:
        return None


def _has_objects(path: Path) -> bool:
    tried = itertools.islice(source.lines(path), _TRIED)
    return any(_joined(line.raw, "")[0] for line in tried if line.raw[:1] == b"{")
