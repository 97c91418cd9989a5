"""Tiny worlds for tests: models that answer by a plain function, and nothing hidden in them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from palate.models.client import Completion, Request, Sampling, Status
from palate.roleplay import Seat, Step, Table
from palate.rubrics.freeze import as_json, freeze
from palate.types import Cell, Message, Usage

# Names that people and their tools give to characters, and what a disk makes of them.
HOSTILE_NAMES = (
    "../../escape",
    "/etc/hosts2",
    "C:\\temp\\x",
    "CON",
    "nul.txt",
    'What? Who: "me" <x>|*',
    "ends with dot.",
    " space around ",
    ".hidden",
    "..",
    "é",
    "e\u0301",
    "ALICE-x",
    "alice-x",
    "🦊🔥",
    "名" * 120,
    "a" * 300,
    "line\nbreak",
    "tab\there",
    "%2e%2e%2f",
    "-rf",
    "~",
    "$(touch pwned)",
    "{{user}}",
)


class Listed:
    """Says its lines in order, one a call, and counts the calls."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, lines: Sequence[str | tuple[str, Status]], name: str = "listed") -> None:
        self.name = name
        self.lines = list(lines)
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        line = self.lines[len(self.requests)]
        self.requests.append(request)
        text, status = line if isinstance(line, tuple) else (line, "ok")
        return Completion(text=text, status=status, usage=Usage(10, 2, 0))

    async def close(self) -> None:
        pass


class Answering:
    """Answers by a function of the request."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, answer: Callable[[Request], str], name: str = "answering") -> None:
        self.name = name
        self.answer = answer

    async def complete(self, request: Request) -> Completion:
        return Completion(text=self.answer(request), status="ok")

    async def close(self) -> None:
        pass


def table(
    simulator: Listed, candidate: Listed, *, depth: int, opening: str = "O", **seat: object
) -> Table:
    """A table for one cell, with no system prompts."""
    return Table(
        cell=Cell("u1", "k1", "A", 1),
        opening=opening,
        simulator=Seat(simulator, Sampling()),
        candidate=Seat(candidate, Sampling(), **seat),
        depth_limit=depth,
        seed=7,
        session="s-1",
        flags_of_user=lambda text, own: ("repetition",) if text in own else (),
    )


def said(texts: Sequence[str]) -> list[Message]:
    """Messages after the opening, the user first."""
    speakers = ("user", "character")
    return [Message(speaker=speakers[i % 2], text=text) for i, text in enumerate(texts)]


def steps_of(steps: Sequence[Step]) -> list[str | None]:
    """The texts of accepted steps."""
    return [step.message.text if step.message else None for step in steps]


def personal_rubric(user: str, language: str = "en") -> dict[str, object]:
    """A frozen rubric for a made-up user, as the JSON of its file."""
    draft = {
        "schema": "palate.rubric/1",
        "track": "personal",
        "user_id": user,
        "language": language,
        "summary": f"{user} likes short answers with something at stake.",
        "rewards": [{"id": "r1", "rule": "a concrete thing happens", "weight": "major"}],
        "penalties": [{"id": "p1", "rule": "asks instead of acting", "weight": "minor"}],
        "reactions": [{"pattern": "one word", "meaning": "bored", "direction": -1}],
        "anchors": {"1": "leaves", "2": "annoyed", "3": "fine", "4": "pleased", "5": "delighted"},
        "provenance": {"author": "hand"},
    }
    return json.loads(as_json(freeze(draft)))


def card(
    name: str, *, opening: str = "The gate is shut.", language: str = "en"
) -> dict[str, object]:
    """A V2 card as the JSON of its file."""
    return {
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "data": {
            "name": name,
            "description": f"{{{{char}}}} keeps the gate of {name} and trusts nobody.",
            "personality": "dry",
            "scenario": "A gate at dusk; {{user}} wants in.",
            "first_mes": opening,
            "mes_example": "",
            "extensions": {"palate": {"language": language}},
        },
    }


def write_study(
    folder: Path,
    *,
    users: Sequence[str] = ("u1", "u2"),
    cards: Sequence[str] = ("k1", "k2"),
    candidates: Sequence[str] = ("A", "B", "C"),
    repetitions: int = 2,
    depth: int = 2,
    sampled: int = 1,
    model: str = "scripted:replies.json",
    judge: str | None = None,
    extra: str = "",
) -> Path:
    """A whole study folder: cards, rubrics, study.toml; every role played by `model`."""
    for sub in ("cards", "rubrics"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    for name in cards:
        (folder / "cards" / f"{name}.json").write_text(json.dumps(card(name)), "utf-8")
    for user in users:
        rubric = json.dumps(personal_rubric(user), ensure_ascii=False)
        (folder / "rubrics" / f"{user}.json").write_text(rubric, "utf-8")
    lines = [
        '[study]\nname = "tiny"\npanel = ["cards/*.json"]\n',
        f"[protocol]\nrepetitions = {repetitions}",
        f"depth_limit = {depth}\nsampled_replies = {sampled}\nseed = 7\n",
        f'[judge]\nmodel = "{judge or model}"\nform = "json"\n',
    ]
    lines += [
        f'[[users]]\nid = "{user}"\nname = "{user} by name"\nrubric = "rubrics/{user}.json"\n'
        f'simulator = {{ kind = "prompted", model = "{model}" }}\n'
        for user in users
    ]
    # Temperatures differ, so that no two candidates send the same request.
    lines += [
        f'[[candidates]]\nname = "{name}"\nmodel = "{model}"\ntemperature = {number / 100}\n'
        for number, name in enumerate(candidates, 1)
    ]
    (folder / "study.toml").write_text("\n".join([*lines, extra]), "utf-8")
    return folder


def write_history(study: Path, cards: Sequence[str], *, user: str = "u1") -> None:
    """A session on each of these cards as the history of the study's user u1.

    Each is one reply and the user's answer, left by choice. `user`: whose sessions they say to be.
    """
    sessions = [
        {
            "session_id": f"s{number}",
            "user_id": user,
            "card_id": card_id,
            "language": "en",
            "ended_by": "quit",
            "turns": [
                {"speaker": "character", "text": "The gate is shut.", "satisfaction": 2},
                {"speaker": "user", "text": f"Hello {number}"},
            ],
        }
        for number, card_id in enumerate(cards)
    ]
    lines = "".join(json.dumps(session) + "\n" for session in sessions)
    (study / "u1.jsonl").write_text(lines, "utf-8")
    toml = (study / "study.toml").read_text("utf-8")
    changed = toml.replace('id = "u1"', 'id = "u1"\nhistory = "u1.jsonl"')
    assert changed != toml
    (study / "study.toml").write_text(changed, "utf-8")


@contextlib.contextmanager
def pure_server(folder: Path, *, delay: float = 0.0, faults: float = 0.0) -> Iterator[PureServer]:
    """The server of `pure_server.py` in a process of its own."""
    log = folder / "requests.jsonl"
    command = [sys.executable, str(Path(__file__).with_name("pure_server.py")), "--log", str(log)]
    command += ["--delay", str(delay), "--faults", str(faults)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            yield PureServer(f"openai:{{}}@http://127.0.0.1:{port}/v1", log)
        finally:
            process.kill()


class PureServer(NamedTuple):
    """`models` is filled with a model's name; `log` has a line a request."""

    models: str
    log: Path

    def requests(self) -> int:
        """Requests so far."""
        return len(self.log.read_bytes().splitlines()) if self.log.exists() else 0


def palate(*arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """The command line, in a process of its own."""
    command = [sys.executable, "-m", "palate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
