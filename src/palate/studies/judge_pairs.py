"""A judge that compares: does its choice between two messages change with their order?

The question is that of the fooling rate (paper 3.1): which of two messages did the person write?
Here the second is a reaction at another place, of this person or of another. What matters is not
whether the judge is right, but whether it names the same message in both orders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palate.errors import LeftToBatch, ModelError
from palate.language import Language
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.asking import Heard, Judge
from palate.simulators.validation.contexts import Context
from palate.simulators.validation.fooling import (
    HALF,
    ORDERS,
    Judged,
    Trial,
    human_question,
    judge_trial,
)
from palate.simulators.validation.speaking import all_of
from palate.studies.judge_items import CheckItem
from palate.types import Record

CONDITION = "another-place"


class OrderFlips(Record):
    """How often the choice went over to the other message when they were swapped, in 0..1.

    `share` None: no pair was readable in both orders.
    """

    language: Language
    pairs: int
    unscored: int
    flips: int
    cannot_tell: int
    share: float | None


class OrderPair(NamedTuple):
    """One pair to be asked in both orders."""

    item: CheckItem
    trial: Trial


class Orders(NamedTuple):
    """What came of the pairs, by language; `left` pairs have no answer, for some of `failures`."""

    judged: dict[Language, list[Judged]]
    failures: tuple[str, ...]
    left: int


def pairs(items: Sequence[CheckItem]) -> Iterator[OrderPair]:
    """Each item's reaction beside that of the next item in its language, where they differ."""
    by_language: dict[Language, list[CheckItem]] = defaultdict(list)
    for item in items:
        if item.subject.trajectory.messages[-1].speaker == "user":
            by_language[item.subject.language].append(item)
    for group in by_language.values():
        for item, other in zip(group, [*group[1:], group[0]], strict=True):
            *history, own = item.subject.trajectory.messages
            foreign = other.subject.trajectory.messages[-1].text
            if own.text.strip() != foreign.strip():
                context = Context(item.session, item.turn, tuple(history), own.text, left=False)
                yield OrderPair(item, Trial(context, item.scene, foreign))


async def check_orders(
    wanted: Sequence[OrderPair], judge: Judge, journal: Answers[Heard]
) -> Orders:
    """Ask about every pair in both orders; answers are kept before the next call.

    Raises:
        StoreError: the journal cannot be written.
    """

    async def asked(pair: OrderPair) -> Judged | ModelError:
        try:
            return await judge_trial(
                pair.trial, judge, journal, user_id=pair.item.user, condition=CONDITION
            )
        except ModelError as error:
            return error

    outcomes = await all_of([asked(pair) for pair in wanted])
    found: dict[Language, list[Judged]] = defaultdict(list)
    for pair, outcome in zip(wanted, outcomes, strict=True):
        if not isinstance(outcome, ModelError):
            found[pair.item.subject.language].append(outcome)
    errors = [one for one in outcomes if isinstance(one, ModelError)]
    failures = tuple(str(one) for one in errors if not isinstance(one, LeftToBatch))
    return Orders(found, failures, len(errors))


def questions(pair: OrderPair, judge: Judge) -> tuple[str, ...]:
    """The words of both questions, for a forecast."""
    asked = [human_question(pair.trial, order, judge) for order in ORDERS]
    return tuple(f"{one.system}\n{one.user}" for one in asked)


def flips(judged: dict[Language, list[Judged]]) -> tuple[OrderFlips, ...]:
    """Counts and shares, by language."""
    return tuple(_flips(language, own) for language, own in sorted(judged.items()))


def _flips(language: Language, judged: Sequence[Judged]) -> OrderFlips:
    readable = [one for one in judged if one.share is not None]
    flipped = sum(one.flips for one in readable)
    return OrderFlips(
        language=language,
        pairs=len(judged),
        unscored=len(judged) - len(readable),
        flips=flipped,
        cannot_tell=sum(HALF in one.shares for one in readable),
        share=flipped / len(readable) if readable else None,
    )
