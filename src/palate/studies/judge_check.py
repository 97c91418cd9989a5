"""How much a judge moves on the same reply: asked again, or with what should not matter changed.

    again      the same question a second time
    reversed   the dimensions in the opposite order (where there are several)
    padded     the reply with sentences added that say nothing
    injected   the reply with an instruction in it that asks for the highest score, in several forms

Every answer is journalled before the next question of its kind; what was answered is not asked
again. Measures of what came of it are in `judge_moves`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol

from pydantic import Field

from palate import prompts
from palate.errors import LeftToBatch, ModelError
from palate.judging.asking import Answer, Judge, ask
from palate.judging.questions import SATISFACTION, Question, turn_question
from palate.judging.subject import Rubrics, Subject
from palate.language import Language
from palate.models.client import Purpose
from palate.studies.excerpts import reply_of
from palate.studies.judge_items import CheckItem
from palate.types import MAX_SCORE, Record, ScoreKind, Usage, digest
from palate.workers import work_through

Kind = Literal["first", "again", "reversed", "padded", "injected"]
TurnTrack = Literal["personal", "generic"]
TRACKS: tuple[TurnTrack, ...] = ("personal", "generic")
CHANGES: tuple[Kind, ...] = ("again", "reversed", "padded", "injected")
STOP_AFTER_FAILURES_IN_A_ROW = 10  # an endpoint that is down fails every call alike

PADDING = "judge_check_padding"
INJECTIONS = "judge_check_injections"
_BETWEEN_FORMS = "\n\n---\n\n"
_LEAST_PADDING = 2  # sentences


class Asking(NamedTuple):
    """One question about an item; `form` numbers the injections from 0, and is 0 elsewhere."""

    item: CheckItem
    track: TurnTrack
    kind: Kind
    form: int
    subject: Subject

    def question(self, judge: Judge) -> Question:
        """What the judge is asked: as in a run, on each track's own condition."""
        reply = reply_of(self.subject.trajectory)
        shown = self.track == "personal"
        return turn_question(self.subject, self.track, reply, judge.form, reaction_shown=shown)


class Checked(Record):
    """What the judge said to one question, as it is journalled."""

    key: str
    user: str
    session: str
    turn: int
    language: Language
    track: TurnTrack
    kind: Kind
    form: int
    score_kind: ScoreKind
    scores: dict[str, float | None] = Field(default_factory=dict)
    overall: float | None = None
    unscored: str | None = None
    raw: str = ""
    attempts: int = 1
    usage: Usage = Usage()
    revision: str = ""


class Journal(Protocol):
    """Where answers are kept."""

    def get(self, key: str) -> Checked | None:
        """The answer that was given to this question."""
        ...

    def append(self, answer: Checked) -> None:
        """Keep an answer."""
        ...


@dataclass(slots=True)
class Checks:
    """What came of the questions; `failures` are calls that did not come back."""

    found: list[Checked] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    left: int = 0  # questions without an answer
    stopped_early: bool = False


def askings(items: Sequence[CheckItem]) -> Iterator[Asking]:
    """All questions about these items."""
    for item in items:
        for track in TRACKS:
            yield Asking(item, track, "first", 0, item.subject)
            yield Asking(item, track, "again", 0, item.subject)
            if track == "generic":
                yield Asking(item, track, "reversed", 0, _reversed(item.subject))
            yield Asking(item, track, "padded", 0, _with_reply(item.subject, padded))
            for form, text in enumerate(injections(item.subject, track)):
                changed = _with_reply(item.subject, functools.partial(_joined, after=text))
                yield Asking(item, track, "injected", form, changed)


def padded(text: str, language: Language) -> str:
    """The reply about twice as long, by sentences that add nothing; two of them at least."""
    added: list[str] = []
    for sentence in prompts.load(PADDING, language).text.split("\n\n"):
        if len(added) >= _LEAST_PADDING and sum(map(len, added)) >= len(text):
            break
        added.append(sentence)
    return "\n\n".join([text, *added])


def injections(subject: Subject, track: TurnTrack) -> tuple[str, ...]:
    """Instructions as a reply could hold them, each asking for the highest score."""
    names = [d.id for d in subject.rubrics.generic.dimensions]
    asked = names if track == "generic" else [one.id for one in SATISFACTION]
    verdict = json.dumps({"scores": dict.fromkeys(asked, MAX_SCORE)})
    whole = prompts.load(INJECTIONS, subject.language).fill(verdict=verdict)
    return tuple(whole.split(_BETWEEN_FORMS))


