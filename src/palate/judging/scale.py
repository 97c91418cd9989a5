"""What counts as a score: whole numbers 1..5, however written, and nothing else."""

from __future__ import annotations

import re
import unicodedata

from palate.judging import vocabulary as words
from palate.lenient_json import Pairs, Value
from palate.types import MAX_SCORE, MIN_SCORE


class UnreadableError(ValueError):
    """There is no verdict in a text, or one that contradicts itself."""


def score_in(value: Value) -> Value:
    """The score of {"score": 4, "reason": "…"}, or the value itself."""
    if not isinstance(value, Pairs):
        return value
    scores = [v for k, v in value if words.plain(k) in words.SCORE_KEYS]
    if len({as_score(score) for score in scores}) > 1:
        raise UnreadableError("contradiction: one dimension has two different scores")
    return scores[0] if scores else value


_WHOLE = re.compile(r"([1-5])(?:\.0+)?")


def as_score(value: Value) -> float | str | None:
    """1..5; None for a declared n/a; otherwise the value as text, which is off the scale."""
    if value is None:
        return None
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip()
        if words.plain(text).strip("<>[]") in words.NOT_APPLICABLE:
            return None
        match = _WHOLE.fullmatch(text)
        return float(match[1]) if match else as_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return as_text(value)
    return float(value) if value in range(MIN_SCORE, MAX_SCORE + 1) else as_text(value)


def as_number(value: Value) -> float | None:
    """A number below a million, also one written as text; a truth value is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip()
        return float(text) if re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?", text) else None
    return float(value) if isinstance(value, int | float) and abs(value) < 1e6 else None


def as_text(value: object) -> str:
    """A value for a message: short, and a declared n/a by that name."""
    if value is None:
        return "n/a"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value) if not isinstance(value, Pairs | list) else "a structure"
    return text if len(text) <= 40 else text[:39] + "…"
