"""The rating app as a process of its own, and a rater who speaks its language without a browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import aiohttp

TRIES = 300  # 0.1 s apart: longer than a server takes to come back


class Served(NamedTuple):
    """A running app: its address, the links it printed, its process, all that it said."""

    url: str
    links: dict[str, str]
    process: subprocess.Popen[str]
    said: str


def start(study: Path, *arguments: object, port: int = 0, env=None) -> Served:
    """Start `palate annotate`, and read what it prints until it serves."""
    command = [sys.executable, "-m", "palate", "annotate", str(study), "--port", str(port)]
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
    )
    links, said = {}, []
    for line in process.stdout:
        said.append(line)
        if found := re.match(r"Link for (.+): (http\S+)$", line):
            links[found[1]] = found[2]
        if found := re.match(r"Serving (http\S+) ", line):
            return Served(found[1], links, process, "".join(said))
    raise AssertionError(f"the app did not start: {''.join(said)}")


@contextlib.contextmanager
def serving(study: Path, *arguments: object, env=None) -> Iterator[Served]:
    """The app for the length of the block, stopped as a person stops it."""
    served = start(study, *arguments, env=env)
    try:
        yield served
    finally:
        served.process.send_signal(signal.SIGINT)
        try:
            served.process.wait(30)
        finally:
            served.process.kill()
            served.process.stdout.close()


def invited(*names: str) -> list[str]:
    """The options that invite these people."""
    return [part for name in names for part in ("--invite", name)]


class Rater:
    """Acts over HTTP, and sends again, under the same key, what was not answered."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.http = session
        self.url = url
        self.token = ""

    async def enter(self, link: str) -> str:
        """Follow a link; the page it leads to."""
        async with self.http.get(self.url + link[link.index("/i/") :]) as response:
            page = await response.text()
            assert response.status == 200, page
        self.token = state_of(page)["token"]
        return page

    async def page(self, path: str) -> str:
        async with self.http.get(self.url + path) as response:
            return await response.text()

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, dict]:
        """One request; its status and its JSON."""
        usual = {"X-Palate-Token": self.token, "Content-Type": "application/json"}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.http.post(
            self.url + path, data=data, headers={**usual, **headers}
        ) as response:
            return response.status, await response.json()

    async def do(self, path: str, **fields: object) -> dict:
        """A change, sent until it is answered."""
        body = {"key": secrets.token_hex(16), **fields}
        for _ in range(TRIES):
            try:
                status, answer = await self.post(path, body)
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(0.1)  # the server is away: a browser waits, too
                continue
            assert status == 200, (path, fields, status, answer)
            return answer
        raise AssertionError(f"{path} was never answered")

    async def reply(self, chat: str) -> dict:
        """The reply to the last message, followed to its end; its last event."""
        for _ in range(TRIES):
            with contextlib.suppress(aiohttp.ClientError, OSError):
                status, events = await self.events(chat)
                if status == 200 and events and ("done" in events[-1] or "problem" in events[-1]):
                    return events[-1]
                if status == 409:  # it was stored before its end could be told
                    state = state_of(await self.page(f"/chats/{chat}"))
                    turns = turns_of(await self.page(f"/chats/{chat}"))
                    return {"done": {"version": state["version"], "turn": turns[-1]}}
            await asyncio.sleep(0.1)
        raise AssertionError("the reply never ended")

    async def events(self, chat: str) -> tuple[int, list[dict]]:
        """What one request for the reply brings."""
        headers = {"X-Palate-Token": self.token, "Content-Type": "application/json"}
        async with self.http.post(
            f"{self.url}/chats/{chat}/reply", data=b"{}", headers=headers
        ) as response:
            raw = await response.read()
            return response.status, [json.loads(line) for line in raw.splitlines()]


def state_of(page: str) -> dict:
    """What a page tells its script."""
    block = re.search(r'<script type="application/json" id="state">(.*?)</script>', page, re.S)
    return json.loads(block[1])


def turns_of(page: str) -> list[int]:
    """The ids of the turns on a chat's page, in order."""
    return [int(one) for one in re.findall(r'data-turn="(\d+)"', page)]
