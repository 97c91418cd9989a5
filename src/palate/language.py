"""Which of the two languages a text is in, and how many tokens it has, from its characters.

English, or Chinese where Han characters prevail.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from palate.types import Session

Language = Literal["en", "zh"]

CHARACTERS_A_TOKEN = 4.0  # of Latin text; a CJK character counts as one token

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")


def of_text(text: str) -> Language:
    """The language of `text`; English where it has neither words nor Han characters.

    A Han character weighs as much as a Latin word: a Chinese text with a long foreign name in it
    stays Chinese, an English one with a few Chinese words stays English.
    """
    return "zh" if len(_HAN.findall(text)) > len(_WORD.findall(text)) else "en"


def named(tag: str) -> Language | None:
    """The language of a tag such as "en", "en-GB" or "zh_Hans"; None for any other language."""
    primary = re.split(r"[-_]", tag.strip().lower(), maxsplit=1)[0]
    if primary == "en":
        return "en"
    return "zh" if primary == "zh" else None


def of_sessions(sessions: Iterable[Session]) -> Language:
    """The language that most sessions are in; of a tag we do not know, that of the user's words."""
    counts = Counter(named(session.language) or of_text(_said(session)) for session in sessions)
    return "zh" if counts["zh"] > counts["en"] else "en"


def _said(session: Session) -> str:
    return "\n".join(turn.text for turn in session.turns if turn.speaker == "user")


def tokens(text: str) -> int:
    """Roughly how many tokens `text` is, for any current tokenizer; within a third or so."""
    wide = len(_CJK.findall(text))
    return round(wide + (len(text) - wide) / CHARACTERS_A_TOKEN)
