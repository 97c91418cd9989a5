"""What each measure says for or against a simulator: all rules and all thresholds [choice].

A rule speaks where its measure is there. A judge that cannot be believed does not count: the
embedded model, one whose choices turn with the order, one that does not tell the person from
another. An interval decides, not the number in it: what could be chance condemns nobody. Nor does
it speak for anybody: a bad number in an interval that is wide enough to hold a good one is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from palate.simulators.validation.measures import Estimate, OwnAgainstOthers
from palate.simulators.validation.records import ConditionResult, Fooling, Measure

LEAST_CONTEXTS = 20
LEAST_MEASURES = 2  # of proofs, likelihood, two_sample, fooling and consistency
EASY_AUC = 0.9  # a classifier tells apart easily above this
FOUND_OUT = 0.1  # fooling: the judge finds the simulator nearly always below this
FAR_FROM_HALF = 0.15  # |rate - 0.5| from here on is far
MOST_FLIPS = 0.5  # more answers than this turning with the order: they say nothing
MUCH_LONGER = 2.0  # times the person's median length, or less than 1 / this
FALSE_QUITS = 0.1  # leaving where the person stayed: weak from here on
TOO_MANY_FALSE_QUITS = 0.25
LOW_RECALL = 0.2  # of the places where the person left
MOSTLY_SILENT = 0.5
OFTEN_SILENT = 0.1
LEAST_LEFT = 5  # contexts where the person left, before recall says anything

Sign = Literal["good", "note", "weak", "unusable"]


class Finding(NamedTuple):
    """What one measure says; `proves`: it counts among the kinds of proof."""

    sign: Sign
    text: str
    proves: Measure | None = None


def _spoken(result: ConditionResult) -> Iterator[Finding]:
    spoken = result.spoken
    if spoken is None:
        return
    answered = spoken.contexts - spoken.failed
    silent = spoken.silent / answered if answered else 0.0
    if silent > OFTEN_SILENT:
        sign: Sign = "unusable" if silent > MOSTLY_SILENT else "weak"
        yield Finding(sign, f"It said nothing at {silent:.0%} of the contexts.")
    if spoken.failed:
        yield Finding("note", f"Calls to it that failed and are not counted: {spoken.failed}.")
    if spoken.shortened:
        told = f"Chats longer than its context, of which it was shown the end: {spoken.shortened}."
        yield Finding("note", told)


def _likelihood(result: ConditionResult) -> Iterator[Finding]:
    """Only an adapter is held to this: the other conditions share the base's weights."""
    if result.likelihood is None or result.condition != "lora":
        return
    gaps = [
        (over.value, over, name)
        for over, name in (
            (result.likelihood.over_profile, "a description of the person"),
            (result.likelihood.over_prompted, "being told to write as a human"),
        )
        if over.value is not None
    ]
    if not gaps:
        return
    value, gap, name = max(gaps, key=lambda one: one[0])  # the hardest to beat
    told = f"({value:+.3f} nats a token{_interval(gap, 3, signed=True)})"
    if value >= 0:
        yield Finding("weak", f"Its weights are no better than {name} {told}.")
    elif gap.high is None or gap.high >= 0:
        yield Finding("weak", f"Its weights are not surely better than {name} {told}.")
    else:
        yield Finding(
            "good",
            f"It expects the person's held-out messages better than {name} does {told}.",
            "likelihood",
        )


def own_against_others(
    result: ConditionResult, user_id: str, matrix: OwnAgainstOthers | None
) -> Iterator[Finding]:
    """The diagonal: this person's messages fit no other person's adapter better."""
    if result.condition != "lora":
        return
    rows = matrix.rows if matrix else ()
    row = next((row for row in rows if row.user_id == user_id), None)
    if row is None or row.own_is_lowest is None:
        if matrix is not None and matrix.reason is not None:
            yield Finding("note", f"Own against others' adapters: {matrix.reason}.")
        return
    margin = row.margin
    told = f"({margin.value or 0:+.3f} nats a token{_interval(margin, 3, signed=True)})"
    if not row.own_is_lowest and (margin.high is None or margin.high < 0):
        yield Finding(
            "unusable",
            f"The adapter of {row.nearest} fits this person's messages better than their own "
            f"{told}: it is not this person.",
        )
    elif not row.own_is_lowest:
        yield Finding(
            "weak", f"The adapter of {row.nearest} fits this person as well as their own {told}."
        )
    elif margin.low is None or margin.low <= 0:
        yield Finding("weak", f"Its lead over the adapter of {row.nearest} could be chance {told}.")
    else:
        yield Finding("good", f"No other person's adapter fits this person as well {told}.")


