"""Answers that would fill the memory, stop the clock, or carry a key into a journal."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from aiohttp import web
from loopback import Loopback, answer, raw, request, said

from palate.errors import TransportError
from palate.models.pool import Models
from palate.models.spec import EndpointSettings
from palate.models.thinking import strip_thinking
from palate.models.transport import MOST_BYTES


async def asked(reply, **opened):
    """What a model makes of one answer."""
    async with Loopback([reply]) as server:
        once = {server.url: EndpointSettings(max_attempts=1)}
        async with Models(once, study_dir=Path()) as models:
            return await models.open(f"openai:m@{server.url}", **opened).complete(request())


async def test_an_answer_larger_than_any_could_be_is_not_read_to_its_end():
    with pytest.raises(TransportError, match="larger than 8 MB"):
        await asked(raw(b'"' + b"a" * (MOST_BYTES + 1)))


async def test_a_few_packed_bytes_are_not_unpacked_into_the_whole_memory():
    async def bomb(asking: web.Request) -> web.StreamResponse:
        packed = gzip.compress(b'"' + b"a" * (4 * MOST_BYTES))
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    with pytest.raises(TransportError, match="larger than 8 MB"):
        await asked(bomb)


async def test_a_packed_answer_is_read():
    async def packed(asking: web.Request) -> web.StreamResponse:
        response = await answer()(asking)
        body = gzip.compress(response.body)
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    assert (await asked(packed)).text == "Come in."


async def test_a_count_of_tokens_that_fits_no_journal_is_none():
    usage = {"prompt_tokens": 2**63, "completion_tokens": 4}
    assert (await asked(answer(said(usage=usage)))).usage == (0, 4, 0)


async def test_a_service_that_echoes_its_request_brings_no_key_into_a_reply(monkeypatch):
    monkeypatch.setenv("RPA_TOKEN", "Bearer a-long-secret-token")
    echo = answer(said("I was sent Bearer a-long-secret-token, that is a-long-secret-token."))
    completion = await asked(echo, headers={"Authorization": "env:RPA_TOKEN"})
    assert completion.text == "I was sent [key], that is [key]."


# Each of these took minutes where a pattern was tried from every place to the end.
@pytest.mark.parametrize(
    "text",
    [
        "`a`<think>" * 40000,
        "<" + " " * 300000,
        "<think><think></think>" * 20000,
        "</think>a" * 100000,
    ],
    ids=["code and tags", "spaces", "unbalanced", "closings"],
)
def test_reasoning_is_taken_out_of_a_hostile_text_in_one_pass(text):
    assert len(strip_thinking(text).visible) < len(text)


def test_an_opening_without_its_own_closing_ends_at_the_first_one():
    assert strip_thinking("<think>a<think>b</think>c<think>d</think>e") == ("ce", "a<think>b\nd")
