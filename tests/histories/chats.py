"""Small sessions to make histories of."""

from palate.types import Session, Turn


def chat(name, *said, card="ash", ended_by="quit", language="en", user="u1"):
    """A session from texts, the character first and then in turn.

    A reply with its rating is a pair; "" leaves a side's turn out.
    """
    turns = []
    for number, one in enumerate(said):
        text, rating = one if isinstance(one, tuple) else (one, None)
        if text:
            speaker = "user" if number % 2 else "character"
            turns.append(Turn(speaker=speaker, text=text, satisfaction=rating))
    return Session(
        session_id=name,
        user_id=user,
        card_id=card,
        language=language,
        ended_by=ended_by,
        turns=tuple(turns),
    )


def rated(name, *ratings, **of):
    """A session with these ratings of its replies, None for an unrated one; no text comes twice."""
    said = ["Yes?"]
    for number, rating in enumerate(ratings):
        said += [f"I ask {name} about {number}", (f"It was {number} in {name}", rating)]
    return chat(name, *said, **of)
