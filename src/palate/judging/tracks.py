"""Three-track judging (paper 3.3): from a trajectory to its judgements.

    personal   a reply and the user's reaction to it, by that user's rubric     1 score
    generic    the same reply without anything after it                        12 dimensions
    session    the whole transcript                                            11 dimensions

`wanted` says which verdicts a trajectory needs; `judge` gets one. A verdict that cannot be read is
a judgement too, unscored with its reason; only a call that does not come back is an error.
"""

from __future__ import annotations

from typing import Literal

from palate.judging.asking import Answer, Judge, ask, unscored
from palate.judging.questions import prompt_digest, turn_question
from palate.judging.sampling import Item, has_reaction, sample_replies, wanted
from palate.judging.sessions import ask_about_session
from palate.judging.subject import Rubrics, Subject
from palate.models.client import Purpose
from palate.types import Judgement

__all__ = [
    "Item",
    "Judge",
    "Rubrics",
    "Subject",
    "judge",
    "sample_replies",
    "wanted",
]

NO_REACTION = "no reaction"
NO_REPLY = "no reply"


async def judge(
    item: Item, subject: Subject, judge: Judge, *, reaction_shown: bool | None = None
) -> Judgement:
    """One verdict.

    `reaction_shown`: on a turn track, whether the judge sees the user's reaction; by default it
    does on the personal track and does not on the generic one. The other two combinations are
    conditions of the human-agreement study (paper, table 3). A session shows all of them.

    Raises:
        ModelError: a call did not come back; nothing is known then.
    """
    if item.track == "session":
        return await judge_session(subject, judge)
    assert item.reply is not None, f"a verdict of the {item.track} track is about a reply"
    if reaction_shown is None:
        reaction_shown = item.track == "personal"
    return await judge_reply(item.track, item.reply, subject, judge, reaction_shown=reaction_shown)


async def judge_reply(
    track: Literal["personal", "generic"],
    reply: int,
    subject: Subject,
    judge: Judge,
    *,
    reaction_shown: bool,
) -> Judgement:
    """The verdict on reply `reply` (from 0), unscored where the reaction to be shown is missing."""
    item = Item(track, reply)
    if reaction_shown and not has_reaction(subject.trajectory, reply):
        answer = _not_asked(item, subject, judge, NO_REACTION)
    else:
        question = turn_question(subject, track, reply, judge.form, reaction_shown=reaction_shown)
        answer = await ask(question, judge, _purpose(item, subject), subject.language)
    return _judgement(item, subject, judge, answer, reaction_shown)


async def judge_session(subject: Subject, judge: Judge) -> Judgement:
    """The verdict on the whole trajectory, unscored where the candidate wrote no reply."""
    item = Item("session", None)
    if not subject.trajectory.replies():
        answer = _not_asked(item, subject, judge, NO_REPLY)
    else:
        answer = await ask_about_session(subject, judge, _purpose(item, subject))
    return _judgement(item, subject, judge, answer, reaction_shown=True)


def _purpose(item: Item, subject: Subject) -> Purpose:
    return Purpose("judge", subject.trajectory.cell.key, item.reply, item.track)


def _not_asked(item: Item, subject: Subject, judge: Judge, reason: str) -> Answer:
    """A verdict for which there was nothing to ask; it costs no call."""
    return Answer(unscored(reason), prompt_digest(item.track, subject.language, judge.form))


def _judgement(
    item: Item, subject: Subject, judge: Judge, answer: Answer, reaction_shown: bool
) -> Judgement:
    verdict = answer.verdict
    return Judgement(
        cell=subject.trajectory.cell.key,
        track=item.track,
        reply=item.reply,
        trajectory=subject.digest,
        rubric=subject.rubrics.digests[item.track],
        prompt=answer.prompt,
        judge=judge.model.name,
        judge_revision=answer.revision,
        reaction_shown=reaction_shown,
        scores=verdict.scores,
        overall=verdict.overall,
        judge_overall=verdict.judge_overall,
        score_kind=judge.score_kind,
        unscored=verdict.unscored,
        flags=verdict.flags,
        reason=verdict.reason,
        raw=answer.raw,
        ignored=verdict.ignored,
        attempts=answer.attempts,
        usage=answer.usage,
    )
