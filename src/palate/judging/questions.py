"""What a judge is asked (paper 3.3): the prompt of one verdict, in an order made for caching.

The system message holds the instructions and the rubric and is the same for all trajectories of a
user and a language; the user message begins with the card and the transcript, which the replies
of one trajectory share, and ends with what to score. Both come from one prompt file, split at a
line of equals signs before it is filled, so that no text can move the split.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from palate import prompts
from palate.judging.subject import Rubrics, Subject
from palate.judging.transcript import MARK, Form, card_text, conversation, left, reaction
from palate.judging.verdicts import Asked, asked
from palate.judging.vocabulary import FLAGS
from palate.prompts import Prompt, rubric_text, sheet
from palate.prompts.rubric_text import Language
from palate.types import Dimension, Track

SATISFACTION = (Asked("satisfaction", ("满意度", "score", "rating", "评分", "分数", "打分")),)


class Question(NamedTuple):
    """One prompt, and the dimensions whose scores are expected in return.

    `unasked`: sparse dimensions that the digits form leaves out; they are recorded as None.
    `confidence`: the judge is asked how sure it is, and may abstain (`palate.judging.confidence`).
    """

    system: str
    user: str
    asked: tuple[Asked, ...]
    prompt: str  # SHA-256 of the prompt file
    unasked: tuple[str, ...] = ()
    confidence: bool = False


def turn_question(
    subject: Subject,
    track: Literal["personal", "generic"],
    reply: int,
    form: Form,
    *,
    reaction_shown: bool,
) -> Question:
    """How good was this reply, for this person or in general? Nothing after the reply is shown,
    save its reaction where asked for: the personal track's condition, and one of the studies'.
    """
    wanted = _ids(subject.rubrics.generic.dimensions) if track == "generic" else ()
    system = _system(subject.rubrics, track, wanted, subject.language, form)
    upto = subject.trajectory.replies()[reply] + 1
    seen = subject.trajectory.messages[:upto]
    shown = reaction(subject.trajectory, reply, subject.language) if reaction_shown else ""
    user = filled(
        sheet(track_file(track, form), subject.language).user,
        card=card_text(subject.card, track, form, subject.lore),
        transcript=conversation(subject.trajectory.opening, seen, subject.language, form),
        reaction=f"\n\n{shown}" if shown else "",
        count=str(len(system.asked)),
    )
    return Question(system.text, user, system.asked, system.prompt, system.unasked)


def session_question(
    subject: Subject, dimensions: Sequence[Dimension], transcript: str, form: Form
) -> Question:
    """How did the character do over the conversation in `transcript`, on these dimensions?"""
    system = _system(subject.rubrics, "session", _ids(dimensions), subject.language, form)
    user = filled(
        sheet(track_file("session", form), subject.language).user,
        card=card_text(subject.card, "session", form, subject.lore),
        transcript=transcript,
        count=str(len(system.asked)),
    )
    return Question(system.text, user, system.asked, system.prompt, system.unasked)


def summary_question(subject: Subject, transcript: str, form: Form) -> Question:
    """What must a later reader know of this part of a long conversation? Answered in prose."""
    halves = sheet("judge_session_summary", subject.language)
    card = card_text(subject.card, "session", form, subject.lore)
    user = halves.user.fill(card=card, transcript=transcript)
    return Question(halves.system.fill(), user, (), halves.sha256)


def whole_transcript(subject: Subject, form: Form) -> str:
    """The conversation from the opening to its end, with our words where the user left."""
    trajectory = subject.trajectory
    spoken = conversation(trajectory.opening, trajectory.messages, subject.language, form)
    return "\n".join([spoken, *left(trajectory, subject.language)])


def prompt_digest(track: Track, language: Language, form: Form) -> str:
    """SHA-256 of the prompt file that a verdict of this track is asked for with."""
    return sheet(track_file(track, form), language).sha256


def track_file(track: Track, form: Form) -> str:
    """The name of the prompt file of a track, without its language."""
    return f"judge_{track}" if form == "json" else f"judge_{track}_digits"


def filled(half: Prompt, **values: str) -> str:
    """`half` with those of the values that it has a place for: the two forms show less or more."""
    places = prompts.placeholders(half)
    return half.fill(**{name: text for name, text in values.items() if name in places})


def _ids(dimensions: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple(dimension.id for dimension in dimensions)


class _System(NamedTuple):
    text: str
    prompt: str
    asked: tuple[Asked, ...]
    unasked: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def _system(
    rubrics: Rubrics, track: Track, wanted: tuple[str, ...], language: Language, form: Form
) -> _System:
    """Instructions and rubric, made once for each user, track, language and form."""
    if track == "personal":
        assert rubrics.personal is not None, "the personal track needs the person's rubric"
        # A model wrote these rules out of a person's chats: material, as the chats themselves.
        rubric = prompts.fenced(MARK, rubric_text.personal_text(rubrics.personal, language))
        return _instructions(track, rubric, SATISFACTION, (), language, form)
    shared = rubrics.generic if track == "generic" else rubrics.session
    dimensions = [d for d in shared.dimensions if d.id in wanted]
    if form == "json":
        rubric = rubric_text.dimensions_text(dimensions, language)
        return _instructions(track, rubric, asked(dimensions), (), language, form)
    # A digit cannot say "not applicable", and a middle digit would be a score that nobody gave.
    dense = [d for d in dimensions if not d.sparse]
    sparse = tuple(d.id for d in dimensions if d.sparse)
    rubric = rubric_text.dimension_lines(dense, language)
    return _instructions(track, rubric, asked(dense), sparse, language, form)


def _instructions(
    track: Track,
    rubric: str,
    dimensions: tuple[Asked, ...],
    unasked: tuple[str, ...],
    language: Language,
    form: Form,
) -> _System:
    halves = sheet(track_file(track, form), language)
    text = filled(
        halves.system,
        rubric=rubric,
        form=form_text(dimensions, language),
        count=str(len(dimensions)),
    )
    return _System(text, halves.sha256, dimensions, unasked)


def form_text(dimensions: Sequence[Asked], language: Language) -> str:
    """The JSON to fill in. Its placeholders are no scores, so its echo is no verdict."""
    why = {"en": "<one or two sentences>", "zh": "<一两句话>"}[language]
    or_na = {"en": "<1-5 or n/a>", "zh": "<1-5 或 n/a>"}[language]
    scores = {d.id: or_na if d.sparse else "<1-5>" for d in dimensions}
    return json.dumps({"reason": why, "scores": scores, "flags": []}, ensure_ascii=False)


@functools.lru_cache(maxsize=64)
def schema(dimensions: tuple[Asked, ...], *, confidence: bool = False) -> dict[str, Any]:
    """The JSON schema of a verdict, for endpoints that enforce one."""
    score: dict[str, Any] = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    or_na: dict[str, Any] = {"anyOf": [score, {"type": "string", "enum": ["n/a"]}]}
    flag = {"type": "string", "enum": list(FLAGS)}
    sure: dict[str, Any] = {"confidence": score, "abstain": {"type": "boolean"}}
    return _object(
        {
            "reason": {"type": "string"},
            "scores": _object({d.id: or_na if d.sparse else score for d in dimensions}),
            "flags": {"type": "array", "items": flag},
            **(sure if confidence else {}),
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
