"""How sure a judge is of its scores, where it is asked: 1 (a guess) to 5 (certain).

A judge that answers in words may also abstain; its scores then count for nothing. A confidence that
is not given or cannot be read is None, and takes nothing from the scores. One that answers in
digits gives one digit more, whose expectation is its confidence; it cannot abstain.
"""

from __future__ import annotations

from palate.judging.questions import Question
from palate.judging.transcript import Form
from palate.judging.verdicts import Asked, read_verdict
from palate.judging.vocabulary import plain
from palate.lenient_json import BrokenJSONError, Pairs, Value, answers
from palate.prompts import load
from palate.prompts.rubric_text import Language
from palate.types import digest

CONFIDENCE = (Asked("confidence", ("certainty", "把握", "确信度", "置信度")),)
_ABSTAIN = frozenset(plain(word) for word in ("abstain", "abstained", "弃权"))
_DEPTH = 3  # of wrappers around the answer


def with_confidence(question: Question, language: Language, form: Form) -> Question:
    """The same question, with a request for the judge's confidence at its end."""
    note = load(confidence_file(form), language)
    gap = "\n\n" if form == "json" else "\n"
    return question._replace(
        user=f"{question.user}{gap}{note.text}",
        prompt=digest([question.prompt, note.sha256]),
        confidence=True,
    )


def confidence_file(form: Form) -> str:
    """The name of the prompt file that asks for confidence, without its language."""
    return "judge_confidence" if form == "json" else "judge_confidence_digits"


def read_confidence(completion: str) -> float | None:
    """The confidence in a judge's answer, 1..5; None where there is none to be read."""
    return read_verdict(completion, CONFIDENCE).overall


def abstains(completion: str) -> bool:
    """Whether the judge's answer says "abstain": true."""
    try:
        values = answers(completion)
    except BrokenJSONError:
        return False
    return any(_says_so(value, _DEPTH) for value in values)


def _says_so(value: Value, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(value, list):
        return any(_says_so(item, depth - 1) for item in value)
    if not isinstance(value, Pairs):
        return False
    return any(
        (plain(key) in _ABSTAIN and _is_true(item)) or _says_so(item, depth - 1)
        for key, item in value
    )


def _is_true(value: Value) -> bool:
    return value is True or (isinstance(value, str) and plain(value) in ("true", "yes", "是"))
