"""The verdict on a simulator, in words: fit to use, weak or unusable, and why (paper 3.1).

Every rule and every threshold is in `verdict_rules`. What is missing is named and never assumed;
"cannot be told" means too few contexts, or nothing against the simulator but too few kinds of proof
for it (likelihood, two_sample, fooling, consistency); what it would take is said beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palate.simulators.validation.measures import Estimate, OwnAgainstOthers
from palate.simulators.validation.records import ConditionResult, Level, Measure, Verdict
from palate.simulators.validation.tellable import needs
from palate.simulators.validation.verdict_rules import (
    LEAST_CONTEXTS,
    LEAST_MEASURES,
    RULES,
    Finding,
    Sign,
    own_against_others,
)

_PROOFS: dict[Measure, str] = {
    "likelihood": "likelihood",
    "two_sample": "the classifier",
    "fooling": "the fooling rate",
    "consistency": "identity consistency",
}


def verdict(result: ConditionResult, user_id: str, matrix: OwnAgainstOthers | None) -> Verdict:
    """The verdict on one condition of one person; `matrix` has the person's row, if measured."""
    findings = [finding for rule in RULES for finding in rule(result)]
    findings += own_against_others(result, user_id, matrix)
    order: dict[Sign, int] = {"unusable": 0, "weak": 1, "good": 2, "note": 3}
    findings.sort(key=lambda finding: order[finding.sign])
    level, why = _level(result, findings)
    lacking: tuple[str, ...] = ()
    if level == "cannot be told" and result.spoken is not None:
        lacking = tuple(needs(result, _proofs(findings)))
    return Verdict(
        level=level,
        reasons=(*([why] if why else []), *lacking, *(finding.text for finding in findings)),
        missing=tuple(_missing(result)),
    )


def _proofs(findings: Iterable[Finding]) -> set[Measure]:
    return {finding.proves for finding in findings if finding.proves}


def _missing(result: ConditionResult) -> Iterator[Measure]:
    """Measures that are not there, or without the number that they are about."""
    numbers: dict[Measure, Estimate | None] = {
        "likelihood": result.likelihood.messages if result.likelihood else None,
        "two_sample": result.two_sample.auc if result.two_sample else None,
        "surface": None,
        "leaving": result.leaving.recall if result.leaving else None,
        "fooling": result.fooling.rate if result.fooling else None,
        "consistency": result.consistency.own if result.consistency else None,
    }
    for name, number in numbers.items():
        if name in result.absent or (number is not None and number.value is None):
            yield name


def _level(result: ConditionResult, findings: list[Finding]) -> tuple[Level, str]:
    """The level, and why nothing better can be said; "" where the findings say it."""
    if result.spoken is None:
        return "cannot be told", result.absent.get("verdict", "It could not be asked.")
    answered = result.spoken.contexts - result.spoken.failed
    if answered < LEAST_CONTEXTS:
        which = "Held-out contexts with an answer" if result.spoken.failed else "Held-out contexts"
        return "cannot be told", f"{which}: {answered}; at least {LEAST_CONTEXTS} are needed."
    signs = {finding.sign for finding in findings}
    if "unusable" in signs:
        return "unusable", ""
    if "weak" in signs:
        return "weak", ""
    proofs = _proofs(findings)
    if len(proofs) < LEAST_MEASURES:
        found = " and ".join(sorted(_PROOFS[name] for name in proofs))
        spoken_for = f"but {found} alone speaks for it" if found else "and nothing for it"
        return "cannot be told", (
            f"Nothing speaks against it, {spoken_for}; at least {LEAST_MEASURES} kinds of proof "
            "are needed."
        )
    return "fit", ""