def _two_sample(result: ConditionResult) -> Iterator[Finding]:
    measured = result.two_sample
    if measured is None or (value := measured.auc.value) is None:
        return
    auc = measured.auc
    told = f"(AUC {value:.2f}{_interval(auc)})"
    if auc.low is None:
        yield Finding("note", f"A classifier's success has no interval {told}.")
    elif auc.low > EASY_AUC:
        yield Finding("weak", f"A classifier tells its messages from the person's easily {told}.")
    elif auc.high is not None and auc.high > EASY_AUC:
        yield Finding("note", f"Too few messages to say how a classifier does {told}.")
    elif auc.low <= 0.5:
        yield Finding(
            "good", f"A classifier cannot tell its messages from the person's {told}.", "two_sample"
        )
    else:
        yield Finding(
            "good", f"A classifier tells its messages apart, but not easily {told}.", "two_sample"
        )


def _fooling(result: ConditionResult) -> Iterator[Finding]:
    measured = result.fooling
    if measured is None or (value := measured.rate.value) is None:
        return
    why_not = _not_believed(measured)
    if why_not:
        yield Finding("note", why_not)
        return
    rate = measured.rate
    told = f"(fooling rate {value:.2f}{_interval(rate)})"
    low, high = rate.low, rate.high
    if low is None or high is None:
        yield Finding("note", f"The judge's answers have no interval {told}.")
    elif high < FOUND_OUT:
        yield Finding("unusable", f"The judge nearly always finds the human message {told}.")
    elif high < 0.5 - FAR_FROM_HALF:
        yield Finding("weak", f"The judge finds the human message far too often {told}.")
    elif low > 0.5 + FAR_FROM_HALF:
        yield Finding(
            "weak", f"The judge takes it for more human than the person: a caricature {told}."
        )
    elif abs(value - 0.5) >= FAR_FROM_HALF:
        yield Finding("note", f"Too few pairs to say how often the judge is fooled {told}.")
    else:
        yield Finding(
            "good", f"The judge does not reliably find the human message {told}.", "fooling"
        )


def _not_believed(measured: Fooling) -> str:
    if not measured.counts_toward_verdict:
        return (
            "The judge is the embedded model, which judges no better than chance: its answers "
            "do not count here."
        )
    flips = measured.flips.value
    if flips is not None and flips > MOST_FLIPS:
        return f"{flips:.0%} of the judge's choices turn with the order: they do not count here."
    return ""


def _consistency(result: ConditionResult) -> Iterator[Finding]:
    measured = result.consistency
    if measured is None or measured.own.value is None or not measured.counts_toward_verdict:
        return
    if measured.tells_people_apart is None:
        yield Finding(
            "note",
            f"Identity consistency has no control ({measured.control.reason}) and does not count.",
        )
        return
    if not measured.tells_people_apart:
        yield Finding(
            "note",
            "The judge cannot tell people apart: it scores another person's messages as high as "
            "this person's own, so its scores of identity do not count.",
        )
        return
    over = measured.over_control
    told = f"({measured.own.value:.0f} against {measured.control.value or 0:.0f} of 100)"
    if over.high is not None and over.high <= 0:
        yield Finding("unusable", f"It sounds less like the person than others do {told}.")
    elif over.low is None or over.low <= 0:
        yield Finding("weak", f"It sounds no more like the person than others do {told}.")
    else:
        yield Finding(
            "good",
            f"It sounds more like the person than others do {told}.",
            "consistency",
        )


def _leaving(result: ConditionResult) -> Iterator[Finding]:
    measured = result.leaving
    if measured is None:
        return
    false, recall = measured.false_quit_rate, measured.recall
    if false.value is not None and false.low is not None and false.low > FALSE_QUITS:
        sign: Sign = "unusable" if false.low > TOO_MANY_FALSE_QUITS else "weak"
        yield Finding(sign, f"It leaves at {false.value:.0%} of the places where they stayed.")
    left = measured.hits + measured.misses
    if left < LEAST_LEFT:
        yield Finding(
            "note",
            f"Contexts where the person left: {left}; leaving is measured from {LEAST_LEFT} on.",
        )
    elif recall.value is not None and recall.high is not None and recall.high < LOW_RECALL:
        yield Finding("weak", f"It stays where they left: {recall.value:.0%} of {left} found.")
    elif measured.hits == 0:
        yield Finding("weak", f"It left at none of the {left} places where the person left.")


def _length(result: ConditionResult) -> Iterator[Finding]:
    if result.surface is None:
        return
    for lengths in result.surface.distributions:
        if lengths.name != "characters" or lengths.human.median <= 0:
            continue
        times = lengths.simulated.median / lengths.human.median
        if not 1 / MUCH_LONGER < times < MUCH_LONGER:
            yield Finding("weak", f"Its messages are {times:.1f} times as long as the person's.")


def _interval(estimate: Estimate, digits: int = 2, *, signed: bool = False) -> str:
    if estimate.low is None or estimate.high is None:
        return ", no interval"
    sign = "+" if signed else ""
    return f", {estimate.low:{sign}.{digits}f} to {estimate.high:{sign}.{digits}f}"


Rule = Callable[[ConditionResult], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    _spoken,
    _likelihood,
    _two_sample,
    _fooling,
    _consistency,
    _leaving,
    _length,
)
