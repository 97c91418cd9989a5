"""What a validation will ask, before it is asked: calls, tokens, money.

Counted on the real prompts. Assumed is that every simulator says something of its person's usual
length at every context; what an earlier call of the command has answered is not asked again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from palate.language import tokens
from palate.models.client import Role
from palate.models.spec import ModelSpec, Price
from palate.report.safe import terminal_safe
from palate.simulators.validation.asking import Judge, Question
from palate.simulators.validation.consistency import identity_question, known
from palate.simulators.validation.fooling import ORDERS, Trial, human_question
from palate.simulators.validation.speaking import Voice
from palate.types import Usage
from palate.validation_asking import worded
from palate.validation_setup import Person, others

AROUND_MESSAGE = 4  # tokens that a chat template puts around each
ANSWER_TOKENS = {"json": 60, "digits": 1}


class Asks(NamedTuple):
    """What one model in one role will be asked; `cost` None: its price is not known."""

    role: Role
    model: str
    calls: int
    usage: Usage
    cost: float | None


def forecast(
    everyone: Sequence[Person],
    speaking: Mapping[str, Sequence[Voice]],
    judge: Judge | None,
    prices: Mapping[str, Price],
    *,
    seed: int,
) -> tuple[Asks, ...]:
    """Calls and tokens by role and model."""
    calls: dict[tuple[Role, str], int] = defaultdict(int)
    usage: dict[tuple[Role, str], Usage] = defaultdict(Usage)
    for person in everyone:
        of_person = _mean_message(person)
        for voice in speaking[person.user_id]:
            key: tuple[Role, str] = ("simulator", voice.model.name)
            answer = min(of_person, voice.sampling.max_tokens)
            for context in person.contexts:
                shown = sum(tokens(m.text) + AROUND_MESSAGE for m in voice.prompt(context))
                calls[key] += 1
                usage[key] += Usage(shown, answer)
        if judge is not None:
            key = ("judge", judge.model.name)
            conditions = len(speaking[person.user_id])
            asked = _about(person, judge, conditions, bool(others(everyone, person)), seed)
            calls[key] += asked.calls
            usage[key] += asked.usage
    return tuple(
        Asks(role, model, calls[role, model], used, _cost(model, used, prices))
        for (role, model), used in sorted(usage.items())
    )


class _Counted(NamedTuple):
    calls: int
    usage: Usage


def _about(person: Person, judge: Judge, conditions: int, control: bool, seed: int) -> _Counted:
    """The judge's questions about one person; every message stands for one of the usual length."""
    shown = known(person.training, seed=seed)
    real = {(c.session_id, c.turn): c.human for c in person.contexts}
    calls, prompt = 0, 0
    for context, text in worded(person.contexts, real):
        scene = person.scene(context.session_id)
        both = human_question(Trial(context, scene, text), ORDERS[0], judge)
        fit = identity_question(text, context, scene, shown, judge)
        scores = conditions + 1 + control
        calls += conditions * len(ORDERS) + scores
        prompt += conditions * len(ORDERS) * _size(both) + scores * _size(fit)
    return _Counted(calls, Usage(prompt, calls * ANSWER_TOKENS[judge.form]))


def _size(question: Question) -> int:
    return tokens(question.system) + tokens(question.user) + 2 * AROUND_MESSAGE


def _cost(model: str, usage: Usage, prices: Mapping[str, Price]) -> float | None:
    if ModelSpec.parse(model).provider in ("local", "scripted"):
        return 0.0
    return prices[model].cost(usage) if model in prices else None


def _mean_message(person: Person) -> int:
    sizes = [tokens(context.human) for context in person.everywhere if context.human]
    return max(1, round(fmean(sizes))) if sizes else 1


def print_forecast(asks: Sequence[Asks], console: Console) -> None:
    """Print the forecast for a person."""
    total = sum(one.calls for one in asks)
    grid = Grid(title=f"At most {total:,} calls", title_justify="left")
    grid.add_column("role")
    grid.add_column("model", overflow="fold")
    for name in ("calls", "prompt tokens", "completion tokens", "USD"):
        grid.add_column(name, justify="right")
    for role, model, calls, usage, cost in asks:
        numbers = (f"{n:,}" for n in (calls, usage.prompt, usage.completion))
        grid.add_row(
            role, Text(terminal_safe(model)), *numbers, "n/a" if cost is None else f"{cost:,.2f}"
        )
    console.print(grid)
    for name in dict.fromkeys(terminal_safe(one.model) for one in asks if one.cost is None):
        line = f'No price for {name}: add [prices."{name}"] to the study.'
        console.print(line, markup=False, highlight=False, soft_wrap=True)
