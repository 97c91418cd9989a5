"""The calls of a validation: what simulators say at held-out contexts, and what the judge says.

Every answer is journalled before the next call for it is made, and what was answered is not asked
again. A call that did not come back leaves its place open, for the next time: it is no answer.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from palate.errors import ModelError, Stopped
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.asking import Heard, Judge
from palate.simulators.validation.consistency import (
    Known,
    Scored,
    Writer,
    controls,
    known,
    score_message,
)
from palate.simulators.validation.contexts import Context
from palate.simulators.validation.fooling import Judged, Trial, judge_trial
from palate.simulators.validation.likelihood import SessionNll
from palate.simulators.validation.speaking import Said, Utterance, Voice, all_of, speak
from palate.types import SimulatorKind
from palate.validation_setup import Person, others

T = TypeVar("T")

SPOKEN = "spoken.jsonl"


class Watch(Protocol):
    """Is told how far the asking has come."""

    def begins(self, user: str, what: str, /) -> None:
        """The next questions are about this person's simulator, or messages."""

    def answered(self) -> None:
        """One question more is done with."""


class Journals(NamedTuple):
    """The answers of a validation, in the files of its folder."""

    spoken: Answers[Utterance]
    judged: Answers[Heard]
    likelihood: Answers[SessionNll]

    def remarks(self) -> list[str]:
        """What of the files could not be read, a sentence each."""
        return [
            f"Damaged and left out: {one.damaged} of the lines of {one.path.name}; what they held "
            "is asked again where it is needed."
            for one in self
            if one.damaged
        ]


@contextmanager
def journals_in(folder: Path) -> Iterator[Journals]:
    """The journals of a validation's folder, open for this process alone.

    Raises:
        StoreError: another process writes there, or the disk does not take it.
    """
    with (
        Answers(folder / SPOKEN, Utterance) as spoken,
        Answers(folder / "judged.jsonl", Heard) as judged,
        Answers(folder / "likelihood.jsonl", SessionNll) as likelihood,
    ):
        yield Journals(spoken, judged, likelihood)


class AskedOfCondition(NamedTuple):
    """What one simulator said, and what the judge said of it; `identity` are scores 0..100."""

    said: Said
    trials: tuple[Judged, ...] = ()
    identity: tuple[Scored, ...] = ()


@dataclass(slots=True)
class AskedOfPerson:
    """A person's conditions, and the judge's scores of real messages beside them."""

    conditions: dict[SimulatorKind, AskedOfCondition] = field(default_factory=dict)
    shown: Known | None = None
    ceiling: tuple[Scored, ...] = ()
    control: tuple[Scored, ...] = ()
    no_control: str = ""


@dataclass(slots=True)
class Asked:
    """All answers of a validation; `failures` are calls that did not come back.

    `warnings`: what could not be read of earlier answers, and not be checked about the models.
    """

    persons: dict[str, AskedOfPerson] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def ask_all(
    everyone: Sequence[Person],
    speaking: Mapping[str, Sequence[Voice]],
    judge: Judge | None,
    journals: Journals,
    *,
    seed: int,
    watch: Watch,
) -> Asked:
    """Ask every simulator at every context, and the judge about what was said.

    One condition after another, all of its calls at once: an embedded server takes requests of one
    adapter together, and those of two one after the other.

    Args:
        watch: told of every question that is done with.

    Raises:
        Stopped: not one call to a simulator or to the judge came back.
        StoreError: a journal cannot be written.
    """
    asked = Asked(warnings=journals.remarks())
    asker = _Asker(everyone, journals, asked, seed, watch)
    for person in everyone:
        found = asked.persons[person.user_id] = AskedOfPerson()
        if judge is not None:
            watch.begins(person.user_id, "their own messages, judged")
            await asker.about_person(person, judge, found)
        for voice in speaking[person.user_id]:
            found.conditions[voice.condition] = await asker.condition(person, voice, judge, found)
    return asked


