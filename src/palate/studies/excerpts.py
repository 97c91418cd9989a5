"""A reply cut out of a real session: what came before it, and how the user reacted (paper 4.3).

The reaction is the user's next message; of several in a row, all of them, since people write one
answer in pieces. Where the character wrote several in a row, it is the answer to each. Nothing
later is in the excerpt, so nothing later can be shown.
"""

from __future__ import annotations

from itertools import takewhile

from palate.types import Cell, Message, Session, Speaker, Trajectory, Turn

RECORDED = "recorded"  # in the place of a candidate: nobody is evaluated here


def excerpt(session: Session, turn: int, *, from_turn: int = 0) -> Trajectory:
    """The session up to the reply at `turn`, and the reaction to it if there is one.

    `ended_by` is "quit" where the user left after the reply or after the reaction. Turns before the
    user's first are the opening. `from_turn` leaves out the turns before it, and the opening then.
    """
    turns = session.turns
    first = next((n for n, one in enumerate(turns) if one.speaker == "user"), len(turns))
    opening = "" if from_turn else "\n".join(one.text for one in turns[:first])
    seen = tuple(_message(one) for one in turns[max(first, from_turn) : turn + 1])
    answered = turn + 1 + _run(turns[turn + 1 :], "character")
    end = answered + _run(turns[answered:], "user")
    words = "\n".join(one.text for one in turns[answered:end] if one.text.strip())
    reaction = (Message(speaker="user", text=words),) if words else ()
    left = session.ended_by == "quit" and end == len(turns)
    return Trajectory(
        cell=Cell(session.user_id, session.card_id, RECORDED, 1),
        opening=opening,
        messages=(*seen, *reaction),
        ended_by="quit" if left else "depth_limit",
    )


def reply_of(cut: Trajectory) -> int:
    """The number of the reply among those of its excerpt: the last."""
    return len(cut.replies()) - 1


def has_reaction(cut: Trajectory) -> bool:
    """Whether the user answered the reply, or left after it."""
    return cut.messages[-1].speaker == "user" or cut.ended_by == "quit"


def _message(turn: Turn) -> Message:
    return Message(speaker=turn.speaker, text=turn.text)


def _run(turns: tuple[Turn, ...], speaker: Speaker) -> int:
    """How many turns from the first on are this speaker's."""
    return sum(1 for _ in takewhile(lambda one: one.speaker == speaker, turns))
