"""The conditions of a validation (paper, Table 1): a person's simulators, or why there is none.

A condition that cannot be set up stays in the table with the reason: nobody reads a validation of
three conditions for one of four.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from palate.config import Study, UserSection
from palate.errors import InputError
from palate.models.spec import ModelSpec
from palate.prepare import PROFILE, sampling, simulator_folder, simulator_of
from palate.simulators import Simulator
from palate.simulators.trained import RECORD, read_trained
from palate.simulators.validation.records import CONDITIONS
from palate.types import Session, SimulatorKind


def conditions_named(text: str) -> tuple[SimulatorKind, ...]:
    """The conditions in a list with commas, each once, in the order of the table.

    Raises:
        InputError: one is not known.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in CONDITIONS]
    if unknown or not names:
        raise InputError(
            f"--conditions {text!r}: {unknown[0] if unknown else 'nothing'!r} is no condition; "
            f"choose from {', '.join(CONDITIONS)}"
        )
    return tuple(kind for kind in CONDITIONS if kind in names)


class Condition(NamedTuple):
    """One simulator of one person; `reason` says why it cannot be asked.

    One that no server holds can still be measured by its text and its weights; `simulator` is None
    where not even these are to be had. `shared` is the reason in words that do not name the person,
    where there are such: a plan says it once for everybody.
    """

    kind: SimulatorKind
    simulator: Simulator | None
    reason: str = ""
    shared: str = ""

    @property
    def asked(self) -> Simulator | None:
        """The simulator, if it can be asked."""
        return None if self.reason else self.simulator


class _NotMadeError(InputError):
    """The person's profile or adapter was never made; `shared` as in `Condition`."""

    def __init__(self, reason: str, shared: str) -> None:
        super().__init__(reason)
        self.shared = shared


def conditions_of(
    study: Study,
    user: UserSection,
    held_out: Sequence[Session],
    *,
    kinds: Sequence[SimulatorKind],
    base: str | None,
) -> Iterator[Condition]:
    """One user's simulators of these kinds; `base` is the model of those without an adapter."""
    for kind in CONDITIONS:
        if kind in kinds:
            try:
                condition = _condition(study, user, kind, base)
            except _NotMadeError as error:
                condition = Condition(kind, None, str(error), error.shared)
            except InputError as error:
                condition = Condition(kind, None, str(error))
            yield _without_leak(condition, held_out)


def _without_leak(condition: Condition, held_out: Sequence[Session]) -> Condition:
    """Nothing is proven on sessions that the simulator was made from (paper 3.1)."""
    learned = condition.simulator.record().training_sessions if condition.simulator else {}
    seen = sorted({session.session_id for session in held_out} & set(learned))
    if not seen:
        return condition
    why = f"it was made from sessions that are held out now ({', '.join(seen[:3])}); make it anew"
    return Condition(condition.kind, None, why)


def _condition(study: Study, user: UserSection, kind: SimulatorKind, base: str | None) -> Condition:
    """A simulator of this kind with the study's decoding.

    An adapter answers under the model that the study names for it; the other conditions are its
    base, which an adapter's server may hold under another name.
    """
    section = user.simulator
    if kind == "profile":
        _refuse_without_profile(study, user)
    if kind == section.kind:
        return _of_study(study, user)
    if kind == "lora":
        return _of_study(study, _with(user, kind, None))
    if base is not None or section.kind != "lora":
        return Condition(kind, simulator_of(study, _with(user, kind, base or section.model)))
    return _on_base(study, user, kind)


def _on_base(study: Study, user: UserSection, kind: SimulatorKind) -> Condition:
    """The base alone, of a user whose adapter the study names."""
    section = user.simulator
    if section.model is not None and section.base is not None:
        served = ModelSpec.parse(section.model).model_copy(update={"model": section.base})
        return Condition(kind, simulator_of(study, _with(user, kind, str(served))))
    _refuse_untrained(study, user)
    base = read_trained(simulator_folder(study, user), user_id=user.id).record.base.name
    simulator = simulator_of(study, _with(user, kind, base))
    if base.startswith("local:"):
        return Condition(kind, simulator)
    return Condition(
        kind,
        simulator,
        "the study names the model of the adapter alone; add base to the simulator, or name it as "
        f"a server holds it, for example --base openai:{base}@http://127.0.0.1:8000/v1",
    )


def _of_study(study: Study, user: UserSection) -> Condition:
    """The simulator as the study has it; an adapter that no server holds keeps its weights."""
    section = user.simulator
    if section.kind == "lora":
        _refuse_untrained(study, user)
    try:
        return Condition(section.kind, simulator_of(study, user))
    except InputError as error:
        if section.kind != "lora":
            raise
        trained = read_trained(simulator_folder(study, user), user_id=user.id)
        decoding = sampling("simulator", section)
        base = trained.record.base.name
        return Condition(
            "lora", Simulator(user.id, "lora", base, decoding, trained=trained), str(error)
        )


def _refuse_without_profile(study: Study, user: UserSection) -> None:
    path = simulator_folder(study, user) / PROFILE
    if not _absent(path):
        return
    command = _command(study, "profile")
    raise _NotMadeError(
        f"{path} does not exist; write it with `{command} {shlex.quote(user.id)}`",
        f"no profile was written; write one with `{command} USER`",
    )


def _refuse_untrained(study: Study, user: UserSection) -> None:
    folder = simulator_folder(study, user)
    if not _absent(folder / RECORD):
        return
    command = _command(study, "train")
    raise _NotMadeError(
        f"{folder} holds no finished training ({RECORD} is missing); train it with "
        f"`{command} {shlex.quote(user.id)}`, which takes up what is there",
        f"no adapter was trained; train one with `{command} USER`",
    )


def _absent(path: Path) -> bool:
    """What cannot be looked at is left to its reader, who says why."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def _command(study: Study, makes: str) -> str:
    """The command that makes what is missing, up to the user's id."""
    return f"palate simulator {makes} {shlex.quote(str(study.folder))} --user"


def _with(user: UserSection, kind: SimulatorKind, model: str | None) -> UserSection:
    changed = user.simulated_by(kind, model)
    return changed.model_copy(
        update={"simulator": changed.simulator.model_copy(update={"base": None})}
    )
