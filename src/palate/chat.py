"""Who sees a conversation from which side, and when a user has left (paper 3.1, 3.2).

The one place where speakers become API roles: for the candidate the character is "assistant"; for
the simulator the roles flip and the user is "assistant".

`[QUIT]` alone, or as the last token of a simulator's message, ends the session; what was written
before it is the farewell and stays as the user's last message. A token mentioned inside a
sentence is text. Only the simulator can quit: candidate text never passes through `read_user`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from palate.models.client import ChatMessage
from palate.models.thinking import strip_thinking
from palate.types import Message, Speaker

# Words that stand for [QUIT] where a judge reads a transcript: the token itself is never shown.
USER_LEFT = {"en": "The user left here.", "zh": "用户在这里离开了。"}

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
_OPEN = r"\\?[\[［【]"
_CLOSE = r"\\?[\]］】]"
_SPACE = rf"[\s{_INVISIBLE}]*"
_WORD = "".join(
    f"[{c}{c.lower()}{chr(ord(c) + 0xFEE0)}{chr(ord(c.lower()) + 0xFEE0)}]" for c in "QUIT"
)
_TOKEN = rf"{_OPEN}{_SPACE}{_WORD}{_SPACE}{_CLOSE}"
_MARKUP = "*_`~"
_FULL_STOPS = ".。!！"
_A_TOKEN = re.compile(_TOKEN)
_SPACES = re.compile(_SPACE)
_ONLY_TOKEN = re.compile(
    rf"\A[\s\"'“”‘’«»()（）*_`~{_INVISIBLE}]*(?:{_TOKEN}[\s\"'“”‘’«»()（）*_`~.。!！{_INVISIBLE}]*)+\Z"
)
_FIRST_TOKEN = re.compile(rf"\A{_SPACE}[*_`~]*{_TOKEN}[*_`~]*(?=\s)")


class UserAct(NamedTuple):
    """What a simulator did: said something, left, or both (a farewell)."""

    text: str
    quit: bool


def read_user(raw: str) -> UserAct:
    """The user's words and whether they left, from a simulator's raw text.

    Thinking is removed first. Choices (`docs/method.md`): a message that begins with the token
    leaves, and what follows it is dropped; a bare QUIT, an unclosed bracket and translations of
    the token are text.
    """
    text = _trim(strip_thinking(raw).visible)
    if _ONLY_TOKEN.match(text) or _FIRST_TOKEN.match(text):
        return UserAct("", True)
    start = _final_token(text)
    if start is None or _is_quoted(text, start):
        return UserAct(text, False)
    return UserAct(_trim(text[:start]), True)


def _final_token(text: str) -> int | None:
    """Where the tokens that end `text` begin, with their markup; None where none ends it.

    Markup around the tokens and one closing mark after them belong to them, not to the farewell.
    Walked from the end: one expression for all of it would take a hostile text quadratic time.
    """
    tokens = list(_A_TOKEN.finditer(text))
    if not tokens:
        return None
    rest = text[tokens[-1].end() :]
    rest = rest[_SPACES.match(rest).end() :].lstrip(_MARKUP)  # type: ignore[union-attr]
    rest = rest.lstrip(_FULL_STOPS).lstrip(_MARKUP)
    if not _SPACES.fullmatch(rest):
        return None
    start = tokens[-1].start()
    for earlier in reversed(tokens[:-1]):
        if not _SPACES.fullmatch(text, earlier.end(), start):
            break
        start = earlier.start()
    return len(text[:start].rstrip(_MARKUP))


def _trim(text: str) -> str:
    return text.strip(" \t\r\n\f\v\u3000" + _INVISIBLE)


def _is_quoted(text: str, start: int) -> bool:
    """An odd number of code fences before the token: it stands inside an open code block."""
    return text[:start].count("```") % 2 == 1


def as_seen_by(side: Speaker, opening: str, messages: Sequence[Message]) -> tuple[ChatMessage, ...]:
    """The conversation with `side` as the "assistant": the one place where roles flip.

    The opening comes first as the character's message; a card without one starts with the user.
    """
    seen = [
        ChatMessage("assistant" if message.speaker == side else "user", message.text)
        for message in messages
    ]
    if opening:
        seen.insert(0, ChatMessage("assistant" if side == "character" else "user", opening))
    return tuple(seen)


class Insertion(NamedTuple):
    """A message put among those of a chat: `after` of them follow it, 0: it comes last."""

    after: int
    message: ChatMessage


class Told(NamedTuple):
    """All that one side is told besides the conversation, at one moment of it."""

    system: str = ""
    after_history: str = ""
    inserted: tuple[Insertion, ...] = ()


def told_messages(told: Told, history: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The prompt: the system text, the conversation with what is put into it, the last word.

    What belongs before more messages than there are comes before the oldest.
    """
    before = (ChatMessage("system", told.system),) if told.system else ()
    after = (ChatMessage("system", told.after_history),) if told.after_history else ()
    among: list[ChatMessage] = []
    for place in range(len(history) + 1):
        here = len(history) - place
        among += [m for n, m in told.inserted if n == here or (place == 0 and n > here)]
        among += history[place : place + 1]
    return (*before, *among, *after)
