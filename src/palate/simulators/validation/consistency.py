"""Identity consistency, 0..100 (paper 3.1, Table 1): does a message sound like this very person?

The judge knows the person by K real messages of their training sessions, and scores one more: the
simulator's in its context. It is never shown what the person really wrote there. The same question
about the person's own held-out message is the ceiling, and about another real person's message the
control: a judge that does not score the control lower cannot tell people apart, and its scores
prove nothing (choice).
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from palate.chat import read_user
from palate.models.client import Purpose
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.asking import (
    Heard,
    Judge,
    Question,
    Reading,
    UnreadableAnswerError,
    answer_schema,
    answered,
    ask,
    key_of,
    plain,
    prompt_files,
    question,
)
from palate.simulators.validation.contexts import Context
from palate.simulators.validation.estimates import PER_CENT, Scale, mean, missing
from palate.simulators.validation.measures import Estimate
from palate.simulators.validation.records import Consistency
from palate.simulators.validation.showing import chat_text, message_text, samples_text
from palate.types import Scene, SimulatorKind, TrainingSession, digest

SHOWN_MESSAGES = 12  # K [choice]
HIGHEST = 100

# Whose message is scored: a condition's, the person's own, or another person's.
Writer = SimulatorKind | Literal["human", "another"]

_KEYS = frozenset(map(plain, ("score", "rating", "fit", "consistency", "分数", "评分", "得分")))
_SCORE = re.compile(r"(\d{1,3})(?:\.0+)?\s*(?:/\s*100|%|分)?")
_DIFFERENCE = Scale(-HIGHEST, HIGHEST)


class Known(NamedTuple):
    """What the judge knows of a person: real messages from their training sessions."""

    user_id: str
    messages: tuple[str, ...]


class Scored(NamedTuple):
    """A message's score 0..100, None where it could not be read; `place` is its context."""

    session_id: str
    place: str
    score: float | None
    revision: str = ""  # of the judge, as its endpoint named it


def known(
    training: Sequence[TrainingSession], *, seed: int, messages: int = SHOWN_MESSAGES
) -> Known:
    """At most `messages` different ones of the user's messages, drawn by the seed, in that order.

    Raises:
        TypeError: something else than training sessions: a held-out message must not be shown.
        ValueError: no session.
    """
    for item in training:
        if not isinstance(item, TrainingSession):
            raise TypeError(
                "a judge is shown messages of training sessions as histories.split returns them, "
                f"not of {type(item).__name__}"
            )
    user_id = training[0].session.user_id if training else ""
    if not user_id:
        raise ValueError("no training session to take messages from")
    said = dict.fromkeys(
        text
        for item in training
        for turn in item.session.turns
        if turn.speaker == "user" and (text := read_user(turn.text).text)
    )
    drawn = list(said)
    random.Random(f"{seed}/{user_id}").shuffle(drawn)  # noqa: S311 - a draw, not a secret
    return Known(user_id, tuple(drawn[:messages]))


def controls(
    contexts: Sequence[Context], others: Mapping[str, Sequence[Context]], *, seed: int
) -> dict[tuple[str, int], str]:
    """For each context, (session, turn), another real person's held-out message; {} without others.

    Of the messages at the nearest turn the seed draws one: how far a chat has come shows in a
    message, whoever wrote it.
    """
    pool = [
        (context.turn, digest([seed, user, context.session_id, context.turn]), context.human)
        for user, theirs in others.items()
        for context in theirs
        if context.human and not context.left
    ]
    if not pool:
        return {}
    found = {}
    for context in contexts:
        own = digest([seed, context.session_id, context.turn])
        found[context.session_id, context.turn] = min(
            pool, key=lambda one: (abs(one[0] - context.turn), digest([own, one[1]]))
        )[2]
    return found


