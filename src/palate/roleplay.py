"""Free role-play: one simulator and one candidate talk, and nothing else (paper 3.2).

The chat opens with the card's opening, then the simulated user and the candidate alternate. There
is no orchestrator. It ends when the user leaves (`[QUIT]`), at the depth limit (counted in user
turns), or when one side has nothing to say. Every accepted step is handed to `accept` before the
next call is made, so that a killed run continues in mid-chat.

A simulator is an instrument: a message of its own that slips (an assistant's phrase, its own words
again, ...) is drawn anew a bounded number of times, and what was not taken is counted. A candidate
is what is measured: nothing of it is drawn anew for its wording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from palate.chat import Told, UserAct, as_seen_by, read_user, told_messages
from palate.models.client import (
    ChatMessage,
    Completion,
    Model,
    Purpose,
    Request,
    Sampling,
    Status,
)
from palate.types import (
    Cell,
    Finish,
    Message,
    Rejected,
    Speaker,
    Trajectory,
    TrajectoryEnd,
    Usage,
)

# An empty message is asked for this many times in all before the session ends for it [choice].
ATTEMPTS_AT_A_MESSAGE = 3
EMPTY = "empty"  # beside the flags, why a draft of a simulator was not taken

Tells = Callable[[Sequence[Message]], Told]


@dataclass(frozen=True, slots=True)
class Seat:
    """One side of the table: a model and what it is told before and after the conversation.

    `after_history` is a card's post-history instruction, sent last. `seeded`: give each call a
    seed of its own, derived from the cell and the turn (for endpoints that honour it).
    `gets_session`: it is told the session id. `remembers`: a service that keeps the chat itself;
    of the conversation it gets only the message it has not seen. `tells`: for a card that says
    other things as the chat goes on, what is told for the next message, in place of `system` and
    `after_history`: a function of the messages so far alone, so that a resumed chat agrees.
    """

    model: Model
    sampling: Sampling
    system: str = ""
    after_history: str = ""
    seeded: bool = False
    gets_session: bool = False
    remembers: bool = False
    tells: Tells | None = None


class Step(NamedTuple):
    """What one call brought: a message, an end, or both (a farewell; the last reply).

    `message` None with `ended_by` set: the user left without a word, or nothing came. `rejected`:
    for each draft of a simulator that was not taken, what was wrong with it; its text is not kept.
    """

    message: Message | None
    ended_by: TrajectoryEnd | None
    usage: Usage = Usage()
    attempts: int = 1
    model: str = ""
    latency_s: float = 0.0
    rejected: Rejected = ()


class _Draft(NamedTuple):
    """A simulator's answer as it is read; `kinds`: its flags, or `EMPTY`; () is clean."""

    completion: Completion
    act: UserAct
    kinds: tuple[str, ...]

    @property
    def says_nothing(self) -> bool:
        return not self.act.text and not self.act.quit


