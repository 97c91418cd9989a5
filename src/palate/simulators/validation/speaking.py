"""What a simulator says at the contexts of held-out sessions (paper 3.1).

The human's answer is not in the prompt: a simulator sees what the user saw before they wrote.
Every answer is journalled before it counts, and one that is in the journal is not asked for again.
The first answer with words counts: a run would draw one that slips anew, but what is measured here
is the simulator, not the care that is taken of it [choice]. Of a chat that is longer than the
model's context it is shown the end, whole turns, as in training.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, TypeVar

from palate.chat import read_user
from palate.errors import ContextExceeded, ModelError
from palate.fitting import estimated_tokens
from palate.models.client import ChatMessage, Completion, Model, Purpose, Request, Sampling, Status
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.contexts import Context
from palate.simulators.validation.measures import Spoken
from palate.types import Finish, Message, Record, SimulatorKind, Usage, digest

ATTEMPTS = 3  # at one answer, while it is empty: as in a played chat
KEPT = 0.75  # of the messages of a chat that was too long, before it is asked about again
# By an upper estimate. No model's context is shorter: a chat of fewer tokens that is refused as too
# long is refused for another reason, such as a max_tokens beyond what the model can write.
SHORTEST_CONTEXT = 1024

_FINISH: dict[Status, Finish] = {"length": "length", "refused": "refused"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Voice:
    """One condition of one person: a model, and what it is told at a context.

    `identity` is the digest of all that makes the simulator (`SimulatorRecord.digest()`): another
    adapter or profile is another simulator, whose answers are not taken for this one's.
    `prompt` gives the messages for a context, system text included, without the human's answer.
    `seeded`: the endpoint honours a seed for each call.
    """

    user_id: str
    condition: SimulatorKind
    identity: str
    model: Model
    sampling: Sampling
    prompt: Callable[[Context], tuple[ChatMessage, ...]]
    seeded: bool = False


class Utterance(Record):
    """A simulator's answer at one context; `sample` counts from 0 where several are drawn.

    `text` without `[QUIT]`; `left`: it was there. `question` is the digest of what was asked;
    `omitted` counts the first messages of the chat that were not shown, for want of room.
    """

    user_id: str
    condition: SimulatorKind
    session_id: str
    turn: int
    sample: int
    text: str
    left: bool
    finish: Finish
    attempts: int
    usage: Usage
    model: str
    question: str
    omitted: int = 0

    @property
    def key(self) -> str:
        """Of the place and of the question."""
        return _key(self.session_id, self.turn, self.sample, self.question)

    @property
    def silent(self) -> bool:
        """Neither words nor [QUIT], at every attempt."""
        return not self.text and not self.left


class Failure(NamedTuple):
    """A call that did not come back."""

    session_id: str
    turn: int
    sample: int
    reason: str


class Said(NamedTuple):
    """What came back and what did not, each in the order of contexts and samples."""

    utterances: tuple[Utterance, ...]
    failures: tuple[Failure, ...]

    def first(self) -> tuple[Utterance, ...]:
        """The first sample of each context that has one."""
        return tuple(said for said in self.utterances if said.sample == 0)

    def counts(self, contexts: int) -> Spoken:
        """How the first samples came out, of so many contexts."""
        first = self.first()
        return Spoken(
            contexts=contexts,
            said=sum(1 for said in first if said.text),
            left=sum(1 for said in first if said.left),
            silent=sum(1 for said in first if said.silent),
            cut=sum(1 for said in first if said.finish == "length"),
            failed=sum(1 for failure in self.failures if failure.sample == 0),
            shortened=sum(1 for said in first if said.omitted),
        )


class Pair(NamedTuple):
    """Two messages at one context: the person's and the simulator's, both with words."""

    session_id: str
    turn: int
    human: str
    simulated: str


async def speak(
    voice: Voice,
    contexts: Sequence[Context],
    *,
    answers: Answers[Utterance],
    seed: int,
    samples: int = 1,
    done: Callable[[], object] = lambda: None,
) -> Said:
    """What `voice` says at each context; all are asked at once, the model's own limits hold.

    Args:
        samples: answers at each context.
        done: called after each answer or failure.

    Raises:
        StoreError: the journal cannot be written.
    """

    async def one(context: Context, sample: int) -> Utterance | Failure:
        try:
            return await _answer(voice, context, sample, answers, seed)
        except ModelError as error:
            return Failure(context.session_id, context.turn, sample, str(error))
        finally:
            done()

    calls = [one(context, sample) for context in contexts for sample in range(samples)]
    found = await all_of(calls)
    return Said(
        tuple(item for item in found if isinstance(item, Utterance)),
        tuple(item for item in found if isinstance(item, Failure)),
    )


async def all_of(calls: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """The results of all calls in their order; where one raises, none is left running."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pairs(contexts: Sequence[Context], utterances: Sequence[Utterance]) -> list[Pair]:
    """The contexts where both the person and the simulator wrote something."""
    said = {(u.session_id, u.turn): u.text for u in utterances}
    return [
        Pair(context.session_id, context.turn, context.human, text)
        for context in contexts
        if context.human and (text := said.get((context.session_id, context.turn), ""))
    ]


