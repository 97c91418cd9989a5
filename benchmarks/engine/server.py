"""An OpenAI-compatible server that answers after a fixed latency, in a process of its own.

It answers judges with a valid verdict (told apart by the model's name and an id of the rubric),
everybody else with a line of talk, and counts requests and bytes by kind at GET /stats.

    python -m benchmarks.engine.server --latency-ms 50
"""

import argparse
import asyncio
import json
from collections import Counter

from aiohttp import web

GENERIC = [f"G{n}" for n in range(1, 13)]
SESSION = [f"S{n}" for n in range(1, 12)]
TALK = "The rain has not stopped since noon, and the harbour bell rings twice before she answers."


def _body(text: str) -> bytes:
    return json.dumps(
        {
            "id": "r",
            "object": "chat.completion",
            "model": "bench-1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    ).encode()


def _verdict(dimensions: list[str]) -> bytes:
    return _body(json.dumps({**dict.fromkeys(dimensions, 4), "reason": "as the card says"}))


ANSWERS = {
    "talk": _body(TALK),
    "personal": _verdict(["satisfaction"]),
    "generic": _verdict(GENERIC),
    "session": _verdict(SESSION),
}


def kind_of(body: bytes) -> str:
    if b'"model":"judge"' not in body:
        return "talk"
    if b'\\"S11\\"' in body:
        return "session"
    return "generic" if b'\\"G12\\"' in body else "personal"


def application(latency_s: float) -> web.Application:
    calls: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    in_flight = {"now": 0, "most": 0}

    async def complete(request: web.Request) -> web.Response:
        body = await request.read()
        kind = kind_of(body)
        calls[kind] += 1
        sizes[kind] += len(body)
        in_flight["now"] += 1
        in_flight["most"] = max(in_flight["most"], in_flight["now"])
        await asyncio.sleep(latency_s)
        in_flight["now"] -= 1
        return web.Response(body=ANSWERS[kind], content_type="application/json")

    async def stats(_request: web.Request) -> web.Response:
        report = {"calls": dict(calls), "bytes": dict(sizes), "most_in_flight": in_flight["most"]}
        calls.clear()
        sizes.clear()
        in_flight["most"] = 0
        return web.json_response(report)

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/stats", stats)
    return app


async def serve(latency_s: float) -> None:
    runner = web.AppRunner(application(latency_s), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--latency-ms", type=float, required=True)
    asyncio.run(serve(arguments.parse_args().latency_ms / 1000))
