"""A rule on its way into a rubric, and what became of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from palate.models.client import Status
from palate.types import Record, Usage

Kind = Literal["reward", "penalty", "reaction"]
KINDS: tuple[Kind, ...] = ("reward", "penalty", "reaction")
Direction = Literal[-1, 0, 1]
Key = tuple[Kind, Direction, str]

# Of each kind in a finished rubric, at most [choice].
MOST_RULES: dict[Kind, int] = {"reward": 5, "penalty": 5, "reaction": 4}

# What becomes of a rule: "kept", or why it is not in the rubric.
Outcome = Literal[
    "kept",
    "does not separate",
    "fired too seldom",
    "withdrawn",
    "rewritten",
    "says what another says",
    "not among the best",
]


class Rule(NamedTuple):
    """One candidate: `text` is the rule, of a reaction its pattern; evidence as "SESSION#TURN".

    `meaning` and `direction` belong to reactions alone.
    """

    kind: Kind
    text: str
    evidence: tuple[str, ...]
    meaning: str = ""
    direction: Direction = 0

    @property
    def key(self) -> Key:
        """Equal for rules that say the same in the same words."""
        return self.kind, self.direction, "".join(c for c in self.text.casefold() if c.isalnum())


class Separation(Record):
    """How often a rule told the higher-rated of two replies from the lower-rated one.

    `asked` answers were read, `right` of them picked the reply that the rule says, `wrong` the
    other; the rest were "neither" or "both". `unread` answers held no choice.
    """

    asked: int = 0
    right: int = 0
    wrong: int = 0
    unread: int = 0

    @property
    def value(self) -> float:
        """(right − wrong) / asked, in −1..1; 0 where nothing was read."""
        return (self.right - self.wrong) / self.asked if self.asked else 0.0

    @property
    def fired(self) -> int:
        """Answers that picked one of the two."""
        return self.right + self.wrong

    @property
    def p(self) -> float:
        """Sign test, one-sided: chance of so many right ones if each were a coin's toss."""
        ways = sum(math.comb(self.fired, k) for k in range(self.right, self.fired + 1))
        return ways / (1 << self.fired)


class Tried(Record):
    """A rule that was tested, as it is stored beside the rubric."""

    kind: Kind
    rule: str
    meaning: str
    direction: Direction
    evidence: tuple[str, ...]
    outcome: Outcome
    asked: int
    right: int
    wrong: int
    unread: int
    separation: float
    p: float


class Said(Record):
    """One answer of the model as it is journalled; equal keys are equal questions."""

    key: str
    text: str
    status: Status
    revision: str = ""
    usage: Usage = Usage()


class Journal(Protocol):
    """Where answers are kept, so that an interrupted induction asks nothing twice."""

    def get(self, key: str, /) -> Said | None:
        """The answer to this question, if it was given."""
        ...

    def append(self, answer: Said, /) -> None:
        """Keep an answer before the next call is made."""
        ...


class InductionSettings(Record):
    """How much is read, proposed and tested.

    `context_tokens` is what the model reads and writes in one call; tokens are estimated on the
    safe side. `contrasts` and `trials` are pairs of replies, `candidates` rules of each kind,
    `rules_a_call` rules tested in one call, `revisions` rules rewritten.
    """

    seed: int = 0
    context_tokens: int = 16384
    contrasts: int = 120
    trials: int = 32
    candidates: int = 15
    rules_a_call: int = 10
    revisions: int = 12


class Induction(Record):
    """The record beside an induced rubric: what was tried, how it did, and why it was dropped.

    `dropped` counts rules, `citations_dropped` citations, by reason. `unread` counts questions
    without a readable answer.
    """

    schema_version: Literal["palate.induction/1"] = "palate.induction/1"
    user_id: str
    rubric: str  # its sha256
    model: str
    revision: str
    prompts: dict[str, str]  # prompt file -> SHA-256
    settings: InductionSettings
    proposing_sessions: tuple[str, ...]
    validation_sessions: tuple[str, ...]
    contrasts: int
    trials: int
    proposed: int
    dropped: dict[str, int]
    citations_dropped: dict[str, int]
    merged: int
    unread: dict[str, int]
    rules: tuple[Tried, ...]
    calls: int
    usage: Usage


def tried(rule: Rule, separation: Separation, outcome: Outcome) -> Tried:
    """The record of a tested rule."""
    return Tried(
        kind=rule.kind,
        rule=rule.text,
        meaning=rule.meaning,
        direction=rule.direction,
        evidence=rule.evidence,
        outcome=outcome,
        asked=separation.asked,
        right=separation.right,
        wrong=separation.wrong,
        unread=separation.unread,
        separation=round(separation.value, 4),
        p=round(separation.p, 6),
    )


def distinct(rules: Sequence[Rule]) -> list[Rule]:
    """Rules in the same words made one, with the evidence of all.

    What is said both to please and to displease stays two rules: testing tells which it is.
    """
    found: dict[Key, Rule] = {}
    for rule in rules:
        before = found.get(rule.key)
        found[rule.key] = rule if before is None else joined(before, rule)
    return list(found.values())


def joined(first: Rule, *others: Rule) -> Rule:
    """The first rule with the evidence of all, each turn once."""
    evidence = dict.fromkeys(turn for rule in (first, *others) for turn in rule.evidence)
    return first._replace(evidence=tuple(evidence))
