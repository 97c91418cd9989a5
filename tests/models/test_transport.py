"""Calls against a real server on loopback: retries, deadlines, limits, and what errors say."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from pathlib import Path

import pytest
from loopback import Loopback, answer, cut, raw, request, said

from palate.errors import ContextExceeded, RequestRefused, TransportError
from palate.models.pool import Models
from palate.models.spec import EndpointSettings
from palate.models.transport import Timing

NOW = 1_800_000_000.0


class Clock:
    """A clock that only sleeping moves; chance is always one half."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    @property
    def timing(self) -> Timing:
        return Timing(
            clock=lambda: self.now, wall=lambda: NOW, sleep=self.sleep, random=lambda: 0.5
        )


@pytest.fixture
def clock():
    return Clock()


def models(server, clock, **settings):
    endpoints = {server.url: EndpointSettings(**settings)}
    return Models(endpoints, study_dir=Path(), timing=clock.timing)


async def ask(server, clock, **settings):
    async with models(server, clock, **settings) as pool:
        return await pool.open(f"openai:m@{server.url}").complete(request())


async def test_a_reply_carries_its_revision_usage_and_attempts(clock):
    async with Loopback([answer()]) as server:
        completion = await ask(server, clock)
    assert (completion.text, completion.status) == ("Come in.", "ok")
    assert completion.model == "served-1"
    assert completion.usage == (9, 4, 0)
    assert (completion.attempts, completion.latency_s) == (1, 0.0)
    assert server.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    "fault",
    [
        answer({"error": {"message": "slow down"}}, status=429),
        answer({"error": {"message": "oops"}}, status=500),
        answer({"detail": "loading"}, status=503),
        answer({}, status=529),
        answer({}, status=408),
        answer({"error": {"message": "upstream timeout", "code": 524}}),
        answer({"id": "r", "choices": []}),
        raw(b""),
        raw(b'{"choices": ['),
        raw(b"<html>502 Bad Gateway</html>"),
        cut,
    ],
)
async def test_what_may_pass_is_asked_again(clock, fault):
    async with Loopback([fault, fault, answer()]) as server:
        completion = await ask(server, clock)
    assert completion.text == "Come in."
    assert completion.attempts == 3
    assert len(server.bodies) == 3
    assert server.bodies[0] == server.bodies[2]


async def test_pauses_grow_exponentially_with_jitter(clock):
    """Half of 0.5, 1, 2 and 4 seconds."""
    async with Loopback([answer({}, status=500)] * 4 + [answer()]) as server:
        completion = await ask(server, clock)
    assert clock.pauses == [0.25, 0.5, 1.0, 2.0]
    assert completion.latency_s == 3.75


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry_After": "7"}, 7.25),
        ({"Retry_After": "1.5"}, 1.75),
        ({"Retry_After": formatdate(NOW + 30, usegmt=True)}, 30.25),
        ({"Retry_After": formatdate(NOW - 30, usegmt=True)}, 0.25),
        ({"retry_after_ms": "1500", "Retry_After": "9"}, 1.75),
        ({"Retry_After": "soon"}, 0.25),
        ({"Retry_After": "-5"}, 0.25),
    ],
)
async def test_an_endpoint_may_say_how_long_to_wait(clock, headers, pause):
    async with Loopback([answer({}, status=429, **headers), answer()]) as server:
        await ask(server, clock)
    assert clock.pauses == [pause]


async def test_a_wait_beyond_the_deadline_fails_at_once(clock):
    async with Loopback([answer({}, status=429, Retry_After="3600")]) as server:
        with pytest.raises(TransportError, match="would come in 3600 s, after the deadline"):
            await ask(server, clock, deadline_s=600)
    assert clock.pauses == []


async def test_attempts_are_bounded_and_the_last_fault_is_told(clock):
    async with Loopback([answer({"error": {"message": "no luck"}}, status=500)]) as server:
        with pytest.raises(TransportError) as failed:
            await ask(server, clock, max_attempts=3)
        assert len(server.bodies) == 3
    assert str(failed.value) == (
        f"openai:m@{server.url}: 3 attempts in 0.8 s, the last: HTTP 500: no luck"
    )


async def test_a_slow_answer_is_given_up_and_asked_for_again(clock):
    async with Loopback([]) as server:
        server.answers = [server.wait_at_gate, answer()]
        completion = await ask(server, clock, timeout_s=0.05)
    assert completion.attempts == 2


