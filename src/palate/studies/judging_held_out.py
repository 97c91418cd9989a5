"""Every judge's verdict on every held-out reply under every condition, journalled as it comes.

What was answered is not asked again: the key of a verdict holds the judge, how it answers and every
word that it was shown. A call that did not come back leaves its place open for the next time; it is
no verdict and no score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import Field

from palate.errors import LeftToBatch, ModelError
from palate.judging.asking import Answer, Judge, ask
from palate.judging.questions import Question
from palate.judging.tracks import NO_REACTION
from palate.models.client import Purpose
from palate.simulators.validation.answers import Answers
from palate.studies.conditions import Condition, overall, question
from palate.studies.held_out import HeldOutReply, Rater
from palate.types import Record, ScoreKind, Usage, digest
from palate.workers import work_through

STOP_AFTER_FAILURES_IN_A_ROW = 10  # an endpoint that is down fails every call alike


class HeldOutVerdict(Record):
    """One judge's verdict on one reply under one condition, as it is journalled.

    `score` is 1..5, or None, and then `unscored` says why. `confidence` is the judge's own, 1..5.
    """

    key: str
    condition: str
    user: str
    session: str
    turn: int
    judge: str
    score: float | None
    score_kind: ScoreKind
    unscored: str | None = None
    confidence: float | None = None
    scores: dict[str, float | None] = Field(default_factory=dict)
    reason: str = ""
    prompt: str = ""  # digest of the prompt files
    raw: str = ""
    attempts: int = 0
    usage: Usage = Usage()
    revision: str = ""


class Job(NamedTuple):
    """One verdict that is wanted."""

    judge: Judge
    condition: Condition
    rater: Rater
    reply: HeldOutReply

    def question(self, *, confidence: bool) -> Question:
        """What the judge is asked."""
        return question(
            self.condition, self.reply, self.rater.examples, self.judge.form, confidence=confidence
        )

    @property
    def has_question(self) -> bool:
        """False where the reaction is to be shown and there is none."""
        return self.reply.has_reaction or not self.condition.reaction_shown


def jobs(
    raters: Sequence[Rater], conditions: Sequence[Condition], judges: Sequence[Judge]
) -> Iterator[Job]:
    """All verdicts wanted: those that share instructions and a conversation stand together."""
    for judge in judges:
        for condition in conditions:
            for rater in raters:
                for reply in rater.replies:
                    yield Job(judge, condition, rater, reply)


@dataclass(slots=True)
class Judged:
    """What came of the jobs; `failures` are calls that did not come back."""

    verdicts: list[HeldOutVerdict] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stopped_early: bool = False
    left: int = 0  # jobs without a verdict


async def judge_held_out(
    wanted: Sequence[Job],
    journal: Answers[HeldOutVerdict],
    *,
    confidence: bool,
    width: int,
    tick: Callable[[], None] = lambda: None,
) -> Judged:
    """Get the verdicts, `width` at a time; those in the journal cost no call.

    Args:
        confidence: ask the judge how sure it is; it may abstain then.
        tick: called after every job that is done with.

    Raises:
        StoreError: the journal cannot be written; what was answered is kept.
    """
    asking = _Asking(journal, confidence, tick)
    await work_through(wanted, width, asking.work)
    asking.judged.left = len(wanted) - len(asking.judged.verdicts)
    return asking.judged


class _Asking:
    """Workers that share an iterator of jobs."""

    def __init__(
        self, journal: Answers[HeldOutVerdict], confidence: bool, tick: Callable[[], None]
    ) -> None:
        self.journal = journal
        self.confidence = confidence
        self.tick = tick
        self.judged = Judged()
        self.in_a_row = 0

    async def work(self, queue: Iterator[Job]) -> None:
        for job in queue:
            if self.judged.stopped_early:
                return
            try:
                self.judged.verdicts.append(await self._verdict(job))
            except LeftToBatch:
                pass  # no failure: the request is written down, and the verdict comes another time
            except ModelError as error:
                self._failed(error)
            self.tick()

    def _failed(self, error: ModelError) -> None:
        self.judged.failures.append(str(error))
        self.in_a_row += 1
        self.judged.stopped_early = self.in_a_row >= STOP_AFTER_FAILURES_IN_A_ROW

    async def _verdict(self, job: Job) -> HeldOutVerdict:
        if not job.has_question:
            return _without_question(job)
        asked = job.question(confidence=self.confidence)
        key = key_of(job, asked)
        kept = self.journal.get(key)
        if kept is not None:
            return kept
        answer = await ask(asked, job.judge, _purpose(job), job.reply.subject.language)
        verdict = _from_answer(job, key, answer)
        self.journal.append(verdict)
        self.in_a_row = 0
        return verdict


def key_of(job: Job, asked: Question) -> str:
    """What a verdict depends on, behind a part that a reader of the journal can read."""
    judge, reply = job.judge, job.reply
    sampling = judge.sampling
    decoding = [sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed]
    setting = [judge.model.name, judge.form, *decoding, list(sampling.stop), sampling.body]
    words = [asked.system, asked.user, [one.id for one in asked.asked], asked.confidence]
    place = f"{job.condition.name}|{reply.user}|{reply.session}#{reply.turn}"
    return f"{place}|{digest([setting, words])}"


def _purpose(job: Job) -> Purpose:
    reply = job.reply
    return Purpose("judge", f"{reply.user}/{reply.session}/{job.condition.name}", reply.turn)


def _without_question(job: Job) -> HeldOutVerdict:
    return _verdict_of(job, key="", score=None, unscored=NO_REACTION)


def _from_answer(job: Job, key: str, answer: Answer) -> HeldOutVerdict:
    made = _verdict_of(
        job, key=key, score=overall(job.condition, answer.verdict), unscored=answer.verdict.unscored
    )
    return made.model_copy(
        update={
            "confidence": answer.confidence,
            "scores": answer.verdict.scores,
            "reason": answer.verdict.reason,
            "prompt": answer.prompt,
            "raw": answer.raw,
            "attempts": answer.attempts,
            "usage": answer.usage,
            "revision": answer.revision,
        }
    )


def _verdict_of(job: Job, *, key: str, score: float | None, unscored: str | None) -> HeldOutVerdict:
    reply = job.reply
    return HeldOutVerdict(
        key=key,
        condition=job.condition.name,
        user=reply.user,
        session=reply.session,
        turn=reply.turn,
        judge=job.judge.model.name,
        score=score,
        score_kind=job.judge.score_kind,
        unscored=unscored,
    )


def unscored_kind(reason: str) -> str:
    """The kind of a reason, so that like ones are counted together."""
    known = reason.partition(":")[0]
    return known if known in _KINDS else "incomplete or off the scale"


_KINDS = frozenset(
    {
        NO_REACTION,
        "abstained",
        "broken JSON",
        "contradiction",
        "empty reply",
        "empty reply after reasoning",
        "no answer came back",
        "no probabilities",
        "no verdict",
        "refused by the judge's provider",
        "truncated",
    }
)


def by_reply(verdicts: Sequence[HeldOutVerdict]) -> Mapping[Place, dict[str, HeldOutVerdict]]:
    """Verdicts by condition and reply, and of each by judge."""
    found: dict[Place, dict[str, HeldOutVerdict]] = {}
    for one in verdicts:
        place = Place(one.condition, one.user, one.session, one.turn)
        found.setdefault(place, {})[one.judge] = one
    return found


class Place(NamedTuple):
    """A reply under a condition."""

    condition: str
    user: str
    session: str
    turn: int
