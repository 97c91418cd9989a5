"""What a judge reads of a card and a conversation: our words outside the marks, theirs inside.

Two layouts. "json": every message in its own quoted region, as it was written, so that no text can
pose as another speaker. "digits", for judges that read slowly: one region for the conversation,
the lines of a message after its first indented, to the same end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from palate.chat import USER_LEFT
from palate.language import tokens
from palate.prompts import fenced
from palate.prompts.rubric_text import Language
from palate.types import Card, Message, Speaker, Track, Trajectory

Form = Literal["json", "digits"]

# One pair of marks for all that is not ours, so that "outside the marks" means "ours".
MARK = "quoted"


class _Words(NamedTuple):
    speaker: dict[Speaker, str]
    opening: str
    reaction: str
    turns: str
    summary: str
    card: dict[str, str]
    colon: str


_WORDS: dict[Language, _Words] = {
    "en": _Words(
        speaker={"user": "User", "character": "Character"},
        opening="Character (opening, part of the card)",
        reaction="The reaction to it, the user's next message:",
        turns="Turns {first} to {last}, in full:",
        summary="Turns {first} to {last}, summary:",
        card={
            "name": "Name",
            "persona": "Persona",
            "personality": "Personality",
            "scenario": "Scenario",
            "example_dialogue": "Example dialogue",
        },
        colon=": ",
    ),
    "zh": _Words(
        speaker={"user": "用户", "character": "角色"},
        opening="角色（开场白，属于角色卡）",
        reaction="对它的反应，即用户的下一条消息：",
        turns="第 {first} 至 {last} 轮，全文：",
        summary="第 {first} 至 {last} 轮，摘要：",
        card={
            "name": "姓名",
            "persona": "设定",
            "personality": "性格",
            "scenario": "场景",
            "example_dialogue": "对话示例",
        },
        colon="：",
    ),
}

# The person whom the personal track stands for saw the name and the scenario (docs/method.md).
_CARD_FIELDS: dict[Form, dict[Track, tuple[str, ...]]] = {
    "json": {
        "personal": ("name", "scenario"),
        "generic": ("name", "persona", "personality", "scenario", "example_dialogue"),
        "session": ("name", "persona", "personality", "scenario", "example_dialogue"),
    },
    "digits": {
        "personal": ("name", "scenario"),
        "generic": ("name", "persona", "personality", "scenario"),
        "session": ("name", "persona", "personality", "scenario"),
    },
}

# Of a lorebook, entries that fit whole into this many tokens, as estimated [choice].
LORE_TOKENS: dict[Form, int] = {"json": 2000, "digits": 500}
_LORE: dict[Language, str] = {"en": "Lore", "zh": "背景资料"}


class Line(NamedTuple):
    """One message with its label; the label is ours, the text is not."""

    label: str
    text: str


def card_text(card: Card, track: Track, form: Form, lore: Sequence[str] = ()) -> str:
    """What the judge of `track` reads of the card, as one quoted region.

    `lore` is what the character may know from the card's lorebook; the person whom the personal
    track stands for has not seen it.
    """
    words = _WORDS[card.language]
    fields = [(words.card[name], getattr(card, name)) for name in _CARD_FIELDS[form][track]]
    if track != "personal":
        fields.append((_LORE[card.language], "\n".join(_fitting(lore, LORE_TOKENS[form]))))
    lines = (f"{label}{words.colon}{text.strip()}" for label, text in fields if text.strip())
    return fenced(MARK, "\n".join(lines))


def _fitting(texts: Sequence[str], most: int) -> list[str]:
    """The texts that fit, each whole or not at all."""
    fitting, left_over = [], most
    for text in texts:
        size = tokens(text)
        if size <= left_over:
            fitting.append(text)
            left_over -= size
    return fitting


def conversation(opening: str, messages: Sequence[Message], language: Language, form: Form) -> str:
    """The opening (if any) and the messages, in order."""
    words = _WORDS[language]
    lines = [Line(words.opening, opening)] if opening.strip() else []
    lines += [Line(words.speaker[m.speaker], m.text) for m in messages]
    return _laid_out(lines, words, form)


def _laid_out(lines: Sequence[Line], words: _Words, form: Form) -> str:
    if form == "digits":
        # A line break inside a message must not begin a line that looks like a speaker's.
        spoken = ((label, "\n  ".join(text.splitlines())) for label, text in lines)
        return fenced(MARK, "\n".join(f"{label}{words.colon}{text}" for label, text in spoken))
    return "\n".join(
        f"{label}{words.colon.rstrip()}\n{fenced(MARK, text)}" for label, text in lines
    )


def reaction(trajectory: Trajectory, reply: int, language: Language) -> str:
    """The user's answer to a reply: their next message, our words for their leaving, or both."""
    position = trajectory.replies()[reply]
    following = trajectory.messages[position + 1 : position + 2]
    parts = [_WORDS[language].reaction]
    parts += [fenced(MARK, message.text) for message in following]
    if position + 2 >= len(trajectory.messages):
        parts += left(trajectory, language)
    return "\n".join(parts)


def left(trajectory: Trajectory, language: Language) -> list[str]:
    """Our words for [QUIT] where the user quit; the token itself is shown to nobody."""
    return [USER_LEFT[language]] if trajectory.ended_by == "quit" else []


def part_heading(first: int, last: int, language: Language, *, summary: bool) -> str:
    """The heading over user turns `first` to `last` (from 1) of a long conversation."""
    words = _WORDS[language]
    return (words.summary if summary else words.turns).format(first=first, last=last)
