"""An OpenAI-style server whose answer is a pure function of the request body, for drills.

    python pure_server.py --log requests.jsonl [--delay 0.05] [--faults 0.2]

Prints its port. Every request is logged when it arrives. With --faults, that share of requests is
answered by a fault, drawn from a seeded generator: 429 with Retry-After, 500, a cut connection, an
empty body, invalid JSON.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
from pathlib import Path

from aiohttp import web

LINES = ["Come in.", "Not yet.", "Look there.", "Why now?", "The lamp is out.", "Say that again."]


def answer(raw: bytes) -> str:
    """A verdict where the prompt asks for one, else a line of talk, sometimes with a [QUIT]."""
    number = int(hashlib.sha256(raw).hexdigest(), 16)
    body = json.loads(raw)
    prompt = body["messages"][0]["content"]
    if body["model"] == "judge":
        names = sorted(set(re.findall(r'"(satisfaction|[GS]\d+)": "<', prompt)))
        scores = {name: 1 + (number >> (3 * i)) % 5 for i, name in enumerate(names)}
        return json.dumps(scores)
    text = f"{LINES[number % len(LINES)]} #{number % 9973}"
    return f"{text} [QUIT]" if b"[QUIT]" in raw and number % 7 == 0 else text


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "object": "chat.completion",
            "model": "pure-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }
    ).encode()


async def fault(kind: int, request: web.Request) -> web.StreamResponse:
    match kind:
        case 0:
            return web.Response(status=429, headers={"Retry-After": "0"}, text="slow down")
        case 1:
            return web.Response(status=500, text="<html>upstream</html>")
        case 2:
            request.transport.close()
            return web.Response()
        case 3:
            return web.Response(body=b"", content_type="application/json")
    return web.Response(body=b'{"choices": [{"mess', content_type="application/json")


def application(log: str, delay: float, faults: float) -> web.Application:
    rng = random.Random(7)
    requests = Path(log).open("ab", buffering=0)  # noqa: SIM115 - open while we serve

    async def complete(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        requests.write(json.dumps({"body": raw.decode()}).encode() + b"\n")
        broken = rng.random() < faults
        kind = rng.randrange(5)
        await asyncio.sleep(delay)
        if broken:
            return await fault(kind, request)
        return web.Response(body=completion(answer(raw)), content_type="application/json")

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", complete)
    return app


async def serve(options: argparse.Namespace) -> None:
    runner = web.AppRunner(application(options.log, options.delay, options.faults))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--faults", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args()))
