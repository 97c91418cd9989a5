"""The same work as a plain aiohttp loop: no records, no retries, no checks.

What an engine is measured against: the conversation grows turn by turn, the judge prompts hold it
and have the size that palate's had, the scores are read from the verdicts, and a semaphore keeps
the given number in flight.

    python -m benchmarks.engine.plain URL TRAJECTORIES TURNS JUDGED IN_FLIGHT SIZES
"""

import asyncio
import json
import sys
import time

import aiohttp
import orjson


async def trajectory(
    session: aiohttp.ClientSession,
    gate: asyncio.Semaphore,
    url: str,
    turns: int,
    judged: int,
    sizes: dict[str, int],
) -> None:
    async def ask(model: str, messages: list[dict[str, str]]) -> str:
        body = orjson.dumps({"model": model, "messages": messages, "max_tokens": 512})
        headers = {"Content-Type": "application/json"}
        async with gate, session.post(url, data=body, headers=headers) as response:
            answer = orjson.loads(await response.read())
        return answer["choices"][0]["message"]["content"]

    system = "s" * sizes["system"]
    said = ["The door is open."]
    for turn in range(2 * turns):
        roles = ("user", "assistant") if turn % 2 == 0 else ("assistant", "user")
        messages = [{"role": "system", "content": system}]
        messages += [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]
        said.append(await ask("player", messages))
    wanted = ["personal"] * judged + ["generic"] * judged + ["session"]
    words = {
        "personal": "",
        "generic": '"G12"',
        "session": '"S11"',
    }
    spoken = "\n".join(said)
    prompts = [f"{words[k]}{'r' * (sizes[k] - len(spoken))}\n{spoken}" for k in wanted]
    verdicts = await asyncio.gather(
        *(ask("judge", [{"role": "user", "content": prompt}]) for prompt in prompts)
    )
    scores = [orjson.loads(verdict) for verdict in verdicts]
    assert len(scores) == 2 * judged + 1


async def main(
    url: str, trajectories: int, turns: int, judged: int, in_flight: int, sizes: dict[str, int]
) -> None:
    gate = asyncio.Semaphore(in_flight)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(
            *(trajectory(session, gate, url, turns, judged, sizes) for _ in range(trajectories))
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    calls = trajectories * (2 * turns + 2 * judged + 1)
    print(json.dumps({"calls": calls, "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    base, *numbers, sizes_json = sys.argv[1:]
    asyncio.run(main(f"{base}/v1/chat/completions", *map(int, numbers), json.loads(sizes_json)))
