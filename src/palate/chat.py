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
# Markup around the token and one closing mark after it belong to the token, not to the farewell.
_FINAL_TOKEN = re.compile(
    rf"(?P<markup>[*_`~]*)(?:{_TOKEN}{_SPACE})+(?:[*_`~]*)[.。!！]*[*_`~]*{_SPACE}\Z"
)
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
    final = _FINAL_TOKEN.search(text)
    if final is None or _is_quoted(text, final):
        return UserAct(text, False)
    return UserAct(_trim(text[: final.start()]), True)


def _trim(text: str) -> str:
    return text.strip(" \t\r\n\f\v\u3000" + _INVISIBLE)


def _is_quoted(text: str, final: re.Match[str]) -> bool:
    """An odd number of code fences before the token: it stands inside an open code block."""
    return text[: final.start()].count("```") % 2 == 1


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