async def test_a_server_that_is_not_there_is_a_transport_error(clock):
    async with Loopback([answer()]) as server:
        pass
    with pytest.raises(TransportError, match="connection failed"):
        await ask(server, clock, max_attempts=2)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, {"error": {"message": "bad temperature"}}, "HTTP 400: bad temperature"),
        (401, {"error": "who are you"}, "check the key: key_env of this endpoint"),
        (404, {"message": "no such model"}, "check the model's name and the base URL"),
        (422, {"detail": [{"msg": "field required"}]}, "field required"),
        (
            400,
            {"error": {"message": "too long", "code": "context_length_exceeded"}},
            "longer than the model's context",
        ),
        (
            400,
            {"error": {"message": "This model's maximum context length is 4096 tokens"}},
            "longer than the model's context",
        ),
        (429, {"error": {"message": "no", "code": "insufficient_quota"}}, "insufficient_quota"),
        (307, {}, "it redirects to"),
    ],
)
async def test_what_will_never_pass_is_refused_without_a_retry(clock, status, body, says):
    async with Loopback([answer(body, status=status, Location="http://elsewhere/")]) as server:
        with pytest.raises(RequestRefused) as refused:
            await ask(server, clock)
        assert len(server.bodies) == 1
    assert says in str(refused.value)


async def test_a_request_longer_than_the_context_is_an_error_of_its_own(clock):
    said = {"error": {"message": "request (9000 tokens) exceeds the available context size"}}
    async with Loopback([answer(said, status=400)]) as server:
        with pytest.raises(ContextExceeded):
            await ask(server, clock)


async def test_a_rate_limit_that_mentions_billing_is_asked_again(clock):
    limit = {"error": {"message": "Rate limit reached; see your plan and billing", "code": None}}
    async with Loopback([answer(limit, status=429), answer()]) as server:
        assert (await ask(server, clock)).attempts == 2


async def test_an_empty_reply_is_left_to_the_caller(clock):
    async with Loopback([answer(said(""))]) as server:
        completion = await ask(server, clock)
    assert (completion.status, completion.attempts) == ("empty", 1)


async def test_no_key_reaches_an_error(clock, monkeypatch):
    monkeypatch.setenv("MY_KEY", "tok-4711-secret")
    monkeypatch.setenv("MY_TOKEN", "Bearer other-4712-secret")
    echo = {
        "error": {
            "message": "tok-4711-\x1b[31msecret and \x1b]0;title\x07 Other-token "
            "other-4712-secret\nand sk-live-abcdefgh12 " + "x" * 400 + " tok-4711-secret"
        }
    }
    async with Loopback([answer(echo, status=400)]) as server:
        endpoints = {server.url: EndpointSettings(key_env="MY_KEY")}
        async with Models(endpoints, study_dir=Path(), timing=clock.timing) as pool:
            model = pool.open(f"openai:m@{server.url}", headers={"X-Token": "env:MY_TOKEN"})
            with pytest.raises(RequestRefused) as refused:
                await model.complete(request())
    text = str(refused.value)
    assert "secret" not in text
    assert "sk-live" not in text
    assert text.isprintable()
    assert len(text) < 400
    assert server.headers[0]["Authorization"] == "Bearer tok-4711-secret"
    assert server.headers[0]["X-Token"] == "Bearer other-4712-secret"


async def test_the_limit_is_shared_by_all_models_of_an_endpoint(clock):
    async with Loopback([]) as server:
        server.answers = [server.wait_at_gate]
        async with models(server, clock, max_concurrency=3) as pool:
            opened = [pool.open(f"openai:{name}@{server.url}") for name in ("a", "b")]
            calls = [asyncio.create_task(m.complete(request())) for m in opened * 6]
            await server.arrived(3)
            server.open_gate.set()
            await asyncio.gather(*calls)
    assert server.most_in_flight == 3
    assert len(server.bodies) == 12


async def test_the_run_may_set_another_limit(clock):
    async with Loopback([]) as server:
        server.answers = [server.wait_at_gate]
        pool = Models({}, study_dir=Path(), max_concurrency=1, timing=clock.timing)
        async with pool:
            model = pool.open(f"openai:m@{server.url}")
            assert pool.width() == 1
            calls = [asyncio.create_task(model.complete(request())) for _ in range(4)]
            server.open_gate.set()
            await asyncio.gather(*calls)
    assert server.most_in_flight == 1


async def test_a_cancelled_call_gives_its_place_back(clock):
    async with Loopback([]) as server:
        server.answers = [server.wait_at_gate, answer()]
        async with models(server, clock, max_concurrency=1) as pool:
            model = pool.open(f"openai:m@{server.url}")
            call = asyncio.create_task(model.complete(request()))
            await server.arrived(1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await model.complete(request())).text == "Come in."


async def test_a_prompt_of_two_megabytes_is_sent(clock):
    async with Loopback([answer()]) as server, models(server, clock) as pool:
        await pool.open(f"openai:m@{server.url}").complete(request(("user", "a" * 2**21)))
    assert len(server.bodies[0]["messages"][0]["content"]) == 2**21


async def test_the_ledger_counts_calls_retries_tokens_and_failures(clock):
    faults = [answer({}, status=500), answer(), answer({}, status=400)]
    async with Loopback(faults) as server, models(server, clock) as pool:
        model = pool.open(f"openai:m@{server.url}")
        await model.complete(request())
        with pytest.raises(RequestRefused):
            await model.complete(request())
        totals = pool.ledger.of("candidate", f"openai:m@{server.url}")
    assert (totals.calls, totals.retries, totals.failures) == (1, 1, 1)
    assert totals.usage == (9, 4, 0)
