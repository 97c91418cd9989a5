"""Answers shown while they are written: for a person who waits, never for a judge.

A streamed call is a call like any other (limits, retries, deadlines, the ledger): the answer that
counts is the `Completion` at its end. What is shown before is the visible text so far. It may be
taken back: by a retry, which begins anew, and where a model closes a thought that its chat
template had opened, which only its end tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from palate.models.answers import Malformed, decoded
from palate.models.client import Completion, Model, Request
from palate.models.thinking import strip_thinking

Event = Mapping[str, object]
Show = Callable[[str], None]

# A tag cut in the middle looks like text: from its opening bracket on, text waits for more.
_OPENS, _CLOSES = "<[◁", ">]▷"
_LONGEST_TAG = 40


@runtime_checkable
class Streams(Protocol):
    """A model that can be read while it answers."""

    async def stream(self, request: Request, show: Show) -> Completion:
        """Answer one request; `show` is called with all visible text so far, as it grows.

        Raises:
            TransportError: no whole answer after the bounded retries.
            RequestRefused: the endpoint will never accept this request.
        """
        ...


async def streamed(model: Model, request: Request, show: Show) -> Completion:
    """Ask `model`, showing what it says as it comes, or at once where it cannot stream."""
    if isinstance(model, Streams):
        completion = await model.stream(request, show)
    else:
        completion = await model.complete(request)
    show(completion.text)
    return completion


class EventReader:
    """Reads server-sent events; `palate.models.transport.Stream`."""

    def __init__(
        self, delta: Callable[[Event], str], joined: Callable[[Sequence[Event]], Event], show: Show
    ) -> None:
        self._delta = delta
        self._joined = joined
        self._show = show
        self.begin()

    def begin(self) -> None:
        """Forget what an earlier attempt brought."""
        self._events: list[Event] = []
        self._rest = b""
        self._said = ""

    def feed(self, chunk: bytes) -> None:
        """Read the whole lines of what has come so far, and show what they add."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        grown = [self._read(line) for line in lines]
        if any(grown):
            self._show(_shown(self._said))

    def whole(self, content: bytes) -> object:
        """All events as one response; a server that did not stream has sent it itself.

        Raises:
            Malformed: neither events nor JSON came.
        """
        self.feed(b"\n")
        if not self._events:
            return decoded(content)
        return dict(self._joined(self._events))

    def _read(self, line: bytes) -> bool:
        """Whether the line was an event that adds text."""
        if not line.startswith(b"data:"):
            return False
        raw = line.removeprefix(b"data:").strip()
        if not raw or raw == b"[DONE]":
            return False
        event = decoded(raw)
        if not isinstance(event, dict):
            raise Malformed("has an event that is no JSON object")
        self._events.append(event)
        added = self._delta(event)
        self._said += added
        return bool(added)


def _shown(said: str) -> str:
    """The visible text, without an end that may yet become a tag."""
    visible = strip_thinking(said).visible
    start = max(map(visible.rfind, _OPENS))
    tail = visible[start:] if start >= 0 else ""
    waits = tail and len(tail) < _LONGEST_TAG and not any(mark in tail for mark in _CLOSES)
    return visible[:start].rstrip() if waits else visible
