"""The rated replies of one person's training sessions, and what they show (paper 3.3).

A reply is high or low for this person: people use the scale differently, so a rating is held
against the median of its session and against that of all the person's ratings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from palate.errors import InputError
from palate.types import Session, TrainingSession


class Rated(NamedTuple):
    """One reply with its rating 1..5, what stood before it and what came after.

    `turn` is its index in the session's turns, `number` that among the replies; `after_turn` is
    the index of the user's next message, None where the user did not answer. `left`: with that
    message, or without one, the user left by choice.
    """

    session_id: str
    card_id: str
    turn: int
    number: int
    rating: int
    text: str
    before: str = ""
    after: str = ""
    after_turn: int | None = None
    left: bool = False
    note: str = ""

    @property
    def citation(self) -> str:
        """The reply as a rubric cites it."""
        return cited(self.session_id, self.turn)

    @property
    def reaction(self) -> str | None:
        """The user's next message as a rubric cites it."""
        return None if self.after_turn is None else cited(self.session_id, self.after_turn)


def cited(session_id: str, turn: int) -> str:
    """ "SESSION#TURN", as in the evidence of a rubric."""
    return f"{session_id}#{turn}"


def one_user(training: Sequence[TrainingSession]) -> str:
    """The user whose training sessions these are.

    Raises:
        TypeError: something other than training sessions, which would leak the held-out part.
        InputError: none, or of several users.
    """
    for item in training:
        if not isinstance(item, TrainingSession):
            raise TypeError(
                f"a rubric is induced from training sessions as histories.split returns them, "
                f"not from {type(item).__name__}"
            )
    users = sorted({item.session.user_id for item in training})
    if len(users) != 1:
        found = ", ".join(users) or "none"
        raise InputError(f"a rubric is one user's, but these training sessions are of: {found}")
    return users[0]


def rated_replies(training: Sequence[TrainingSession]) -> tuple[Rated, ...]:
    """All rated replies with text, in order; the opening is part of the card and never rated."""
    return tuple(one for item in training for one in _of_session(item.session))


def _of_session(session: Session) -> Iterator[Rated]:
    turns = session.turns
    first = next((n for n, turn in enumerate(turns) if turn.speaker == "user"), len(turns))
    replies = [n for n in range(first, len(turns)) if turns[n].speaker == "character"]
    for number, at in enumerate(replies):
        turn = turns[at]
        if turn.satisfaction is None or not turn.text.strip():
            continue
        before = turns[at - 1].text if turns[at - 1].speaker == "user" else ""
        answered = at + 1 < len(turns) and turns[at + 1].speaker == "user"
        answer = turns[at + 1].text.strip() if answered else ""
        yield Rated(
            session_id=session.session_id,
            card_id=session.card_id,
            turn=at,
            number=number,
            rating=turn.satisfaction,
            text=turn.text.strip(),
            before=before.strip(),
            after=answer,
            after_turn=at + 1 if answer else None,
            left=session.ended_by == "quit" and at + 1 + answered == len(turns),
            note=(turn.note or "").strip(),
        )


class Standing:
    """Which replies are high and which are low for this person.

    Choice: higher (lower) than the median of its session or of all ratings. Where the median is
    itself the highest (lowest) rating given, that rating counts: somebody who mostly gives 5 and
    sometimes 3 is pleased by what they gave 5.
    """

    def __init__(self, replies: Sequence[Rated]) -> None:
        self._all = _Level([one.rating for one in replies])
        by_session: defaultdict[str, list[int]] = defaultdict(list)
        for one in replies:
            by_session[one.session_id].append(one.rating)
        self._of_session = {name: _Level(given) for name, given in by_session.items()}

    def is_high(self, reply: Rated) -> bool:
        """Rated above this person's median."""
        return any(level.is_high(reply.rating) for level in self._levels(reply))

    def is_low(self, reply: Rated) -> bool:
        """Rated below this person's median."""
        return any(level.is_low(reply.rating) for level in self._levels(reply))

    def _levels(self, reply: Rated) -> tuple[_Level, _Level]:
        return self._all, self._of_session[reply.session_id]


class _Level:
    def __init__(self, given: Sequence[int]) -> None:
        self._middle = median(given)
        self._low, self._high = min(given), max(given)

    def is_high(self, rating: int) -> bool:
        return rating > self._middle or rating == self._middle == self._high > self._low

    def is_low(self, rating: int) -> bool:
        return rating < self._middle or rating == self._middle == self._low < self._high
