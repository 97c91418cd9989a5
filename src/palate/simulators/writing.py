"""Writing a person's profile from their training sessions, and from nothing else (paper 3.1).

A long history is read in parts that fit the model's context, a draft for each, and the drafts are
merged, in as many rounds as it takes. Ratings are not shown to the writer: what pleases this person
is the rubric's to say, what they do is the profile's [choice].
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from palate.errors import InputError, ModelError
from palate.fitting import cut, estimated_tokens, packed
from palate.models.client import ChatMessage, Completion, Model, Purpose, Request, Sampling
from palate.prompts import Prompt, fenced, load
from palate.simulators.facts import language_of, measured
from palate.simulators.parts import transcripts
from palate.simulators.profile import Profile, ProfileProvenance, freeze
from palate.types import TrainingSession

ATTEMPTS = 3  # at one answer, while it is empty
MIN_PART_TOKENS = 200  # a part shorter than this tells nothing about a person
_AROUND_TOKENS = 64  # what the fence and a chat template add
_SENTENCE_END = re.compile(r".*[.!?。！？…][\"'”’)）]*", re.DOTALL)


@dataclass(slots=True)
class _Writer:
    """The calls for one profile: numbered, counted, all for one user."""

    user_id: str
    model: Model
    sampling: Sampling
    numbers: Iterator[int] = field(default_factory=itertools.count)
    calls: int = 0
    cut: int = 0
    revision: str = ""


async def write_profile(
    training: Sequence[TrainingSession],
    model: Model,
    *,
    sampling: Sampling,
    context_tokens: int = 8192,
) -> Profile:
    """The frozen profile of the one user whose training sessions these are.

    Args:
        sampling: `max_tokens` bounds each draft and the profile.
        context_tokens: what the model can read and write in one call. Tokens are estimated on the
            safe side, so parts come out shorter than they could be.

    Raises:
        TypeError: something other than training sessions, which would leak the held-out part.
        InputError: no sessions, several users, no user messages, or too small a context.
        ModelError: the model refused, stayed empty or could not be reached.
    """
    user_id = _one_user(training)
    tongue = language_of(training)
    facts = measured(training, tongue)
    write, merge = load("profile_write", tongue), load("profile_merge", tongue)
    writer = _Writer(user_id, model, sampling)
    room = _room(write, writer, context_tokens)
    sessions = transcripts([item.session for item in training], room, tongue)
    drafts = await _answers(writer, write, "sessions", sessions)
    room = _room(merge, writer, context_tokens)
    while len(drafts) > 1:
        # Halved, so that at least two fit together and every round leaves fewer.
        halves = [cut(draft, room // 2 - 1) for draft in drafts]
        drafts = await _answers(writer, merge, "drafts", packed(halves, room, "\n\n"))
    return freeze(
        Profile(
            user_id=user_id,
            language=tongue,
            text=drafts[0],
            facts=facts,
            provenance=_provenance(writer, training, (write, merge)),
        )
    )


def _one_user(training: Sequence[TrainingSession]) -> str:
    for item in training:
        if not isinstance(item, TrainingSession):
            raise TypeError(
                f"a profile is written from training sessions as histories.split returns them, "
                f"not from {type(item).__name__}"
            )
    users = sorted({item.session.user_id for item in training})
    if len(users) != 1:
        found = ", ".join(users) or "none"
        raise InputError(f"a profile is one user's, but these training sessions are of: {found}")
    return users[0]


def _room(prompt: Prompt, writer: _Writer, context_tokens: int) -> int:
    """Tokens that a call has for its part of the material."""
    around = estimated_tokens(prompt.text) + writer.sampling.max_tokens + _AROUND_TOKENS
    if context_tokens - around < MIN_PART_TOKENS:
        raise InputError(
            f"the profile of {writer.user_id} cannot be written in a context of {context_tokens} "
            f"tokens; give at least {around + MIN_PART_TOKENS}, or ask for a shorter profile"
        )
    return context_tokens - around


async def _answers(writer: _Writer, prompt: Prompt, name: str, parts: Sequence[str]) -> list[str]:
    """An answer for each part, in their order, asked at once: the model's own limits hold."""
    calls = [
        _answer(writer, prompt.fill(**{name: fenced(name, part)}), next(writer.numbers))
        for part in parts
    ]
    answers: list[str] = []
    # Errors wait until all calls have come back, so that none is left running.
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers


async def _answer(writer: _Writer, text: str, number: int) -> str:
    for attempt in range(ATTEMPTS):
        completion = await writer.model.complete(
            Request(
                messages=(ChatMessage("user", text),),
                sampling=writer.sampling,
                purpose=Purpose("simulator", f"profile/{writer.user_id}", number, attempt=attempt),
            )
        )
        writer.calls += 1
        writer.revision = completion.model or writer.revision
        answer = _usable(writer, completion)
        if answer:
            return answer
    raise ModelError(
        f"{writer.model.name} gave an empty answer {ATTEMPTS} times when asked for the profile of "
        f"{writer.user_id}; try another model"
    )


def _usable(writer: _Writer, completion: Completion) -> str:
    """The answer; one cut by the token limit ends with its last whole sentence, if it has one."""
    text = completion.text.strip()
    if completion.status == "refused":
        raise ModelError(
            f"{writer.model.name} refused to write the profile of {writer.user_id}; try another "
            "model"
        )
    if completion.status == "length" and text:
        writer.cut += 1
        whole = _SENTENCE_END.match(text)
        return whole.group().strip() if whole else text
    return text


def _provenance(
    writer: _Writer, training: Sequence[TrainingSession], prompts: Sequence[Prompt]
) -> ProfileProvenance:
    return ProfileProvenance(
        model=writer.model.name,
        revision=writer.revision,
        prompts={prompt.name: prompt.sha256 for prompt in prompts},
        training_sessions={i.session.session_id: i.session.digest() for i in training},
        calls=writer.calls,
        cut=writer.cut,
    )
