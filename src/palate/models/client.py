"""The only seam to language models: what a call is, and what comes back.

Stages build a `Request` and await `Model.complete`; limits, retries, deadlines, role rules of
back ends and the bookkeeping of tokens live behind it: `palate.models.pool` opens models. A reply
that came back is a `Completion`, whatever its status; a call that did not come back raises a
`ModelError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from palate.types import Track, Usage

Role = Literal["simulator", "candidate", "judge"]
Status = Literal["ok", "length", "refused", "empty", "empty_after_reasoning"]


class ChatMessage(NamedTuple):
    """One message as an endpoint sees it."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Decoding of one role; None leaves the endpoint's default.

    `body` is merged into the request body as it stands (vendor fields such as
    {"reasoning_effort": "low"}).
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 512
    seed: int | None = None
    stop: tuple[str, ...] = ()
    body: dict[str, Any] = field(default_factory=dict)


class Purpose(NamedTuple):
    """Which call of which cell this is: for scripts, failures and cost, never sent to a model.

    `turn` counts from 0: the user turn for a simulator, the reply for a candidate and for a
    judge of a reply; None for a judge of the session. `attempt` counts calls for the same message
    (an empty reply is asked for again).
    """

    role: Role
    cell: str
    turn: int | None
    track: Track | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion.

    `json_schema`: the verdict's JSON schema, used where the endpoint enforces schemas.
    `digits`: ask for exactly this many characters, each one of `digit_choices`, with the
    probabilities of each; only models with `reads_digits` take it.
    `first_token`: ask for the log-probabilities of so many of the likeliest first tokens; a server
    that has none, or refuses, leaves `Completion.first_token` empty or raises `RequestRefused`.
    `session`: an id that stays the same within a cell, for services that keep the chat's memory
    themselves; sent as configured for the candidate.
    `cache_prefix`: the first messages up to this count are shared by many calls (Anthropic cache
    control).
    """

    messages: tuple[ChatMessage, ...]
    sampling: Sampling
    purpose: Purpose
    json_schema: dict[str, Any] | None = None
    digits: int = 0
    digit_choices: str = "12345"
    first_token: int = 0
    session: str | None = None
    cache_prefix: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model said.

    `text` is the visible text: thinking removed, outer white space kept out. `status` "length"
    keeps the cut text; "refused" is a provider's block (content filter, refusal field), not a
    refusal in words. `digit_probabilities` has one {choice: probability} a digit, renormalised
    over the choices, or is empty where the endpoint gave none. `first_token` has the likeliest
    first tokens with their log-probabilities, where they were asked for and given.
    """

    text: str
    status: Status
    reasoning: str = ""
    model: str = ""  # the revision that the endpoint says it served
    usage: Usage = Usage()
    attempts: int = 1
    latency_s: float = 0.0
    digit_probabilities: tuple[dict[str, float], ...] = ()
    first_token: tuple[tuple[str, float], ...] = ()


class Model(Protocol):
    """A model that answers; `name` is its specification as written in the study."""

    name: str
    reads_digits: bool  # returns token probabilities for `Request.digits`
    enforces_schema: bool  # honours `Request.json_schema`

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            TransportError: no answer after the bounded retries.
            RequestRefused: the endpoint will never accept this request.
        """
        ...

    async def close(self) -> None:
        """Give back connections and processes."""
        ...
