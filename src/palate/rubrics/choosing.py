"""The small set at the end: of every kind the rules that separate best (paper 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from palate.rubrics.rules import KINDS, MOST_RULES, Key, Kind, Rule, Separation
from palate.types import Evidence, Reaction

MAJOR_SEPARATION = 0.3  # from here on a rule weighs "major" [choice]
MOST_EVIDENCE = 8  # turns that a rule cites; more, and nobody looks them up

_PREFIX: dict[Kind, str] = {"reward": "r", "penalty": "p"}


def best(rules: Sequence[Rule], found: Mapping[Key, Separation]) -> list[Rule]:
    """At most `MOST_RULES` of each kind, the best separating first."""
    chosen: list[Rule] = []
    for kind in KINDS:
        same_kind = [rule for rule in rules if rule.kind == kind]
        same_kind.sort(key=lambda rule: (-found[rule.key].value, found[rule.key].p, rule.text))
        chosen += same_kind[: MOST_RULES[kind]]
    return chosen


def entries(
    rules: Sequence[Rule], kind: Literal["reward", "penalty"], found: Mapping[Key, Separation]
) -> tuple[Evidence, ...]:
    """The rules of one kind as a rubric holds them."""
    return tuple(
        Evidence(
            id=f"{_PREFIX[kind]}{number}",
            rule=rule.text,
            weight="major" if found[rule.key].value >= MAJOR_SEPARATION else "minor",
            evidence=rule.evidence[:MOST_EVIDENCE],
        )
        for number, rule in enumerate((r for r in rules if r.kind == kind), 1)
    )


def reactions(rules: Sequence[Rule]) -> tuple[Reaction, ...]:
    """The reaction rules as a rubric holds them."""
    return tuple(
        Reaction(
            pattern=rule.text,
            meaning=rule.meaning,
            direction=rule.direction,
            evidence=rule.evidence[:MOST_EVIDENCE],
        )
        for rule in rules
        if rule.kind == "reaction"
    )
