"""What it would take to tell: a sentence for each measure that could say nothing (paper 3.1).

"Cannot be told" is no use to anybody who does not know what is lacking: so many more held-out
sessions or answered places, another judge, an extra that is not installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from palate.simulators.validation.measures import Estimate
from palate.simulators.validation.records import ConditionResult, Measure
from palate.simulators.validation.two_sample import MIN_PAIRS, MIN_SESSIONS
from palate.simulators.validation.verdict_rules import LEAST_CONTEXTS, MOST_FLIPS

_NAMES: dict[Measure, str] = {
    "likelihood": "The likelihood",
    "two_sample": "The classifier",
    "fooling": "The fooling rate",
    "consistency": "Identity consistency",
}
_NARROWER = "a narrower interval"
_ANOTHER_JUDGE = "another judge than the embedded model"


def needs(result: ConditionResult, proven: Collection[Measure]) -> Iterator[str]:
    """What is lacking, of the contexts and of each kind of proof that is not among `proven`."""
    spoken = result.spoken
    few = spoken is not None and spoken.contexts - spoken.failed < LEAST_CONTEXTS
    for measure, name in _NAMES.items():
        # Likelihood proves an adapter alone: the other conditions share the base's weights.
        if measure in proven or (measure == "likelihood" and result.condition != "lora"):
            continue
        if measure in result.absent:
            yield f"{name} is not there: {result.absent[measure].rstrip('.')}."
            continue
        lacking = _LACKING[measure](result)
        # With few places an interval is wide, and what is surely bad needs no narrower one.
        if lacking and not (few and lacking.startswith(_NARROWER)):
            yield f"{name} needs {lacking}."


def _of_likelihood(result: ConditionResult) -> str:
    assert result.likelihood is not None
    gaps = (result.likelihood.over_profile, result.likelihood.over_prompted)
    # Either of the two is enough to hold the adapter to; reasons are told where neither is there.
    return _of_estimate(next((gap for gap in gaps if gap.value is not None), gaps[0]))


def _of_two_sample(result: ConditionResult) -> str:
    measured = result.two_sample
    assert measured is not None
    if measured.auc.value is not None:
        return _of_estimate(measured.auc)
    places, sessions = MIN_PAIRS - measured.human, MIN_SESSIONS - measured.auc.sessions
    parts = [_more(places, "answered place")] if places > 0 else []
    if sessions > 0:
        parts.append(f"answers in {_more(sessions, 'held-out session')}")
    return " and ".join(parts)


def _of_fooling(result: ConditionResult) -> str:
    measured = result.fooling
    assert measured is not None
    if not measured.counts_toward_verdict:
        return _ANOTHER_JUDGE
    if measured.flips.value is not None and measured.flips.value > MOST_FLIPS:
        return "a judge whose choices do not turn with the order"
    return _of_estimate(measured.rate)


def _of_consistency(result: ConditionResult) -> str:
    measured = result.consistency
    assert measured is not None
    if not measured.counts_toward_verdict:
        return _ANOTHER_JUDGE
    if measured.tells_people_apart is None:
        return f"another person's messages as a control ({measured.control.reason})"
    if not measured.tells_people_apart:
        return "a judge that tells people apart, or more held-out sessions for it to do so"
    return _of_estimate(measured.over_control)


def _of_estimate(estimate: Estimate) -> str:
    """More sessions: how many shows only where there is one; a width cannot be foretold."""
    if estimate.value is None:
        return f"a number, which it lacks ({estimate.reason})"
    if estimate.low is None:
        few = estimate.sessions < 2
        return _more(1, "held-out session") if few else f"an interval ({estimate.reason})"
    return f"{_NARROWER}: more held-out sessions than {estimate.sessions}"


def _more(number: int, what: str) -> str:
    return f"{number} more {what}" + ("" if number == 1 else "s")


_LACKING = {
    "likelihood": _of_likelihood,
    "two_sample": _of_two_sample,
    "fooling": _of_fooling,
    "consistency": _of_consistency,
}