Accept = Callable[[Step], None]
Flags = Callable[[str, Sequence[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    """All that a cell's conversation is played with.

    `session` is unique to this cell of this run, and the same when the run is resumed.
    `flags_of_user(text, own earlier messages)` names what is odd about a simulator's message
    (repetition, assistant phrases, …): facts beside the text, never a reason to end. `resample`: a
    message with a flag is asked for again, this many times at most.
    """

    cell: Cell
    opening: str
    simulator: Seat
    candidate: Seat
    depth_limit: int
    seed: int
    session: str
    flags_of_user: Flags
    resample: int = 0


async def play(table: Table, accept: Accept, so_far: Sequence[Message] = ()) -> Trajectory:
    """Play a cell to its end, from wherever `so_far` left it.

    Raises:
        ModelError: a call failed for good; what was accepted before stays accepted, and the next
            attempt takes it up.
    """
    messages = list(so_far)
    ended_by = end_of(messages, table.depth_limit)
    while ended_by is None:
        step = await _next_step(table, messages)
        accept(step)
        if step.message is not None:
            messages.append(step.message)
        ended_by = step.ended_by
    return Trajectory.model_construct(
        cell=table.cell, opening=table.opening, messages=tuple(messages), ended_by=ended_by
    )


def end_of(messages: Sequence[Message], depth_limit: int) -> TrajectoryEnd | None:
    """The depth limit, if these messages have reached it: that many user turns, all answered."""
    return "depth_limit" if len(messages) >= 2 * depth_limit else None


async def _next_step(table: Table, messages: list[Message]) -> Step:
    if len(messages) % 2 == 0:
        return await _user_step(table, messages)
    return await _character_step(table, messages)


async def _user_step(table: Table, messages: list[Message]) -> Step:
    drafts = await _drafts(table, messages)
    taken = _taken(drafts)
    message: Message | None = None
    ended_by: TrajectoryEnd | None = "quit" if taken.act.quit else None
    if taken.says_nothing:
        ended_by = "simulator_empty"
    elif taken.act.text:
        message = _message("user", taken.act.text, taken.completion, taken.kinds)
    rejected = tuple(d.kinds for d in drafts if d is not taken)
    return _step([d.completion for d in drafts], message, ended_by, rejected)


async def _drafts(table: Table, messages: list[Message]) -> list[_Draft]:
    """Ask the simulator until a draft is clean, or it was asked often enough for such a draft.

    A provider's block is final: asking again would buy the same block.
    """
    seat, turn = table.simulator, len(messages) // 2
    prompt = prompt_for(seat, "user", table.opening, messages)
    own = [message.text for message in messages if message.speaker == "user"]
    drafts: list[_Draft] = []
    while True:
        request = _request(table, seat, "user", prompt, turn, len(drafts))
        draft = _read(table, await seat.model.complete(request), own)
        drafts.append(draft)
        if not draft.kinds or draft.completion.status == "refused":
            return drafts
        most = ATTEMPTS_AT_A_MESSAGE if draft.says_nothing else 1 + _resamples(table)
        if sum(other.says_nothing == draft.says_nothing for other in drafts) >= most:
            return drafts


def _resamples(table: Table) -> int:
    """How often a flagged message is asked for again: a greedy simulator would say it again."""
    return 0 if table.simulator.sampling.temperature == 0 else table.resample


def _read(table: Table, completion: Completion, own: Sequence[str]) -> _Draft:
    """A farewell is judged by its words; to leave without a word is clean."""
    act = read_user(completion.text)
    kinds: tuple[str, ...] = ()
    if act.text:
        kinds = table.flags_of_user(act.text, own)
    elif not act.quit:
        kinds = (EMPTY,)
    return _Draft(completion, act, kinds)


def _taken(drafts: Sequence[_Draft]) -> _Draft:
    """The last draft, which is the clean one if there is one; words with a flag before none."""
    if drafts[-1].says_nothing:
        return next((draft for draft in reversed(drafts) if draft.act.text), drafts[-1])
    return drafts[-1]


async def _character_step(table: Table, messages: list[Message]) -> Step:
    completions = await _replies(table, messages)
    last = completions[-1]
    if last.status == "refused":
        return _step(completions, None, "candidate_blocked")
    if not last.text.strip():
        return _step(completions, None, "candidate_empty")
    message = _message("character", last.text, last, ())
    return _step(completions, message, end_of([*messages, message], table.depth_limit))


async def _replies(table: Table, messages: list[Message]) -> list[Completion]:
    """Ask the candidate for its reply, again while it is empty; the last answer counts."""
    seat, turn = table.candidate, len(messages) // 2
    prompt = prompt_for(seat, "character", table.opening, messages)
    completions: list[Completion] = []
    for attempt in range(ATTEMPTS_AT_A_MESSAGE):
        request = _request(table, seat, "character", prompt, turn, attempt)
        completion = await seat.model.complete(request)
        completions.append(completion)
        if completion.status == "refused" or completion.text.strip():
            break
    return completions


def prompt_for(
    seat: Seat, side: Speaker, opening: str, messages: Sequence[Message]
) -> tuple[ChatMessage, ...]:
    """What `side` is sent for its next message: all it is told, and the chat as it sees it."""
    history = as_seen_by(side, opening, messages)
    if seat.remembers:
        history = history[-1:]
    if seat.tells is not None:
        return told_messages(seat.tells(messages), history)
    before = (ChatMessage("system", seat.system),) if seat.system else ()
    after = (ChatMessage("system", seat.after_history),) if seat.after_history else ()
    return before + history + after


def _request(
    table: Table,
    seat: Seat,
    side: Speaker,
    prompt: tuple[ChatMessage, ...],
    turn: int,
    attempt: int,
) -> Request:
    key = table.cell.key
    sampling = seat.sampling
    if seat.seeded:
        sampling = replace(sampling, seed=seed_of(table.seed, key, side, turn, attempt))
    return Request(
        messages=prompt,
        sampling=sampling,
        purpose=Purpose("simulator" if side == "user" else "candidate", key, turn, attempt=attempt),
        session=table.session if seat.gets_session else None,
        cache_prefix=1 if seat.system else 0,
    )


def seed_of(study_seed: int, key: str, side: Speaker, turn: int, attempt: int) -> int:
    """Seeded by the cell and the turn: a resumed run asks what it would have asked, and the two
    repetitions ask differently. In 0 .. 2^31 - 1, which every server takes."""
    text = f"{study_seed}|{key}|{side}|{turn}|{attempt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def _message(
    speaker: Speaker, text: str, completion: Completion, flags: tuple[str, ...]
) -> Message:
    # A reply that was blocked ends the chat; what a simulator said up to a block stays, marked.
    cut: dict[Status, Finish] = {"length": "length", "refused": "refused"}
    finish = cut.get(completion.status, "ok")
    return Message(speaker=speaker, text=text, finish=finish, flags=flags)


def _step(
    completions: Sequence[Completion],
    message: Message | None,
    ended_by: TrajectoryEnd | None,
    rejected: Rejected = (),
) -> Step:
    last = completions[-1]
    usage, attempts, latency_s = last.usage, last.attempts, last.latency_s
    for earlier in completions[:-1]:
        usage += earlier.usage
        attempts += earlier.attempts
        latency_s += earlier.latency_s
    return Step(message, ended_by, usage, attempts, last.model, latency_s, rejected)
