"""What a validation is made with: persons, their held-out contexts, and who is asked there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from palate.config import Study, UserSection
from palate.errors import InputError
from palate.histories import HeldOutSession
from palate.models.client import ChatMessage, Model
from palate.models.spec import ModelSpec
from palate.prepare import judge_form, sampling, split_of
from palate.roleplay import Seat, prompt_for
from palate.scenes import Scenes, scenes_of
from palate.seats import OpensModels, open_simulator
from palate.simulators import Simulator
from palate.simulators.facts import language_of
from palate.simulators.validation.asking import Judge
from palate.simulators.validation.contexts import Context, contexts
from palate.simulators.validation.records import CONDITIONS
from palate.simulators.validation.speaking import Voice
from palate.types import Scene, Session, SimulatorKind, TrainingSession
from palate.validation_conditions import Condition, conditions_of


@dataclass(frozen=True)
class Options:
    """What `palate simulator validate` was asked for.

    `contexts` are at most so many a person, None for all; `base` is the model of the conditions
    without an adapter, where the study does not say it; `likelihood_tokens` of held-out sessions a
    person are measured, 0 for none.
    """

    users: tuple[str, ...] = ()
    conditions: tuple[SimulatorKind, ...] = CONDITIONS
    contexts: int | None = 60
    judged: bool = True
    likelihood_tokens: int = 20_000
    base: str | None = None
    device: str = "auto"
    out: Path | None = None


@dataclass(frozen=True)
class Person:
    """One user of the study: what was learned from, what is held out, and what is compared.

    `everywhere` are all held-out contexts, `contexts` those that are asked about.
    """

    section: UserSection
    language: str
    training: tuple[TrainingSession, ...]
    held_out: tuple[HeldOutSession, ...]
    everywhere: tuple[Context, ...]
    contexts: tuple[Context, ...]
    conditions: tuple[Condition, ...]
    scenes: Scenes
    originals: dict[str, Session]

    @property
    def user_id(self) -> str:
        """The user's id in the study."""
        return self.section.id

    def sessions(self) -> list[Session]:
        """The held-out sessions, without ratings."""
        return [item.session for item in self.held_out]

    def scene(self, session_id: str) -> Scene:
        """What the user saw of the card.

        Of the session as the history has it: the split leaves out what importers keep beside it,
        and with that the name of a character without a card.
        """
        return self.scenes(self.originals[session_id])


def persons(study: Study, options: Options) -> tuple[Person, ...]:
    """The persons that are validated, all of the study unless some are named.

    Raises:
        InputError: a user is unknown, or has no history that can be split.
    """
    known = {user.id: user for user in study.content.users}
    for user_id in options.users:
        if user_id not in known:
            raise InputError(
                f"{study.file} has no user {user_id!r}; its users are {', '.join(known)}"
            )
    chosen = options.users or tuple(known)
    return tuple(_person(study, known[user_id], options) for user_id in dict.fromkeys(chosen))


def _person(study: Study, user: UserSection, options: Options) -> Person:
    sessions, parts = split_of(study, user)
    held_out = [item.session for item in parts.held_out]
    seed = study.content.protocol.seed
    return Person(
        section=user,
        language=language_of(parts.training),
        training=parts.training,
        held_out=parts.held_out,
        everywhere=tuple(contexts(held_out)),
        contexts=tuple(contexts(held_out, limit=options.contexts, seed=seed)),
        conditions=tuple(
            conditions_of(study, user, held_out, kinds=options.conditions, base=options.base)
        ),
        scenes=scenes_of(study, user),
        originals={session.session_id: session for session in sessions},
    )


def voices(person: Person, models: OpensModels) -> Iterator[Voice]:
    """Each condition that could be set up, ready to be asked."""
    for condition in person.conditions:
        if condition.asked is not None:
            yield _voice(person, condition.kind, condition.asked, models)


def _voice(person: Person, kind: SimulatorKind, simulator: Simulator, models: OpensModels) -> Voice:
    model = open_simulator(simulator, person.section, models)
    seats = {
        session.session_id: Seat(
            model, simulator.sampling, system=simulator.system(person.scene(session.session_id))
        )
        for session in person.sessions()
    }

    def prompt(context: Context) -> tuple[ChatMessage, ...]:
        # The opening is the first message of the session already.
        return prompt_for(seats[context.session_id], "user", "", context.history)

    return Voice(
        user_id=person.user_id,
        condition=kind,
        identity=simulator.record().digest(),
        model=model,
        sampling=simulator.sampling,
        prompt=prompt,
        seeded=ModelSpec.parse(simulator.model).provider == "local",
    )


def open_judge(study: Study, models: OpensModels) -> Judge:
    """The study's judge, with its form and decoding.

    Raises:
        InputError: its form is digits, and it returns no probabilities.
    """
    section = study.content.judge
    model: Model = models.open(section.model, headers=section.headers)
    return Judge(model, form=judge_form(study), sampling=sampling("judge", section))


def others(everyone: Sequence[Person], person: Person) -> dict[str, tuple[Context, ...]]:
    """The held-out contexts of the others who write in this person's language, by user."""
    return {
        other.user_id: other.everywhere
        for other in everyone
        if other.user_id != person.user_id and other.language == person.language
    }
