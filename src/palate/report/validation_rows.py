"""The table of a person's conditions: what stands in it, for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from palate.report.templating import NOT_MEASURED
from palate.simulators.validation.measures import Estimate
from palate.simulators.validation.records import ConditionResult, Measure, PersonResult
from palate.types import SimulatorKind

CONDITION_WORDS: Mapping[SimulatorKind, str] = {
    "raw": "Raw",
    "prompted": "Prompted",
    "profile": "Profile",
    "lora": "Adapter",
}
MEASURE_WORDS: Mapping[Measure, str] = {
    "likelihood": "likelihood",
    "two_sample": "classifier",
    "surface": "lengths and marks",
    "leaving": "leaving",
    "fooling": "fooling rate",
    "consistency": "identity consistency",
    "verdict": "verdict",
}


class Shown(NamedTuple):
    """A value as it is printed; `reason` says why there is none, or why it has no interval."""

    value: str
    interval: str = ""
    reason: str = ""


class MeasureRow(NamedTuple):
    """One measure over the conditions; `goal` says which values are good.

    `leads`: the first row of its measure; those after it go into its details. `brief`: it stands
    in the short table of a terminal too.
    """

    name: str
    goal: str
    leads: bool
    brief: bool
    cells: tuple[Shown, ...]


class _Measure(NamedTuple):
    name: str
    goal: str
    of: Measure
    get: Callable[[ConditionResult], Estimate | str | None]
    digits: int = 2
    signed: bool = False
    brief: bool = False


def rows(person: PersonResult) -> tuple[MeasureRow, ...]:
    """The rows of a person's table; a measure that no condition has is one row of reasons."""
    return tuple(_rows(person))


def _rows(person: PersonResult) -> Iterator[MeasureRow]:
    before: dict[Measure, bool] = {}
    for measure in _MEASURES:
        has_any = any(getattr(c, measure.of) is not None for c in person.conditions)
        # Where nobody has it, its first row says so once.
        if has_any or measure.of not in before:
            cells = tuple(_shown(measure, condition) for condition in person.conditions)
            leads = measure.of not in before
            brief = has_any and (leads or measure.brief)
            yield MeasureRow(measure.name, measure.goal, leads, brief, cells)
        before[measure.of] = has_any


def _shown(measure: _Measure, condition: ConditionResult) -> Shown:
    if getattr(condition, measure.of) is None:
        return Shown(NOT_MEASURED, reason=condition.absent.get(measure.of, ""))
    found = measure.get(condition)
    if isinstance(found, str):
        return Shown(found)
    if found is None:
        return Shown(NOT_MEASURED)
    return shown(found, measure.digits, signed=measure.signed)


def shown(estimate: Estimate, digits: int = 2, *, signed: bool = False) -> Shown:
    """An estimate with its interval, or with the reason for what it lacks."""
    sign = "+" if signed else ""
    if estimate.value is None:
        return Shown(NOT_MEASURED, reason=estimate.reason or "")
    value = _minus(f"{estimate.value:{sign}.{digits}f}")
    if estimate.low is None or estimate.high is None:
        return Shown(value, reason=estimate.reason or "")
    between = f"{estimate.low:{sign}.{digits}f} – {estimate.high:{sign}.{digits}f}"
    return Shown(value, _minus(between))


def _minus(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}")


def _answers(condition: ConditionResult) -> str | None:
    spoken = condition.spoken
    if spoken is None:
        return None
    return f"{spoken.said} of {spoken.contexts}"


def _count(name: str) -> Callable[[ConditionResult], str | None]:
    return lambda c: None if c.spoken is None else str(getattr(c.spoken, name))


def _permutation(condition: ConditionResult) -> str | None:
    measured = condition.two_sample
    return None if measured is None or measured.p is None else f"{measured.p:.3f}"


def _distance(condition: ConditionResult) -> str | None:
    fooling = condition.fooling
    return None if fooling is None or fooling.distance is None else f"{fooling.distance:.2f}"


def _unscored(condition: ConditionResult) -> str | None:
    fooling = condition.fooling
    return None if fooling is None else f"{fooling.unscored} of {fooling.pairs}"


def _length(condition: ConditionResult) -> str | None:
    if condition.surface is None:
        return None
    lengths = next((d for d in condition.surface.distributions if d.name == "characters"), None)
    if lengths is None:
        return None
    return f"{lengths.simulated.median:.0f} (person {lengths.human.median:.0f})"


def _ks(condition: ConditionResult) -> str | None:
    if condition.surface is None:
        return None
    lengths = next((d for d in condition.surface.distributions if d.name == "characters"), None)
    return None if lengths is None else f"{lengths.ks:.2f}"


def _likelihood(name: str) -> Callable[[ConditionResult], Estimate | None]:
    return lambda c: None if c.likelihood is None else getattr(c.likelihood, name)


def _fooling(name: str) -> Callable[[ConditionResult], Estimate | None]:
    return lambda c: None if c.fooling is None else getattr(c.fooling, name)


def _consistency(name: str) -> Callable[[ConditionResult], Estimate | None]:
    return lambda c: None if c.consistency is None else getattr(c.consistency, name)


def _leaving(name: str) -> Callable[[ConditionResult], Estimate | None]:
    return lambda c: None if c.leaving is None else getattr(c.leaving, name)


def _auc(condition: ConditionResult) -> Estimate | None:
    return None if condition.two_sample is None else condition.two_sample.auc


_MEASURES = (
    _Measure("Held-out messages, nats a token", "lower", "likelihood", _likelihood("messages"), 3),
    _Measure(
        "against the profile",
        "below 0",
        "likelihood",
        _likelihood("over_profile"),
        digits=3,
        signed=True,
        brief=True,
    ),
    _Measure(
        "against prompted",
        "below 0",
        "likelihood",
        _likelihood("over_prompted"),
        digits=3,
        signed=True,
    ),
    _Measure("where they left, nats a token", "lower", "likelihood", _likelihood("leaving"), 3),
    _Measure("Classifier’s AUC", "near 0.5", "two_sample", _auc),
    _Measure("chance of it by luck", "high", "two_sample", _permutation),
    _Measure("Fooling rate", "near 0.5", "fooling", _fooling("rate")),
    _Measure("distance from 0.5", "low", "fooling", _distance),
    _Measure("choices that turn with the order", "low", "fooling", _fooling("flips"), brief=True),
    _Measure("rate at equal length", "near 0.5", "fooling", _fooling("length_matched")),
    _Measure("pairs without a readable answer", "0", "fooling", _unscored),
    _Measure("Identity consistency, 0–100", "high", "consistency", _consistency("own"), 1),
    _Measure("the person’s own messages", "", "consistency", _consistency("ceiling"), 1),
    _Measure(
        "another person’s messages", "", "consistency", _consistency("control"), 1, brief=True
    ),
    _Measure(
        "over another person",
        "above 0",
        "consistency",
        _consistency("over_control"),
        digits=1,
        signed=True,
    ),
    _Measure("Leaving: recall", "high", "leaving", _leaving("recall")),
    _Measure("precision", "high", "leaving", _leaving("precision")),
    _Measure(
        "leaving where they stayed", "low", "leaving", _leaving("false_quit_rate"), brief=True
    ),
    _Measure("Median length, characters", "the person’s", "surface", _length),
    _Measure("gap between lengths (KS)", "low", "surface", _ks),
    _Measure("contexts answered in words", "", "surface", _answers),
    _Measure("cut by the token limit", "0", "surface", _count("cut")),
    _Measure("silent", "0", "surface", _count("silent")),
)