async def score_message(
    text: str,
    context: Context,
    scene: Scene,
    person: Known,
    judge: Judge,
    answers: Answers[Heard],
    *,
    writer: Writer,
) -> Scored:
    """The judge's score of a message at a context, asked unless it was asked before.

    Raises:
        ModelError: the call did not come back.
    """
    asked = identity_question(text, context, scene, person, judge)
    place = f"{context.session_id}#{context.turn}"
    about = f"identity/{person.user_id}/{writer}/{place}"
    key = key_of(judge, asked, about)
    heard = answers.get(key)
    if heard is None:
        heard = await ask(asked, judge, _READING, Purpose("judge", about, context.turn), key)
        answers.append(heard)
    return Scored(context.session_id, place, heard.value, heard.revision)


def identity_question(
    text: str, context: Context, scene: Scene, person: Known, judge: Judge
) -> Question:
    """How well does this message fit the person?"""
    return question(
        "identity",
        judge.form,
        scene,
        samples=samples_text(person.messages, judge.form),
        transcript=chat_text(context.history, scene.language, judge.form),
        message=message_text(text, judge.form),
    )


def score(completion: str) -> float:
    """The score in an answer, a whole number 0..100.

    Raises:
        UnreadableAnswerError: none, two that differ, or one off the scale.
    """
    found = {_score(value) for value in answered(completion, _KEYS)}
    if len(found) > 1:
        raise UnreadableAnswerError("contradiction: the answer has two different scores")
    return found.pop()


def _score(value: object) -> float:
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        match = _SCORE.fullmatch(unicodedata.normalize("NFKC", str(value)).strip())
        if match and int(match[1]) <= HIGHEST:
            return float(match[1])
    raise UnreadableAnswerError(f"off the scale: {str(value)[:40]!r} is no whole number 0..100")


def consistency(
    own: Sequence[Scored],
    ceiling: Sequence[Scored],
    control: Sequence[Scored],
    judge: Judge,
    *,
    shown_messages: int,
    seed: int,
    no_control: str,
) -> Consistency:
    """The scores of a condition's messages, and what the controls say they are worth.

    Args:
        no_control: why nobody else's message was scored, where `control` is empty.
    """
    everyone = (*own, *ceiling, *control)
    highest = _mean(ceiling, seed)
    lowest = _mean(control, seed) if control else missing(no_control)
    return Consistency(
        judge=judge.model.name,
        judge_revision=next((one.revision for one in everyone if one.revision), ""),
        counts_toward_verdict=not judge.model.name.startswith("local:"),
        form=judge.form,
        prompts=prompt_files("identity", judge.form),
        shown_messages=shown_messages,
        own=_mean(own, seed),
        control=lowest,
        ceiling=highest,
        over_control=_paired(own, control, seed) if control else missing(no_control),
        tells_people_apart=tells_apart(ceiling, control, seed),
        unscored=sum(one.score is None for one in everyone),
    )


def tells_apart(ceiling: Sequence[Scored], control: Sequence[Scored], seed: int) -> bool | None:
    """Whether the judge scores the person above another, by more than chance; None: not asked.

    The interval of the paired difference must lie above 0; without an interval, its value.
    """
    difference = _paired(ceiling, control, seed)
    if difference.value is None:
        return None
    return (difference.value if difference.low is None else difference.low) > 0


def _mean(scored: Sequence[Scored], seed: int) -> Estimate:
    read = [(one.score, one.session_id) for one in scored if one.score is not None]
    if not read:
        return missing("no answer of the judge could be read" if scored else "no message to score")
    return mean([s for s, _ in read], [place for _, place in read], seed=seed, scale=PER_CENT)


def _paired(first: Sequence[Scored], second: Sequence[Scored], seed: int) -> Estimate:
    """Mean difference at the contexts where both were scored."""
    of_second = {one.place: one.score for one in second}
    both = [
        (one.score - other, one.session_id)
        for one in first
        if one.score is not None and (other := of_second.get(one.place)) is not None
    ]
    if not both:
        return missing("no context has a score of both")
    return mean([d for d, _ in both], [place for _, place in both], seed=seed, scale=_DIFFERENCE)


_READING = Reading(
    from_words=score,
    digits={str(digit): digit * HIGHEST / 9 for digit in range(10)},
    schema=answer_schema("score", {"type": "integer", "minimum": 0, "maximum": HIGHEST}),
)
