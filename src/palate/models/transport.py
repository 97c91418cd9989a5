"""Calls over HTTP: one connection pool, one limit per endpoint, bounded retries.

A call waits for its place among the endpoint's `max_concurrency`, then has `deadline_s` for all
its attempts. It keeps its place while it backs off, so that a struggling endpoint sees less
traffic. Backing off is exponential with full jitter, or as long as the endpoint asks; where that
would pass the deadline the call fails at once.
"""

from __future__ import annotations

import asyncio
import io
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from palate.errors import ContextExceeded, RequestRefused, TransportError
from palate.models.answers import Malformed, decoded
from palate.models.faults import Fault, of_status, one_line
from palate.models.spec import EndpointSettings

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
MOST_BYTES = 8 * 2**20  # of an answer; a long verdict with all its probabilities has a tenth
_LARGE = 2**20 - 1  # aiohttp warns of larger bodies unless they come as a file
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

T = TypeVar("T")


class Timing(NamedTuple):
    """Where time and chance come from."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


class Connections:
    """The HTTP session that all endpoints share, made at the first call; it has no limit itself."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """The session, which belongs to the event loop that first asked for it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),  # one cell must not see another's cookies
            )
        return self._session

    async def close(self) -> None:
        """Close all connections; a later call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it goes out, and who asks, for errors; `secrets` must not appear in them."""

    name: str
    url: URL
    body: bytes
    headers: Mapping[str, str]
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Stream(Protocol):
    """Somebody who reads an answer while it comes."""

    def begin(self) -> None:
        """An answer begins; what came before belonged to an attempt that failed."""
        ...

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        ...

    def whole(self, content: bytes) -> object:
        """All that came, as `read` takes it; raises `Malformed`."""
        ...


class Reply(NamedTuple, Generic[T]):
    """What a call brought, after how many attempts and seconds since it got its place."""

    answer: T
    attempts: int
    latency_s: float


class Endpoint:
    """One address with its limit and its retries, shared by all models that live there."""

    def __init__(
        self,
        url: str,
        settings: EndpointSettings,
        connections: Connections,
        timing: Timing = Timing(),
    ) -> None:
        self.settings = settings
        self._connections = connections
        self._timing = timing
        self._places = asyncio.Semaphore(settings.max_concurrency)
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout_s)
        self._proxy = _proxy(URL(url))

    async def call(
        self,
        call: Call,
        read: Callable[[object], T],
        on_retry: Callable[[], None],
        stream: Stream | None = None,
    ) -> Reply[T]:
        """Ask until `read` takes the answer.

        `read` raises `Malformed` for an answer that is none. `on_retry` is told of each retry.
        `stream` is given each piece of an answer as it comes; a retry begins the answer anew.

        Raises:
            TransportError: no answer after the bounded retries.
            RequestRefused: the endpoint will never accept this request.
        """
        async with self._places:
            return await self._attempts(call, read, on_retry, stream)

    async def look(self, call: Call) -> object | None:
        """What a server may or may not say of itself: the JSON of one request, or None.

        A GET where the call has no body. Nothing is tried again.
        """
        method = "POST" if call.body else "GET"
        try:
            async with (
                self._places,
                self._connections.session().request(
                    method,
                    call.url,
                    data=call.body or None,
                    headers=call.headers,
                    timeout=self._timeout,
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response,
            ):
                content = await _content(response, None)
                return decoded(content) if 200 <= response.status < 300 else None
        except (Malformed, TimeoutError, aiohttp.ClientError, OSError):
            return None

    async def _attempts(
        self,
        call: Call,
        read: Callable[[object], T],
        on_retry: Callable[[], None],
        stream: Stream | None,
    ) -> Reply[T]:
        clock, settings = self._timing.clock, self.settings
        began = clock()
        deadline = began + settings.deadline_s
        attempt = 1
        while True:
            result = await self._attempt(call, read, deadline - clock(), stream)
            if not isinstance(result, Fault):
                return Reply(result, attempt, clock() - began)
            if result.final:
                refusal = ContextExceeded if result.too_long else RequestRefused
                raise refusal(self._sentence(call, result.what))
            pause = self._pause(attempt, result.wait_s)
            if attempt == settings.max_attempts:
                break
            if clock() + pause >= deadline:
                wait = f"the next attempt would come in {pause:.0f} s, after the deadline"
                result = result._replace(what=f"{result.what}; {wait}")
                break
            on_retry()
            await self._timing.sleep(pause)
            attempt += 1
        after = f"{attempt} attempt{'s' if attempt > 1 else ''} in {clock() - began:.1f} s"
        raise TransportError(self._sentence(call, f"{after}, the last: {result.what}"))

    async def _attempt(
        self, call: Call, read: Callable[[object], T], left_s: float, stream: Stream | None
    ) -> T | Fault:
        """One request; what may go wrong on the way comes back as a `Fault`."""
        timeout = self._timeout
        if left_s < self.settings.timeout_s:
            timeout = aiohttp.ClientTimeout(total=max(left_s, 0.001))
        data = call.body if len(call.body) < _LARGE else io.BytesIO(call.body)
        try:
            async with self._connections.session().post(
                call.url,
                data=data,
                headers=call.headers,
                timeout=timeout,
                allow_redirects=False,  # a redirect would carry the key to a host nobody named
                proxy=self._proxy,
            ) as response:
                answered = 200 <= response.status < 300
                content = await _content(response, stream if answered else None)
            if answered:
                return read(stream.whole(content) if stream else decoded(content))
        except Malformed as fault:
            return Fault(f"the answer {fault}")
        except TimeoutError:
            return Fault(f"no answer within {timeout.total:g} s")
        except aiohttp.ClientConnectorCertificateError as error:
            return Fault(f"its certificate is not accepted ({error})", final=True)
        except (aiohttp.ClientError, OSError) as error:
            return Fault(f"connection failed ({type(error).__name__}: {error})")
        return of_status(
            response.status,
            response.headers,
            content,
            now=self._timing.wall(),
            key_env=self.settings.key_env,
        )

    def _pause(self, attempt: int, asked_s: float | None) -> float:
        """Seconds until the next attempt; what the endpoint asks for is spread a little."""
        chance = self._timing.random()
        if asked_s is not None:
            return asked_s + chance * FIRST_PAUSE_S
        return chance * min(FIRST_PAUSE_S * 2.0 ** (attempt - 1), LONGEST_PAUSE_S)

    def _sentence(self, call: Call, what: str) -> str:
        return f"{call.name}: {one_line(what, call.secrets)}"


async def _content(response: aiohttp.ClientResponse, stream: Stream | None) -> bytes:
    """The body, unless it is larger than any answer could be; raises `Malformed`.

    A length that is told is trusted only where nothing is to be unpacked: a few packed bytes can
    be a gigabyte.
    """
    told = response.content_length
    if stream is not None:
        stream.begin()
    elif told is not None and told <= MOST_BYTES and "Content-Encoding" not in response.headers:
        return await response.read()
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > MOST_BYTES:
            raise Malformed(f"is larger than {MOST_BYTES // 2**20} MB")
        if stream is not None:
            stream.feed(chunk)
    return bytes(content)


def _proxy(url: URL) -> str | None:
    """The proxy that the environment names for `url`.

    Looked up once: aiohttp's own look-up costs as much as a call, and would read .netrc.
    """
    host = url.host or ""
    if host in _LOOPBACK or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)
