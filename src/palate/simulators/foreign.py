"""Whether a base can read what a person writes: said before hours go into an adapter of it.

A tokenizer that was made for a script has a token for each sign of it, or for several at once. One
that needs more spells the signs in bytes: its model has hardly met them, and an adapter teaches a
manner of writing, not a language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from palate import language
from palate.simulators.facts import user_texts
from palate.simulators.plain_text import PlainText
from palate.types import Session

MAX_TOKENS_A_CHARACTER = 1.0
_ENGLISH_ALONE = ("local:smollm2-135m",)


def foreign(base: str, plain: PlainText, sessions: Sequence[Session]) -> str:
    """Why an adapter of this user on `base` comes to nothing, in a sentence; "" where it need not.

    Args:
        base: its name as the user gave it.
        plain: the tokenizer of `base`.
    """
    reasons = [*_spelled(plain, sessions)]
    if base in _ENGLISH_ALONE:
        reasons += _not_english(sessions)
    if not reasons:
        return ""
    return (
        f"{base} {', and '.join(reasons)}; an adapter teaches a manner of writing, not a language: "
        "give a --base that was trained on this one"
    )


def _spelled(plain: PlainText, sessions: Sequence[Session]) -> list[str]:
    texts = [text for session in sessions for text in user_texts(session)]
    signs = sum(map(len, texts))
    tokens = sum(len(plain.ids(text)) for text in texts)
    if tokens <= MAX_TOKENS_A_CHARACTER * signs:
        return []
    return [f"spells the user's messages in bytes, at {tokens / signs:.1f} tokens a character"]


def _not_english(sessions: Sequence[Session]) -> list[str]:
    other = Counter(s.language for s in sessions if language.named(s.language) != "en")
    if 2 * other.total() <= len(sessions):
        return []
    tag, _ = other.most_common(1)[0]
    number = f"{other.total():,} of {len(sessions):,} sessions"
    return [f"was trained on English alone, while {number} are in another language ({tag})"]
