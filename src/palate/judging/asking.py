"""Putting a question to a judge, and what became of it.

The two forms never mix: "json" gives whole scores read from a verdict, "digits" gives expected
scores, the mean of 1..5 under the probabilities of one token. A judge in one form that answers in
the other is unscored, not converted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from palate.errors import InputError
from palate.judging.confidence import abstains, read_confidence
from palate.judging.questions import Question, schema
from palate.judging.transcript import Form
from palate.judging.verdicts import Verdict, mean, read_verdict
from palate.models.client import ChatMessage, Completion, Model, Purpose, Request, Sampling
from palate.types import MAX_SCORE, MIN_SCORE, ScoreKind, Usage

_DIGITS = "".join(str(score) for score in range(MIN_SCORE, MAX_SCORE + 1))

# Said at the end of the same question when the first answer held no readable verdict.
AGAIN = {
    "en": "Answer with the JSON object alone: every dimension once, no other text.",
    "zh": "只输出该 JSON 对象：每个维度各一次，不要任何其他文字。",
}


@dataclass(frozen=True)
class Judge:
    """A model in the seat of the judge.

    `form`: "json" for models that write a verdict; "digits" for models that return token
    probabilities and read slowly (short prompts, one digit a dimension).
    `max_reparse`: how often the same question is asked again after an answer without a readable,
    complete verdict; 0 or more.

    Raises:
        InputError: the digits form with a model that returns no probabilities.
    """

    model: Model
    form: Form = "json"
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0, max_tokens=1024))
    max_reparse: int = 1

    def __post_init__(self) -> None:
        if self.form == "digits" and not self.model.reads_digits:
            raise InputError(
                f'judge {self.model.name} returns no token probabilities, which form = "digits"'
                ' needs; set form = "json" under [judge]'
            )

    @property
    def score_kind(self) -> ScoreKind:
        """How the scores of this judge come about."""
        return "integer" if self.form == "json" else "expected"


class Answer(NamedTuple):
    """What became of a question: a verdict, and what it took.

    `prompt` is the digest of the prompt file behind it; `attempts` counts the calls. `confidence`
    is the judge's own, 1..5, where it was asked for and given.
    """

    verdict: Verdict
    prompt: str
    raw: str = ""
    attempts: int = 0
    usage: Usage = Usage()
    revision: str = ""
    confidence: float | None = None


async def ask(question: Question, judge: Judge, purpose: Purpose, language: str) -> Answer:
    """The judge's verdict on a question; `purpose.attempt` is that of the first call.

    Raises:
        ModelError: a call did not come back.
    """
    if judge.form == "digits":
        return await _ask_for_digits(question, judge, purpose)
    answer = Answer(unscored("not asked"), question.prompt)
    for again in range(judge.max_reparse + 1):
        note = f"\n\n{AGAIN[language]}" if again else ""
        completion = await judge.model.complete(
            Request(
                messages=_messages(question, note),
                sampling=judge.sampling,
                purpose=purpose._replace(attempt=purpose.attempt + again),
                json_schema=schema(question.asked, confidence=question.confidence),
                cache_prefix=1,
            )
        )
        verdict, final = _read(completion, question)
        answer = _counted(answer, completion, verdict, completion.text)
        if final:
            break
    if question.confidence and answer.verdict.unscored is None:
        return answer._replace(confidence=read_confidence(completion.text))
    return answer


async def ask_for_text(question: Question, judge: Judge, purpose: Purpose) -> Answer:
    """The judge's answer in prose, in `raw`; unscored says why there is none."""
    completion = await judge.model.complete(
        Request(
            messages=_messages(question),
            sampling=judge.sampling,
            purpose=purpose,
            cache_prefix=1,
        )
    )
    fault = _FAULTS.get(completion.status) or ("" if completion.text.strip() else "empty reply")
    verdict = unscored(fault) if fault else Verdict({}, None, None)
    return _counted(Answer(verdict, question.prompt), completion, verdict, completion.text)


def unscored(reason: str) -> Verdict:
    """A verdict without scores, and why."""
    return Verdict({}, None, reason)


def _messages(question: Question, note: str = "") -> tuple[ChatMessage, ...]:
    return (ChatMessage("system", question.system), ChatMessage("user", question.user + note))


ABSTAINED = "abstained"
_FAULTS = {
    "refused": "refused by the judge's provider",
    "length": "truncated",
    "empty": "empty reply",
    "empty_after_reasoning": "empty reply after reasoning",
}


def _read(completion: Completion, question: Question) -> tuple[Verdict, bool]:
    """The verdict, and whether it is final: a block or a cut would only repeat itself."""
    fault = _FAULTS.get(completion.status)
    if fault is not None:
        return unscored(fault), completion.status in ("refused", "length")
    if question.confidence and abstains(completion.text):
        return unscored(ABSTAINED), True
    verdict = read_verdict(completion.text, question.asked)
    return verdict, verdict.unscored is None


def _counted(before: Answer, completion: Completion, verdict: Verdict, raw: str) -> Answer:
    """`before` and one call more; the raw texts of all calls are kept."""
    raws = [text for text in (before.raw, raw) if text]
    return Answer(
        verdict,
        before.prompt,
        raw="\n\n=== asked again ===\n\n".join(raws),
        attempts=before.attempts + 1,
        usage=before.usage + completion.usage,
        revision=completion.model or before.revision,
    )


async def _ask_for_digits(question: Question, judge: Judge, purpose: Purpose) -> Answer:
    completion = await judge.model.complete(
        Request(
            messages=_messages(question),
            sampling=judge.sampling,
            purpose=purpose,
            digits=len(question.asked) + question.confidence,
            digit_choices=_DIGITS,
            cache_prefix=1,
        )
    )
    verdict = _expected(completion, question)
    answer = _counted(Answer(verdict, question.prompt), completion, verdict, _shown(completion))
    if question.confidence and verdict.unscored is None:
        return answer._replace(confidence=expectation(completion.digit_probabilities[-1]))
    return answer


def _expected(completion: Completion, question: Question) -> Verdict:
    """Expected scores; sparse dimensions were not asked for and are None."""
    if completion.status == "refused":
        return unscored(_FAULTS["refused"])
    found = completion.digit_probabilities
    if len(found) != len(question.asked) + question.confidence:
        return unscored("no probabilities")
    expected = [expectation(probabilities) for probabilities in found[: len(question.asked)]]
    if any(score is None for score in expected):
        return unscored("no probabilities")
    scores = dict(zip((d.id for d in question.asked), expected, strict=True))
    overall = mean(scores.values())
    return Verdict({**scores, **dict.fromkeys(question.unasked)}, overall, None)


def expectation(probabilities: Mapping[str, float]) -> float | None:
    """Σ p·score over the digits 1..5, renormalised; in 1..5. None where they have no weight."""
    weights = {digit: probabilities.get(digit, 0.0) for digit in _DIGITS}
    total = math.fsum(weights.values())
    if not (math.isfinite(total) and total > 0):
        return None
    return math.fsum(int(digit) * weight for digit, weight in weights.items()) / total


def _shown(completion: Completion) -> str:
    """The digits as written, and under each the probabilities of 1..5: the record of the score."""
    lines = [
        " ".join(f"{probabilities.get(digit, 0.0):.4f}" for digit in _DIGITS)
        for probabilities in completion.digit_probabilities
    ]
    return "\n".join([completion.text, *lines])
