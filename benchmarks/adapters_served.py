"""Several adapters over one embedded server: together against one after another.

    python -m benchmarks.adapters_served [--repeats 3] [--json FILE] [ADAPTER.gguf …]

Eight conversations of three turns each, over four adapters and over one; each set is played all at
once and one by one, each time by a new server, in turn. Adapters are random ones unless files are
given. Printed are the medians of wall-clock and processor seconds (on a busy machine only the
latter mean anything), the prompt tokens that were computed, and the ratio of one by one to
together: above 1, together is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from palate.models.client import ChatMessage, Model, Purpose, Request, Sampling
from palate.models.pool import Models

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from trained_folders import random_adapter

CONVERSATIONS, TURNS, REPLY_TOKENS, MESSAGE_WORDS = 8, 3, 24, 30
WORDS = ("harbour", "lamp", "rope", "gull", "tide", "quay", "mist", "anchor", "oar", "hull", "net")


class Cost(NamedTuple):
    """Of one set, played once."""

    wall_s: float
    cpu_s: float
    prompt_tokens: int


async def converse(model: Model, user: int, number: int) -> int:
    """One conversation; the prompt tokens that were computed for it."""
    rng = random.Random(number)
    messages = [ChatMessage("system", f"You are user {user}, chatting with Ben {number}.")]
    computed = 0
    for turn in range(TURNS):
        said = " ".join(rng.choices(WORDS, k=MESSAGE_WORDS))
        messages.append(ChatMessage("user", f"{said}?"))
        answer = await model.complete(
            Request(
                messages=tuple(messages),
                sampling=Sampling(
                    temperature=0.0, max_tokens=REPLY_TOKENS, body={"ignore_eos": True}
                ),
                purpose=Purpose("simulator", f"{user}/{number}", turn),
            )
        )
        messages.append(ChatMessage("assistant", answer.text))
        computed += answer.usage.prompt - answer.usage.cached
    return computed


async def played(adapters: list[Path], *, together: bool) -> tuple[float, int]:
    """Seconds and computed prompt tokens of the set, without the start of its server."""
    async with Models({}, study_dir=Path()) as models:
        opened = [models.open("local:smollm2-135m", adapter=adapter) for adapter in adapters]
        await converse(opened[0], 0, 99)
        began = time.monotonic()
        users = [number % len(opened) for number in range(CONVERSATIONS)]
        if together:
            calls = (converse(opened[user], user, n) for n, user in enumerate(users))
            computed = sum(await asyncio.gather(*calls))
        else:
            # Sorted by adapter: the best order that there is for one by one.
            order = sorted(range(CONVERSATIONS), key=lambda n: users[n])
            computed = sum([await converse(opened[users[n]], users[n], n) for n in order])
        return time.monotonic() - began, computed


def measured(adapters: list[Path], *, together: bool) -> Cost:
    """One set by a new server; its processor time is known once it has ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall_s, computed = asyncio.run(played(adapters, together=together))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall_s, cpu_s, computed)


def middle(costs: list[Cost]) -> dict[str, float]:
    return {name: round(median(getattr(c, name) for c in costs), 2) for name in Cost._fields}


def compared(adapters: list[Path], repeats: int) -> dict[str, object]:
    """Together against one by one, played in turn."""
    together, apart = [], []
    for _ in range(repeats):
        together.append(measured(adapters, together=True))
        apart.append(measured(adapters, together=False))
    found = {"together": middle(together), "one_by_one": middle(apart)}
    for unit in ("wall_s", "cpu_s"):
        found[f"ratio_{unit}"] = round(found["one_by_one"][unit] / found["together"][unit], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("adapters", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [path.absolute() for path in given.adapters]
        for seed in range(4 - len(files)):
            files.append(Path(folder) / f"{seed}.gguf")
            files[-1].write_bytes(random_adapter(seed))
        found = {
            "four adapters": compared(files[:4], given.repeats),
            "one adapter": compared(files[:1], given.repeats),
        }
    for name, values in found.items():
        print(f"{name}: {CONVERSATIONS} conversations")
        for key, value in values.items():
            print(f"  {key}: {value}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
