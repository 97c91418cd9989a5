"""How a person writes, in numbers: marks, smileys, length. Counted by code, of any texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from palate.types import Record

T = TypeVar("T")

_EMOJI = re.compile(
    r"[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf\u2b50\u2b55\u2764]"
    r"|(?<!\w)[:;=]-?[)(DPpOo3/|](?!\w)|\^_?\^"
)
_ACTION = re.compile(r"\*[^*\n]+\*|^[（(].+[)）]$", re.MULTILINE)
_ELLIPSIS = re.compile(r"\.{2,}|…|。{2,}")
_FINAL_MARK = re.compile(r"[.!?…。！？~～][\"'”’)）*]*$")
_CAPITAL = re.compile(r"[A-ZÀ-ÖØ-Þ]")
_LETTER = re.compile(r"[A-Za-zÀ-ɏ]")
_EXCLAMATION = re.compile("[!！]")
_QUESTION = re.compile("[?？]")

_WIDE_LETTER = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)
_WIDE_MARK = re.compile(r"[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")


class Habits(Record):
    """Shares of messages, 0..1; `lower_case` is None where no message has Latin letters."""

    emoji: float
    actions: float  # *smiles*, or a line in brackets
    exclamation: float
    question: float
    ellipsis: float
    no_final_mark: float
    lower_case: float | None  # of messages with Latin letters: without a capital


def habits(texts: Sequence[str]) -> Habits:
    """The habits of these messages, of which there must be one at least."""
    latin = [text for text in texts if _LETTER.search(text)]
    return Habits(
        emoji=share(texts, _EMOJI.search),
        actions=share(texts, _ACTION.search),
        exclamation=share(texts, _EXCLAMATION.search),
        question=share(texts, _QUESTION.search),
        ellipsis=share(texts, _ELLIPSIS.search),
        no_final_mark=share(texts, lambda text: not _FINAL_MARK.search(text.rstrip())),
        lower_case=share(latin, lambda text: not _CAPITAL.search(text)) if latin else None,
    )


def share(items: Sequence[T], holds: Callable[[T], object]) -> float:
    """Share of the items, at least one, for which `holds` is true."""
    return sum(1 for item in items if holds(item)) / len(items)


def quantile(ordered: Sequence[int], part: float) -> int:
    """The smallest value that at least `part` of the ordered values do not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def characters(text: str) -> int:
    """Characters, white space left out."""
    return len("".join(text.split()))


def words(text: str) -> int:
    """Words between white space; each Han character and kana counts as one word."""
    rest = _WIDE_LETTER.sub(" ", text)
    wide = len(text) - len(_WIDE_LETTER.sub("", text)) if rest != text else 0
    return wide + len(_WIDE_MARK.sub(" ", rest).split())
