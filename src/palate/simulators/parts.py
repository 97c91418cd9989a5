"""A history as text in parts that fit a context."""

from __future__ import annotations

from collections.abc import Sequence

from palate.fitting import CUT, cut, estimated_tokens, packed
from palate.language import Language
from palate.types import Session, TrainingSession, Turn, digest

# The person's own words are what a profile is about; the character's are context.
_MAX_CHARACTERS = {"user": 1200, "character": 300}
_HEADING = {"en": "chat with {card}", "zh": "与 {card} 的聊天"}
_LEFT = {"en": "(the user left here)", "zh": "（用户在这里离开了）"}


def transcripts(sessions: Sequence[Session], budget: int, tongue: Language) -> list[str]:
    """The sessions as text, in as few parts of at most `budget` tokens as they fill in order."""
    pieces = [piece for session in sessions for piece in _pieces(session, budget, tongue)]
    return packed(pieces, budget, "\n\n")


def drawn(training: Sequence[TrainingSession], budget: int, seed: int) -> list[TrainingSession]:
    """Whole sessions in an order drawn by the seed, until `budget` estimated tokens are full.

    At least one; a session that does not fit into what is left is passed over.
    """
    order = sorted(training, key=lambda item: digest([seed, "draw", item.session.session_id]))
    taken: set[str] = set()
    for item in order:
        whole = estimated_tokens("\n".join(_line(turn) for turn in item.session.turns))
        if whole <= budget or not taken:
            taken.add(item.session.session_id)
            budget -= whole
    return [item for item in training if item.session.session_id in taken]


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
        text = text[:limit].rstrip() + CUT
    # Continued lines are indented, so that none can pass for another speaker's.
    return f"{turn.speaker}: " + text.replace("\r\n", "\n").replace("\n", "\n  ")
