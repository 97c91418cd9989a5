"""What can be counted about how a person writes and leaves, from their training sessions.

Counted by code, not asked of a model: a model that reads a history tells its flavour well and its
numbers badly. Given beside the prose of the profile.
"""

from __future__ import annotations

from collections.abc import Sequence

from palate import language
from palate.errors import InputError
from palate.habits import characters, habits, quantile, share
from palate.prompts import load
from palate.types import Record, Session, TrainingSession


class Facts(Record):
    """Measures of one person's messages; shares in 0..1, None where nothing could be counted.

    Lengths are in words for English and in characters, white space left out, for Chinese. Leaving
    is counted over the sessions that ended by the user's choice.
    """

    sessions: int
    messages: int
    length_p10: int
    length_median: int
    length_p90: int
    emoji: float
    actions: float  # *smiles*, or a line in brackets
    exclamation: float
    question: float
    ellipsis: float
    no_final_mark: float
    lower_case: float | None  # of messages with Latin letters: without a capital
    left: int
    messages_before_leaving: int | None  # median
    farewell: float | None  # left with a last message of their own

    def shown(self, tongue: language.Language) -> str:
        """The facts in a few short paragraphs, in the language that lengths were counted for."""
        return load("profile_facts", tongue).fill_present(
            messages=str(self.messages),
            low=str(self.length_p10),
            median=str(self.length_median),
            high=str(self.length_p90),
            emoji=f"{self.emoji:.0%}",
            actions=f"{self.actions:.0%}",
            exclamation=f"{self.exclamation:.0%}",
            question=f"{self.question:.0%}",
            ellipsis=f"{self.ellipsis:.0%}",
            no_final_mark=f"{self.no_final_mark:.0%}",
            lower_case="" if self.lower_case is None else f"{self.lower_case:.0%}",
            left=str(self.left),
            sessions=str(self.sessions),
            before=_text(self.messages_before_leaving),
            farewell="" if self.farewell is None else f"{self.farewell:.0%}",
        )


def measured(training: Sequence[TrainingSession], tongue: language.Language) -> Facts:
    """The facts of these sessions' user messages.

    Raises:
        InputError: the user wrote nothing in them.
    """
    sessions = [item.session for item in training]
    texts = [text for session in sessions for text in user_texts(session)]
    if not texts:
        raise InputError("the training sessions hold no message of the user; nothing can be told")
    lengths = sorted(_length(text, tongue) for text in texts)
    left = [session for session in sessions if session.ended_by == "quit"]
    return Facts(
        sessions=len(sessions),
        messages=len(texts),
        length_p10=quantile(lengths, 0.1),
        length_median=quantile(lengths, 0.5),
        length_p90=quantile(lengths, 0.9),
        **habits(texts).model_dump(),
        left=len(left),
        messages_before_leaving=(
            quantile(sorted(len(user_texts(session)) for session in left), 0.5) if left else None
        ),
        farewell=(
            share(left, lambda session: session.turns[-1].speaker == "user") if left else None
        ),
    )


def user_texts(session: Session) -> list[str]:
    """What the user wrote in a session, in order."""
    return [turn.text for turn in session.turns if turn.speaker == "user"]


def language_of(training: Sequence[TrainingSession]) -> language.Language:
    """The language that most sessions are in; of a tag we do not know, that of the words."""
    return language.of_sessions(item.session for item in training)


def _length(text: str, tongue: language.Language) -> int:
    return characters(text) if tongue == "zh" else len(text.split())


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
