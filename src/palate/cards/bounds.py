"""How much of a stranger's file is read: size, number of values, depth; whatever carried the card.

A file of a few kilobytes can unpack to gigabytes, and a list of empty lists takes twenty times its
size in memory. The limits here keep a load under 100 MB and a second; a card with a large lorebook
has 2 MB and some thousand values.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from palate.errors import InputError
from palate.json_input import parsed

MAX_BYTES = 8 * 1024 * 1024  # of card text, unpacked; a card with a large lorebook has two
MAX_VALUES = 100_000  # each may take 150 bytes of memory
MAX_MACROS = 20_000  # placeholders and decorators: each is looked at by itself, several times
MAX_DEPTH = 100

# Possessive: a text of two megabytes must not be kept on the stack of the matcher.
_QUOTED = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ANGLES = re.compile(r"<(?:user|char|bot)>", re.IGNORECASE)
_MARKS = (b",", b"[", b"{")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading; a folder, a pipe or a device is refused, not waited for.

    Raises:
        InputError: it is missing, no file, or not readable; also where the disk fails later.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} cannot be read as a card: it is no file")
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path of the card") from None
    except OSError as error:
        reason = error.strerror or "it is not readable"
        raise InputError(f"{path} cannot be read as a card: {reason}") from None


def too_large(where: str) -> InputError:
    """The refusal of more than `MAX_BYTES` of card text."""
    return InputError(
        f"{where} is larger than {MAX_BYTES // 1024**2} MB, which no card needs; "
        "check that it is a character card"
    )


def object_in(text: bytes, where: str) -> dict[str, object]:
    """The JSON object in a card's text; `where` begins the sentence of a refusal.

    Raises:
        InputError: empty, too large, too many values, nested too deeply, not JSON, or no object.
    """
    if len(text) > MAX_BYTES:
        raise too_large(where)
    if not text.strip():
        raise InputError(f"{where} holds no character card: it is empty; export the card again")
    if _values(text) > MAX_VALUES:
        raise _too_many("values", MAX_VALUES, where)
    value = parsed(text, where)
    if not isinstance(value, dict):
        raise InputError(f"{where} holds no character card: its JSON is not an object")
    if _deeper(value, MAX_DEPTH):
        raise InputError(f"{where} is nested too deeply; check that it is the right file")
    if not all(map(_is_finite, _leaves(value))):
        raise InputError(
            f"{where} has a number that JSON has no word for (NaN, Infinity or one too large); "
            "write null in its place"
        )
    if sum(map(_macros, _leaves(value))) > MAX_MACROS:  # counted unescaped: \u007b is a brace too
        raise _too_many("placeholders", MAX_MACROS, where)
    return value


def copy_bytes(source: BinaryIO, target: IO[bytes], length: int) -> None:
    """Copy `length` bytes, or as many as there are, a block at a time."""
    while length > 0:
        block = source.read(min(length, 1 << 16))
        if not block:
            return
        target.write(block)
        length -= len(block)


def _too_many(things: str, limit: int, where: str) -> InputError:
    return InputError(
        f"{where} holds more than {limit} {things}, which no card needs; "
        "check that it is a character card"
    )


def _leaves(value: object) -> Iterator[object]:
    """Every text, number, true, false and null in a JSON value, the keys left out."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        else:
            yield item


def _is_finite(leaf: object) -> bool:
    return not isinstance(leaf, float) or math.isfinite(leaf)


def _macros(text: object) -> int:
    if not isinstance(text, str):
        return 0
    braces = max(text.count("{{"), text.count("}}"))
    angles = sum(1 for _ in _ANGLES.finditer(text)) if "<" in text else 0
    return braces + angles + text.count("@@")


def _values(text: bytes) -> int:
    """At least the number of values in a JSON text; a count of marks is enough where it is low."""
    counted = _marks(text, 0, len(text))
    if counted <= MAX_VALUES:
        return counted
    counted = at = 0
    for strings, match in enumerate(_QUOTED.finditer(text)):
        counted += _marks(text, at, match.start())
        at = match.end()
        if max(counted, strings // 2) > MAX_VALUES:  # a key and its value come with one mark
            return MAX_VALUES + 1
    return counted + _marks(text, at, len(text))


def _marks(text: bytes, start: int, end: int) -> int:
    return sum(text.count(mark, start, end) for mark in _MARKS)


def _deeper(value: object, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    inside = value.values() if isinstance(value, dict) else value
    return [child for child in inside if isinstance(child, (dict, list))]  # type: ignore[attr-defined]
