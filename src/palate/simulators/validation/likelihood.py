"""How likely a person's held-out messages are under each condition (paper 3.1; no judge).

The negative log-likelihood a token, in nats: the tokens of the user's messages and the end of each,
the same tokens in all conditions. *raw*, *prompted* and *profile* are the base with that
condition's system text, *lora* is the base with the person's adapter and its own. Where the person
left is told apart, [QUIT] and the end of the turn after it: it is one habit, and would weigh as
much as many words.

The text is the one that training makes (`simulators.examples`), so a condition is measured as it
would be served. What was measured is journalled by session.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from palate import language
from palate.simulators.examples import Example
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.estimates import NATS, missing, pooled, pooled_difference
from palate.simulators.validation.measures import Estimate, Likelihood
from palate.types import Record, Session, SimulatorKind, digest

SESSIONS_AT_ONCE = 16  # scored together, then journalled
NO_CHOSEN_END = "no held-out session ended by the user's choice"

Systems = Callable[[Session], str]


class Summed(NamedTuple):
    """Negative log-likelihood in nats over so many tokens."""

    total: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Meter:
    """A base model, loaded once, that reads sessions under any adapter.

    `identity` is of everything that the numbers depend on besides text and adapter (base,
    revision, prompt form, precision, window). `encode(session, system)` gives the examples of a
    session; `score(user, examples)` the nats of each supervised token under that user's adapter,
    None for the base alone. `adapters`: user -> digest of the adapter's record.
    """

    identity: str
    encode: Callable[[Session, str], Sequence[Example]]
    score: Callable[[str | None, Sequence[Example]], Sequence[Sequence[float]]]
    adapters: Mapping[str, str]


class SessionNll(Record):
    """One held-out session under one system text and one adapter ("" for the base alone)."""

    user_id: str
    session_id: str
    adapter: str
    question: str  # digest of all that it depends on
    messages: Summed
    leaving: Summed

    @property
    def key(self) -> str:
        """Of the question alone."""
        return self.question


def drawn(sessions: Sequence[Session], *, max_tokens: int | None, seed: int) -> list[Session]:
    """Whole sessions in a seeded order until they have about `max_tokens`, one at the least.

    Tokens are estimated from the characters: the same draw for every base.
    """
    if max_tokens is None:
        return list(sessions)
    order = sorted(sessions, key=lambda session: digest([seed, session.session_id]))
    taken: list[Session] = []
    room = max_tokens
    for session in order:
        size = sum(language.tokens(turn.text) for turn in session.turns)
        if taken and size > room:
            continue
        taken.append(session)
        room -= size
    return taken


def session_nlls(
    sessions: Sequence[Session],
    meter: Meter,
    system: Systems,
    *,
    adapter: str | None = None,
    answers: Answers[SessionNll] | None = None,
    done: Callable[[int], object] = lambda sessions: None,
) -> list[SessionNll]:
    """Each session under `system` and the adapter of user `adapter`, in their order.

    Args:
        answers: what was measured before, and where to keep what is measured.
        done: called with the number of sessions measured since the last call.
    """
    questions = [_question(session, system(session), meter, adapter) for session in sessions]
    found = {q: kept for q in questions if answers is not None and (kept := answers.get(q))}
    done(len(found))
    open_ = [n for n, question in enumerate(questions) if question not in found]
    for start in range(0, len(open_), SESSIONS_AT_ONCE):
        some = open_[start : start + SESSIONS_AT_ONCE]
        for number, sums in zip(
            some, _sums([sessions[n] for n in some], meter, system, adapter), strict=True
        ):
            session = sessions[number]
            measured = SessionNll(
                user_id=session.user_id,
                session_id=session.session_id,
                adapter=adapter or "",
                question=questions[number],
                messages=sums[0],
                leaving=sums[1],
            )
            found[measured.key] = measured
            if answers is not None:
                answers.append(measured)
        done(len(some))
    return [found[question] for question in questions]


def likelihoods(
    measured: Mapping[SimulatorKind, Sequence[SessionNll]], *, seed: int
) -> dict[SimulatorKind, Likelihood]:
    """Each condition's likelihood, over the sessions that have the same tokens in all of them.

    A long system text can leave too little room for a long message; a session of which one
    condition lacks a message is left out of all.
    """
    same = comparable(measured)
    return {
        condition: Likelihood(
            messages=_estimate([nll.messages for nll in nlls], seed, "no message was measured"),
            leaving=_estimate([nll.leaving for nll in nlls], seed, NO_CHOSEN_END),
            over_prompted=_over("prompted", condition, same, seed),
            over_profile=_over("profile", condition, same, seed),
        )
        for condition, nlls in same.items()
    }


def comparable(
    measured: Mapping[SimulatorKind, Sequence[SessionNll]],
) -> dict[SimulatorKind, list[SessionNll]]:
    """The sessions with equal numbers of message tokens in all conditions, in the same order."""
    columns = [{nll.session_id: nll for nll in nlls} for nlls in measured.values()]
    shared = [
        session
        for session in (columns[0] if columns else {})
        if all(session in column for column in columns)
        and len({column[session].messages.tokens for column in columns}) == 1
    ]
    return {
        condition: [column[session] for session in shared]
        for condition, column in zip(measured, columns, strict=True)
    }


def leaving_tokens(with_quit: Sequence[Example], without: Sequence[Example]) -> int:
    """How many of the last supervised tokens of a session tell leaving: 0 where none do.

    Args:
        with_quit: the examples of a session that ended by choice.
        without: those of the same session had it ended otherwise.

    A farewell and [QUIT] are one target. The farewell's words are a message; what tells leaving
    begins where the two targets differ.
    """
    last = with_quit[-1] if with_quit else None
    if last is None or last.leaves_from is None:
        return 0
    target = last.input_ids[last.leaves_from :]
    if _messages(with_quit) > _messages(without):  # [QUIT] is a message of its own
        return len(target)
    farewell = without[-1].input_ids[_last_start(without[-1]) :]
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(target, farewell, strict=False))
    return len(target) - sum(1 for _ in alike)


def _messages(examples: Sequence[Example]) -> int:
    return sum(example.messages for example in examples)


def _last_start(example: Example) -> int:
    """Where the last unbroken run of supervised tokens begins; an example ends with one."""
    start = len(example.supervised)
    while start and example.supervised[start - 1]:
        start -= 1
    return start


def _sums(
    sessions: Sequence[Session], meter: Meter, system: Systems, adapter: str | None
) -> list[tuple[Summed, Summed]]:
    """Messages and leaving of each session, all their examples scored at once."""
    encoded = [meter.encode(session, system(session)) for session in sessions]
    leaving = [
        _leaving(session, examples, meter, system(session))
        for session, examples in zip(sessions, encoded, strict=True)
    ]
    values = iter(meter.score(adapter, [example for examples in encoded for example in examples]))
    found = []
    for examples, number in zip(encoded, leaving, strict=True):
        nats = [value for _ in examples for value in next(values)]
        end = len(nats) - number
        found.append((_summed(nats[:end]), _summed(nats[end:])))
    return found


def _leaving(session: Session, examples: Sequence[Example], meter: Meter, system: str) -> int:
    if session.ended_by != "quit":
        return 0
    stayed = session.model_copy(update={"ended_by": "unknown"})
    return leaving_tokens(examples, meter.encode(stayed, system))


def _summed(nats: Sequence[float]) -> Summed:
    return Summed(math.fsum(nats), len(nats))


def _question(session: Session, system: str, meter: Meter, adapter: str | None) -> str:
    of_adapter = "" if adapter is None else meter.adapters[adapter]
    return digest([meter.identity, of_adapter, system, session.digest()])


def _estimate(sums: Sequence[Summed], seed: int, why_none: str) -> Estimate:
    if not any(one.tokens for one in sums):
        return missing(why_none)
    return pooled([one.total for one in sums], [one.tokens for one in sums], seed=seed, scale=NATS)


def _over(
    other: SimulatorKind,
    condition: SimulatorKind,
    same: Mapping[SimulatorKind, Sequence[SessionNll]],
    seed: int,
) -> Estimate:
    """This condition minus the other, paired by session."""
    if condition == other:
        return missing("it is that condition")
    if other not in same:
        return missing(f"the condition {other} was not measured")
    return paired(same[condition], same[other], seed=seed)


def paired(first: Sequence[SessionNll], second: Sequence[SessionNll], *, seed: int) -> Estimate:
    """Nats a token of `first` minus `second`, over the same sessions in the same order."""
    if not any(nll.messages.tokens for nll in first):
        return missing("no message was measured")
    return pooled_difference(
        [nll.messages for nll in first], [nll.messages for nll in second], seed=seed
    )
