"""Answers shown while they are written, over a real connection to a server of our own."""

import json
from pathlib import Path

import pytest
from aiohttp import web
from loopback import Loopback, answer, request, said

from palate.errors import TransportError
from palate.models.pool import Models
from palate.models.scripted import Entry, ScriptedModel
from palate.models.spec import EndpointSettings
from palate.models.streaming import streamed
from palate.models.transport import Timing


def events(*values: object, end: bytes = b"data: [DONE]\n\n", cut: bool = False):
    """Answers with these values as server-sent events; `cut` hangs up after them."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for value in values:
            await response.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        if cut:
            request.transport.abort()
        else:
            await response.write(end)
        return response

    return handle


def piece(text: str, finish: str | None = None, **more: object) -> dict[str, object]:
    """One event of a chat completion."""
    return {"choices": [{"delta": {"content": text, **more}, "finish_reason": finish}]}


async def no_pause(seconds: float) -> None:
    pass


async def read(*answers, model="openai:m", **settings):
    """What was shown, the completion, and what the server was asked."""
    shown: list[str] = []
    async with Loopback(answers) as server:
        url = server.url.removesuffix("/v1") if model.startswith("anthropic") else server.url
        timing = Timing(sleep=no_pause, random=lambda: 0.0)
        endpoints = {url: EndpointSettings(**settings)}
        async with Models(endpoints, study_dir=Path(), timing=timing) as pool:
            asked = pool.open(f"{model}@{url}")
            try:
                completion = await streamed(asked, request(), shown.append)
            except TransportError as error:
                return shown, error, server.bodies
    return shown, completion, server.bodies


async def test_text_is_shown_as_it_grows_and_the_whole_counts():
    shown, completion, bodies = await read(
        events(piece("Come"), piece(" in"), piece(".", "stop"), {"usage": {"prompt_tokens": 7}})
    )
    assert shown[-1] == "Come in."
    assert all("Come in.".startswith(text) for text in shown)
    assert (completion.text, completion.status, completion.usage.prompt) == ("Come in.", "ok", 7)
    assert bodies[0]["stream"] is True


async def test_a_reply_that_is_cut_at_its_limit_says_so():
    _, completion, _ = await read(events(piece("Come in", "length")))
    assert (completion.text, completion.status) == ("Come in", "length")


async def test_thoughts_are_never_shown():
    shown, completion, _ = await read(
        events(
            piece("", reasoning_content="secret"),
            piece("<thi"),
            piece("nk>secret</th"),
            piece("ink>Come"),
            piece(" in.", "stop"),
        )
    )
    assert "secret" not in "".join(shown)
    assert "<" not in "".join(shown)
    assert completion.text == "Come in."
    assert "secret" in completion.reasoning


async def test_a_cut_connection_is_asked_again_and_the_text_begins_anew():
    shown, completion, bodies = await read(
        events(piece("Go a"), cut=True), events(piece("Come in.", "stop"))
    )
    assert shown[-1] == "Come in."
    assert completion.text == "Come in."
    assert (completion.attempts, len(bodies)) == (2, 2)


async def test_an_error_within_the_stream_is_no_reply():
    broken = events(piece("Come"), {"error": {"message": "overloaded"}})
    _, error, bodies = await read(broken, max_attempts=2)
    assert isinstance(error, TransportError)
    assert "overloaded" in str(error)
    assert len(bodies) == 2


async def test_a_server_that_does_not_stream_is_read_whole():
    shown, completion, _ = await read(answer(said("Come in.")))
    assert shown == ["Come in."]
    assert completion.text == "Come in."


async def test_a_block_within_the_stream_is_a_refusal():
    _, completion, _ = await read(events(piece("", "content_filter")))
    assert completion.status == "refused"


async def test_a_model_that_echoes_its_key_shows_it_to_nobody(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    shown, completion, _ = await read(
        events(piece("I am sk-01234"), piece("56789"), piece(" here.", "stop")),
        key_env="OPENAI_API_KEY",
    )
    assert completion.text == "I am [key] here."
    assert not any("sk-01" in text for text in shown)


async def test_anthropic_events_are_read(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-0123456789")
    thought = {"type": "thinking_delta", "thinking": "secret"}
    shown, completion, _ = await read(
        events(
            {"type": "message_start", "message": {"model": "c-1", "usage": {"input_tokens": 9}}},
            {"type": "content_block_delta", "index": 0, "delta": thought},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Come"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": " in."}},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 4},
            },
            end=b'data: {"type": "message_stop"}\n\n',
        ),
        model="anthropic:c",
    )
    assert shown[-1] == "Come in."
    assert "secret" not in "".join(shown)
    assert (completion.text, completion.status, completion.model) == ("Come in.", "ok", "c-1")
    assert completion.usage == (9, 4, 0)


async def test_a_model_without_streaming_is_shown_at_once():
    entry = Entry(role="candidate", cell="u1/k1/A/1", turn=0, text="Come in.")
    shown: list[str] = []
    completion = await streamed(ScriptedModel.from_entries([entry]), request(), shown.append)
    assert shown == ["Come in."]
    assert completion.text == "Come in."


@pytest.mark.parametrize("text", ["a < b", "[Door opens] Come in", "I <3 you"])
async def test_brackets_that_are_no_tags_are_shown(text):
    shown, completion, _ = await read(events(piece(text), piece(" and more.", "stop")))
    assert shown[-1] == f"{text} and more."
    assert completion.text == f"{text} and more."
