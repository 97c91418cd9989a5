"""Questions about a reply that a run never asks: those of the human-agreement study (paper 4.3).

    examples_question   this person's ratings of earlier replies, with the rubric or in its place
    baseline_question   another benchmark's points, re-implemented

What is shared by many questions stands first, as in `questions`, for the sake of caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from palate import prompts
from palate.judging.questions import SATISFACTION, Question, filled, form_text
from palate.judging.subject import Subject
from palate.judging.transcript import MARK, Form, card_text, conversation, left, reaction
from palate.judging.verdicts import asked
from palate.language import tokens
from palate.prompts import rubric_text, sheet
from palate.prompts.rubric_text import Language
from palate.types import Dimension, Trajectory

# Of one message in an example, in tokens [choice]. The embedded model's slot holds 2,048.
MESSAGE_TOKENS: dict[Form, int] = {"json": 400, "digits": 40}
_RATED: dict[Language, str] = {
    "en": "This person's satisfaction with the character's message",
    "zh": "这个人对该角色消息的满意度",
}
_EXAMPLE: dict[Language, str] = {"en": "Example {number}:", "zh": "例 {number}："}
_COLON: dict[Language, str] = {"en": ": ", "zh": "："}


class RatedExample(NamedTuple):
    """A reply that the person rated 1..5, cut out of its session.

    `excerpt` holds the user's message before it, the reply, and the reaction where there was one.
    """

    excerpt: Trajectory
    satisfaction: int


def examples_question(
    subject: Subject,
    reply: int,
    form: Form,
    examples: Sequence[RatedExample],
    *,
    with_rubric: bool,
    reaction_shown: bool,
) -> Question:
    """How satisfied was this person, going by how they rated other replies?"""
    language = subject.language
    halves = sheet(examples_file(form, with_rubric=with_rubric), language)
    rubric = ""
    if with_rubric:
        assert subject.rubrics.personal is not None, "a rubric is to be shown, and there is none"
        text = rubric_text.personal_text(subject.rubrics.personal, language)
        rubric = prompts.fenced(MARK, text)
    system = filled(
        halves.system,
        rubric=rubric,
        examples=_examples_text(examples, language, form),
        form=form_text(SATISFACTION, language),
    )
    shown = reaction(subject.trajectory, reply, language) if reaction_shown else ""
    user = filled(
        halves.user,
        card=card_text(subject.card, "personal", form),
        transcript=_before(subject, reply, form),
        reaction=f"\n\n{shown}" if shown else "",
    )
    return Question(system, user, SATISFACTION, halves.sha256)


def baseline_question(
    subject: Subject, reply: int, form: Form, points: Sequence[Dimension]
) -> Question:
    """What is wrong with this reply on these points? Nothing after it is shown."""
    language = subject.language
    halves = sheet(baseline_file(form), language)
    dimensions = asked(points)
    lines = rubric_text.dimension_lines if form == "digits" else rubric_text.dimensions_text
    system = filled(
        halves.system,
        rubric=lines(points, language),
        form=form_text(dimensions, language),
        count=str(len(dimensions)),
    )
    user = filled(
        halves.user,
        card=card_text(subject.card, "generic", form, subject.lore),
        transcript=_before(subject, reply, form),
        count=str(len(dimensions)),
    )
    return Question(system, user, dimensions, halves.sha256)


def examples_file(form: Form, *, with_rubric: bool) -> str:
    """The name of the prompt file, without its language."""
    name = "judge_rubric_examples" if with_rubric else "judge_examples"
    return name if form == "json" else f"{name}_digits"


def baseline_file(form: Form) -> str:
    """The name of the prompt file, without its language."""
    return "judge_baseline" if form == "json" else "judge_baseline_digits"


def _before(subject: Subject, reply: int, form: Form) -> str:
    """The conversation up to the reply and with it."""
    trajectory = subject.trajectory
    seen = trajectory.messages[: trajectory.replies()[reply] + 1]
    return conversation(trajectory.opening, seen, subject.language, form)


def _examples_text(examples: Sequence[RatedExample], language: Language, form: Form) -> str:
    return "\n".join(
        _example(example, number, language, form) for number, example in enumerate(examples, 1)
    )


def _example(example: RatedExample, number: int, language: Language, form: Form) -> str:
    """The messages as data; number and rating are ours and stand outside their marks."""
    most = MESSAGE_TOKENS[form]
    messages = [
        message.model_copy(update={"text": _beginning(message.text, most)})
        for message in example.excerpt.messages
    ]
    return "\n".join(
        [
            _EXAMPLE[language].format(number=number),
            conversation("", messages, language, form),
            *left(example.excerpt, language),
            f"{_RATED[language]}{_COLON[language]}{example.satisfaction}",
        ]
    )


def _beginning(text: str, most: int) -> str:
    """The text, or as much of its beginning as fits into `most` tokens, as estimated."""
    size = tokens(text)
    return text if size <= most else text[: max(1, len(text) * most // size)].rstrip() + " …"
