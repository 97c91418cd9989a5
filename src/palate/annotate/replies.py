"""Replies while they are written: asked for once a message, followed by any number of windows.

A reply is written to its end and stored even if nobody watches any more: a phone that loses its
network finds it on the next visit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

from palate.annotate.acting import add_reply
from palate.annotate.actions import Done
from palate.annotate.characters import Characters
from palate.annotate.chats import Chat
from palate.annotate.desk import Desk
from palate.errors import PalateError
from palate.report.safe import terminal_safe
from palate.types import Finish

HEARTBEAT_S = 15.0  # a silent line is cut by some proxies after 30 s

Fault = Literal["blocked", "empty", "model", "changed"]

log = logging.getLogger("palate.annotate")


class Piece(NamedTuple):
    """What a window is to show: `text` after what it has, or in its place if `anew`."""

    text: str
    anew: bool


class Written(NamedTuple):
    """The reply is whole and stored; `cut`: it stopped at the model's length limit."""

    done: Done
    cut: bool


class Failed(NamedTuple):
    """Why there is no reply."""

    fault: Fault


Event = Piece | Written | Failed | None  # None: still nothing new


class _Running:
    """One reply on its way."""

    def __init__(self) -> None:
        self.text = ""
        self.end: Written | Failed | None = None
        self.news = asyncio.Event()

    def show(self, text: str) -> None:
        self.text = text
        self._tell()

    def finish(self, end: Written | Failed) -> None:
        self.end = end
        self._tell()

    def _tell(self) -> None:
        """Wake all who wait; who waits next waits for what comes next."""
        self.news.set()
        self.news = asyncio.Event()


class Replies:
    """All replies on their way; belongs to one event loop."""

    def __init__(self, desk: Desk, characters: Characters) -> None:
        self._desk = desk
        self._characters = characters
        self._running: dict[int, _Running] = {}  # by the id of the message that is answered
        self._tasks: set[asyncio.Task[None]] = set()

    async def follow(self, chat: Chat) -> AsyncIterator[Event]:
        """The reply to the chat's last message as it is written; its last event is its end."""
        running = self._of(chat)
        shown = ""
        while True:
            news, text, end = running.news, running.text, running.end
            if text != shown:
                grows = text.startswith(shown)
                yield Piece(text.removeprefix(shown) if grows else text, anew=not grows)
                shown = text
            if end is not None:
                yield end
                return
            try:
                await asyncio.wait_for(news.wait(), HEARTBEAT_S)
            except TimeoutError:
                yield None

    async def close(self) -> None:
        """Give up what is on its way; the message it would answer is asked for again later."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _of(self, chat: Chat) -> _Running:
        message = chat.turns[-1].id
        if message not in self._running:
            running = self._running[message] = _Running()
            task = asyncio.create_task(self._write(chat, message, running))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return self._running[message]

    async def _write(self, chat: Chat, message: int, running: _Running) -> None:
        end: Written | Failed = Failed("model")
        try:
            end = await self._written(chat, running)
        except PalateError as error:
            # For the operator alone: what a server said may name addresses and accounts.
            log.error("no reply in %s: %s", chat.cell.key, terminal_safe(str(error)))
        except Exception:
            log.exception("no reply in %s", chat.cell.key)
        finally:
            del self._running[message]
            running.finish(end)

    async def _written(self, chat: Chat, running: _Running) -> Written | Failed:
        completion = await self._characters.reply(chat, running.show)
        if completion.status == "refused":
            return Failed("blocked")
        if not completion.text.strip():
            return Failed("empty")
        finish: Finish = "length" if completion.status == "length" else "ok"
        done = await self._desk.write(add_reply, chat, completion.text, finish)
        return Written(done, finish == "length") if done else Failed("changed")
