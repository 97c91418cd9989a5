"""Judging a whole session (paper 3.3); long ones in parts, as `docs/method.md` lays down.

Up to 20 user turns a session is judged in one call. Longer ones are cut into parts of at most 20
turns, as equal as can be. Each part is scored on what a reader can only see close up (world and
time, variety); a session's score there is the mean over its parts. The other dimensions are scored
once, on the first and the last part in full and a summary of each part between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from palate.judging.asking import Answer, Judge, ask, ask_for_text, unscored
from palate.judging.questions import session_question, summary_question, whole_transcript
from palate.judging.subject import Subject
from palate.judging.transcript import MARK, conversation, left, part_heading
from palate.judging.verdicts import Verdict, asked, mean, names
from palate.judging.vocabulary import FLAGS, plain
from palate.models.client import Purpose
from palate.prompts import fenced
from palate.types import Dimension, Message, Usage, digest

PART_TURNS = 20  # user turns
CLOSE_UP = frozenset({"S7", "S10"})


class Part(NamedTuple):
    """Successive turns of a session: their messages, and the numbers of the user turns from 1."""

    messages: tuple[Message, ...]
    first: int
    last: int


async def ask_about_session(subject: Subject, judge: Judge, purpose: Purpose) -> Answer:
    """The judge's verdict on the whole session; `purpose.attempt` is that of the first call.

    Raises:
        ModelError: a call did not come back.
    """
    parts = split(subject.trajectory.messages)
    if len(parts) > 1:
        return await _LongSession(subject, judge, purpose, parts).ask()
    dimensions = subject.rubrics.session.dimensions
    transcript = whole_transcript(subject, judge.form)
    question = session_question(subject, dimensions, transcript, judge.form)
    return await ask(question, judge, purpose, subject.language)


def split(messages: Sequence[Message]) -> tuple[Part, ...]:
    """Parts of at most `PART_TURNS` user turns, each beginning with one, as equal as can be."""
    starts = [i for i, message in enumerate(messages) if message.speaker == "user"]
    count = max(1, -(-len(starts) // PART_TURNS))
    cuts = [len(starts) * k // count for k in range(count + 1)]
    bounds = [0, *(starts[cut] for cut in cuts[1:-1]), len(messages)]
    return tuple(
        Part(tuple(messages[bounds[k] : bounds[k + 1]]), cuts[k] + 1, cuts[k + 1])
        for k in range(count)
    )


class _NoVerdict(Exception):
    """A call gave nothing to go on with; the text says which and why. Never seen outside."""


@dataclass
class _LongSession:
    """One session in parts, and the calls made for it so far."""

    subject: Subject
    judge: Judge
    purpose: Purpose
    parts: tuple[Part, ...]
    calls: list[Answer] = field(default_factory=list)

    async def ask(self) -> Answer:
        """Each part close up, then the whole; a call that leaves a gap ends it."""
        try:
            verdict = await self._verdict()
        except _NoVerdict as gap:
            verdict = unscored(str(gap))
        return Answer(
            verdict,
            digest(sorted({call.prompt for call in self.calls})),
            raw="\n\n=== next call ===\n\n".join(call.raw for call in self.calls),
            attempts=sum(call.attempts for call in self.calls),
            usage=sum((call.usage for call in self.calls), Usage()),
            revision=self.calls[-1].revision,
        )

    async def _verdict(self) -> Verdict:
        dimensions = self.subject.rubrics.session.dimensions
        close = [d for d in dimensions if d.id in CLOSE_UP]
        wide = [d for d in dimensions if d.id not in CLOSE_UP]
        verdicts = []
        for part in self.parts if close else ():
            verdicts.append(await self._score(close, self._text(part), part))
        shown = []
        for part in self.parts:
            in_full = part in (self.parts[0], self.parts[-1])
            text = self._text(part) if in_full else fenced(MARK, await self._summary(part))
            shown.append(f"{self._heading(part, summary=not in_full)}\n{text}")
        verdicts.append(await self._score(wide, "\n\n".join(shown), None))
        return _merged(verdicts, dimensions)

    async def _score(self, dimensions: list[Dimension], text: str, part: Part | None) -> Verdict:
        question = session_question(self.subject, dimensions, text, self.judge.form)
        answer = await ask(question, self.judge, self._next(), self.subject.language)
        self.calls.append(answer)
        if answer.verdict.unscored is not None:
            raise _NoVerdict(_placed(answer.verdict.unscored, part))
        return answer.verdict

    async def _summary(self, part: Part) -> str:
        question = summary_question(self.subject, self._text(part), self.judge.form)
        answer = await ask_for_text(question, self.judge, self._next())
        self.calls.append(answer)
        if answer.verdict.unscored is not None:
            raise _NoVerdict(_placed(f"no summary, {answer.verdict.unscored}", part))
        return answer.raw

    def _next(self) -> Purpose:
        """Every call for this verdict has a number of its own, so that a script can tell them."""
        made = sum(call.attempts for call in self.calls)
        return self.purpose._replace(attempt=self.purpose.attempt + made)

    def _text(self, part: Part) -> str:
        """The part as it was spoken; the opening before the first, the leaving after the last."""
        trajectory, language = self.subject.trajectory, self.subject.language
        opening = trajectory.opening if part is self.parts[0] else ""
        spoken = conversation(opening, part.messages, language, self.judge.form)
        ending = left(trajectory, language) if part is self.parts[-1] else []
        return "\n".join([spoken, *ending])

    def _heading(self, part: Part, *, summary: bool) -> str:
        return part_heading(part.first, part.last, self.subject.language, summary=summary)


def _placed(fault: str, part: Part | None) -> str:
    return fault if part is None else f"turns {part.first} to {part.last}: {fault}"


def _merged(verdicts: Sequence[Verdict], dimensions: Sequence[Dimension]) -> Verdict:
    """One verdict out of those on the parts and on the whole; parts count alike."""
    scores = {
        d.id: mean(verdict.scores[d.id] for verdict in verdicts if d.id in verdict.scores)
        for d in dimensions
    }
    raised = {flag for verdict in verdicts for flag in verdict.flags}
    known = names(asked(dimensions))
    ignored = (name for verdict in verdicts for name in verdict.ignored if plain(name) not in known)
    return Verdict(
        scores=scores,
        overall=mean(scores.values()),
        unscored=None,
        reason="\n".join(verdict.reason for verdict in verdicts if verdict.reason),
        flags=tuple(flag for flag in FLAGS if flag in raised),
        ignored=tuple(dict.fromkeys(ignored)),
    )
