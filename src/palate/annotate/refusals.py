"""What a visitor is told when something is not done: a page, or JSON for a script."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from palate.annotate import pages
from palate.annotate.actions import NotDone, Problem
from palate.annotate.database import reason
from palate.annotate.guard import Refused
from palate.annotate.words import language_of, words
from palate.language import Language
from palate.report.safe import terminal_safe

LANGUAGE_COOKIE = "palate_language"
_STATUS: dict[Problem, int] = {
    "gone": 404,
    "changed": 409,
    "key_used": 422,
    "closed": 409,
    "not_now": 409,
    "fixed": 409,
    "full": 409,
}

log = logging.getLogger("palate.annotate")


def language_for(request: Request) -> Language:
    """The language of whoever sent `request`."""
    chosen = request.cookies.get(LANGUAGE_COOKIE)
    return language_of(chosen, request.headers.get("accept-language", ""))


def _answer(request: Request, status: int, word: str) -> Response:
    """A refusal: a page for who looks at one, JSON for a script."""
    language = language_for(request)
    if request.method in ("GET", "HEAD"):
        return HTMLResponse(pages.notice(word, language), status_code=status)
    return JSONResponse({"problem": word, "said": words(language)[word]}, status_code=status)


async def _on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _answer(request, error.status, error.word)


async def _on_not_done(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotDone)
    return _answer(request, _STATUS[error.problem], error.problem)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(request, error.status_code, "gone" if error.status_code == 404 else "malformed")


async def _on_database(request: Request, error: Exception) -> Response:
    assert isinstance(error, SQLAlchemyError)
    log.error("the database refused: %s %s", type(error).__name__, terminal_safe(reason(error)))
    return _answer(request, 503, "broken" if request.method == "GET" else "not_saved")


async def _on_fault(request: Request, error: Exception) -> Response:
    return _answer(request, 500, "broken")


HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    Refused: _on_refused,
    NotDone: _on_not_done,
    HTTPException: _on_http,
    SQLAlchemyError: _on_database,
    Exception: _on_fault,
}
