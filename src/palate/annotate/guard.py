"""What stands between the network and the pages: headers, sizes, rates, who is asking.

The cookie holds the secret of the person's link and nothing else, so that revoking the link ends
the visit. The token against forged requests is made of the same secret.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from pydantic import ValidationError
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from palate.types import Record

COOKIE = "palate_rater"
TOKEN_HEADER = "X-Palate-Token"  # noqa: S105 - a header's name
BODY_S = 30.0  # for a whole body to come
MOST_BYTES = 64 * 1024  # of a body: the longest message in four-byte characters fits twice

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # an invitation's address holds its secret
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Robots-Tag": "noindex",
}

R = TypeVar("R", bound=Record)


class Refused(Exception):
    """A request that is turned away: the HTTP status and a word that `words.py` knows."""

    def __init__(self, status: int, word: str) -> None:
        super().__init__(word)
        self.status = status
        self.word = word


class Rate(NamedTuple):
    """So many at once, and so many a second after that."""

    burst: float
    per_s: float


class Rates(NamedTuple):
    """How fast one person may act and ask for replies, and one address guess links."""

    actions: Rate = Rate(60, 4)
    replies: Rate = Rate(12, 0.5)
    bad_links: Rate = Rate(20, 0.2)


class Bucket:
    """Counts against a rate, by key."""

    _MOST_KEYS = 10_000

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # what is left, and when it was counted

    def take(self, key: str) -> None:
        """Count one; raises `Refused` (429) where that is too many."""
        left = self._now(key)
        if left < 1:
            raise Refused(429, "too_fast")
        self._forget_full()
        self._left[key] = (left - 1, self._clock())

    def _now(self, key: str) -> float:
        left, counted = self._left.get(key, (self._rate.burst, self._clock()))
        return min(self._rate.burst, left + (self._clock() - counted) * self._rate.per_s)

    def _forget_full(self) -> None:
        if len(self._left) >= self._MOST_KEYS:
            self._left = {k: v for k, v in self._left.items() if self._now(k) < self._rate.burst}


class SafeHeaders:
    """Puts the headers on every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if scope.get("scheme") == "https":
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        await self._app(scope, receive, send_with if scope["type"] == "http" else send)


def token(secret: str) -> str:
    """What a page of this visitor sends back with every change."""
    return hmac.new(secret.encode(), b"palate annotate", hashlib.sha256).hexdigest()


def check_origin(request: Request, secret: str) -> None:
    """Refuse what another site's page made the browser send; raises `Refused` (403)."""
    given = request.headers.get(TOKEN_HEADER, "")
    if not hmac.compare_digest(given.encode(), token(secret).encode()):
        raise Refused(403, "forged")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Refused(403, "forged")


async def body(request: Request, kind: type[R]) -> R:
    """The request's JSON as what it should be.

    Raises:
        Refused: it is no JSON (415), too long (413), too slow (408), or says something else (422).
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Refused(415, "malformed")
    try:
        async with asyncio.timeout(BODY_S):
            raw = await _raw(request)
    except TimeoutError:
        raise Refused(408, "malformed") from None
    except ClientDisconnect:
        raise Refused(400, "malformed") from None
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        too_long = any(fault["type"] == "string_too_long" for fault in error.errors())
        raise Refused(422, "too_long" if too_long else "malformed") from None


async def _raw(request: Request) -> bytes:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise Refused(413, "too_long")
    return bytes(raw)
