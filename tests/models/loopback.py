"""A real HTTP server on loopback that answers as a test says, and requests to ask it with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web
from aiohttp.test_utils import TestServer

from palate.models.client import ChatMessage, Purpose, Request, Sampling

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def said(text: str = "Come in.", **more: object) -> dict[str, object]:
    """A chat completion with one message."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    return {
        "model": "served-1",
        "choices": [{**choice, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4},
        **more,
    }


def answer(body: object = None, *, status: int = 200, **headers: str) -> Answer:
    """Answers with JSON; header names have "_" for "-"."""

    async def handle(request: web.Request) -> web.StreamResponse:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(said() if body is None else body, status=status, headers=names)

    return handle


def raw(content: bytes, *, status: int = 200) -> Answer:
    """Answers with these bytes."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, status=status, content_type="application/json")

    return handle


async def cut(request: web.Request) -> web.StreamResponse:
    """Promises more than it sends, and hangs up."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.close()
    return response


class Loopback:
    """Gives its answers in order, the last one again and again, and keeps what was asked."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.arrivals: asyncio.Queue[None] = asyncio.Queue()
        self.open_gate = asyncio.Event()
        self.url = ""  # the base URL for chat completions, once started
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/{path:.*}", self._handle)
        self.server = TestServer(app)

    async def __aenter__(self) -> Loopback:
        await self.server.start_server()
        self.url = f"http://127.0.0.1:{self.server.port}/v1"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open_gate.set()
        await self.server.close()

    async def arrived(self, calls: int) -> None:
        """Wait until this many more requests have come in."""
        for _ in range(calls):
            await self.arrivals.get()

    async def wait_at_gate(self, request: web.Request) -> web.StreamResponse:
        """An answer that comes once the test opens the gate."""
        await self.open_gate.wait()
        return await answer()(request)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        self.paths.append(request.path)
        reply = self.answers[min(len(self.bodies), len(self.answers)) - 1]
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.arrivals.put_nowait(None)
        try:
            return await reply(request)
        finally:
            self.in_flight -= 1


def request(
    *messages: tuple[str, str], cell: str = "u1/k1/A/1", turn: int | None = 0, **more: object
) -> Request:
    """A candidate's request; `more` are other fields of it."""
    fields: dict[str, object] = {
        "sampling": Sampling(max_tokens=50),
        "purpose": Purpose("candidate", cell, turn),
        **more,
    }
    spoken = messages or (("user", "Knock, knock."),)
    return Request(messages=tuple(ChatMessage(*m) for m in spoken), **fields)
