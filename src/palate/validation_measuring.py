"""From the answers of a validation to its numbers: each measure, or the reason why it is not there.

The classifier and the attribution need the extra train; without it they are missing, with that
reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TypedDict

from palate.config import Study
from palate.simulators.validation.asking import Judge
from palate.simulators.validation.attribution import Source, attribution
from palate.simulators.validation.consistency import consistency
from palate.simulators.validation.fooling import fooling
from palate.simulators.validation.leaving import decisions, leaving
from palate.simulators.validation.measures import (
    Attribution,
    Leaving,
    Likelihood,
    OwnAgainstOthers,
    Spoken,
    Surface,
    TwoSample,
)
from palate.simulators.validation.records import (
    ConditionResult,
    Consistency,
    Fooling,
    Measure,
    PersonResult,
    Validation,
)
from palate.simulators.validation.speaking import pairs
from palate.simulators.validation.surface import surface
from palate.simulators.validation.two_sample import two_sample
from palate.simulators.validation.verdict import verdict
from palate.validation_asking import Asked, AskedOfCondition, AskedOfPerson
from palate.validation_conditions import Condition
from palate.validation_likelihood import NO_EXTRA, Likelihoods
from palate.validation_setup import Person

NO_JUDGE = "no judge was asked (--no-judge)"
NO_PAIR = "there is no context where both the person and the simulator wrote something"
_VERSIONS = ("palate", "torch", "transformers", "peft", "scikit-learn")


class _Measured(TypedDict, total=False):
    spoken: Spoken
    likelihood: Likelihood
    two_sample: TwoSample
    surface: Surface
    leaving: Leaving
    fooling: Fooling
    consistency: Consistency


def validation(
    study: Study,
    everyone: Sequence[Person],
    asked: Asked,
    likelihoods: Likelihoods,
    judge: Judge | None,
    *,
    made_at: str,
) -> Validation:
    """All numbers and verdicts of a validation."""
    seed = study.content.protocol.seed
    return Validation(
        study=study.content.study.name,
        seed=seed,
        judge=None if judge is None else judge.model.name,
        persons=tuple(
            _person(person, asked.persons[person.user_id], likelihoods, judge, seed)
            for person in everyone
        ),
        own_against_others=likelihoods.matrix,
        attribution=_attribution(everyone, asked, seed),
        warnings=tuple(_warnings(everyone, asked, judge)),
        versions=_versions(),
        made_at=made_at,
    )


def _person(
    person: Person,
    asked: AskedOfPerson,
    likelihoods: Likelihoods,
    judge: Judge | None,
    seed: int,
) -> PersonResult:
    read = likelihoods.by_person.get(person.user_id, {})
    return PersonResult(
        user_id=person.user_id,
        language="zh" if person.language == "zh" else "en",
        training_sessions=len(person.training),
        held_out_sessions={item.session.session_id: item.sha256 for item in person.held_out},
        held_out_messages=sum(1 for context in person.everywhere if context.human),
        contexts=len(person.contexts),
        left_contexts=sum(context.left for context in person.contexts),
        conditions=tuple(
            _condition(
                person,
                condition,
                asked,
                read.get(condition.kind) or likelihoods.reason or condition.reason,
                likelihoods.matrix,
                judge,
                seed,
            )
            for condition in person.conditions
        ),
    )


def _condition(
    person: Person,
    condition: Condition,
    asked: AskedOfPerson,
    likelihood: Likelihood | str,
    matrix: OwnAgainstOthers | None,
    judge: Judge | None,
    seed: int,
) -> ConditionResult:
    found: _Measured = {}
    absent: dict[Measure, str] = {}
    if isinstance(likelihood, Likelihood):
        found["likelihood"] = likelihood
    else:
        absent["likelihood"] = likelihood or "it was not measured"
    of_condition = asked.conditions.get(condition.kind)
    if of_condition is None:
        why = condition.reason or "it was not asked"
        absent |= dict.fromkeys(("two_sample", "surface", "leaving", "fooling", "consistency"), why)
    else:
        found["spoken"] = of_condition.said.counts(len(person.contexts))
        _without_a_judge(person, of_condition, found, absent, seed)
        _with_a_judge(asked, of_condition, judge, found, absent, seed)
    simulator = condition.simulator
    result = ConditionResult(
        condition=condition.kind,
        model=condition.asked.model if condition.asked else None,
        adapter=simulator.record().adapter if simulator else None,
        absent=absent | {"verdict": _sentence(condition.reason or "It was not asked")},
        **found,
    )
    told = verdict(result, person.user_id, matrix)
    return ConditionResult.model_validate({**dict(result), "verdict": told, "absent": absent})


def _without_a_judge(
    person: Person,
    asked: AskedOfCondition,
    found: _Measured,
    absent: dict[Measure, str],
    seed: int,
) -> None:
    said = asked.said.first()
    both = pairs(person.contexts, said)
    if both:
        found["surface"] = surface(both, seed=seed)
    else:
        absent["surface"] = NO_PAIR
    try:
        found["two_sample"] = two_sample(both, seed=seed)
    except ImportError:
        absent["two_sample"] = NO_EXTRA
    made = decisions(person.contexts, said)
    if made:
        found["leaving"] = leaving(made, person.everywhere, seed=seed)
    else:
        absent["leaving"] = "it said nothing at any context"


def _with_a_judge(
    asked: AskedOfPerson,
    of_condition: AskedOfCondition,
    judge: Judge | None,
    found: _Measured,
    absent: dict[Measure, str],
    seed: int,
) -> None:
    if judge is None:
        absent["fooling"] = absent["consistency"] = NO_JUDGE
        return
    if of_condition.trials:
        found["fooling"] = fooling(of_condition.trials, judge, seed=seed)
    else:
        absent["fooling"] = NO_PAIR
    if of_condition.identity and asked.shown is not None:
        found["consistency"] = consistency(
            of_condition.identity,
            asked.ceiling,
            asked.control,
            judge,
            shown_messages=len(asked.shown.messages),
            seed=seed,
            no_control=asked.no_control,
        )
    else:
        absent["consistency"] = (
            NO_PAIR if asked.shown and asked.shown.messages else "no training message to know by"
        )


def _attribution(everyone: Sequence[Person], asked: Asked, seed: int) -> Attribution | None:
    """Among all persons; None without the extra."""
    messages: dict[Source, Mapping[str, Sequence[str]]] = {
        "human": {p.user_id: [c.human for c in p.everywhere if c.human] for p in everyone}
    }
    kinds = {kind: None for one in asked.persons.values() for kind in one.conditions}
    for kind in kinds:
        messages[kind] = {
            user: _words(one.conditions[kind])
            for user, one in asked.persons.items()
            if kind in one.conditions
        }
    try:
        return attribution({p.user_id: p.training for p in everyone}, messages, seed=seed)
    except ImportError:
        return None


def _words(asked: AskedOfCondition) -> list[str]:
    return [one.text for one in asked.said.first() if one.text]


def _warnings(everyone: Sequence[Person], asked: Asked, judge: Judge | None) -> list[str]:
    told = list(asked.warnings)
    for person in everyone:
        neutral = set(person.scenes.neutral) & {s.session_id for s in person.sessions()}
        if neutral:
            told.append(
                f"{len(neutral)} of {len(person.held_out)} held-out sessions of {person.user_id} "
                "are on cards that are nowhere to be found: there the simulator was told of no "
                "scenario."
            )
    if judge is not None and judge.model.name.startswith("local:"):
        told.append(
            f"The judge is {judge.model.name}, which judges no better than chance: what it says "
            "is shown, and does not count toward any verdict."
        )
    if asked.failures:
        told.append(
            f"{len(asked.failures)} calls did not come back and are missing here (the last: "
            f"{asked.failures[-1]}); the same command makes them again."
        )
    return told


def _sentence(reason: str) -> str:
    text = reason.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _versions() -> dict[str, str]:
    found = {}
    for name in _VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
