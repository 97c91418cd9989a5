"""Flags on a simulator's messages: facts beside the text, never a reason to end or to score.

A run draws a message with a flag anew, a bounded number of times (`palate.roleplay`).

    repetition             an own earlier message again, letter for letter but for case and marks
    assistant_phrase       an assistant's stock phrase
    speaks_as_character    a line headed with the character's name
    leaked_reasoning       thinking marks or a heading such as "Reasoning:"
    leaked_json            a JSON object or list instead of words

A simulator is an instrument: a report shows how often it slipped, so that no candidate is blamed.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Sequence

# What is flagged decides what is drawn anew, and so what a simulator says: a change of anything
# below is another number here, and runs of two numbers are never mixed.
HYGIENE_RULES = 1

_ASSISTANT = re.compile(
    r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b"
    r"|\bi(?:['’]m| am) (?:just )?an? (?:ai|(?:large )?language model)\b"
    r"|\bhow (?:can|may) i (?:help|assist) you\b"
    r"|\bis there anything else (?:i can|you(?:['’]d| would) like)\b"
    r"|\bi(?:['’]m| am) here to (?:help|assist)\b"
    r"|\bi(?:['’]d| would) be happy to (?:help|assist)\b"
    r"|\bi(?:['’]m sorry|apologi[sz]e),? but i (?:can(?:not|['’]t)|am unable to)\b"
    r"|\bfeel free to (?:ask|reach out|let me know)\b"
    r"|作为(?:一个|一名|一款)?(?:ai|人工智能|(?:大型?)?语言模型|助手)"
    r"|我(?:只)?是(?:一个|一名|一款)?(?:ai|人工智能|(?:大型?)?语言模型)"
    r"|(?:有什么|还有什么|请问有什么).{0,4}(?:可以|能)(?:帮|为)(?:助)?(?:您|你)"
    r"|很高兴(?:能)?(?:为您|为你|帮助)|如果(?:您|你)(?:还)?有(?:任何|其他)(?:问题|需要)",
    re.IGNORECASE,
)
_REASONING = re.compile(
    r"</?(?:think|thinking|thought|reasoning|analysis|scratchpad)\b[^<>]*>"
    r"|^[^\w\n]*(?:reasoning|thought(?: process)?|chain of thought|internal monologue)\W*[:：]"
    r"|^[^\w\n]*(?:思考过程|推理过程|内心独白)\W*[:：]"
    r"|\bthe user (?:wants|is asking|asked)\b",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"\A```[a-z]*\s*", re.IGNORECASE)
_OBJECT = re.compile(r"\{\s*\"[^\"\n]{1,40}\"\s*:")
_MARKS = re.compile(r"[\W_]+")
_BEFORE_NAME = r" \t\r\u00a0\u3000*_\[【\"“"  # no line break: each line is looked at once
_ARTICLES = {"a", "an", "the"}


def flags(text: str, earlier: Sequence[str], *, character: str) -> tuple[str, ...]:
    """The flags of a message, in the order above.

    Args:
        earlier: the simulator's own earlier messages.
        character: the name that the character goes by.
    """
    found = {
        "repetition": _repeats(text, earlier),
        "assistant_phrase": _ASSISTANT.search(text) is not None,
        "speaks_as_character": _speaks_as(text, character),
        "leaked_reasoning": _REASONING.search(text) is not None,
        "leaked_json": _is_json(text),
    }
    return tuple(name for name, is_so in found.items() if is_so)


def _repeats(text: str, earlier: Sequence[str]) -> bool:
    return _normal(text) in {_normal(own) for own in earlier}


@functools.lru_cache(maxsize=4096)
def _normal(text: str) -> str:
    """Letters and digits alone; of a message that has none ("…", an emoji), the message.

    Kept, because every message is held against all earlier ones of its chat.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _MARKS.sub("", folded) or folded.strip()


def _speaks_as(text: str, character: str) -> bool:
    """A line begins with "Name:" (the full name, or its first word), bold or bracketed or not."""
    if ":" not in text and "：" not in text:
        return False
    heading = _heading(character)
    return heading is not None and heading.search(text) is not None


@functools.lru_cache(maxsize=256)
def _heading(character: str) -> re.Pattern[str] | None:
    words = [word for word in character.split() if word.lower() not in _ARTICLES]
    names = {name for name in (character.strip(), words[0] if words else "") if name}
    if not names:
        return None
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?im)^[{_BEFORE_NAME}]*(?:{either})[*_\]】]*\s*[:：]")


def _is_json(text: str) -> bool:
    if "{" not in text and "[" not in text:
        return False
    bare = _FENCE.sub("", text.strip()).removesuffix("```").rstrip()
    if _OBJECT.search(bare):
        return True
    if not (bare.startswith(("{", "[")) and bare.endswith(("}", "]"))):
        return False
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, (dict, list))
