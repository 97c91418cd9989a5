"""The likelihoods of a validation (paper 3.1): one base, loaded once, with every adapter on it.

Needs the weights on this machine and the extra train; where one is missing, the reason stands in
the place of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console

from palate.errors import InputError
from palate.language import tokens
from palate.report.plain import say
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
from palate.validation_view import StepsView

NO_EXTRA = "needs the extra train: pip install 'palate[train]'"
NOT_ASKED = "was not asked for (--likelihood-tokens 0)"
_LESS_MEMORY = (
    "read the held-out sessions with --device cpu or on a bigger machine, or leave likelihoods out "
    "with --likelihood-tokens 0"
)


@dataclass(frozen=True)
class Likelihoods:
    """By person and condition; `reason` says why there are none."""

    by_person: dict[str, dict[SimulatorKind, Likelihood]] = field(default_factory=dict)
    matrix: OwnAgainstOthers | None = None
    reason: str = ""


class ToRead(NamedTuple):
    """What is read of one person: held-out sessions under so many texts and so many adapters.

    The person's own adapter is one of these, and its condition is no text besides: what an adapter
    is told is the same for all of them.
    """

    person: Person
    sessions: list[Session]
    texts: int
    adapters: int

    @property
    def times(self) -> int:
        """How often each session is read."""
        return self.texts + self.adapters

    @property
    def tokens(self) -> int:
        """Of the sessions once, estimated from their characters."""
        return sum(tokens(turn.text) for session in self.sessions for turn in session.turns)


def to_read(everyone: Sequence[Person], options: Options, *, seed: int) -> list[ToRead]:
    """The sessions of each person, and how often they are read; nothing is loaded for it."""
    trained = _all_trained(everyone)
    return [
        ToRead(
            person,
            drawn(person.sessions(), max_tokens=options.likelihood_tokens, seed=seed),
            sum(simulator.trained is None for _, simulator in _simulators(person)),
            len(trained) if person.user_id in trained else 0,
        )
        for person in everyone
    ]


def why_none(everyone: Sequence[Person], options: Options) -> str:
    """Why there will be no likelihoods, as far as it shows without loading a model; else ""."""
    if not options.likelihood_tokens:
        return NOT_ASKED
    try:
        _base(everyone, _all_trained(everyone))
    except InputError as error:
        return str(error)
    return ""


def likelihoods_of(
    everyone: Sequence[Person],
    options: Options,
    answers: Answers[SessionNll],
    *,
    seed: int,
    console: Console,
) -> Likelihoods:
    """Each person's held-out messages under each condition, and under everybody's adapter.

    Args:
        console: where it says what is being done; loading and reading take minutes on a CPU.

    Raises:
        StoreError: the journal cannot be written.
    """
    reason = why_none(everyone, options)
    if reason:
        return Likelihoods(reason=reason)
    try:
        with memory_told(_LESS_MEMORY):
            return _read(everyone, options, answers, seed, console)
    except InputError as error:
        return Likelihoods(reason=str(error))


def _read(
    everyone: Sequence[Person],
    options: Options,
    answers: Answers[SessionNll],
    seed: int,
    console: Console,
) -> Likelihoods:
    trained = _all_trained(everyone)
    base = _base(everyone, trained)
    say(
        f"Loading {base.name if isinstance(base, BaseModelRecord) else base} to read with.", console
    )
    try:
        meter = _meter(base, trained, options.device)
    except ImportError:
        return Likelihoods(reason=NO_EXTRA)
    found = to_read(everyone, options, seed=seed)
    total = sum(len(one.sessions) * one.times for one in found)
    with StepsView(console, "Reading", total, f"of {total:,} readings of sessions") as view:
        return measured(found, meter, answers, seed, view)


def _all_trained(everyone: Sequence[Person]) -> dict[str, Trained]:
    return {p.user_id: found for p in everyone if (found := _trained(p)) is not None}


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


def measured(
    everyone: Sequence[ToRead],
    meter: Meter,
    answers: Answers[SessionNll],
    seed: int,
    view: StepsView,
) -> Likelihoods:
    """Everybody's sessions read with this meter, which has the adapters of all."""
    by_person: dict[str, dict[SimulatorKind, Likelihood]] = {}
    matrix: dict[str, dict[str, list[SessionNll]]] = {}
    reader = _Reader(meter, answers, view)
    for one in everyone:
        person = one.person
        under = {
            kind: reader.nlls(
                one, _told(person, simulator), person.user_id if kind == "lora" else None, kind
            )
            for kind, simulator in _simulators(person)
        }
        by_person[person.user_id] = likelihoods(under, seed=seed)
        if person.user_id in meter.adapters:
            matrix[person.user_id] = {
                other: under["lora"]
                if other == person.user_id
                else reader.nlls(one, _told_nothing(person), other, f"adapter of {other}")
                for other in meter.adapters
            }
    of_adapters = own_against_others(matrix, seed=seed) if matrix else None
    return Likelihoods(by_person, of_adapters)


class _Reader(NamedTuple):
    """Reads a person's sessions, and says how far it is."""

    meter: Meter
    answers: Answers[SessionNll]
    view: StepsView

    def nlls(
        self, one: ToRead, system: Callable[[Session], str], adapter: str | None, what: str
    ) -> list[SessionNll]:
        """The sessions under this text and adapter; `what` names the two."""
        self.view.begins(one.person.user_id, what)
        told = 0

        def done(sessions: int) -> None:
            # The first that `session_nlls` tells of are those that were read by an earlier call.
            nonlocal told
            told += 1
            self.view.add(sessions, kept=told == 1)

        return session_nlls(
            one.sessions, self.meter, system, adapter=adapter, answers=self.answers, done=done
        )


def _simulators(person: Person) -> list[tuple[SimulatorKind, Simulator]]:
    return [(c.kind, c.simulator) for c in person.conditions if c.simulator is not None]


def _told(person: Person, simulator: Simulator) -> Callable[[Session], str]:
    return lambda session: simulator.system(person.scene(session.session_id))


def _told_nothing(person: Person) -> Callable[[Session], str]:
    """What every adapter is told: the scene, and nothing of the person."""
    return lambda session: lora_system(person.scene(session.session_id))
