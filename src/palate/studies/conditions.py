"""The conditions of the agreement study: what a judge is shown, and what its score is (Table 3).

    personal               the person's rubric, and the reaction to the reply
    personal-no-reaction   the rubric alone
    generic-with-reaction  twelve dimensions, and the reaction
    generic                twelve dimensions alone
    baseline               nine points of another benchmark, re-implemented
    examples               K replies that this person rated, not the rubric, and the reaction
    rubric+examples        both, and the reaction

The first five are the rows of the paper's table, in its order; the last two are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from palate.errors import InputError
from palate.judging.confidence import confidence_file, with_confidence
from palate.judging.questions import Question, track_file, turn_question
from palate.judging.study_questions import (
    RatedExample,
    baseline_file,
    baseline_question,
    examples_file,
    examples_question,
)
from palate.judging.transcript import Form
from palate.judging.verdicts import Verdict
from palate.prompts import load, sheet
from palate.rubrics.baseline import load_baseline
from palate.studies.excerpts import reply_of
from palate.studies.held_out import HeldOutReply

ConditionName = Literal[
    "personal",
    "personal-no-reaction",
    "generic-with-reaction",
    "generic",
    "baseline",
    "examples",
    "rubric+examples",
]


class Condition(NamedTuple):
    """One row of the table, and what it takes."""

    name: ConditionName
    reaction_shown: bool = False
    rubric: bool = False
    examples: bool = False


CONDITIONS: tuple[Condition, ...] = (
    Condition("personal", reaction_shown=True, rubric=True),
    Condition("personal-no-reaction", rubric=True),
    Condition("generic-with-reaction", reaction_shown=True),
    Condition("generic"),
    Condition("baseline"),
    Condition("examples", reaction_shown=True, examples=True),
    Condition("rubric+examples", reaction_shown=True, rubric=True, examples=True),
)
NAMES: tuple[ConditionName, ...] = get_args(ConditionName)


def conditions_named(text: str) -> tuple[Condition, ...]:
    """The conditions in a list with commas, each once, in the order of the table.

    Raises:
        InputError: one is not known, or there is none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise InputError(
            f"--conditions {text!r}: {unknown[0] if unknown else 'nothing'!r} is no condition; "
            f"choose from {', '.join(NAMES)}"
        )
    return tuple(one for one in CONDITIONS if one.name in names)


def question(
    condition: Condition,
    reply: HeldOutReply,
    examples: Sequence[RatedExample],
    form: Form,
    *,
    confidence: bool,
) -> Question:
    """What a judge is asked about a reply under this condition."""
    asked = _question(condition, reply, examples, form)
    return with_confidence(asked, reply.subject.language, form) if confidence else asked


def _question(
    condition: Condition, reply: HeldOutReply, examples: Sequence[RatedExample], form: Form
) -> Question:
    subject, number = reply.subject, reply_of(reply.subject.trajectory)
    shown = condition.reaction_shown
    if condition.examples:
        return examples_question(
            subject, number, form, examples, with_rubric=condition.rubric, reaction_shown=shown
        )
    if condition.name == "baseline":
        return baseline_question(subject, number, form, load_baseline().points)
    track: Literal["personal", "generic"] = "personal" if condition.rubric else "generic"
    return turn_question(subject, track, number, form, reaction_shown=shown)


def overall(condition: Condition, verdict: Verdict) -> float | None:
    """The score of a reply, 1..5, or None: the mean of the answered, the baseline's by weight."""
    if verdict.unscored is not None or condition.name != "baseline":
        return verdict.overall
    return load_baseline().overall(verdict.scores)


def prompt_files(condition: Condition, form: Form, *, confidence: bool) -> dict[str, str]:
    """Prompt file -> SHA-256 of what the condition asks with, in both languages."""
    if condition.examples:
        name = examples_file(form, with_rubric=condition.rubric)
    elif condition.name == "baseline":
        name = baseline_file(form)
    else:
        name = track_file("personal" if condition.rubric else "generic", form)
    files = {_file(name, tongue): sheet(name, tongue).sha256 for tongue in ("en", "zh")}
    if confidence:
        note = confidence_file(form)
        files |= {_file(note, tongue): load(note, tongue).sha256 for tongue in ("en", "zh")}
    return files


def _file(name: str, tongue: str) -> str:
    return f"{name}.{tongue}.md"
