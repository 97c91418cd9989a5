"""What each side is told of a card: the candidate everything, the user name and scene only.

The order is that of the card formats: instructions (the card's system prompt replaces ours, and
{{original}} in it stands for ours), then the character; post-history instructions come after the
conversation, which is the caller's to place.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from palate.cards.files import nickname, openings
from palate.cards.macros import filled, is_blank
from palate.errors import InputError
from palate.prompts import Prompt, load, placeholders
from palate.types import Card, Scene

# A name that reads well wherever {{user}} stands, and tells nothing of the person [choice].
NEUTRAL_NAME = {"en": "Alex", "zh": "小安"}

_ORIGINAL = re.compile(r"\{\{\s*original\s*\}\}", re.IGNORECASE)
_START = re.compile(r"<\s*start\s*>", re.IGNORECASE)


class CandidatePrompt(NamedTuple):
    """What the candidate is told before and after the conversation."""

    system: str
    post_history: str | None


def candidate_prompt(
    card: Card, *, user_name: str | None = None, prompt: Prompt | None = None
) -> CandidatePrompt:
    """The candidate's instructions and its character (paper 3.2).

    `prompt` is a candidate's own prompt file, with any of <<card>> (all card text), <<name>>,
    <<scenario>> and <<user>>; it takes the place of our instructions and the card's.

    Raises:
        InputError: `prompt` has another placeholder.
    """
    user = user_name or NEUTRAL_NAME[card.language]
    system = _standard(card, user) if prompt is None else _own(card, user, prompt)
    after = _filled(card, card.post_history_instructions, user)
    return CandidatePrompt(system, None if is_blank(after) else after)


def card_text(card: Card, *, user_name: str | None = None) -> str:
    """All that the card says about the character, in sections; blank ones are left out."""
    user = user_name or NEUTRAL_NAME[card.language]
    return load("candidate_card", card.language).fill_present(
        name=nickname(card),
        persona=_filled(card, card.persona, user),
        personality=_filled(card, card.personality, user),
        scenario=_filled(card, card.scenario, user),
        example_dialogue=_filled(card, _examples(card.example_dialogue), user),
    )


def scene(card: Card, *, user_name: str | None = None) -> Scene:
    """What a user sees of a card besides its opening: name and scenario (docs: method, 2)."""
    user = user_name or NEUTRAL_NAME[card.language]
    return Scene(
        language=card.language,
        character=nickname(card),
        scenario=_filled(card, card.scenario, user),
        user=user,
    )


def opening(card: Card, *, user_name: str | None = None) -> str:
    """The message that a chat begins with, names put in.

    Raises:
        InputError: the card has none, so that it cannot be played.
    """
    offered = openings(card)
    if not offered:
        raise InputError(
            f"card {card.id} has no opening; write a first message into the card, or take the "
            "card off the panel"
        )
    return _filled(card, offered[0].text, user_name or NEUTRAL_NAME[card.language])


def _standard(card: Card, user: str) -> str:
    ours = load("candidate_instructions", card.language).fill(name=nickname(card), user=user)
    instructions = ours
    if not is_blank(card.system_prompt):
        char = nickname(card)
        parts = _ORIGINAL.split(card.system_prompt)
        instructions = ours.join(filled(part, char=char, user=user) for part in parts)
    return f"{instructions.strip()}\n\n{card_text(card, user_name=user)}"


def _own(card: Card, user: str, prompt: Prompt) -> str:
    values = {
        "card": card_text(card, user_name=user),
        "name": nickname(card),
        "scenario": _filled(card, card.scenario, user),
        "user": user,
    }
    used = placeholders(prompt)
    if not used <= set(values):
        odd = ", ".join(f"<<{name}>>" for name in sorted(used - set(values)))
        raise InputError(
            f"prompt {prompt.name} has {odd}; only <<card>>, <<name>>, <<scenario>> and <<user>> "
            "are filled in"
        )
    return prompt.fill(**{name: values[name] for name in used})


def _filled(card: Card, text: str, user: str) -> str:
    return filled(text, char=nickname(card), user=user).strip()


def _examples(text: str) -> str:
    """Example chats without their <START> marks, a blank line between them."""
    return "\n\n".join(part.strip() for part in _START.split(text) if not is_blank(part))
