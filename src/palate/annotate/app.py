"""The addresses of the rating app.

    GET  /i/SECRET              an invitation: sets the cookie, goes on to /
    GET  /                      the visitor's chats, and the characters
    GET  /language/en|zh        changes the language of the pages
    POST /chats                 begins a chat
    GET  /chats/ID              a chat
    POST /chats/ID/say|rate|regenerate|edit|leave
    POST /chats/ID/reply        the reply to the last message, as it is written: a JSON a line

Changes are JSON in and out, with the visitor's token in a header; a refusal is
{"problem": WORD, "said": SENTENCE} with its HTTP status.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from palate.annotate import acting, chats, invitations, pages, starting
from palate.annotate.actions import (
    Action,
    Edit,
    Leave,
    NotDone,
    Rate,
    Regenerate,
    Say,
    Start,
)
from palate.annotate.characters import Characters
from palate.annotate.chats import Chat, Summary
from palate.annotate.database import Database
from palate.annotate.desk import Desk
from palate.annotate.guard import (
    COOKIE,
    Bucket,
    Rates,
    Refused,
    SafeHeaders,
    body,
    check_origin,
    token,
)
from palate.annotate.pages import Visitor
from palate.annotate.refusals import HANDLERS, LANGUAGE_COOKIE, language_for
from palate.annotate.replies import Event, Failed, Piece, Replies, Written
from palate.annotate.words import words
from palate.language import Language

_STATIC = Path(__file__).with_name("static")
_A_YEAR_S = 365 * 86_400
_ACTIONS: dict[str, type[Action]] = {
    "say": Say,
    "rate": Rate,
    "regenerate": Regenerate,
    "edit": Edit,
    "leave": Leave,
}


class _Visit(NamedTuple):
    """Who is asking, by which secret."""

    person_id: str
    secret: str


class App:
    """The request handlers, with what they share."""

    def __init__(self, desk: Desk, characters: Characters, rates: Rates) -> None:
        self._desk = desk
        self._characters = characters
        self.replies = Replies(desk, characters)
        self._actions = Bucket(rates.actions)
        self._asked = Bucket(rates.replies)
        self._bad_links = Bucket(rates.bad_links)

    def routes(self) -> Sequence[BaseRoute]:
        """Every address, and who serves it."""
        return [
            Route("/i/{secret}", self.invitation),
            Route("/", self.home),
            Route("/language/{language}", self.language),
            Route("/chats", self.start, methods=["POST"]),
            Route("/chats/{chat}", self.chat),
            Route("/chats/{chat}/reply", self.reply, methods=["POST"]),
            Route("/chats/{chat}/{action}", self.act, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ]

    async def invitation(self, request: Request) -> Response:
        """Let the owner of a link in."""
        secret = request.path_params["secret"]
        await self._visit(request, secret)
        response = RedirectResponse("/", status_code=303)
        # Lax: the link is followed from a letter or a chat, which is another site.
        response.set_cookie(
            COOKIE,
            secret,
            max_age=_A_YEAR_S,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return response

    async def language(self, request: Request) -> Response:
        """Change the language of the pages."""
        response = RedirectResponse("/", status_code=303)
        chosen = request.path_params["language"]
        if chosen in ("en", "zh"):
            response.set_cookie(LANGUAGE_COOKIE, chosen, max_age=_A_YEAR_S, samesite="lax")
        return response

    async def home(self, request: Request) -> Response:
        """The visitor's chats, and the characters."""
        visit = await self._visit(request)
        mine = await self._desk.read(_summaries, visit.person_id)
        faces = self._characters.faces(visit.person_id)
        page = pages.home(_visitor(request, visit), faces, mine, self._characters)
        return HTMLResponse(page)

    async def chat(self, request: Request) -> Response:
        """A chat, to go on with or to rate."""
        visit = await self._visit(request)
        found = await self._desk.read(_chat, request.path_params["chat"], visit.person_id)
        return HTMLResponse(pages.chat(_visitor(request, visit), found, self._characters))

    async def start(self, request: Request) -> Response:
        """Begin a chat."""
        visit = await self._changing(request)
        wanted = await body(request, Start)
        if not self._characters.knows_card(wanted.card):
            raise NotDone("gone")

        def begin(candidate: str, number: int) -> starting.Beginning:
            return self._characters.begin(wanted.card, visit.person_id, candidate, number)

        done = await self._desk.write(
            starting.start, visit.person_id, wanted, self._characters.candidates, begin
        )
        return JSONResponse(done._asdict())

    async def act(self, request: Request) -> Response:
        """Change a chat."""
        kind = _ACTIONS.get(request.path_params["action"])
        if kind is None:
            raise Refused(404, "gone")
        visit = await self._changing(request)
        wanted = await body(request, kind)
        chat_id = request.path_params["chat"]
        if kind in (Regenerate, Edit):
            found = await self._desk.read(_chat, chat_id, visit.person_id)
            if found.candidate is None or not self._characters.can_rewind(found):
                raise NotDone("fixed")
        done = await self._desk.write(acting.act, visit.person_id, chat_id, wanted)
        return JSONResponse(done._asdict())

    async def reply(self, request: Request) -> Response:
        """The reply to the last message of a chat, as it is written."""
        visit = await self._changing(request)
        self._asked.take(visit.person_id)
        found = await self._desk.read(_chat, request.path_params["chat"], visit.person_id)
        if not found.awaits_reply:
            raise NotDone("not_now")
        if not self._characters.can_reply(found):
            raise NotDone("gone")
        lines = _lines(self.replies.follow(found), language_for(request))
        # A proxy that collects the answer would show the reply all at once.
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)

    async def _visit(self, request: Request, secret: str | None = None) -> _Visit:
        """Who is asking; raises `Refused` (403, 429) where nobody can be told."""
        given = request.cookies.get(COOKIE, "") if secret is None else secret
        if not given:
            raise Refused(403, "no_link")
        found = await self._desk.read(invitations.guest, given, now=self._desk.now())
        if isinstance(found, str):
            # Counted after the look-up: who has a good link is never shut out with a guesser.
            self._bad_links.take(request.client.host if request.client else "")
            raise Refused(403, found)
        return _Visit(found.person_id, given)

    async def _changing(self, request: Request) -> _Visit:
        """Who asks for a change, having been seen to ask for it themselves."""
        visit = await self._visit(request)
        check_origin(request, visit.secret)
        self._actions.take(visit.person_id)
        return visit


