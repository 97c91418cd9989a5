"""Patterns in lorebook keys: `/pattern/flags` as JavaScript writes it, or a bare pattern.

Run by RE2, in time linear in the chat, so that no card can hang a run. Look-arounds and
back-references, which RE2 lacks, make a pattern invalid; the specification lets an invalid pattern
match nothing.
"""

from __future__ import annotations

import functools
import re
from typing import Protocol

import re2  # type: ignore[import-untyped]

_WHOLE = re.compile(r"/(.*)/([a-z]*)", re.DOTALL)
_FLAGS = re.compile(r"[dgimsuvy]*")
_CODE_POINT = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\u(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4}))")
_MOST_MEMORY = 1 << 20  # bytes of one compiled pattern


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str) -> object | None:
        """A match anywhere in `text`, or None."""
        ...


def is_written_as_pattern(key: str) -> bool:
    """Whether a key has the form /pattern/flags."""
    whole = _WHOLE.fullmatch(key)
    return whole is not None and bool(whole[1]) and _FLAGS.fullmatch(whole[2]) is not None


@functools.lru_cache(maxsize=4096)
def compiled(key: str, *, ignores_case: bool = False) -> Pattern | None:
    """The pattern that `key` writes; None: it is invalid.

    `ignores_case` holds for a bare pattern; one with flags says itself.
    """
    pattern, flags = key, "i" if ignores_case else ""
    if is_written_as_pattern(key):
        whole = _WHOLE.fullmatch(key)
        assert whole is not None
        pattern, flags = whole[1], whole[2]
    pattern = _CODE_POINT.sub(lambda found: f"{found[1]}\\x{{{found[2] or found[3]}}}", pattern)
    options = re2.Options()
    options.case_sensitive = "i" not in flags
    options.dot_nl = "s" in flags
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    try:
        made: Pattern = re2.compile(f"(?m){pattern}" if "m" in flags else pattern, options)
    except (re2.error, UnicodeEncodeError):
        return None
    return made


def escaped(text: str) -> str:
    """A pattern that stands for `text` as it is written."""
    found: str = re2.escape(text)
    return found
