"""One trajectory, three rubrics and judges that answer by a function: what these tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palate.judging.tracks import Rubrics, Subject
from palate.models.client import Completion, Request
from palate.rubrics.freeze import freeze
from palate.rubrics.shared import load_shared
from palate.types import Card, Cell, Message, PersonalRubric, Trajectory, Usage

CELL = Cell("u1", "k1", "A", 1)
GENERIC_VERDICT = (
    '{"reason": "close to the card", "scores": {"G1": 5, "G2": 4, "G3": 4, "G4": 3, "G5": "n/a",'
    ' "G6": "n/a", "G7": 3, "G8": 4, "G9": 5, "G10": 2, "G11": 3, "G12": 5}, "flags": []}'
)  # ten answered, sum 38
SESSION_VERDICT = (
    '{"reason": "steady", "scores": {"S1": 4, "S2": 4, "S3": 3, "S4": 3, "S5": 2, "S6": 3,'
    ' "S7": 5, "S8": 3, "S9": 2, "S10": 1, "S11": 3}, "flags": []}'
)  # eleven answered, sum 33


class FunctionJudge:
    """Answers by a function of the request, and keeps the requests."""

    def __init__(
        self, answer: Callable[[Request], str | Completion], *, reads_digits: bool = False
    ) -> None:
        self.name = "test:judge"
        self.reads_digits = reads_digits
        self.enforces_schema = False
        self.answer = answer
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, Completion):
            return answer
        return Completion(answer, "ok", model="judge-2026-01", usage=Usage(100, 10, 40))

    async def close(self) -> None:
        pass


def lines(*texts: str) -> Callable[[Request], str]:
    """An answer for each call in turn."""
    left = iter(texts)
    return lambda request: next(left)


def personal_rubric(**changes: object) -> PersonalRubric:
    draft: dict[str, object] = {
        "schema": "palate.rubric/1",
        "track": "personal",
        "user_id": "u1",
        "language": "en",
        "summary": "Wants short, tense replies.",
        "rewards": [{"id": "r1", "rule": "says little", "weight": "major", "evidence": ["s1#1"]}],
        "penalties": [{"id": "p1", "rule": "flatters", "weight": "minor", "evidence": []}],
        "reactions": [
            {"pattern": "one word", "meaning": "absorbed", "direction": 1, "evidence": []}
        ],
        "anchors": {"1": "bored", "2": "cool", "3": "fine", "4": "keen", "5": "gripped"},
        "provenance": {"author": "hand", "training_sessions": {"s1": "0" * 64}},
    }
    return freeze({**draft, **changes})


def rubrics() -> Rubrics:
    return Rubrics(personal_rubric(), load_shared("generic"), load_shared("session"))


def card(**changes: object) -> Card:
    fields = {
        "id": "k1",
        "language": "en",
        "name": "Warden",
        "persona": "Keeps the last gate.",
        "scenario": "A wall at night.",
        "opening": "The gate is shut.",
    }
    return Card(**{**fields, **changes})


def spoken(texts: Sequence[str]) -> tuple[Message, ...]:
    """Messages after the opening, the user first."""
    speakers = ("user", "character")
    return tuple(Message(speaker=speakers[i % 2], text=text) for i, text in enumerate(texts))


def trajectory(*texts: str, ended_by: str = "depth_limit", cell: Cell = CELL) -> Trajectory:
    return Trajectory(
        cell=cell, opening="The gate is shut.", messages=spoken(texts), ended_by=ended_by
    )


def subject(*texts: str, ended_by: str = "depth_limit", **of_card: object) -> Subject:
    return Subject(trajectory(*texts, ended_by=ended_by), card(**of_card), rubrics())


def turns(count: int) -> list[str]:
    """`count` user turns, each answered."""
    return [text for n in range(1, count + 1) for text in (f"user {n}", f"reply {n}")]
