"""Stands in for a batch service: answers request files by a pure function of the body.

    python batch_service.py REQUESTS.jsonl RESPONSES.jsonl [--reverse]

The function is that of `pure_server.py`, so that answers by file and by HTTP can be compared.
"""

import argparse
import json
from pathlib import Path

import orjson

from pure_server import answer, completion


def response(custom_id: str, body: object, *, status: int = 200, **more: object) -> bytes:
    """A line as a batch service writes it."""
    value = {"status_code": status, "request_id": f"req-{custom_id[-8:]}", "body": body}
    line = {"id": f"batch_req_{custom_id[-8:]}", "custom_id": custom_id, "response": value}
    return json.dumps({**line, "error": None, **more}, ensure_ascii=False).encode() + b"\n"


def said(text: str, model: str = "pure-1") -> dict[str, object]:
    """A chat completion that says `text`."""
    return {**json.loads(completion(text)), "model": model}


def answered(line: bytes) -> bytes:
    request = json.loads(line)
    assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
    raw = orjson.dumps(request["body"])  # the very bytes that stand in the line
    assert raw in line
    return response(request["custom_id"], said(answer(raw)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("requests", type=Path)
    parser.add_argument("responses", type=Path)
    parser.add_argument("--reverse", action="store_true")
    options = parser.parse_args()
    lines = [answered(line) for line in options.requests.read_bytes().splitlines()]
    options.responses.write_bytes(b"".join(lines[::-1] if options.reverse else lines))
