"""A history as text in parts that fit a context, by an upper estimate of tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

from palate.language import Language
from palate.types import Session, Turn

# The person's own words are what a profile is about; the character's are context.
_MAX_CHARACTERS = {"user": 1200, "character": 300}
_CUT = " …"
_HEADING = {"en": "chat with {card}", "zh": "与 {card} 的聊天"}
_LEFT = {"en": "(the user left here)", "zh": "（用户在这里离开了）"}


def estimated_tokens(text: str) -> int:
    """An upper estimate for common tokenizers: three ASCII characters, or half a wide one, each."""
    ascii_count = sum(1 for character in text if character < "\x80")
    return math.ceil(ascii_count / 3) + 2 * (len(text) - ascii_count)


def transcripts(sessions: Sequence[Session], budget: int, tongue: Language) -> list[str]:
    """The sessions as text, in as few parts of at most `budget` tokens as they fill in order."""
    pieces = [piece for session in sessions for piece in _pieces(session, budget, tongue)]
    return packed(pieces, budget, "\n\n")


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
    left = (budget - estimated_tokens(_CUT)) * 3
    for position, character in enumerate(text):
        left -= 1 if character < "\x80" else 6
        if left < 0:
            return text[:position].rstrip() + _CUT
    return text


def _pieces(session: Session, budget: int, tongue: Language) -> list[str]:
    """A session in one piece if it fits, else cut between turns; every piece has its heading."""
    heading = cut(_HEADING[tongue].format(card=session.card_id), budget // 4)
    room = budget - estimated_tokens(heading) - 1
    lines = [cut(_line(turn), room) for turn in session.turns]
    if session.ended_by == "quit":
        lines.append(_LEFT[tongue])
    return [f"{heading}\n{piece}" for piece in packed(lines, room, "\n")]


def _line(turn: Turn) -> str:
    text = turn.text.strip()
    limit = _MAX_CHARACTERS[turn.speaker]
    if len(text) > limit:
        text = text[:limit].rstrip() + _CUT
    # Continued lines are indented, so that none can pass for another speaker's.
    return f"{turn.speaker}: " + text.replace("\r\n", "\n").replace("\n", "\n  ")
