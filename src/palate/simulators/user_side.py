"""A session as the model that plays the user reads and writes it (paper 3.1).

Roles flip: the character's messages are the model's input, the user's its output. A simulated chat
strictly alternates, so a recorded one is brought to that form: blank messages are left out, and a
run of messages of one side is one message, joined by line breaks. Where the session ended by the
user's choice, [QUIT] is the end of their last message, on a line of its own, or a message by itself
after a last message of the character. Elsewhere no message reads as leaving: a token that a person
typed is taken away, for it would teach leaving where nobody left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from palate.chat import as_seen_by, read_user
from palate.models.client import ChatMessage
from palate.models.thinking import is_blank
from palate.types import Message, Session, Turn

QUIT = "[QUIT]"

# Why a message of the user is left out: keys of `UserSide.skipped`.
BLANK = "blank"
ONLY_QUIT_TYPED = "only_quit_typed"  # nothing but the token, in a session that went on
QUIT_WITHOUT_A_MESSAGE = "quit_without_a_message"  # left, but never wrote: nobody to learn from


class UserSide(NamedTuple):
    """The alternating messages, from the opening on; the user is the "assistant".

    `leaves`: the last message holds [QUIT]. `skipped`: reason -> messages that were left out.
    """

    messages: tuple[ChatMessage, ...]
    leaves: bool
    skipped: dict[str, int]


def user_side(session: Session) -> UserSide:
    """The messages of `session` with roles flipped; none where the user wrote nothing."""
    skipped = Counter(
        BLANK for turn in session.turns if turn.speaker == "user" and is_blank(turn.text)
    )
    said = joined(turn for turn in session.turns if not is_blank(turn.text))
    kept = joined(turn for turn in map(_without_token, said) if turn.text)
    chose = session.ended_by == "quit"
    typed_last = chose and bool(said) and not _without_token(said[-1]).text
    skipped[ONLY_QUIT_TYPED] = sum(not _without_token(turn).text for turn in said) - typed_last
    if not any(turn.speaker == "user" for turn in kept):
        skipped[QUIT_WITHOUT_A_MESSAGE] = int(chose)
        return UserSide((), False, dict(+skipped))
    if chose:
        kept = _leaving(kept)
    seen = as_seen_by("user", "", [Message(speaker=t.speaker, text=t.text) for t in kept])
    return UserSide(seen, chose, dict(+skipped))


def joined(turns: Iterable[Turn]) -> list[Turn]:
    """Each run of one speaker as one turn."""
    return [
        Turn(speaker=speaker, text="\n".join(turn.text for turn in run))
        for speaker, run in groupby(turns, key=lambda turn: turn.speaker)
    ]


def _without_token(turn: Turn) -> Turn:
    """A user's turn as text alone, where it would read as leaving."""
    if turn.speaker == "character":
        return turn
    act = read_user(turn.text)
    return Turn(speaker="user", text=act.text) if act.quit else turn


def _leaving(turns: Sequence[Turn]) -> list[Turn]:
    *before, last = turns
    if last.speaker == "character":
        return [*turns, Turn(speaker="user", text=QUIT)]
    return [*before, Turn(speaker="user", text=f"{last.text}\n{QUIT}")]