def application(
    database: Database,
    characters: Characters,
    *,
    rates: Rates = Rates(),
    on_close: Callable[[], Awaitable[None]] | None = None,
) -> ASGIApp:
    """The rating app as an ASGI application; `on_close` is awaited when it is shut down."""
    app = App(Desk(database), characters, rates)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await app.replies.close()
        if on_close is not None:
            await on_close()

    served = Starlette(
        routes=app.routes(),
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    # An address that Starlette mends begins with whatever host a proxy passed, and plain HTTP.
    served.router.redirect_slashes = False
    return SafeHeaders(served)  # outermost: a page that says what broke has them too


def _summaries(database: Database, person_id: str) -> tuple[Summary, ...]:
    with database.reading() as connection:
        return chats.summaries(connection, person_id)


def _chat(database: Database, chat_id: str, person_id: str) -> Chat:
    with database.reading() as connection:
        return chats.load(connection, chat_id, person_id)


def _visitor(request: Request, visit: _Visit) -> Visitor:
    return Visitor(visit.person_id, token(visit.secret), language_for(request))


async def _lines(events: AsyncIterator[Event], language: Language) -> AsyncIterator[bytes]:
    async for event in events:
        yield json.dumps(_as_json(event, language)).encode() + b"\n"


def _as_json(event: Event, language: Language) -> dict[str, object]:
    if isinstance(event, Piece):
        return {"text": event.text, "anew": event.anew}
    if isinstance(event, Written):
        return {"done": event.done._asdict(), "cut": event.cut}
    if isinstance(event, Failed):
        return {"problem": event.fault, "said": words(language)[event.fault]}
    return {}
