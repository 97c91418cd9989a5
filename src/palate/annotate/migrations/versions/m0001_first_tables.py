"""People, invitations, chats, turns, alternates, actions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of the first release."""
    op.create_table("studies", sa.Column("name", sa.String, primary_key=True))
    op.create_table(
        "people",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("person_id", sa.String, sa.ForeignKey("people.id"), nullable=False, index=True),
        sa.Column("secret_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
    )
    _chats()
    op.create_table(
        "actions",
        sa.Column("person_id", sa.String, sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("asked_sha256", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def _chats() -> None:
    op.create_table(
        "chats",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("person_id", sa.String, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("session_id", sa.String, nullable=False),
        sa.Column("card_id", sa.String, nullable=False),
        sa.Column("candidate", sa.String),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("language", sa.String, nullable=False),
        sa.Column("ended_by", sa.String, nullable=False),
        sa.Column("extra", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("closed_at", sa.BigInteger),
        sa.UniqueConstraint("person_id", "session_id"),
    )
    op.create_table(
        "turns",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("chat_id", sa.String(32), sa.ForeignKey("chats.id"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("speaker", sa.String, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("finish", sa.String, nullable=False),
        sa.Column("satisfaction", sa.Integer),
        sa.Column("note", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("rated_at", sa.BigInteger),
        sa.UniqueConstraint("chat_id", "position"),
        sa.CheckConstraint("satisfaction BETWEEN 1 AND 5"),
        # A number is never given to another text: a late rating of a reply that was written anew
        # must not land on its successor.
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alternates",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("chat_id", sa.String(32), sa.ForeignKey("chats.id"), nullable=False, index=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("speaker", sa.String, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("satisfaction", sa.Integer),
        sa.Column("note", sa.Text),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