async def _answer(
    voice: Voice, context: Context, sample: int, answers: Answers[Utterance], seed: int
) -> Utterance:
    question = _question(voice, voice.prompt(context), seed)
    kept = answers.get(_key(context.session_id, context.turn, sample, question))
    if kept is not None:
        return kept
    shown = context
    while True:
        try:
            completions = await _completions(voice, shown, sample, seed)
            break
        except ContextExceeded:
            end = _end(shown.history)
            if not end or _tokens(end) < SHORTEST_CONTEXT:
                raise
            shown = shown._replace(history=end)
    utterance = _utterance(voice, context, sample, question, completions)
    omitted = len(context.history) - len(shown.history)
    if omitted:
        utterance = utterance.model_copy(update={"omitted": omitted})
    answers.append(utterance)
    return utterance


async def _completions(voice: Voice, context: Context, sample: int, seed: int) -> list[Completion]:
    """What came back, the last one first to have words."""
    completions: list[Completion] = []
    prompt = voice.prompt(context)
    for attempt in range(ATTEMPTS):
        request = _request(voice, prompt, context, sample, attempt, seed)
        completions.append(await voice.model.complete(request))
        if completions[-1].text.strip() or completions[-1].status == "refused":
            break
    return completions


def _tokens(history: tuple[Message, ...]) -> int:
    return sum(estimated_tokens(message.text) for message in history)


def _end(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """The end of a chat, whole turns, beginning with the character; empty where it has no less."""
    start = max(1, len(history) - int(len(history) * KEPT))
    starts = (n for n in range(start, len(history)) if history[n].speaker == "character")
    return history[next(starts, len(history)) :]


def _request(
    voice: Voice,
    prompt: tuple[ChatMessage, ...],
    context: Context,
    sample: int,
    attempt: int,
    seed: int,
) -> Request:
    cell = f"{voice.user_id}/{context.session_id}/{voice.condition}/{sample + 1}"
    sampling = voice.sampling
    if voice.seeded:
        sampling = replace(sampling, seed=_seed(seed, cell, context.turn, attempt))
    return Request(
        messages=prompt,
        sampling=sampling,
        purpose=Purpose("simulator", cell, context.turn, attempt=attempt),
        cache_prefix=1 if prompt and prompt[0].role == "system" else 0,
    )


def _utterance(
    voice: Voice, context: Context, sample: int, question: str, completions: Sequence[Completion]
) -> Utterance:
    last = completions[-1]
    act = read_user(last.text)
    return Utterance(
        user_id=voice.user_id,
        condition=voice.condition,
        session_id=context.session_id,
        turn=context.turn,
        sample=sample,
        text=act.text,
        left=act.quit,
        finish=_FINISH.get(last.status, "ok"),
        attempts=sum(completion.attempts for completion in completions),
        usage=sum((completion.usage for completion in completions), Usage()),
        model=last.model,
        question=question,
    )


def _question(voice: Voice, prompt: tuple[ChatMessage, ...], seed: int) -> str:
    """Everything that the answer depends on besides its place: another question, another answer."""
    return digest(
        [
            voice.user_id,
            voice.condition,
            voice.identity,
            voice.model.name,
            asdict(voice.sampling),
            seed,
            [list(message) for message in prompt],
        ]
    )


def _key(session_id: str, turn: int, sample: int, question: str) -> str:
    return f"{session_id}|{turn}|{sample}|{question}"


def _seed(seed: int, cell: str, turn: int, attempt: int) -> int:
    """In 0 .. 2^31 - 1, which every server takes."""
    return int(digest([seed, cell, turn, attempt])[:8], 16) >> 1
