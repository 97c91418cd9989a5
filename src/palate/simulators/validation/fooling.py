"""The 2AFC fooling rate (paper 3.1, Table 1): can a judge tell which of two messages is human?

The judge sees a real context and two next messages, the person's and the simulator's, and names the
person's; it is asked in both orders. Choices:

- Only an answer that names the same message in both orders counts whole; one that changes with the
  order, and "cannot tell", count half. So a judge that always names the first scores 0.5, not more.
- Equal messages cannot be told apart: they count half, and no judge is asked.
- A pair of which one answer cannot be read is unscored.
- Where the person left, or one side said nothing, there are no two messages: leaving is measured
  apart (`leaving`).
- Length gives much away, so the rate is given a second time over the pairs of about equal length.
  They are chosen from what was said anyway: picking the nearest of several samples instead would
  measure a simulator that nobody runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from palate.habits import characters
from palate.models.client import Purpose
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.asking import (
    Heard,
    Judge,
    Question,
    Reading,
    UnreadableAnswerError,
    answer_schema,
    answered,
    ask,
    key_of,
    plain,
    prompt_files,
    question,
)
from palate.simulators.validation.contexts import Context
from palate.simulators.validation.estimates import SHARE, mean, missing, wilson
from palate.simulators.validation.measures import Estimate
from palate.simulators.validation.records import Fooling
from palate.simulators.validation.showing import chat_text, message_text
from palate.types import Scene

LENGTH_SHARE = 0.2
LENGTH_CHARACTERS = 3
LEAST_PAIRS = 10  # below this a rate over matched pairs says nothing [choice]
LENGTH_RULE = (
    f"lengths in characters differ by at most {LENGTH_SHARE:.0%} of the longer, or by "
    f"{LENGTH_CHARACTERS}"
)
HALF = 0.5

Order = Literal["human_first", "human_second"]
ORDERS: tuple[Order, ...] = ("human_first", "human_second")
Choice = Literal["1", "2", "neither"]

_KEYS = frozenset(
    map(plain, ("human", "person", "answer", "choice", "人类", "本人", "答案", "选择"))
)
_WORDS: tuple[tuple[Choice, tuple[str, ...]], ...] = (
    ("1", ("1", "1.0", "message 1", "first", "the first", "one", "消息1", "第一条", "一")),
    ("2", ("2", "2.0", "message 2", "second", "the second", "two", "消息2", "第二条", "二")),
    ("neither", ("cannot tell", "can not tell", "can't tell", "unsure", "3")),
    ("neither", ("无法判断", "分辨不出", "不能判断", "不确定", "无法确定")),
)
_SCHEMA = answer_schema("human", {"type": "string", "enum": ["1", "2", "cannot tell", "无法判断"]})
_CHOICES = {plain(word): choice for choice, words in _WORDS for word in words}


class Trial(NamedTuple):
    """One question of the 2AFC: a context, and the simulator's message beside the person's.

    `scene` is what the user saw of the card.
    """

    context: Context
    scene: Scene
    simulated: str


class Judged(NamedTuple):
    """A trial's messages and the simulator's share of "human" in each order; None: unreadable."""

    session_id: str
    human: str
    simulated: str
    shares: tuple[float | None, float | None]
    revision: str = ""  # of the judge, as its endpoint named it

    @property
    def share(self) -> float | None:
        """1 fooled, 0 not, half where the orders disagree; None where one was not readable."""
        first, second = self.shares
        if first is None or second is None:
            return None
        return (first + second) / 2 if _both_clear_and_same(first, second) else _undecided(self)

    @property
    def flips(self) -> bool:
        """The answer changed from one message to the other with the order."""
        first, second = self.shares
        return first is not None and second is not None and (first - HALF) * (second - HALF) < 0


def _both_clear_and_same(first: float, second: float) -> bool:
    return (first - HALF) * (second - HALF) > 0


def _undecided(pair: Judged) -> float:
    """Half for words; for probabilities their mean, in which a preference for a place cancels."""
    first, second = (share for share in pair.shares if share is not None)
    return HALF if {first, second} <= {0.0, HALF, 1.0} else (first + second) / 2


async def judge_trial(
    trial: Trial, judge: Judge, answers: Answers[Heard], *, user_id: str, condition: str
) -> Judged:
    """Ask in both orders what was not asked before; every answer is kept before the next call.

    Raises:
        ModelError: a call did not come back; the answers before it are kept.
    """
    context, simulated = trial.context, trial.simulated
    if context.human.strip() == simulated.strip():
        return Judged(context.session_id, context.human, simulated, (HALF, HALF))
    first, second = [
        await _heard(trial, order, judge, answers, f"human/{user_id}/{condition}")
        for order in ORDERS
    ]
    shares = (first.value, second.value)
    return Judged(context.session_id, context.human, simulated, shares, second.revision)


async def _heard(
    trial: Trial, order: Order, judge: Judge, answers: Answers[Heard], about: str
) -> Heard:
    context = trial.context
    asked = human_question(trial, order, judge)
    about = f"{about}/{context.session_id}#{context.turn}/{order}"
    key = key_of(judge, asked, about)
    heard = answers.get(key)
    if heard is None:
        heard = await ask(asked, judge, reading(order), Purpose("judge", about, context.turn), key)
        answers.append(heard)
    return heard


def human_question(trial: Trial, order: Order, judge: Judge) -> Question:
    """Which of the two did the person write?"""
    texts = (trial.context.human, trial.simulated)
    first, second = texts if order == "human_first" else texts[::-1]
    return question(
        "human",
        judge.form,
        trial.scene,
        transcript=chat_text(trial.context.history, trial.scene.language, judge.form),
        first=message_text(first, judge.form),
        second=message_text(second, judge.form),
    )


def reading(order: Order) -> Reading:
    """What an answer to a question in this order is worth: the simulator's share of "human"."""
    first = 0.0 if order == "human_first" else 1.0
    worth: dict[Choice, float] = {"1": first, "2": 1.0 - first, "neither": HALF}
    return Reading(
        from_words=lambda text: worth[choice(text)],
        digits={"1": worth["1"], "2": worth["2"], "3": HALF},
        schema=_SCHEMA,
    )


