"""Chats as they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, case, func, select

from palate.annotate.actions import MOST_USER_TURNS, NotDone
from palate.annotate.schema import alternates, chats, turns
from palate.types import Cell, Finish, SessionEnd, Speaker


class ChatTurn(NamedTuple):
    """One message; `id` belongs to this text alone, `position` counts from 0."""

    id: int
    position: int
    speaker: Speaker
    text: str
    finish: Finish
    satisfaction: int | None
    note: str | None


class Alternate(NamedTuple):
    """What once stood at `position` and was turned down."""

    position: int
    speaker: Speaker
    text: str
    satisfaction: int | None
    note: str | None
    reason: str


class Chat(NamedTuple):
    """A whole chat. `candidate` None: it was imported, to be rated. `version` counts changes."""

    id: str
    person_id: str
    session_id: str
    card_id: str
    candidate: str | None
    number: int
    language: str
    ended_by: SessionEnd
    extra: Mapping[str, object]
    version: int
    created_at: int
    closed_at: int | None
    turns: tuple[ChatTurn, ...]
    alternates: tuple[Alternate, ...]

    @property
    def cell(self) -> Cell:
        """What a scripted model and a seed know it by; imported chats have none."""
        assert self.candidate is not None
        return Cell(self.person_id, self.card_id, self.candidate, self.number)

    @property
    def awaits_reply(self) -> bool:
        """The character is to speak."""
        last = self.turns[-1].speaker if self.turns else "character"
        return self.candidate is not None and self.closed_at is None and last == "user"

    @property
    def is_full(self) -> bool:
        """It has as many messages of the person as a chat may have."""
        return sum(turn.speaker == "user" for turn in self.turns) >= MOST_USER_TURNS

    def rateable(self) -> tuple[ChatTurn, ...]:
        """The character's turns that get a rating: not the opening, which no candidate wrote."""
        first = 0 if self.candidate is None else 1
        return tuple(t for t in self.turns[first:] if t.speaker == "character")


class Summary(NamedTuple):
    """A chat in a list."""

    id: str
    card_id: str
    session_id: str
    imported: bool
    closed: bool
    replies: int
    rated: int


def load(connection: Connection, chat_id: str, person_id: str, *, changing: bool = False) -> Chat:
    """A chat of this person; with `changing` nobody else changes it during the transaction.

    Raises:
        NotDone: "gone", also where it is another person's.
    """
    if "\0" in chat_id:  # PostgreSQL cannot even look for it
        raise NotDone("gone")
    wanted = select(chats).where(chats.c.id == chat_id, chats.c.person_id == person_id)
    row = connection.execute(wanted.with_for_update() if changing else wanted).one_or_none()
    if row is None:
        raise NotDone("gone")
    return _chat(connection, row)


def of_person(connection: Connection, person_id: str) -> tuple[Chat, ...]:
    """All chats of a person, the oldest first."""
    wanted = select(chats).where(chats.c.person_id == person_id)
    rows = connection.execute(wanted.order_by(chats.c.created_at, chats.c.id)).all()
    return tuple(_chat(connection, row) for row in rows)


def summaries(connection: Connection, person_id: str) -> tuple[Summary, ...]:
    """A person's chats, the last touched first."""
    is_reply = (turns.c.speaker == "character") & (
        (turns.c.position > 0) | chats.c.candidate.is_(None)
    )
    wanted = (
        select(
            chats.c.id,
            chats.c.card_id,
            chats.c.session_id,
            chats.c.candidate.is_(None),
            chats.c.closed_at.is_not(None),
            func.coalesce(func.sum(case((is_reply, 1), else_=0)), 0),
            func.count(turns.c.satisfaction),
        )
        .join(turns, turns.c.chat_id == chats.c.id)
        .where(chats.c.person_id == person_id)
        .group_by(chats.c.id)
        .order_by(chats.c.changed_at.desc(), chats.c.id)
    )
    return tuple(_summary(row) for row in connection.execute(wanted))


def _summary(row: Sequence[Any]) -> Summary:
    id_, card, session, imported, closed, replies, rated = row
    return Summary(id_, card, session, bool(imported), bool(closed), int(replies), int(rated))


def _chat(connection: Connection, row: Row[Any]) -> Chat:
    said = (
        select(*(turns.c[name] for name in ChatTurn._fields))
        .where(turns.c.chat_id == row.id)
        .order_by(turns.c.position)
    )
    turned_down = (
        select(*(alternates.c[name] for name in Alternate._fields))
        .where(alternates.c.chat_id == row.id)
        .order_by(alternates.c.id)
    )
    return Chat(
        id=row.id,
        person_id=row.person_id,
        session_id=row.session_id,
        card_id=row.card_id,
        candidate=row.candidate,
        number=row.number,
        language=row.language,
        ended_by=row.ended_by,
        extra=json.loads(row.extra),
        version=row.version,
        created_at=row.created_at,
        closed_at=row.closed_at,
        turns=tuple(ChatTurn(*turn) for turn in connection.execute(said)),
        alternates=tuple(Alternate(*one) for one in connection.execute(turned_down)),
    )
