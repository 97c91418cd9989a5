"""Texts that fit a context: cut, and packed into parts, by an upper estimate of tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

CUT = " …"


def estimated_tokens(text: str) -> int:
    """An upper estimate for common tokenizers: three ASCII characters, or half a wide one, each."""
    ascii_count = sum(1 for character in text if character < "\x80")
    return math.ceil(ascii_count / 3) + 2 * (len(text) - ascii_count)


def packed(parts: Sequence[str], budget: int, between: str) -> list[str]:
    """Neighbours joined as long as they fit; a part that exceeds `budget` stands alone."""
    joined: list[str] = []
    room = 0
    for part in parts:
        size = estimated_tokens(between + part)
        if joined and size <= room:
            joined[-1] += between + part
            room -= size
        else:
            joined.append(part)
            room = budget - estimated_tokens(part)
    return joined


def cut(text: str, budget: int) -> str:
    """The beginning of `text` that fits, with a mark where it was cut."""
    if estimated_tokens(text) <= budget:
        return text
    left = (budget - estimated_tokens(CUT)) * 3
    for position, character in enumerate(text):
        left -= 1 if character < "\x80" else 6
        if left < 0:
            return text[:position].rstrip() + CUT
    return text
