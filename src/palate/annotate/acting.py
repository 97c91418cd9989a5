"""Chats as they are changed: every action once, in one transaction, or not at all.

An action names the version of the chat that its sender saw; where that has passed, it is refused
and the sender told. It carries a key: sent again (a double click, a lost answer), the first answer
is given again and nothing changes. Ratings and texts are addressed by a turn's id, which belongs to
one text for ever.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, update
from sqlalchemy import delete as delete_from

from palate.annotate import chats
from palate.annotate.actions import (
    MOST_REJECTED,
    Action,
    Done,
    Edit,
    Leave,
    NotDone,
    Rate,
    Regenerate,
    Say,
)
from palate.annotate.chats import Chat, ChatTurn
from palate.annotate.database import Database
from palate.annotate.once import earlier_answer, remember
from palate.annotate.schema import alternates, turns
from palate.annotate.schema import chats as chats_table
from palate.types import Finish, SessionEnd, Speaker


def act(database: Database, person_id: str, chat_id: str, action: Action, *, now: int) -> Done:
    """Carry out an action on a chat of this person.

    Raises:
        NotDone: nothing was changed, and why.
    """
    with database.writing() as connection:
        chat = chats.load(connection, chat_id, person_id, changing=True)
        asked = action.asked(chat_id)
        if earlier := earlier_answer(connection, person_id, action.key, asked):
            return earlier
        if action.version != chat.version:
            raise NotDone("changed")
        turn = _carry_out(connection, chat, action, now)
        done = Done(chat_id, _touched(connection, chat, now), turn)
        remember(connection, person_id, action.key, asked, done, now)
        return done


def add_reply(
    database: Database, chat: Chat, text: str, finish: Finish, *, now: int
) -> Done | None:
    """Store the reply to the last message of `chat`; None where that is no longer the last.

    The reply to the last message that a chat may have ends it.
    """
    with database.writing() as connection:
        current = chats.load(connection, chat.id, chat.person_id, changing=True)
        if not current.awaits_reply or current.turns[-1].id != chat.turns[-1].id:
            return None
        position = current.turns[-1].position + 1
        turn = add_turn(connection, chat.id, position, "character", text, finish=finish, now=now)
        if current.is_full:
            _close(connection, chat, "limit", now)
        return Done(chat.id, _touched(connection, current, now), turn)


def _carry_out(connection: Connection, chat: Chat, action: Action, now: int) -> int | None:
    if isinstance(action, Rate):
        return _rate(connection, chat, action, now)
    if chat.closed_at is not None:
        raise NotDone("closed")
    if isinstance(action, Leave):
        return _leave(connection, chat, action, now)
    if chat.candidate is None:
        raise NotDone("fixed")
    if isinstance(action, Say):
        return _say(connection, chat, action.text, now)
    if isinstance(action, Regenerate):
        _regenerate(connection, chat, action, now)
        return None
    assert isinstance(action, Edit)
    return _edit(connection, chat, action, now)


def _rate(connection: Connection, chat: Chat, action: Rate, now: int) -> int:
    if action.turn not in {turn.id for turn in chat.rateable()}:
        raise NotDone("gone")
    given: dict[str, object] = {}
    if action.satisfaction is not None:
        given = {"satisfaction": action.satisfaction, "rated_at": now}
    if action.note is not None:
        given["note"] = action.note.strip() or None
    if given:
        connection.execute(update(turns).where(turns.c.id == action.turn).values(**given))
    return action.turn


def _say(connection: Connection, chat: Chat, text: str, now: int) -> int:
    if chat.awaits_reply:
        raise NotDone("not_now")
    if chat.is_full:
        raise NotDone("full")
    return add_turn(connection, chat.id, len(chat.turns), "user", text, now=now)


def _regenerate(connection: Connection, chat: Chat, action: Regenerate, now: int) -> None:
    last = chat.turns[-1]
    if last.id != action.turn or last.speaker != "character":
        raise NotDone("gone")
    if last.position == 0:
        raise NotDone("fixed")
    if sum(one.position == last.position for one in chat.alternates) >= MOST_REJECTED:
        raise NotDone("full")
    _turn_down(connection, chat, last, "regenerated", now)


def _edit(connection: Connection, chat: Chat, action: Edit, now: int) -> int:
    own = next((turn for turn in reversed(chat.turns) if turn.speaker == "user"), None)
    if own is None or own.id != action.turn:
        raise NotDone("gone")
    if sum(one.position == own.position for one in chat.alternates) >= MOST_REJECTED:
        raise NotDone("full")
    for turn in chat.turns[own.position :]:
        _turn_down(connection, chat, turn, "edited", now)
    return add_turn(connection, chat.id, own.position, "user", action.text, now=now)


def _leave(connection: Connection, chat: Chat, action: Leave, now: int) -> int | None:
    """Close the chat. Who left a chat by choice ended it so; an imported one ended as it did."""
    turn = None
    farewell = action.farewell.strip()
    if farewell and chat.candidate is not None:  # last words, even where a reply is still owed
        turn = add_turn(connection, chat.id, len(chat.turns), "user", farewell, now=now)
    ended_by: SessionEnd = chat.ended_by
    if chat.candidate is not None:
        ended_by = "limit" if chat.is_full else "quit"
    _close(connection, chat, ended_by, now)
    return turn


def _close(connection: Connection, chat: Chat, ended_by: SessionEnd, now: int) -> None:
    connection.execute(
        update(chats_table)
        .where(chats_table.c.id == chat.id)
        .values(closed_at=now, ended_by=ended_by)
    )


def _turn_down(connection: Connection, chat: Chat, turn: ChatTurn, reason: str, now: int) -> None:
    connection.execute(
        insert(alternates).values(
            chat_id=chat.id,
            position=turn.position,
            speaker=turn.speaker,
            text=turn.text,
            satisfaction=turn.satisfaction,
            note=turn.note,
            reason=reason,
            created_at=now,
        )
    )
    connection.execute(delete_from(turns).where(turns.c.id == turn.id))


def add_turn(
    connection: Connection,
    chat_id: str,
    position: int,
    speaker: Speaker,
    text: str,
    *,
    now: int,
    finish: Finish = "ok",
) -> int:
    """Store a turn; its id."""
    added = connection.execute(
        insert(turns).values(
            chat_id=chat_id,
            position=position,
            speaker=speaker,
            text=storable(text),
            finish=finish,
            created_at=now,
        )
    )
    assert added.inserted_primary_key is not None
    return int(added.inserted_primary_key[0])


def storable(text: str) -> str:
    """`text` without what a database cannot hold: NUL, and half of an emoji."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _touched(connection: Connection, chat: Chat, now: int) -> int:
    version = chat.version + 1
    connection.execute(
        update(chats_table)
        .where(chats_table.c.id == chat.id)
        .values(version=version, changed_at=now)
    )
    return version
