"""Tiny worlds for tests: models that answer by a plain function, and nothing hidden in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palate.models.client import Completion, Request, Sampling, Status
from palate.roleplay import Seat, Step, Table
from palate.types import Cell, Message, Usage


class Listed:
    """Says its lines in order, one a call, and counts the calls."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, lines: Sequence[str | tuple[str, Status]], name: str = "listed") -> None:
        self.name = name
        self.lines = list(lines)
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        line = self.lines[len(self.requests)]
        self.requests.append(request)
        text, status = line if isinstance(line, tuple) else (line, "ok")
        return Completion(text=text, status=status, usage=Usage(10, 2, 0))

    async def close(self) -> None:
        pass


class Answering:
    """Answers by a function of the request."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, answer: Callable[[Request], str], name: str = "answering") -> None:
        self.name = name
        self.answer = answer

    async def complete(self, request: Request) -> Completion:
        return Completion(text=self.answer(request), status="ok")

    async def close(self) -> None:
        pass


def table(
    simulator: Listed, candidate: Listed, *, depth: int, opening: str = "O", **seat: object
) -> Table:
    """A table for one cell, with no system prompts."""
    return Table(
        cell=Cell("u1", "k1", "A", 1),
        opening=opening,
        simulator=Seat(simulator, Sampling()),
        candidate=Seat(candidate, Sampling(), **seat),
        depth_limit=depth,
        seed=7,
        session="s-1",
        flags_of_user=lambda text, own: ("repetition",) if text in own else (),
    )


def said(texts: Sequence[str]) -> list[Message]:
    """Messages after the opening, the user first."""
    speakers = ("user", "character")
    return [Message(speaker=speakers[i % 2], text=text) for i, text in enumerate(texts)]


def steps_of(steps: Sequence[Step]) -> list[str | None]:
    """The texts of accepted steps."""
    return [step.message.text if step.message else None for step in steps]
