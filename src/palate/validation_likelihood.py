"""The likelihoods of a validation (paper 3.1): one base, loaded once, with every adapter on it.

Needs the weights on this machine and the extra train; where one is missing, the reason stands in
the place of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from palate.errors import InputError
from palate.simulators import Simulator
from palate.simulators.lora_prompt import lora_system
from palate.simulators.memory import memory_told
from palate.simulators.trained import BaseModelRecord, Trained
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.likelihood import (
    Meter,
    SessionNll,
    drawn,
    likelihoods,
    session_nlls,
)
from palate.simulators.validation.matrix import own_against_others
from palate.simulators.validation.measures import Likelihood, OwnAgainstOthers
from palate.types import Session, SimulatorKind
from palate.validation_setup import Options, Person

NO_EXTRA = "needs the extra train: pip install 'palate[train]'"
NOT_ASKED = "was not asked for (--likelihood-tokens 0)"
_LESS_MEMORY = (
    "read the held-out sessions with --device cpu or on a bigger machine, or leave likelihoods out "
    "with --likelihood-tokens 0; what was answered is kept"
)


@dataclass(frozen=True)
class Likelihoods:
    """By person and condition; `reason` says why there are none."""

    by_person: dict[str, dict[SimulatorKind, Likelihood]] = field(default_factory=dict)
    matrix: OwnAgainstOthers | None = None
    reason: str = ""


def likelihoods_of(
    everyone: Sequence[Person],
    options: Options,
    answers: Answers[SessionNll],
    *,
    seed: int,
    say: Callable[[str], None],
) -> Likelihoods:
    """Each person's held-out messages under each condition, and under everybody's adapter.

    Args:
        say: told in a sentence what is done next; loading and reading take minutes on a CPU.

    Raises:
        StoreError: the journal cannot be written.
        InputError: the memory does not suffice for a session alone.
    """
    if not options.likelihood_tokens:
        return Likelihoods(reason=NOT_ASKED)
    with memory_told(_LESS_MEMORY):
        return _read(everyone, options, answers, seed, say)


def _read(
    everyone: Sequence[Person],
    options: Options,
    answers: Answers[SessionNll],
    seed: int,
    say: Callable[[str], None],
) -> Likelihoods:
    trained = {p.user_id: found for p in everyone if (found := _trained(p)) is not None}
    try:
        base = _base(everyone, trained)
        say(f"Loading {base.name if isinstance(base, BaseModelRecord) else base} to read with.")
        meter = _meter(base, trained, options.device)
    except InputError as error:
        return Likelihoods(reason=str(error))
    except ImportError:
        return Likelihoods(reason=NO_EXTRA)
    return _measured(everyone, meter, options, answers, seed, say)


def _trained(person: Person) -> Trained | None:
    for condition in person.conditions:
        if condition.simulator is not None and condition.simulator.trained is not None:
            return condition.simulator.trained
    return None


def _base(everyone: Sequence[Person], trained: dict[str, Trained]) -> BaseModelRecord | str:
    """The base of all adapters, or the embedded model where nobody has one.

    Raises:
        InputError: adapters of several bases, or weights that are not on this machine.
    """
    bases = {(one.record.base.name, one.record.base.revision) for one in trained.values()}
    if len(bases) > 1:
        raise InputError(
            f"the adapters belong to {len(bases)} bases, and nats a token of one mean nothing on "
            "another; validate users of one base at a time with --user"
        )
    if trained:
        return next(iter(trained.values())).record.base
    models = {c.simulator.model for p in everyone for c in p.conditions if c.simulator}
    if len(models) == 1 and next(iter(models)).startswith("local:"):
        return models.pop()
    raise InputError("the weights are not on this machine, and nobody's adapter names any")


def _meter(base: BaseModelRecord | str, trained: dict[str, Trained], device: str) -> Meter:
    from palate.simulators.base_model import base_of, load_base
    from palate.simulators.precision import best_precision
    from palate.simulators.validation.meter import meter_of

    if isinstance(base, BaseModelRecord):
        loaded = base_of(base, device=device)
    else:
        loaded = load_base(base, device=device)
    return meter_of(loaded, trained, precision=best_precision(str(loaded.device)))


def _measured(
    everyone: Sequence[Person],
    meter: Meter,
    options: Options,
    answers: Answers[SessionNll],
    seed: int,
    say: Callable[[str], None],
) -> Likelihoods:
    by_person: dict[str, dict[SimulatorKind, Likelihood]] = {}
    matrix: dict[str, dict[str, list[SessionNll]]] = {}
    for person in everyone:
        sessions = drawn(person.sessions(), max_tokens=options.likelihood_tokens, seed=seed)
        say(f"Reading {len(sessions)} held-out sessions of {person.user_id}.")
        measured: dict[SimulatorKind, list[SessionNll]] = {}
        for kind, simulator in _simulators(person):
            measured[kind] = session_nlls(
                sessions,
                meter,
                _told(person, simulator),
                adapter=person.user_id if kind == "lora" else None,
                answers=answers,
            )
        by_person[person.user_id] = likelihoods(measured, seed=seed)
        if person.user_id in meter.adapters:
            matrix[person.user_id] = {
                other: session_nlls(
                    sessions, meter, _told_nothing(person), adapter=other, answers=answers
                )
                for other in meter.adapters
            }
    of_adapters = own_against_others(matrix, seed=seed) if matrix else None
    return Likelihoods(by_person, of_adapters)


def _simulators(person: Person) -> list[tuple[SimulatorKind, Simulator]]:
    return [(c.kind, c.simulator) for c in person.conditions if c.simulator is not None]


def _told(person: Person, simulator: Simulator) -> Callable[[Session], str]:
    return lambda session: simulator.system(person.scene(session.session_id))


def _told_nothing(person: Person) -> Callable[[Session], str]:
    """What every adapter is told: the scene, and nothing of the person."""
    return lambda session: lora_system(person.scene(session.session_id))