@dataclass(frozen=True, slots=True)
class _Asker:
    everyone: Sequence[Person]
    journals: Journals
    asked: Asked
    seed: int
    watch: Watch

    async def condition(
        self, person: Person, voice: Voice, judge: Judge | None, found: AskedOfPerson
    ) -> AskedOfCondition:
        """What one simulator says, and what the judge says of it."""
        self.watch.begins(person.user_id, voice.condition)
        said = await self.said(person, voice)
        if judge is None:
            return AskedOfCondition(said)
        self.watch.begins(person.user_id, f"{voice.condition}, judged")
        trials = await self.trials(person, voice.condition, said, judge)
        identity = await self.scores(person, found, _texts(said), voice.condition, judge)
        return AskedOfCondition(said, trials, identity)

    async def said(self, person: Person, voice: Voice) -> Said:
        """What a simulator says at the person's contexts."""
        said = await speak(
            voice,
            person.contexts,
            answers=self.journals.spoken,
            seed=self.seed,
            done=self.watch.answered,
        )
        self.asked.failures += [failure.reason for failure in said.failures]
        if said.failures and not said.utterances:
            raise _nothing_came(voice.model.name, said.failures[-1].reason)
        return said

    async def trials(
        self, person: Person, condition: SimulatorKind, said: Said, judge: Judge
    ) -> tuple[Judged, ...]:
        """The judge's choices between what was said and what the person wrote."""
        calls = [
            judge_trial(
                Trial(context, person.scene(context.session_id), text),
                judge,
                self.journals.judged,
                user_id=person.user_id,
                condition=condition,
            )
            for context, text in worded(person.contexts, _texts(said))
        ]
        return await self._back(calls, judge)

    async def about_person(self, person: Person, judge: Judge, found: AskedOfPerson) -> None:
        """The scores of the person's own messages, and of another's at the same contexts."""
        found.shown = known(person.training, seed=self.seed)
        real = {(c.session_id, c.turn): c.human for c in person.contexts}
        found.ceiling = await self.scores(person, found, real, "human", judge)
        foreign = controls(person.contexts, others(self.everyone, person), seed=self.seed)
        if not foreign:
            found.no_control = (
                f"nobody else is validated who writes in the same language ({person.language})"
            )
        found.control = await self.scores(person, found, foreign, "another", judge)

    async def scores(
        self,
        person: Person,
        found: AskedOfPerson,
        texts: Mapping[tuple[str, int], str],
        writer: Writer,
        judge: Judge,
    ) -> tuple[Scored, ...]:
        """The judge's scores of these messages, each at its context."""
        if found.shown is None or not found.shown.messages:
            return ()
        calls = [
            score_message(
                text,
                context,
                person.scene(context.session_id),
                found.shown,
                judge,
                self.journals.judged,
                writer=writer,
            )
            for context, text in worded(person.contexts, texts)
        ]
        return await self._back(calls, judge)

    async def _back(self, calls: Sequence[Coroutine[None, None, T]], judge: Judge) -> tuple[T, ...]:
        """What came back; what did not is kept among the failures."""

        async def one(call: Coroutine[None, None, T]) -> T | ModelError:
            try:
                return await call
            except ModelError as error:
                return error
            finally:
                self.watch.answered()

        outcomes = await all_of([one(call) for call in calls])
        failed = [outcome for outcome in outcomes if isinstance(outcome, ModelError)]
        self.asked.failures += [str(error) for error in failed]
        if failed and len(failed) == len(outcomes):
            raise _nothing_came(f"the judge {judge.model.name}", str(failed[-1]))
        return tuple(outcome for outcome in outcomes if not isinstance(outcome, ModelError))


def worded(
    contexts: Iterable[Context], texts: Mapping[tuple[str, int], str]
) -> list[tuple[Context, str]]:
    """Contexts where the person wrote and stayed, with the message to hold against theirs."""
    return [
        (context, text)
        for context in contexts
        if context.human
        and not context.left
        and (text := texts.get((context.session_id, context.turn), ""))
    ]


def _texts(said: Said) -> dict[tuple[str, int], str]:
    return {(one.session_id, one.turn): one.text for one in said.first()}


def _nothing_came(whom: str, why: str) -> Stopped:
    return Stopped(
        f"not one call to {whom} came back ({why}); mend it, then give the same command again"
    )
