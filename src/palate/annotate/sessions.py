"""Chats out as session JSON Lines, and unrated sessions in as chats to rate."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from palate.annotate import chats
from palate.annotate.acting import storable
from palate.annotate.chats import Chat
from palate.annotate.database import Database
from palate.annotate.invitations import everybody
from palate.annotate.schema import chats as chats_table
from palate.annotate.schema import turns
from palate.disk import disk, write_atomically
from palate.errors import InputError
from palate.types import Session, Turn

FOLDER = "annotations"  # in the study folder


class Exported(NamedTuple):
    """One person's file, and what is in it."""

    path: Path
    sessions: int
    ratings: int


def sessions_of(database: Database, person_id: str) -> tuple[Session, ...]:
    """A person's chats in which they said or rated something."""
    with database.reading() as connection:
        mine = chats.of_person(connection, person_id)
    return tuple(session(chat) for chat in mine if _is_touched(chat))


def export(database: Database, folder: Path) -> tuple[Exported, ...]:
    """Write `folder`/PERSON.jsonl for everybody who said or rated something.

    Raises:
        StoreError: the folder cannot be written.
    """
    with database.reading() as connection:
        names = everybody(connection)
    written = []
    for name in names:
        found = sessions_of(database, name)
        if not found:
            continue
        path = folder / f"{name}.jsonl"
        with disk(path):
            write_atomically(path, "".join(line(one) for one in found))
        ratings = sum(t.satisfaction is not None for one in found for t in one.turns)
        written.append(Exported(path, len(found), ratings))
    return tuple(written)


def line(session: Session) -> str:
    """A session as a line of a file that `palate.histories.read` takes."""
    return json.dumps(session.model_dump(mode="json"), ensure_ascii=False) + "\n"


def session(chat: Chat) -> Session:
    """A chat as the session it is.

    `extra["turned_down"]` has all that its person turned down. Replies that were written anew are
    also alternates of the turn that took their place, as those of imported histories are.
    """
    extra = dict(chat.extra)
    if chat.alternates:
        extra["turned_down"] = [one._asdict() for one in chat.alternates]
    if rejected := _rejected(chat):
        extra["turns"] = {str(turn): {"alternates": texts} for turn, texts in rejected.items()}
    return Session(
        session_id=chat.session_id,
        user_id=chat.person_id,
        card_id=chat.card_id,
        language=chat.language,
        ended_by=chat.ended_by,
        turns=tuple(
            Turn(speaker=t.speaker, text=t.text, satisfaction=t.satisfaction, note=t.note)
            for t in chat.turns
        ),
        extra=extra,
    )


def take_in(database: Database, found: Sequence[Session], *, now: int) -> int:
    """Offer sessions to the invited people whose they are; how many are new.

    A session that was taken in before is left as it is, with its ratings.

    Raises:
        InputError: a session is of somebody who was not invited; nothing is taken in.
    """
    with database.writing() as connection:
        strangers = {one.user_id for one in found} - set(everybody(connection))
        if strangers:
            raise InputError(
                f"the chats to rate have sessions of {min(strangers)!r}, who was not invited; add "
                f"--invite {min(strangers)}"
            )
        return sum(_take_in(connection, one, now) for one in found)


def _take_in(connection: Connection, one: Session, now: int) -> bool:
    session_id = storable(one.session_id)
    known = select(chats_table.c.id).where(
        chats_table.c.person_id == one.user_id, chats_table.c.session_id == session_id
    )
    if connection.execute(known).first() is not None:
        return False
    chat_id = secrets.token_hex(8)
    connection.execute(
        insert(chats_table).values(
            id=chat_id,
            person_id=one.user_id,
            session_id=session_id,
            card_id=storable(one.card_id),
            number=1,
            language=storable(one.language),
            ended_by=one.ended_by,
            extra=json.dumps(one.extra),
            version=1,
            created_at=now,
            changed_at=now,
        )
    )
    connection.execute(
        insert(turns),
        [
            {
                "chat_id": chat_id,
                "position": position,
                "speaker": turn.speaker,
                "text": storable(turn.text),
                "finish": "ok",
                "satisfaction": turn.satisfaction,
                "note": storable(turn.note) if turn.note else None,
                "created_at": now,
            }
            for position, turn in enumerate(one.turns)
        ],
    )
    return True


def _rejected(chat: Chat) -> dict[int, list[str]]:
    """By turn, the replies to the same message that its person did not want."""
    found: dict[int, list[str]] = {}
    for one in chat.alternates:
        if one.reason == "regenerated":
            found.setdefault(one.position, []).append(one.text)
        else:  # the message was changed: what answered the old one is no choice against the new
            found.pop(one.position, None)
            found.pop(one.position + 1, None)
    return {turn: texts for turn, texts in found.items() if turn < len(chat.turns)}


def _is_touched(chat: Chat) -> bool:
    """Whether its person did anything in it: an opened card, an unread import say nothing."""
    rated = any(turn.satisfaction is not None or turn.note for turn in chat.turns)
    said = chat.candidate is not None and any(turn.speaker == "user" for turn in chat.turns)
    return rated or said or chat.closed_at is not None
