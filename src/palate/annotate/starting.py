"""How a chat begins, and with which candidate."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select

from palate.annotate.acting import add_turn
from palate.annotate.actions import MOST_CHATS, Done, NotDone, Start
from palate.annotate.database import Database
from palate.annotate.once import earlier_answer, remember
from palate.annotate.schema import chats as chats_table
from palate.annotate.schema import people
from palate.types import digest


class Beginning(NamedTuple):
    """A chat about to begin: what the character says first, and what is recorded of it."""

    opening: str
    language: str
    extra: dict[str, object]


Begin = Callable[[str, int], Beginning]  # (candidate, number of the chat) -> Beginning


def start(
    database: Database,
    person_id: str,
    wanted: Start,
    candidates: Sequence[str],
    begin: Begin,
    *,
    now: int,
) -> Done:
    """Begin a chat with one of the candidates: the one that this person has met least.

    Raises:
        NotDone: the key was used for another action, or this person has begun `MOST_CHATS`.
    """
    with database.writing() as connection:
        # One at a time for each person, so that a double click finds the chat of the first.
        locked = select(people.c.id).where(people.c.id == person_id).with_for_update()
        connection.execute(locked).one()
        if earlier := earlier_answer(connection, person_id, wanted.key, wanted.asked()):
            return earlier
        if _begun(connection, person_id) >= MOST_CHATS:
            raise NotDone("full")
        candidate, number = _least_met(connection, person_id, wanted.card, candidates)
        beginning = begin(candidate, number)
        chat_id = secrets.token_hex(8)
        connection.execute(
            insert(chats_table).values(
                id=chat_id,
                person_id=person_id,
                session_id=chat_id,
                card_id=wanted.card,
                candidate=candidate,
                number=number,
                language=beginning.language,
                ended_by="unknown",
                extra=json.dumps(beginning.extra, ensure_ascii=False),
                version=1,
                created_at=now,
                changed_at=now,
            )
        )
        turn = add_turn(connection, chat_id, 0, "character", beginning.opening, now=now)
        done = Done(chat_id, 1, turn)
        remember(connection, person_id, wanted.key, wanted.asked(), done, now)
        return done


def _begun(connection: Connection, person_id: str) -> int:
    """How many chats a person has begun; those that were imported were not."""
    mine = (chats_table.c.person_id == person_id) & chats_table.c.candidate.is_not(None)
    return int(connection.execute(select(func.count()).where(mine)).scalar_one())


def _least_met(
    connection: Connection, person_id: str, card: str, candidates: Sequence[str]
) -> tuple[str, int]:
    """The candidate for the next chat, and the chat's number with it.

    The one that this person has met least on the card, then least at all; a draw by digest
    decides among equals, so that people do not all begin with the first [choice].
    """
    mine = (
        select(chats_table.c.candidate, chats_table.c.card_id, func.count())
        .where(chats_table.c.person_id == person_id)
        .group_by(chats_table.c.candidate, chats_table.c.card_id)
    )
    here = dict.fromkeys(candidates, 0)
    anywhere = dict.fromkeys(candidates, 0)
    for candidate, on_card, met in connection.execute(mine):
        if candidate in here:
            here[candidate] += met if on_card == card else 0
            anywhere[candidate] += met

    def order(candidate: str) -> tuple[int, int, str]:
        return here[candidate], anywhere[candidate], digest([person_id, card, candidate])

    chosen = min(candidates, key=order)
    return chosen, here[chosen] + 1
