"""Every action once: its answer is stored under the key that its sender chose, with what it did."""

from __future__ import annotations

import json

from sqlalchemy import Connection, insert, select

from palate.annotate.actions import Done, NotDone
from palate.annotate.schema import actions


def earlier_answer(connection: Connection, person_id: str, key: str, asked: str) -> Done | None:
    """The answer that was given to this key before; None for a new one.

    Raises:
        NotDone: the key was used for something else.
    """
    wanted = select(actions.c.asked_sha256, actions.c.answer)
    row = connection.execute(
        wanted.where(actions.c.person_id == person_id, actions.c.key == key)
    ).one_or_none()
    if row is None:
        return None
    if row.asked_sha256 != asked:
        raise NotDone("key_used")
    return Done(*json.loads(row.answer))


def remember(
    connection: Connection, person_id: str, key: str, asked: str, done: Done, now: int
) -> None:
    """Keep the answer to a key, in the transaction that made what it tells."""
    connection.execute(
        insert(actions).values(
            person_id=person_id,
            key=key,
            asked_sha256=asked,
            answer=json.dumps(done),
            created_at=now,
        )
    )
