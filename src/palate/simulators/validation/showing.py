"""What a judge of validation reads of a scene, a chat and a message: each as data, between marks.

Every text stands between its own marks, escaped, so that no message can pose as another speaker's,
as the other message or as an instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from palate.language import Language
from palate.language import tokens as estimated
from palate.prompts import fenced
from palate.types import Message, Scene

Form = Literal["json", "digits"]

MARK = "quoted"
# What a judge is shown of the chat, of samples, and of one message, in tokens [choice]: of a chat
# the newest whole messages. The embedded model's slot holds 2,048.
CHAT_TOKENS: dict[Form, int] = {"json": 3000, "digits": 500}
SAMPLE_TOKENS: dict[Form, int] = {"json": 3000, "digits": 500}
MESSAGE_TOKENS: dict[Form, int] = {"json": 3000, "digits": 150}

_SPEAKER = {
    "en": {"user": "User", "character": "Character"},
    "zh": {"user": "用户", "character": "角色"},
}
_NO_CHAT = {"en": "(the chat begins here)", "zh": "（聊天由此开始）"}
_FACTS = {
    "en": ("Character: ", "Scenario: "),
    "zh": ("角色：", "场景："),
}


def scene_text(scene: Scene, form: Form) -> str:
    """Name and scenario of the character, which is what the user saw of the card."""
    name, scenario = _FACTS[scene.language]
    lines = [f"{name}{scene.character}"]
    if scene.scenario.strip():
        lines.append(f"{scenario}{_beginning(scene.scenario.strip(), MESSAGE_TOKENS[form])}")
    return fenced(MARK, "\n".join(lines))


def message_text(text: str, form: Form) -> str:
    """One message as data, whole unless it is longer than the form has room for."""
    return fenced(MARK, _beginning(text, MESSAGE_TOKENS[form]))


def chat_text(history: Sequence[Message], language: Language, form: Form) -> str:
    """The newest messages that fit, each whole between its own marks; the newest at any rate."""
    shown: list[str] = []
    room = CHAT_TOKENS[form]
    for message in reversed(history):
        text = _beginning(message.text, MESSAGE_TOKENS[form])
        room -= estimated(text) + 8
        if shown and room < 0:
            break
        shown.append(f"{_SPEAKER[language][message.speaker]}:\n{fenced(MARK, text)}")
    return "\n".join(reversed(shown)) or _NO_CHAT[language]


def samples_text(samples: Sequence[str], form: Form) -> str:
    """Messages as data, in their order, as many as fit; the first at any rate."""
    shown: list[str] = []
    room = SAMPLE_TOKENS[form]
    for sample in samples:
        text = _beginning(sample, MESSAGE_TOKENS[form])
        room -= estimated(text) + 8
        if shown and room < 0:
            break
        shown.append(fenced(MARK, text))
    return "\n".join(shown)


def _beginning(text: str, most: int) -> str:
    if estimated(text) <= most:
        return text
    share = most / estimated(text)
    return text[: max(1, int(len(text) * share))].rstrip() + " …"
