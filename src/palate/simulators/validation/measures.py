"""What is measured without a judge, as it is stored (paper 3.1); `records` puts it together.

What could not be measured is None and has its reason; it is never a number. Every estimate says
how many observations and how many sessions stand behind it.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from palate.types import Record, SimulatorKind


class Estimate(Record):
    """A number with its 95 % interval.

    `value` None: not measured, `reason` says why. `value` without `low` and `high`: no interval,
    `reason` says why. `n` observations in `sessions` sessions stand behind it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    sessions: int = 0
    reason: str | None = None

    @model_validator(mode="after")
    def _is_an_estimate(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.value is None and self.low is not None:
            raise ValueError("an interval lies about a value")
        if self.low is None and self.reason is None:
            raise ValueError("what is missing has a reason")
        return self


class Spoken(Record):
    """What a condition's simulator said at the contexts.

    `silent` answers were empty at every attempt; `failed` calls did not come back (the same command
    asks again). Neither is compared with anything. `shortened`: the chat was longer than the
    model's context, and its beginning was left out.
    """

    contexts: int
    said: int  # answers with words
    left: int  # answers with [QUIT], a farewell before it or not
    silent: int
    cut: int  # by the token limit
    failed: int = 0
    shortened: int = 0


class Likelihood(Record):
    """Held-out negative log-likelihood a token, in nats (lower is better); pooled over tokens.

    `messages`: the user's messages and their end-of-turn tokens, the same tokens in all conditions.
    `leaving`: where a session ended by choice, [QUIT] and the end after it; `n` counts tokens.
    `over_prompted`: this condition minus *prompted*, paired by session: below 0 is better.
    """

    messages: Estimate
    leaving: Estimate
    over_prompted: Estimate
    over_profile: Estimate


class TwoSample(Record):
    """A classifier's attempt to tell the simulator's messages from the person's.

    `auc` in 0..1: the chance that a human message looks more human than a simulated one, ties half;
    0.5 is indistinguishable. `p`: the permutation test's, of an AUC this high for messages that
    cannot be told apart; its smallest possible value is 1 / (permutations + 1).
    """

    auc: Estimate
    p: float | None
    permutations: int
    human: int
    simulated: int
    folds: int


class Spread(Record):
    """Where a tenth, a quarter, half, … of the values end."""

    mean: float
    p10: float
    p25: float
    median: float
    p75: float
    p90: float


class Bars(Record):
    """Counts of values in [edge, next edge); the last bar has no upper end."""

    edges: tuple[float, ...]
    human: tuple[int, ...]
    simulated: tuple[int, ...]


class Distribution(Record):
    """One measure of messages, the person's beside the simulator's.

    `ks` in 0..1 (Kolmogorov-Smirnov: the largest gap between the two cumulative shares, 0 alike);
    `wasserstein` in the measure's unit (how far the values would have to move on average).
    """

    name: str  # "characters", "words", "marks"
    unit: str
    human: Spread
    simulated: Spread
    ks: float
    wasserstein: float
    bars: Bars


class Habit(Record):
    """Share of messages that have a thing (an emoji, a question mark, …), 0..1.

    `difference`: simulated minus human, in -1..1.
    """

    name: str
    human: float | None
    simulated: float | None
    difference: Estimate


class Surface(Record):
    """How the messages look, the person's beside the simulator's, at the same contexts."""

    messages: int
    distributions: tuple[Distribution, ...]
    habits: tuple[Habit, ...]


class AtTurn(Record):
    """Leaving at the user's `turn`-th message, from 1.

    `real`: of the sessions that came to this turn, the share that the user left there.
    `simulated`: of the contexts at this turn, the share where the simulator left.
    """

    turn: int
    real: Estimate
    simulated: Estimate


class Leaving(Record):
    """[QUIT] against what the person did at the same contexts (paper 3.1).

    Counts are of contexts: `hits` both left, `misses` only the person, `false` only the simulator,
    `stayed` neither. Where leaving contexts were drawn more often than others, the shares weigh
    each context by how many it stands for.
    """

    hits: int
    misses: int
    false: int
    stayed: int
    precision: Estimate
    recall: Estimate
    f1: Estimate
    false_quit_rate: Estimate
    real_rate: float  # share of all contexts where the person left
    by_turn: tuple[AtTurn, ...]


class Row(Record):
    """One person's held-out messages under every adapter: nats a token, in the order of `persons`.

    `nearest`: the other person whose adapter gives them the lowest; `margin`: that minus the own
    adapter's, paired by session: above 0 the own adapter wins.
    """

    user_id: str
    nll: tuple[float | None, ...]
    tokens: int
    own_is_lowest: bool | None
    nearest: str | None
    margin: Estimate


class OwnAgainstOthers(Record):
    """Whose adapter tells a person's held-out messages best; the diagonal should win."""

    persons: tuple[str, ...]  # the columns
    rows: tuple[Row, ...]
    diagonal_wins: bool | None
    reason: str | None = None


class Authors(Record):
    """Groups of messages, by whom they are of and whom they were attributed to.

    `source`: "human" (how attributable these people are at all) or a condition. `confusion` has a
    row for each person in the order of `persons`, and as many columns.
    """

    source: Literal["human"] | SimulatorKind
    accuracy: Estimate  # `n` counts groups
    by_person: dict[str, Estimate]
    confusion: tuple[tuple[int, ...], ...]


class Attribution(Record):
    """Authorship among the study's persons, learned from their training messages alone.

    One message rarely gives its author away, so messages are read in groups of `group_messages`.
    `chance` in 0..1 is what naming the person with the most groups would get.
    """

    persons: tuple[str, ...]
    group_messages: int
    training_groups: dict[str, int]
    chance: float | None
    authors: tuple[Authors, ...]
    reason: str | None = None
