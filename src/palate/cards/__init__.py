"""Character cards: reading them, filling in names, and what each side is told of them."""

from palate.cards.files import (
    MAX_BYTES,
    Loaded,
    Opening,
    from_json,
    load,
    nickname,
    openings,
    read,
    warnings,
)
from palate.cards.macros import NO_DICE, Dice, filled
from palate.cards.prompts import NEUTRAL_NAME, card_text, opening, scene
from palate.cards.telling import (
    LORE_RULES,
    CandidatePrompt,
    candidate_prompt,
    chat_prompt,
    dice,
    draws_from_dice,
    known_lore,
    tells,
)

__all__ = [
    "LORE_RULES",
    "MAX_BYTES",
    "NEUTRAL_NAME",
    "NO_DICE",
    "CandidatePrompt",
    "Dice",
    "Loaded",
    "Opening",
    "candidate_prompt",
    "card_text",
    "chat_prompt",
    "dice",
    "draws_from_dice",
    "filled",
    "from_json",
    "known_lore",
    "load",
    "nickname",
    "opening",
    "openings",
    "read",
    "scene",
    "tells",
    "warnings",
]
