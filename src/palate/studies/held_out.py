"""What the agreement study judges: held-out replies that their reader rated (paper 4.3).

A reply comes with the conversation before it, the card, and the reaction to it; its rating is not
among them. Ratings come out of `HeldOutLabels` in `held_out_labels`, for the arithmetic alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from palate.histories import Split
from palate.judging.study_questions import RatedExample
from palate.judging.subject import Rubrics, Subject
from palate.studies.agreement_rows import LabelRow, held_out_labels
from palate.studies.excerpts import excerpt, has_reaction
from palate.types import Card, PersonalRubric, Session, digest


class ShownCard(NamedTuple):
    """A card as a judge is shown it; `known` False: it is not here, and a neutral one stands in."""

    card: Card
    lore: tuple[str, ...] = ()
    known: bool = True


class HeldOutReply(NamedTuple):
    """One rated reply as a judge gets it; `turn` is its number in the session, from 0.

    `length` is that of the reply in characters, white space at its ends left out.
    """

    user: str
    session: str
    turn: int
    subject: Subject
    has_reaction: bool
    length: int


@dataclass(frozen=True)
class Rater:
    """One user of the study: the replies to judge, and what is known of the person.

    `rubric` and `examples` (with their places in `sources`) are empty where no condition needs
    them; `neutral` counts the sessions without a card. `rated` is how many held-out replies have a
    rating, drawn or not.
    """

    user: str
    replies: tuple[HeldOutReply, ...]
    labels: tuple[LabelRow, ...]
    rated: int
    sessions: Mapping[str, str]  # session id -> SHA-256
    rubric: PersonalRubric | None = None
    examples: tuple[RatedExample, ...] = ()
    sources: tuple[str, ...] = ()
    neutral: int = 0


def drawn_labels(split: Split, *, limit: int | None, seed: int) -> tuple[LabelRow, ...]:
    """The ratings of the replies to judge: all, or about `limit`, whole sessions where possible.

    Pairs lie within sessions, so sessions with different ratings come first, in an order of the
    seed; what does not fit as a whole gives a part, if room for a pair is left.
    """
    by_session: dict[str, list[LabelRow]] = defaultdict(list)
    for row in held_out_labels(split):
        by_session[row.session].append(row)
    if limit is None:
        return tuple(row for rows in by_session.values() for row in rows)
    order = sorted(by_session.values(), key=lambda rows: _place(rows, seed))
    chosen = _fitting(order, limit, seed)
    return tuple(row for rows in by_session.values() for row in rows if row in chosen)


def _place(rows: Sequence[LabelRow], seed: int) -> tuple[bool, str]:
    """Sessions that can give a pair first; between them the seed decides."""
    alike = len({row.label for row in rows}) < 2
    return alike, digest(["session", seed, rows[0].user, rows[0].session])


def _fitting(order: Iterable[Sequence[LabelRow]], limit: int, seed: int) -> set[LabelRow]:
    chosen: set[LabelRow] = set()
    left_over: list[Sequence[LabelRow]] = []
    for rows in order:
        if len(chosen) + len(rows) <= limit:
            chosen.update(rows)
        else:
            left_over.append(rows)
    room = limit - len(chosen)
    if left_over and (room >= 2 or not chosen):
        ranked = sorted(
            left_over[0], key=lambda row: digest(["reply", seed, row.user, row.session, row.reply])
        )
        chosen.update(ranked[:room])
    return chosen


def held_out_replies(
    split: Split,
    labels: Iterable[LabelRow],
    rubrics: Rubrics,
    shown_card: Callable[[Session], ShownCard],
) -> tuple[HeldOutReply, ...]:
    """The replies that `labels` rate, without the ratings, in the order of the history."""
    sessions = {item.session.session_id: item.session for item in split.held_out}
    return tuple(
        _reply(sessions[row.session], row.reply, rubrics, shown_card(sessions[row.session]))
        for row in labels
    )


def _reply(session: Session, turn: int, rubrics: Rubrics, shown: ShownCard) -> HeldOutReply:
    cut = excerpt(session, turn)
    return HeldOutReply(
        user=session.user_id,
        session=session.session_id,
        turn=turn,
        subject=Subject(cut, shown.card, rubrics, shown.lore),
        has_reaction=has_reaction(cut),
        length=len(session.turns[turn].text.strip()),
    )
