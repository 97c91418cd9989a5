"""A planted world: people with opposite tastes that nobody is told, and their rated chats.

Each person likes words of one list and dislikes those of another; a reply holds some of every
list among words that mean nothing, and the person rates it by their taste, with noise.
"""

from __future__ import annotations

import random

from palate.types import Session, Turn

KIND = ("gentle", "warmly", "kindly", "softly")
DANGER = ("blade", "poison", "storm", "blood")
JOKES = ("giggle", "pun", "clown", "prank")
FILLER = (
    *("the", "door", "window", "lantern", "table", "river", "street", "morning", "letter"),
    *("bottle", "ladder", "garden", "winter", "harbour", "candle", "pocket", "corner"),
    *("bridge", "orchard", "kettle", "ribbon"),
)
TASTES = {"ada": (KIND, DANGER), "ben": (DANGER, JOKES), "cyd": (JOKES, KIND)}
PLEASED = {"ada": "wonderful", "ben": "hm", "cyd": "haha"}
DISPLEASED = {"ada": "hm", "ben": "haha", "cyd": "wonderful"}


def history(user: str, *, sessions: int = 24, replies: int = 8, seed: int = 0, noise: float = 0.5):
    """The rated sessions of one person; pleased and displeased answers are their own."""
    dice = random.Random(f"{user} {seed}")
    return [_session(user, number, replies, dice, noise) for number in range(sessions)]


def _session(user, number, replies, dice, noise):
    turns = [Turn(speaker="character", text=f"Opening {number} at the {dice.choice(FILLER)}.")]
    for _ in range(replies):
        turns.append(Turn(speaker="user", text=_answer(user, turns[-1], dice)))
        turns.append(_reply(user, dice, noise))
    return Session(
        session_id=f"{user}-{number:02d}",
        user_id=user,
        card_id=f"card-{number % 4}",
        language="en",
        ended_by="limit",
        turns=tuple(turns),
    )


def _reply(user, dice, noise):
    likes, dislikes = TASTES[user]
    said = [
        word for words in (KIND, DANGER, JOKES) for word in dice.sample(words, dice.randint(0, 2))
    ]
    rating = 3 + len(set(said) & set(likes)) - len(set(said) & set(dislikes))
    rating += dice.gauss(0, noise)
    text = [*said, *dice.sample(FILLER, 6)]
    dice.shuffle(text)
    return Turn(
        speaker="character", text=" ".join(text), satisfaction=min(5, max(1, round(rating)))
    )


def _answer(user, before, dice):
    word = {4: PLEASED, 5: PLEASED, 1: DISPLEASED, 2: DISPLEASED}.get(before.satisfaction)
    return " ".join([*([word[user]] if word else []), *dice.sample(FILLER, 3)])
