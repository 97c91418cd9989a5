"""What is judged, and by which rubrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from palate.prompts.rubric_text import Language
from palate.types import Card, PersonalRubric, SharedRubric, Track, Trajectory


@dataclass(frozen=True, eq=False)
class Rubrics:
    """The three rubrics that a user's trajectories are judged by.

    Compared by identity: make one for each user, and its texts and digests are made once.
    `personal` None: nothing is judged by it, as in some conditions of the human-agreement study.
    """

    personal: PersonalRubric | None
    generic: SharedRubric
    session: SharedRubric

    @cached_property
    def digests(self) -> dict[Track, str]:
        """What a judgement records: the frozen rubric's own hash, or the record's digest."""
        return {
            "personal": "" if self.personal is None else self.personal.sha256,
            "generic": self.generic.digest(),
            "session": self.session.digest(),
        }


@dataclass(frozen=True, eq=False)
class Subject:
    """One trajectory to judge, with its card (placeholders filled) and its user's rubrics.

    `lore`: what the character may know from its card's lorebook, the surest first.
    """

    trajectory: Trajectory
    card: Card
    rubrics: Rubrics
    lore: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """The trajectory's digest, made once for all its judgements."""
        return self.trajectory.digest()

    @property
    def language(self) -> Language:
        """The language that the judge is asked in: the card's."""
        return self.card.language
