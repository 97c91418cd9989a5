"""A model behind an HTTP API: shapes the conversation, asks, reads, and keeps the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from yarl import URL

from palate.errors import ModelError
from palate.models.answers import Answer, encoded
from palate.models.client import Completion, Request
from palate.models.ledger import Ledger
from palate.models.shapes import Shaped, ShapeRules, shape
from palate.models.streaming import Event, EventReader, Show
from palate.models.transport import Call, Endpoint

LEAST_KEY = 8  # characters; a shorter "secret" is a word that a reply may hold by chance


class Wire(Protocol):
    """How one API writes requests and answers."""

    def body(self, request: Request, shaped: Shaped) -> dict[str, object]:
        """The request's JSON object."""
        ...

    def read(self, value: object, request: Request) -> Answer:
        """The answer in a response; raises `Malformed`."""
        ...

    def delta(self, event: Event) -> str:
        """The text that one event of a streamed answer adds; "" for events of other kinds."""
        ...

    def joined(self, events: Sequence[Event]) -> Event:
        """The response that `read` would have got whole."""
        ...


def body_of(
    request: Request, wire: Wire, rules: ShapeRules, session_field: str | None = None
) -> dict[str, object]:
    """The JSON object that a request goes out as, by HTTP or in a batch file."""
    body = wire.body(request, shape(request.messages, rules))
    body.update(request.sampling.body)
    if request.session is not None and session_field:
        body[session_field] = request.session
    return body


@dataclass(frozen=True, slots=True)
class Address:
    """Where and with which headers a model is asked; `secrets` are kept out of errors.

    `url` is that of a call, `base` the address that it lies below.

    A session id (`Request.session`) goes into the header `session_header`, the body's field
    `session_field`, or both.
    """

    url: URL
    base: str
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    session_header: str | None = None
    session_field: str | None = None


class RemoteModel:
    """One model of one endpoint, for one role or several."""

    def __init__(
        self,
        name: str,
        wire: Wire,
        address: Address,
        endpoint: Endpoint,
        rules: ShapeRules,
        ledger: Ledger,
    ) -> None:
        self.name = name
        self.reads_digits = endpoint.settings.digits != "none"
        self.enforces_schema = endpoint.settings.json_schema
        self._wire = wire
        self._address = address
        self._endpoint = endpoint
        self._rules = rules
        self._ledger = ledger

    async def complete(self, request: Request) -> Completion:
        """See `palate.models.client.Model`."""
        return await self._answer(request, None)

    async def stream(self, request: Request, show: Show) -> Completion:
        """See `palate.models.streaming.Streams`."""
        reader = EventReader(
            self._wire.delta, self._wire.joined, lambda text: show(self._shown(text))
        )
        return await self._answer(request, reader)

    async def _answer(self, request: Request, reader: EventReader | None) -> Completion:
        role = request.purpose.role
        totals = self._ledger.of(role, self.name)

        def count_retry() -> None:
            totals.retries += 1

        try:
            answer, attempts, latency_s = await self._endpoint.call(
                self._call(request, streamed=reader is not None),
                lambda value: self._wire.read(value, request),
                count_retry,
                reader,
            )
        except ModelError:
            totals.failures += 1
            raise
        self._ledger.answered(role, self.name, answer.usage)
        return Completion(
            text=self._without_keys(answer.text),
            status=answer.status,
            reasoning=self._without_keys(answer.reasoning),
            model=self._without_keys(answer.model),
            usage=answer.usage,
            attempts=attempts,
            latency_s=latency_s,
            digit_probabilities=answer.digit_probabilities,
            first_token=answer.first_token,
        )

    async def asked(self, path: str, body: Mapping[str, object] | None = None) -> object:
        """See `palate.models.served.Serves`."""
        address = self._address
        above = address.base if path == "/models" else address.base.removesuffix("/v1")
        content = b"" if body is None else encoded(body)
        call = Call(self.name, URL(above + path), content, address.headers, address.secrets)
        return await self._endpoint.look(call)

    def _without_keys(self, text: str) -> str:
        """A service that echoes its request must not bring a key into a journal."""
        for secret in self._address.secrets:
            if len(secret) >= LEAST_KEY and secret in text:
                text = text.replace(secret, "[key]")
        return text

    def _shown(self, text: str) -> str:
        """Text on its way, without keys, and without an end that may become one."""
        text = self._without_keys(text)
        for secret in self._address.secrets:
            starts = range(min(len(secret) - 1, len(text)), LEAST_KEY // 2, -1)
            begun = next((n for n in starts if text.endswith(secret[:n])), 0)
            text = text[: len(text) - begun]
        return text

    def _call(self, request: Request, *, streamed: bool) -> Call:
        address = self._address
        body = body_of(request, self._wire, self._rules, address.session_field)
        if streamed:
            body["stream"] = True
        headers = address.headers
        if request.session is not None and address.session_header:
            headers = {**headers, address.session_header: request.session}
        return Call(self.name, address.url, encoded(body), headers, address.secrets)

    async def close(self) -> None:
        """Nothing to give back: connections belong to the pool."""
