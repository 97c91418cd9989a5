"""The places in held-out sessions where the user wrote something or left (paper 3.1).

A simulator is asked at each of them for its next message. Speakers alternate as they do in
training and when a simulator is played (`simulators.user_side`): what one speaker sent in a row is
one message, and blank messages are left out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from palate.simulators.user_side import user_side
from palate.types import Message, Session, digest

LEAVING_SHARE = 0.25  # of a limited draw, where there are so many: each session has one at most


class Context(NamedTuple):
    """The user's `turn`-th message of a session, from 0, and all that was said before it.

    `human` is what they wrote, "" where they left without a word; `left`: they left here, by their
    own choice. `weight` is the number of contexts of this kind that a drawn one stands for.
    """

    session_id: str
    turn: int
    history: tuple[Message, ...]
    human: str
    left: bool
    weight: float = 1.0


def contexts(
    sessions: Sequence[Session], *, limit: int | None = None, seed: int = 0
) -> list[Context]:
    """The contexts of these sessions, or at most `limit` of them; in the order of the sessions.

    The draw goes at even steps through the sessions, in a seeded order, and through the turns of
    each, so that every session and every part of a session has its share. Contexts where the user
    left are drawn apart, up to a quarter [choice]: with their share of all, recall would rest on
    two or three.

    Raises:
        ValueError: a limit below 1.
    """
    found = [context for session in sessions for context in of_session(session)]
    if limit is None or len(found) <= limit:
        return found
    if limit < 1:
        raise ValueError(f"limit is {limit}, but must be 1 or more")
    left = [context for context in found if context.left]
    stayed = [context for context in found if not context.left]
    of_left = min(len(left), max(limit - len(stayed), round(limit * LEAVING_SHARE)))
    drawn = [*_evenly(left, of_left, seed), *_evenly(stayed, limit - of_left, seed)]
    place = {(context.session_id, context.turn): n for n, context in enumerate(found)}
    return sorted(drawn, key=lambda context: place[context.session_id, context.turn])


def of_session(session: Session) -> list[Context]:
    """The contexts of one session, in order; the last is where the user left, if they chose to.

    Like training, it passes over a session in which the user left without having written at all.
    """
    messages = alternating(session)
    places = [n for n, message in enumerate(messages) if message.speaker == "user"]
    found = [
        Context(session.session_id, turn, messages[:place], messages[place].text, False)
        for turn, place in enumerate(places)
    ]
    if not places or session.ended_by != "quit":
        return found
    if places[-1] == len(messages) - 1:
        return [*found[:-1], found[-1]._replace(left=True)]
    return [*found, Context(session.session_id, len(places), messages, "", True)]


def alternating(session: Session) -> tuple[Message, ...]:
    """A session's messages as in a played chat; none where the user wrote nothing.

    A [QUIT] that the user typed is not among their words: it would tell them from a simulator,
    whose token is taken off.
    """
    side = user_side(session.model_copy(update={"ended_by": "unknown"}))
    return tuple(
        Message(
            speaker="user" if message.role == "assistant" else "character",
            text=message.text.strip(),
        )
        for message in side.messages
    )


def _evenly(found: Sequence[Context], number: int, seed: int) -> list[Context]:
    """`number` of the contexts at even steps, the sessions in a seeded order, weights set."""
    if not number:
        return []
    ordered = sorted(found, key=lambda context: (digest([seed, context.session_id]), context.turn))
    step = len(ordered) / number
    start = random.Random(seed).random()  # noqa: S311 - a draw, not a secret
    # Rounding can bring the last place to the very end.
    places = (min(int((n + start) * step), len(ordered) - 1) for n in range(number))
    return [ordered[place]._replace(weight=step) for place in places]
