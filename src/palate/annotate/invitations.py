"""Invitations: links with a secret of 256 bits, of which the database holds only the digest."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import unicodedata
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, insert, select, update
from sqlalchemy import Row as SqlRow
from sqlalchemy.exc import DBAPIError

from palate.annotate.database import Database
from palate.annotate.schema import chats, invitations, people, turns
from palate.errors import InputError
from palate.study_rules import fault_of_id

SECRET_LENGTH = 43  # characters of 32 bytes in URL-safe base64
SEEN_EVERY_S = 60  # a visit is noted this often at most: noting is a write

Refusal = Literal["unknown", "expired", "revoked"]


class Guest(NamedTuple):
    """Somebody whose link is good."""

    person_id: str


class Progress(NamedTuple):
    """How far a person is. `links` are those that still work; times are seconds since 1970."""

    person_id: str
    links: int
    expires_at: int | None
    seen_at: int | None
    open_chats: int
    closed_chats: int
    replies: int
    rated: int


def invite(database: Database, name: str, *, now: int, days: int) -> str:
    """Invite a person, or give somebody invited another link; the secret for the link.

    Raises:
        InputError: the name cannot be a user's id, or differs from another's by its case alone.
    """
    fault = fault_of_id(name)
    if fault or name.startswith("."):
        raise InputError(
            f"--invite {name!r} cannot be a person's id, which names a file: "
            f"{fault or 'it begins with a dot'}"
        )
    secret = secrets.token_urlsafe(32)
    with database.writing() as connection:
        if not _is_known(connection, name):
            _check_apart(connection, name)
            connection.execute(insert(people).values(id=name, created_at=now))
        connection.execute(
            insert(invitations).values(
                person_id=name,
                secret_sha256=_sha256(secret),
                created_at=now,
                expires_at=now + days * 86_400,
            )
        )
    return secret


def revoke(database: Database, name: str, *, now: int) -> int:
    """Make all links of a person useless; how many worked until now. Their chats are kept.

    Raises:
        InputError: nobody of that name was invited.
    """
    with database.writing() as connection:
        if not _is_known(connection, name):
            raise InputError(f"--revoke {name!r}: nobody of that name was invited; see --list")
        valid = _valid(now) & (invitations.c.person_id == name)
        return connection.execute(update(invitations).where(valid).values(revoked_at=now)).rowcount


def guest(database: Database, secret: str, *, now: int) -> Guest | Refusal:
    """Whose link has this secret, or why it does not work."""
    if len(secret) != SECRET_LENGTH:
        return "unknown"
    wanted = select(invitations, people.c.seen_at).join(people)
    with database.reading() as connection:
        row = connection.execute(
            wanted.where(invitations.c.secret_sha256 == _sha256(secret))
        ).one_or_none()
    if row is None:
        return "unknown"
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at <= now:
        return "expired"
    if row.seen_at is None or row.seen_at + SEEN_EVERY_S <= now:
        # A disk that is full or locked turns nobody away.
        with contextlib.suppress(DBAPIError), database.writing() as connection:
            seen = update(people).where(people.c.id == row.person_id)
            connection.execute(seen.values(seen_at=now))
    return Guest(row.person_id)


def progress(database: Database, *, now: int) -> tuple[Progress, ...]:
    """How far everybody is, by name."""
    with database.reading() as connection:
        everybody = connection.execute(select(people).order_by(people.c.id)).all()
        return tuple(_progress(connection, one, now) for one in everybody)


def everybody(connection: Connection) -> tuple[str, ...]:
    """The ids of all who were ever invited."""
    return tuple(connection.execute(select(people.c.id).order_by(people.c.id)).scalars())


def _progress(connection: Connection, person: SqlRow[Any], now: int) -> Progress:
    links = connection.execute(
        select(func.count(), func.max(invitations.c.expires_at)).where(
            _valid(now), invitations.c.person_id == person.id
        )
    ).one()
    mine = chats.c.person_id == person.id
    closed = connection.execute(
        select(func.count(), func.count(chats.c.closed_at)).where(mine)
    ).one()
    # As `Chat.rateable`: the opening of a chat of ours is no reply.
    is_reply = (turns.c.speaker == "character") & (
        (turns.c.position > 0) | chats.c.candidate.is_(None)
    )
    said = connection.execute(
        select(
            func.coalesce(func.sum(case((is_reply, 1), else_=0)), 0),
            func.count(turns.c.satisfaction),
        )
        .join(chats, turns.c.chat_id == chats.c.id)
        .where(mine)
    ).one()
    return Progress(
        person_id=person.id,
        links=links[0],
        expires_at=links[1],
        seen_at=person.seen_at,
        open_chats=closed[0] - closed[1],
        closed_chats=closed[1],
        replies=int(said[0]),
        rated=said[1],
    )


def _check_apart(connection: Connection, name: str) -> None:
    """Refuse a name whose file would be another's where file names have no case."""
    for other in everybody(connection):
        if _folded(other) == _folded(name):
            raise InputError(
                f"--invite {name!r}: {other!r} was invited, and some disks cannot tell their files "
                "apart; use that spelling or another name"
            )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _valid(now: int) -> ColumnElement[bool]:
    return invitations.c.revoked_at.is_(None) & (invitations.c.expires_at > now)


def _is_known(connection: Connection, name: str) -> bool:
    return connection.execute(select(people.c.id).where(people.c.id == name)).first() is not None


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
