"""TOML as people write it: its faults are told in one sentence, its keys are found by line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from palate.errors import InputError

_DEEPEST = 40
_LARGEST = 2**63 - 1  # what TOML promises of a whole number, and what a manifest can hold


def read_text(file: Path, what: str) -> str:
    """The UTF-8 text of a file; `what` completes "… does not exist; WHAT".

    Raises:
        InputError: it is missing or cannot be read.
    """
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; {what}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); mend its path") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text ({error}); save it as UTF-8") from None
    except ValueError:  # a NUL in the path
        raise InputError(f"{str(file)!r} cannot be the path of a file; mend it") from None


def parsed(text: str, file: Path) -> dict[str, Any]:
    """The tables in `text`, which `file` holds.

    Raises:
        InputError: not TOML, nested without end, a whole number beyond 64 bits, or a NUL, which
            no path and no header can hold.
    """
    try:
        value = tomllib.loads(text)
        fault = next(_unusable(value, ""), None)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is not valid TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{file} is nested too deeply; check that it is the right file") from None
    except ValueError as error:  # thousands of digits
        raise InputError(f"{file} holds a value that cannot be read: {error}") from None
    if fault is not None:
        raise InputError(f"{file}: {fault}")
    return value


def _unusable(value: object, place: str, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"{place} is nested too deeply; check that it is the right file"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _unusable(key, f"a name in {place}" if place else "a name")
            yield from _unusable(inner, f"{place}.{key}" if place else key, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _unusable(item, place, depth + 1)
    elif isinstance(value, str) and "\0" in value:
        yield f"{place} holds a NUL character; take it out"
    elif isinstance(value, int) and abs(value) > _LARGEST:
        yield f"{place} is a number beyond 64 bits; write a smaller one"


def line_of(text: str, location: Sequence[int | str]) -> str:
    """ " line N" of the nearest header or key on the way to `location`, or "" if there is none."""
    wanted = tuple(location)
    best, found = 0, ""
    for number, path in _paths(text):
        if path == wanted[: len(path)] and len(path) > best:
            best, found = len(path), f" line {number}"
    return found


def _paths(text: str) -> Iterator[tuple[int, tuple[int | str, ...]]]:
    """Each line of a TOML text that names a table or a key, with the full path of what it names."""
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)(.+?)\]", row)
        key = re.match(r"\s*((?:\"[^\"]*\"|'[^']*'|[\w.-])+)\s*=", row)
        if header:
            table = ()
            for part in _parts(header[2]):
                table += (part, counts[(*table, part)]) if (*table, part) in counts else (part,)
            if header[1] == "[[":
                name = table[:-1] if isinstance(table[-1], int) else table
                counts[name] = counts.get(name, -1) + 1
                table = (*name, counts[name])
            yield number, table
        elif key:
            yield number, (*table, *_parts(key[1]))


def _parts(dotted: str) -> list[str]:
    found: list[tuple[str, str, str]] = re.findall(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)", dotted)
    return ["".join(part) for part in found]