def choice(completion: str) -> Choice:
    """The message that an answer names as the person's.

    Raises:
        UnreadableAnswerError: none, or two that contradict each other.
    """
    named = {_choice(value) for value in answered(completion, _KEYS)}
    if len(named) > 1:
        raise UnreadableAnswerError("contradiction: the answer names more than one message")
    return named.pop()


def _choice(value: object) -> Choice:
    named = None if isinstance(value, bool) else _CHOICES.get(plain(value))
    if named is not None:
        return named
    raise UnreadableAnswerError(f"off the form: {str(value)[:40]!r} is none of the choices")


def alike_in_length(human: str, simulated: str) -> bool:
    """Whether two messages are about equally long: the rule `LENGTH_RULE`, white space left out."""
    lengths = sorted((characters(human), characters(simulated)))
    return lengths[1] - lengths[0] <= max(LENGTH_SHARE * lengths[1], LENGTH_CHARACTERS)


def fooling(judged: Sequence[Judged], judge: Judge, *, seed: int) -> Fooling:
    """The rates over judged pairs, of which there is one at least."""
    scored = [pair for pair in judged if pair.share is not None]
    matched = [pair for pair in scored if alike_in_length(pair.human, pair.simulated)]
    rate = _rate(scored, seed)
    return Fooling(
        judge=judge.model.name,
        judge_revision=next((pair.revision for pair in judged if pair.revision), ""),
        counts_toward_verdict=not judge.model.name.startswith("local:"),
        form=judge.form,
        prompts=prompt_files("human", judge.form),
        rate=rate,
        distance=None if rate.value is None else abs(rate.value - HALF),
        flips=_flips(scored, seed),
        cannot_tell=sum(HALF in pair.shares for pair in scored),
        pairs=len(judged),
        unscored=len(judged) - len(scored),
        length_matched=_if_enough(matched, _rate(matched, seed)),
        length_matched_flips=_if_enough(matched, _flips(matched, seed)),
        length_rule=LENGTH_RULE,
    )


def _rate(pairs: Sequence[Judged], seed: int) -> Estimate:
    return share_of([pair.share or 0.0 for pair in pairs], pairs, seed)


def _flips(pairs: Sequence[Judged], seed: int) -> Estimate:
    return share_of([float(pair.flips) for pair in pairs], pairs, seed)


def share_of(values: Sequence[float], pairs: Sequence[Judged], seed: int) -> Estimate:
    """Mean of shares, by a bootstrap over sessions.

    Where all values are equal a bootstrap knows no spread; then Wilson's interval stands in for it,
    over sessions, because the pairs of one session are not independent.
    """
    sessions = [pair.session_id for pair in pairs]
    if not values:
        return missing("no pair has a readable answer in both orders")
    if max(values) > min(values):
        return mean(values, sessions, seed=seed, scale=SHARE)
    number = len(set(sessions))
    return wilson(values[0] * number, number, n=len(values), sessions=number)


def _if_enough(pairs: Sequence[Judged], estimate: Estimate) -> Estimate:
    if len(pairs) >= LEAST_PAIRS:
        return estimate
    return missing(
        f"{len(pairs)} scored pairs are of about equal length; at least {LEAST_PAIRS} are needed"
    )
