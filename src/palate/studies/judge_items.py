"""Real replies on which a judge is checked: drawn from training sessions, spread over them.

No score that comes of them is used for anything but how much it moves, so nothing held out is
needed: a rubric may have been built from the very replies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from palate.judging.subject import Rubrics, Subject
from palate.studies.excerpts import excerpt, has_reaction
from palate.types import Card, Scene, Session, TrainingSession, digest

# A judge is shown so many turns before the reply at most: it is the reply that is changed.
SHOWN_TURNS = 12


class CheckItem(NamedTuple):
    """One reply with the conversation before it, and the reaction to it.

    `turn` is its number in the session, from 0; `scene` is what the user saw of the card.
    """

    user: str
    session: str
    turn: int
    subject: Subject
    scene: Scene

    @property
    def place(self) -> str:
        """Where the reply stands, for a reader of the journal."""
        return f"{self.user}/{self.session}#{self.turn}"


def check_items(
    training: Sequence[TrainingSession],
    rubrics: Rubrics,
    card_of: Callable[[Session], Card],
    scene_of: Callable[[Session], Scene],
    *,
    count: int,
    seed: int,
) -> tuple[CheckItem, ...]:
    """At most `count` replies with a reaction, one of each session before a second of any."""

    def rank(*what: object) -> str:
        return digest(["judge check", seed, *what])

    places = []
    for session in sorted((t.session for t in training), key=lambda s: rank(s.session_id)):
        turns = _with_reaction(session)
        places.append(
            [(session, n) for n in sorted(turns, key=lambda n: rank(session.session_id, n))]
        )
    drawn = [one for one in chain.from_iterable(zip_longest(*places)) if one is not None]
    return tuple(
        _item(session, turn, rubrics, card_of(session), scene_of(session))
        for session, turn in drawn[:count]
    )


def _with_reaction(session: Session) -> list[int]:
    """Replies that the user reacted to; what comes before the user's first word is the card's."""
    spoken = next(
        (n for n, t in enumerate(session.turns) if t.speaker == "user"), len(session.turns)
    )
    return [
        n
        for n, turn in enumerate(session.turns)
        if n > spoken
        and turn.speaker == "character"
        and turn.text.strip()
        and has_reaction(excerpt(session, n))
    ]


def _item(session: Session, turn: int, rubrics: Rubrics, card: Card, scene: Scene) -> CheckItem:
    cut = excerpt(session, turn, from_turn=max(0, turn - SHOWN_TURNS))
    return CheckItem(session.user_id, session.session_id, turn, Subject(cut, card, rubrics), scene)
