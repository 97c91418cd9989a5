"""What a browser may ask for, checked at the border; and the ways in which it is not done."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from palate.types import MAX_SCORE, MIN_SCORE, Record, digest

MOST_MESSAGE = 8_000  # characters
MOST_NOTE = 2_000
MOST_USER_TURNS = 200  # of one chat; a session of the paper has about 20
MOST_REJECTED = 20  # replies to one message
MOST_CHATS = 1_000  # that one person begins

Problem = Literal[
    "gone",  # no such chat, turn or card, or not this person's
    "changed",  # the chat was changed elsewhere since the page was loaded
    "key_used",  # the key was used for something else
    "closed",  # the chat has ended
    "not_now",  # the other side is to speak
    "fixed",  # what was imported is rated, not changed
    "full",  # the chat is as long as it may be, or the person has as many as they may have
]


class NotDone(Exception):
    """An action that changed nothing, and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text holds no NUL")
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("there is nothing in it")
    return text.strip()


Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{8,64}$")]
Text = Annotated[str, Field(max_length=MOST_MESSAGE), AfterValidator(_storable)]
Message = Annotated[Text, AfterValidator(_said)]
Note = Annotated[str, Field(max_length=MOST_NOTE), AfterValidator(_storable)]
Row = Annotated[int, Field(ge=0, lt=2**31, strict=True)]


class Start(Record):
    """Begin a chat with a card; `key` is the sender's own, new for each action."""

    key: Key
    card: Annotated[str, Field(max_length=200), AfterValidator(_storable)]

    def asked(self) -> str:
        """Digest of what is asked for: a key stands for one thing."""
        return digest(["Start", self.model_dump(mode="json")])


class Action(Record):
    """A change of a chat that stood at `version`."""

    key: Key
    version: Row

    def asked(self, chat_id: str) -> str:
        """Digest of what is asked for: a key stands for one thing."""
        return digest([type(self).__name__, chat_id, self.model_dump(mode="json")])


class Say(Action):
    """The person's next message."""

    text: Message


class Rate(Action):
    """A rating 1..5 of the reply with the id `turn`, a note about it, or both."""

    turn: Row
    satisfaction: Annotated[int, Field(ge=MIN_SCORE, le=MAX_SCORE, strict=True)] | None = None
    note: Note | None = None


class Regenerate(Action):
    """Have the last reply written anew; the old one is kept as an alternate."""

    turn: Row


class Edit(Action):
    """Change one's own last message; what it and its reply were is kept as alternates."""

    turn: Row
    text: Message


class Leave(Action):
    """Leave the chat for good (`[QUIT]`), with or without a farewell; or finish rating it."""

    farewell: Text = ""


class Done(NamedTuple):
    """What an action brought: the chat, its version after it, and the turn it made, if any."""

    chat: str
    version: int
    turn: int | None
