"""Character cards: reading them, filling in names, and what each side is told of them."""

from palate.cards.files import MAX_BYTES, Opening, from_json, nickname, openings, read, warnings
from palate.cards.macros import filled
from palate.cards.prompts import (
    NEUTRAL_NAME,
    CandidatePrompt,
    candidate_prompt,
    card_text,
    opening,
    scene,
)

__all__ = [
    "MAX_BYTES",
    "NEUTRAL_NAME",
    "CandidatePrompt",
    "Opening",
    "candidate_prompt",
    "card_text",
    "filled",
    "from_json",
    "nickname",
    "opening",
    "openings",
    "read",
    "scene",
    "warnings",
]
