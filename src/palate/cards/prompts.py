"""What each side is told of a card: the candidate everything, the user name and scene only.

The order is that of the card formats: instructions (the card's system prompt replaces ours, and
{{original}} in it stands for ours), then the character, with the lorebook's entries where they
belong; post-history instructions come after the conversation. `palate.cards.telling` says which
entries there are, and when.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from palate.cards.entries import Position
from palate.cards.files import nickname, openings
from palate.cards.macros import NO_DICE, Dice, filled, is_blank
from palate.errors import InputError
from palate.prompts import Prompt, load, placeholders
from palate.types import Card, Scene

# A name that reads well wherever {{user}} stands, and tells nothing of the person [choice].
NEUTRAL_NAME = {"en": "Alex", "zh": "小安"}

Lore = Mapping[Position, Sequence[str]]

NO_LORE: Lore = {}
_START = re.compile(r"<\s*start\s*>", re.IGNORECASE)


class Filler(NamedTuple):
    """What stands for the macros of a card in one chat."""

    char: str
    user: str
    dice: Dice

    def fill(self, text: str, place: str, *, original: str = "") -> str:
        """The text, trimmed; `place` is the name of its field."""
        whole = filled(
            text, char=self.char, user=self.user, original=original, dice=self.dice, place=place
        )
        return whole.strip()


def filler(card: Card, user_name: str | None, dice: Dice = NO_DICE) -> Filler:
    """The names of a chat with `card`; without `user_name`, a neutral one."""
    return Filler(nickname(card), user_name or NEUTRAL_NAME[card.language], dice)


def card_text(
    card: Card, *, user_name: str | None = None, dice: Dice = NO_DICE, lore: Lore = NO_LORE
) -> str:
    """All that the card says about the character, in sections; blank ones are left out."""
    fill = filler(card, user_name, dice).fill

    def section(own: str, before: Position | None, after: Position) -> str:
        first = lore.get(before, ()) if before else ()
        return _paragraphs([*first, own, *lore.get(after, ())])

    text = load("candidate_card", card.language).fill_present(
        name=nickname(card),
        persona=section(fill(card.persona, "persona"), "before_desc", "after_desc"),
        personality=section(fill(card.personality, "personality"), None, "personality"),
        scenario=section(fill(card.scenario, "scenario"), None, "scenario"),
        example_dialogue=section(
            fill(_examples(card.example_dialogue), "example_dialogue"),
            "before_examples",
            "after_examples",
        ),
    )
    return _paragraphs([*lore.get("before_char", ()), text, *lore.get("after_char", ())])


def scene(card: Card, *, user_name: str | None = None, dice: Dice = NO_DICE) -> Scene:
    """What a user sees of a card besides its opening: name and scenario (docs: method, 2)."""
    names = filler(card, user_name, dice)
    return Scene(
        language=card.language,
        character=names.char,
        scenario=names.fill(card.scenario, "scenario"),
        user=names.user,
    )


def opening(card: Card, *, user_name: str | None = None, dice: Dice = NO_DICE) -> str:
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
    return filler(card, user_name, dice).fill(offered[0].text, "opening")


def system(
    card: Card,
    *,
    user_name: str | None,
    prompt: Prompt | None,
    dice: Dice = NO_DICE,
    lore: Lore = NO_LORE,
) -> str:
    """The candidate's instructions and its character, as the system message.

    Raises:
        InputError: `prompt`, the candidate's own, has a placeholder that is not filled in.
    """
    names = filler(card, user_name, dice)
    text = card_text(card, user_name=user_name, dice=dice, lore=lore)
    if prompt is not None:
        return _own(card, names, prompt, text)
    ours = load("candidate_instructions", card.language).fill(name=names.char, user=names.user)
    instructions = ours
    if not is_blank(card.system_prompt):
        instructions = names.fill(card.system_prompt, "system_prompt", original=ours)
    return f"{instructions.strip()}\n\n{text}"


def post_history(card: Card, *, user_name: str | None = None, dice: Dice = NO_DICE) -> str | None:
    """The card's instructions for after the conversation; None where it has none."""
    text = filler(card, user_name, dice).fill(
        card.post_history_instructions, "post_history_instructions"
    )
    return None if is_blank(text) else text


def _own(card: Card, names: Filler, prompt: Prompt, text: str) -> str:
    values = {
        "card": text,
        "name": names.char,
        "scenario": names.fill(card.scenario, "scenario"),
        "user": names.user,
    }
    used = placeholders(prompt)
    if not used <= set(values):
        odd = ", ".join(f"<<{name}>>" for name in sorted(used - set(values)))
        raise InputError(
            f"prompt {prompt.name} has {odd}; only <<card>>, <<name>>, <<scenario>> and <<user>> "
            "are filled in"
        )
    return prompt.fill(**{name: values[name] for name in used})


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def _examples(text: str) -> str:
    """Example chats without their <START> marks, a blank line between them."""
    return "\n\n".join(part.strip() for part in _START.split(text) if not is_blank(part))