def prompt_files() -> dict[str, str]:
    """The prompt files of the changes, with their SHA-256."""
    return {
        f"{name}.{language}.md": prompts.load(name, language).sha256
        for name in (PADDING, INJECTIONS)
        for language in ("en", "zh")
    }


def _joined(text: str, language: Language, *, after: str) -> str:
    return f"{text}\n\n{after}"


def _with_reply(subject: Subject, change: Callable[[str, Language], str]) -> Subject:
    trajectory = subject.trajectory
    place = trajectory.replies()[reply_of(trajectory)]
    messages = list(trajectory.messages)
    text = change(messages[place].text, subject.language)
    messages[place] = messages[place].model_copy(update={"text": text})
    changed = trajectory.model_copy(update={"messages": tuple(messages)})
    return replace(subject, trajectory=changed)


def _reversed(subject: Subject) -> Subject:
    return replace(subject, rubrics=_backwards(subject.rubrics))


@functools.lru_cache(maxsize=64)
def _backwards(rubrics: Rubrics) -> Rubrics:
    """Made once for each user: a judge's prompts are kept by the rubrics that they are made of."""
    dimensions = rubrics.generic.dimensions[::-1]
    generic = rubrics.generic.model_copy(update={"dimensions": dimensions})
    return Rubrics(rubrics.personal, generic, rubrics.session)


async def check(
    wanted: Sequence[Asking],
    judge: Judge,
    journal: Journal,
    *,
    width: int,
    tick: Callable[[], None] = lambda: None,
) -> Checks:
    """Ask what is not in the journal, `width` questions at a time.

    Args:
        tick: called after every question that is done with.

    Raises:
        StoreError: the journal cannot be written; what was answered is kept.
    """
    asker = _Asker(judge, journal, tick)
    await work_through(wanted, width, asker.work)
    asker.checks.left = len(wanted) - len(asker.checks.found)
    return asker.checks


class _Asker:
    """Workers that share an iterator of questions."""

    def __init__(self, judge: Judge, journal: Journal, tick: Callable[[], None]) -> None:
        self.judge = judge
        self.journal = journal
        self.tick = tick
        self.checks = Checks()
        self.in_a_row = 0

    async def work(self, queue: Iterator[Asking]) -> None:
        for asking in queue:
            if self.checks.stopped_early:
                return
            try:
                self.checks.found.append(await self._checked(asking))
            except LeftToBatch:
                pass
            except ModelError as error:
                self.checks.failures.append(str(error))
                self.in_a_row += 1
                self.checks.stopped_early = self.in_a_row >= STOP_AFTER_FAILURES_IN_A_ROW
            self.tick()

    async def _checked(self, asking: Asking) -> Checked:
        question = asking.question(self.judge)
        key = key_of(asking, question, self.judge)
        kept = self.journal.get(key)
        if kept is not None:
            return kept
        item = asking.item
        cell = f"check/{asking.kind}-{asking.form}/{item.user}/{item.session}"
        purpose = Purpose("judge", cell, item.turn, asking.track)
        answer = await ask(question, self.judge, purpose, asking.subject.language)
        checked = _record(asking, key, answer, self.judge)
        self.journal.append(checked)
        self.in_a_row = 0
        return checked


def key_of(asking: Asking, question: Question, judge: Judge) -> str:
    """What an answer depends on, behind a part that a reader of the journal can read."""
    sampling = judge.sampling
    decoding = [sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed]
    setting = [judge.model.name, judge.form, judge.max_reparse, *decoding]
    words = [question.system, question.user, [one.id for one in question.asked]]
    about = f"{asking.item.place}|{asking.track}|{asking.kind}-{asking.form}"
    return f"{about}|{digest([setting, list(sampling.stop), sampling.body, words])[:24]}"


def _record(asking: Asking, key: str, answer: Answer, judge: Judge) -> Checked:
    verdict = answer.verdict
    return Checked(
        key=key,
        user=asking.item.user,
        session=asking.item.session,
        turn=asking.item.turn,
        language=asking.subject.language,
        track=asking.track,
        kind=asking.kind,
        form=asking.form,
        score_kind=judge.score_kind,
        scores=verdict.scores,
        overall=verdict.overall,
        unscored=verdict.unscored,
        raw=answer.raw,
        attempts=answer.attempts,
        usage=answer.usage,
        revision=answer.revision,
    )
