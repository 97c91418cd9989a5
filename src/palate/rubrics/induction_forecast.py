"""What an induction will ask, before it asks: an upper bound on calls and tokens.

The contrasts are counted as they will be shown. What comes of them is not known yet, so every
answer is taken to propose as many rules as it may, every rule to be tested, and half to be revised.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from palate.language import tokens
from palate.rubrics.asking import Query
from palate.rubrics.material import Material, material
from palate.rubrics.merging import merge_query
from palate.rubrics.revising import MOST_SHOWN, revising_query
from palate.rubrics.rules import MOST_RULES, InductionSettings, Kind, Rule
from palate.rubrics.testing_rules import trial_query
from palate.rubrics.wording import wording_query
from palate.types import TrainingSession, Usage

ANSWER_TOKENS = {"proposing": 700, "merging": 40, "testing": 80, "revising": 60, "summing up": 300}
_AROUND = 8  # what a chat template puts around two messages
_A_RULE = {"en": "asks the user about what they just said " * 2, "zh": "接住用户刚说的话并追问" * 2}


class InductionForecast(NamedTuple):
    """At most so many calls, with the tokens that they take."""

    calls: int
    usage: Usage


def induction_forecast(
    training: Sequence[TrainingSession],
    settings: InductionSettings,
    *,
    branches: Collection[Collection[str]],
    answer_tokens: int,
) -> InductionForecast:
    """The size of an induction; makes no call.

    Raises:
        TypeError, InputError: as `palate.rubrics.induce.induce`, where it would ask nothing.
    """
    found = material(training, settings, branches=branches, answer_tokens=answer_tokens)
    counted = _Counted(answer_tokens)
    for chunk in found.chunks:
        counted.add(chunk.query)
    rules = _rules(found, settings)
    for kind_rules in rules.values():
        counted.add(merge_query(kind_rules, found.tongue), times=2)
    for kinds in (rules, {kind: half[: len(half) // 2] for kind, half in rules.items()}):
        for same in ([*kinds["reward"], *kinds["penalty"]], kinds["reaction"]):
            for batch in _batches(same, settings.rules_a_call):
                for trial in found.trials:
                    counted.add(trial_query(batch, trial, found.tongue, found.room))
    failed = min(settings.revisions, sum(map(len, rules.values())) // 2)
    seen = [trial.pair for trial in found.trials[:MOST_SHOWN]]
    revising = revising_query(rules["reward"][0], seen, found.tongue, found.room)
    counted.add(revising, times=failed)
    counted.add(wording_query((), (), (), found.tongue))
    return InductionForecast(counted.calls, counted.usage)


class _Counted:
    def __init__(self, answer_tokens: int) -> None:
        self.most = answer_tokens
        self.calls = 0
        self.usage = Usage()

    def add(self, query: Query, *, times: int = 1) -> None:
        asked = tokens(query.system) + tokens(query.user) + _AROUND
        answer = min(ANSWER_TOKENS[query.stage], self.most)
        self.calls += times
        self.usage += Usage(asked * times, answer * times)


def _rules(found: Material, settings: InductionSettings) -> dict[Kind, list[Rule]]:
    """As many rules of a usual length as may be proposed and tested."""
    most = {k: min(settings.candidates, len(found.chunks) * n) for k, n in MOST_RULES.items()}
    text = _A_RULE[found.tongue].strip()
    return {kind: [Rule(kind, text, ())] * count for kind, count in most.items()}


def _batches(rules: Sequence[Rule], size: int) -> list[Sequence[Rule]]:
    return [rules[size * n : size * (n + 1)] for n in range(math.ceil(len(rules) / size))]
