"""Fifty raters at once, 2,000 ratings, the server killed in the middle: nothing lost or doubled."""

import asyncio
import json
import secrets
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest
from postgres import postgresql
from rating_app import Rater, state_of

from palate.annotate import invitations
from palate.annotate.database import open_database
from palate.annotate.sessions import sessions_of
from worlds import write_study

pytestmark = pytest.mark.slow

RATERS = tuple(f"r{number:02}" for number in range(50))
TURNS = 40


def score(rater: str, turn: int) -> int:
    return (RATERS.index(rater) + turn) % 5 + 1


def crowd_study(folder: Path) -> Path:
    """One card, one candidate, and a script with a line for every reply of every rater."""
    study = write_study(folder, cards=("k1",), candidates=("A",))
    script = [
        {
            "role": "candidate",
            "cell": f"{rater}/k1/A/1",
            "turn": turn,
            "text": f"{rater} hears reply {turn}",
        }
        for rater in RATERS
        for turn in range(TURNS)
    ]
    (study / "replies.json").write_text(json.dumps(script), "utf-8")
    return study


class Server:
    """The app at one port, whichever process serves it."""

    def __init__(self, study: Path, database: str | None) -> None:
        self.command = [sys.executable, str(Path(__file__).with_name("fast_app.py")), str(study)]
        self.database = [database] if database else []
        self.port = 0

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self.command, str(self.port), *self.database], stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()  # SIGKILL: it cannot tidy up
        self.process.wait()
        self.process.stdout.close()


class Crowd:
    """What the raters were told is saved: all of it must be found again."""

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.halfway = asyncio.Event()

    def told(self, rater: str, turn: int, value: int) -> None:
        self.acknowledged[rater, turn] = value
        if len(self.acknowledged) == len(RATERS) * TURNS // 2:
            self.halfway.set()


async def visit(crowd: Crowd, name: str, url: str, secret: str) -> None:
    """One rater's whole visit; every tenth rating is clicked twice at once."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        rater = Rater(session, url)
        await rater.enter(f"/i/{secret}")
        chat = (await rater.do("/chats", card="k1"))["chat"]
        version = state_of(await rater.page(f"/chats/{chat}"))["version"]
        for turn in range(TURNS):
            await rater.do(f"/chats/{chat}/say", version=version, text=f"{name} says {turn}")
            done = (await rater.reply(chat))["done"]
            fields = {
                "key": secrets.token_hex(16),
                "version": done["version"],
                "turn": done["turn"],
                "satisfaction": score(name, turn),
            }
            clicks = 2 if turn % 10 == 0 else 1
            answers = [rater.do(f"/chats/{chat}/rate", **fields) for _ in range(clicks)]
            version = {one["version"] for one in await asyncio.gather(*answers)}.pop()
            crowd.told(name, turn, score(name, turn))
        await rater.do(f"/chats/{chat}/leave", version=version)


def ratings_in(study: Path, url: str | None) -> dict[tuple[str, int], int]:
    """Every rating that the database holds, by rater and turn, each turn with its own words."""
    database = open_database(study, url, study="tiny")
    found = {}
    for name in RATERS:
        for session in sessions_of(database, name):
            said = [turn.text for turn in session.turns[1:]]
            expected = []
            for turn in range(TURNS):
                expected += [f"{name} says {turn}", f"{name} hears reply {turn}"]
            assert said == expected[: len(said)]  # in order, none missing, none twice
            for turn, reply in enumerate(session.turns[2::2]):
                if reply.satisfaction is not None:
                    found[name, turn] = reply.satisfaction
    database.close()
    return found


async def crowd_visits(study: Path, url: str | None) -> str:
    """All visits, with one kill in the middle; the figures in a sentence."""
    database = open_database(study, url, study="tiny")
    now = int(time.time())
    links = {name: invitations.invite(database, name, now=now, days=1) for name in RATERS}
    database.close()
    server, crowd = Server(study, url), Crowd()
    await asyncio.to_thread(server.start)
    began = time.monotonic()
    try:
        address = f"http://127.0.0.1:{server.port}"
        visits = [
            asyncio.create_task(visit(crowd, name, address, secret))
            for name, secret in links.items()
        ]
        await crowd.halfway.wait()
        server.kill()
        told = dict(crowd.acknowledged)
        held = await asyncio.to_thread(ratings_in, study, url)
        assert told.items() <= held.items()
        await asyncio.to_thread(server.start)
        await asyncio.gather(*visits)
    finally:
        server.kill()
    taken = time.monotonic() - began
    held = await asyncio.to_thread(ratings_in, study, url)
    assert held == crowd.acknowledged
    assert held == {(name, turn): score(name, turn) for name in RATERS for turn in range(TURNS)}
    return f"{len(held)} ratings of {len(RATERS)} raters in {taken:.1f} s, killed at {len(told)}"


async def test_nothing_acknowledged_is_lost_or_doubled_on_sqlite(tmp_path):
    print("SQLite:", await crowd_visits(crowd_study(tmp_path), None))


async def test_nothing_acknowledged_is_lost_or_doubled_on_postgresql(tmp_path):
    with postgresql() as url:
        print("PostgreSQL:", await crowd_visits(crowd_study(tmp_path), url))
