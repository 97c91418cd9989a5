"""The tables as queries use them; `migrations/` makes and changes them.

Times are whole seconds since 1970. A person's id is what their sessions carry as `user_id`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

studies = Table(
    "studies",
    metadata,
    # One row: a database that two studies share would mix their people.
    Column("name", String, primary_key=True),
)

people = Table(
    "people",
    metadata,
    Column("id", String, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger),
)

invitations = Table(
    "invitations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False, index=True),
    Column("secret_sha256", String(64), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

chats = Table(
    "chats",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("session_id", String, nullable=False),
    Column("card_id", String, nullable=False),
    Column("candidate", String),  # none: an imported chat
    Column("number", Integer, nullable=False),  # of this person's chats with card and candidate
    Column("language", String, nullable=False),
    Column("ended_by", String, nullable=False),
    Column("extra", Text, nullable=False),  # JSON
    Column("version", Integer, nullable=False),  # counts changes
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
    UniqueConstraint("person_id", "session_id"),
)

turns = Table(
    "turns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("chat_id", ForeignKey("chats.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("speaker", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("finish", String, nullable=False),
    Column("satisfaction", Integer),
    Column("note", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("rated_at", BigInteger),
    UniqueConstraint("chat_id", "position"),
)

# What a person turned down: a reply they asked to be written anew, a message they changed.
alternates = Table(
    "alternates",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("chat_id", ForeignKey("chats.id"), nullable=False, index=True),
    Column("position", Integer, nullable=False),
    Column("speaker", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("satisfaction", Integer),
    Column("note", Text),
    Column("reason", String, nullable=False),  # regenerated | edited
    Column("created_at", BigInteger, nullable=False),
)

# Every change that was acknowledged, by the key that its sender chose: repeated, it is answered
# from here and changes nothing.
actions = Table(
    "actions",
    metadata,
    Column("person_id", ForeignKey("people.id"), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("asked_sha256", String(64), nullable=False),
    Column("answer", Text, nullable=False),  # JSON
    Column("created_at", BigInteger, nullable=False),
)
