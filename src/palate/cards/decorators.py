"""Decorators of lorebook entries: lines of the content that begin with @@ (specification V3).

A decorator that is unknown, has a value that is not allowed, or has no effect here gives way to
its fallbacks (@@@), the first of a name counts, and no decorator ever reaches a prompt: every line
that begins with @@ is taken out, wherever it stands, with the line breaks around it.

Without effect here: `@@is_user_icon` (there are no user icons), `@@disable_ui_prompt` (there are
no prompts of a user interface), `@@ignore_on_max_context` (a context's limit is not known); they
are named in a warning, as unknown ones are. The `instruct_` decorators are for settings other than
a chat, and are ignored without a word, as the specification has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

_LINE = re.compile(r"[ \t]*(@@@?)(?!@)[ \t]*([A-Za-z_]+)[ \t]*(.*)", re.DOTALL)
_BREAK = re.compile(r"\r\n?|\n")
_MARK = re.compile(r"[ \t]*@@")
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.0*)?")
_FOR_INSTRUCT = frozenset({"instruct_depth", "reverse_instruct_depth", "instruct_scan_depth"})
# May be used more than once: each adds a condition.
_REPEATED = frozenset({"additional_keys"})
# "@@after" is known for one thing: beside it, @@depth does not count.
_WITHOUT_VALUE = frozenset(
    {
        "keep_activate_after_match",
        "dont_activate_after_match",
        "dont_activate",
        "activate",
        "after",
    }
)


class Decorated(NamedTuple):
    """An entry's content in its two parts.

    `values` has the decorators that count, each with its values as written (one, but for
    additional_keys); `without_effect` names those that do not, without their @@.
    """

    content: str
    values: Mapping[str, tuple[str, ...]]
    without_effect: tuple[str, ...]

    def number(self, name: str) -> int | None:
        """The number that this decorator has; None: it does not count."""
        found = self.values.get(name)
        return None if found is None else _number(found[0])


def read(content: str, *, positions: frozenset[str]) -> Decorated:
    """Take the decorators out of `content`; `positions` are those that @@position may name."""
    values: dict[str, tuple[str, ...]] = {}
    without: list[str] = []
    parts: list[list[str]] = [[]]
    waiting, chain = False, 0  # for the fallback of a decorator that did not count; its names
    for line in _BREAK.split(content):
        if _MARK.match(line) is None:
            parts[-1].append(line)
            waiting = False
            continue
        parts.append([])
        found = _LINE.fullmatch(line)
        if found is None or (found[1] == "@@@" and not waiting):
            continue
        name, value = found[2].lower(), found[3].strip()
        chain = chain if found[1] == "@@@" else len(without)
        waiting = not _counts(name, value, values, positions)
        if not waiting:
            values[name] = (*values.get(name, ()), value)
            del without[chain:]  # the author has seen to it
        elif name not in _VALID:
            without.append(name)
    return Decorated(_trimmed(parts), values, tuple(dict.fromkeys(without)))


def _counts(
    name: str, value: str, values: Mapping[str, tuple[str, ...]], positions: frozenset[str]
) -> bool:
    if name in values and name not in _REPEATED:
        return False
    if name == "position":
        return value in positions
    return name in _VALID and _VALID[name](value)


def _trimmed(parts: list[list[str]]) -> str:
    """The text between decorators, the line breaks next to them dropped."""
    last = len(parts) - 1
    if last == 0:
        return "\n".join(parts[0])
    texts = []
    for place, lines in enumerate(parts):
        text = "\n".join(lines)
        text = text.lstrip("\n") if place > 0 else text
        text = text.rstrip("\n") if place < last else text
        if text:
            texts.append(text)
    return "\n".join(texts)


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _is_count(value: str) -> bool:
    return _is_number(value) and _number(value) >= 1


def _number(value: str) -> int:
    return int(value.partition(".")[0])


def _has_keys(value: str) -> bool:
    return bool(value.strip(", "))


def _never(_value: str) -> bool:
    return False


_VALID: dict[str, Callable[[str], bool]] = {
    "activate_only_after": _is_number,
    "activate_only_every": _is_count,
    "depth": _is_number,
    "reverse_depth": _is_number,
    "scan_depth": _is_number,
    "is_greeting": _is_number,
    "role": frozenset({"assistant", "system", "user"}).__contains__,
    "additional_keys": _has_keys,
    "exclude_keys": _has_keys,
    "position": _never,  # valid by the card: see `_counts`
    **dict.fromkeys(_WITHOUT_VALUE, lambda _value: True),
    **dict.fromkeys(_FOR_INSTRUCT, _never),
}
