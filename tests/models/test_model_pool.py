"""Opening models: what is sent, with which headers, and what is refused before any call."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from loopback import Loopback, answer, request, said

from palate.errors import InputError
from palate.models.client import Purpose, Sampling
from palate.models.pool import Models
from palate.models.spec import EndpointSettings

CHAT = (("system", "SYS"), ("assistant", "Opening."), ("user", "Hello."))
SAID = {
    "type": "message",
    "model": "claude-served",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 4},
}


async def sent(provider="openai", body=None, asked=None, settings=None, **opened):
    """The body and headers that one request becomes."""
    async with Loopback([answer(body)]) as server:
        endpoints = {server.url: EndpointSettings(**(settings or {}))}
        async with Models(endpoints, study_dir=Path()) as models:
            model = models.open(f"{provider}:m@{server.url}", **opened)
            completion = await model.complete(asked or request(*CHAT))
    return server.bodies[0], server.headers[0], completion


async def test_a_chat_completion_says_only_what_is_set():
    body, headers, _ = await sent()
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "SYS"},
            {"role": "assistant", "content": "Opening."},
            {"role": "user", "content": "Hello."},
        ],
        "max_tokens": 50,
    }
    assert headers["Content-Type"] == "application/json"


async def test_all_of_the_decoding_is_sent():
    sampling = Sampling(temperature=0.8, top_p=0.9, max_tokens=7, seed=3, stop=("\n",))
    body, _, _ = await sent(asked=request(sampling=sampling))
    assert {name: body[name] for name in body if name not in ("model", "messages")} == {
        "temperature": 0.8,
        "top_p": 0.9,
        "max_tokens": 7,
        "seed": 3,
        "stop": ["\n"],
    }


async def test_own_body_fields_are_added_to_the_request():
    body, _, _ = await sent(asked=request(sampling=Sampling(body={"reasoning_effort": "low"})))
    assert body["reasoning_effort"] == "low"


async def test_an_endpoint_says_what_it_calls_the_limit_of_a_reply():
    body, _, _ = await sent(settings={"max_tokens_field": "max_completion_tokens"})
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] > 0


async def test_the_rules_of_the_endpoint_shape_the_messages():
    body, _, _ = await sent(settings={"first_role": "user", "system_role": False})
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]


async def test_a_schema_is_sent_only_where_it_is_enforced():
    asked = request(json_schema={"type": "object"})
    body, _, _ = await sent(asked=asked, settings={"json_schema": True})
    schema = body["response_format"]["json_schema"]
    assert (schema["schema"], schema["strict"]) == ({"type": "object"}, True)
    body, _, _ = await sent(asked=asked)
    assert "response_format" not in body


async def test_digits_are_asked_for_and_read_with_their_probabilities():
    top = [
        {"token": "4", "logprob": math.log(0.6)},
        {"token": "5", "logprob": math.log(0.2)},
        {"token": "The", "logprob": math.log(0.1)},
    ]
    reply = said("4")
    reply["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    body, _, completion = await sent(
        body=reply, asked=request(digits=1), settings={"digits": "logprobs"}
    )
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 4)
    assert completion.text == "4"
    assert completion.digit_probabilities == (pytest.approx({"4": 0.75, "5": 0.25}),)


async def test_digits_without_probabilities_come_without_any():
    asked = request(digits=1)
    _, _, completion = await sent(body=said("4"), asked=asked, settings={"digits": "grammar"})
    assert completion.digit_probabilities == ()


async def test_a_session_id_goes_where_it_is_wanted():
    asked = request(session="s-1")
    body, headers, _ = await sent(asked=asked, session_header="X-Chat", session_field="chat_id")
    assert (body["chat_id"], headers["X-Chat"]) == ("s-1", "s-1")
    body, headers, _ = await sent(asked=asked)
    assert "s-1" not in json.dumps([body, headers])


async def test_no_key_is_sent_to_a_strange_host(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-own")
    for provider, body in (("openai", None), ("anthropic", SAID)):
        sent_body, headers, _ = await sent(provider, body)
        assert "sk-own" not in json.dumps([sent_body, headers])
        assert "Authorization" not in headers


async def test_a_models_own_authorization_header_replaces_the_endpoints_key(monkeypatch):
    monkeypatch.setenv("EP_KEY", "endpoint-key")
    monkeypatch.setenv("RPA_TOKEN", "Token mine")
    headers = {"authorization": "env:RPA_TOKEN", "X-Team": "red"}
    _, sent_headers, _ = await sent(settings={"key_env": "EP_KEY"}, headers=headers)
    assert sent_headers["Authorization"] == "Token mine"
    assert "endpoint-key" not in json.dumps(sent_headers)
    assert sent_headers["X-Team"] == "red"


async def test_anthropic_messages_have_a_top_system_field_and_cache_marks():
    asked = request(*CHAT, cache_prefix=2)
    body, headers, completion = await sent(
        "anthropic", SAID, asked, settings={"first_role": "user"}
    )
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body == {
        "model": "m",
        "system": [{"type": "text", "text": "SYS", **mark}],
        "messages": [
            {"role": "user", "content": "…"},
            {"role": "assistant", "content": [{"type": "text", "text": "Opening.", **mark}]},
            {"role": "user", "content": "Hello."},
        ],
        "max_tokens": 50,
    }
    assert headers["anthropic-version"] == "2023-06-01"
    assert (completion.text, completion.model) == ("Hello.", "claude-served")


async def test_anthropic_without_a_shared_prefix_has_no_cache_marks():
    sampling = Sampling(temperature=0.5, top_p=0.9, stop=("END",))
    body, _, _ = await sent("anthropic", SAID, request(*CHAT, sampling=sampling))
    assert "cache_control" not in json.dumps(body)
    assert (body["temperature"], body["top_p"], body["stop_sequences"]) == (0.5, 0.9, ["END"])


@pytest.mark.parametrize(
    ("spec", "opened", "says"),
    [
        ("opnai:m", {}, "provider must be one of"),
        ("openai:gpt-5.4", {}, "environment variable OPENAI_API_KEY"),
        ("anthropic:claude", {}, "environment variable ANTHROPIC_API_KEY"),
        ("openai:m@http://h/v1", {"headers": {"A": "env:NOT_SET"}}, "NOT_SET for the header A"),
        ("openai:m@http://h/v1", {"headers": {"A B": "x"}}, "'A B' cannot be the name"),
        ("openai:m@http://h/v1", {"headers": {"A": "x\r\nB: y"}}, "cannot be sent"),
        ("openai:m@http://h/v1", {"session_header": "A:B"}, "cannot be the name"),
        ("scripted:none.json", {}, "none.json cannot be read"),
        ("local:other", {}, "local:smollm2-135m"),
    ],
)
def test_what_is_wrong_is_said_before_any_call(monkeypatch, tmp_path, spec, opened, says):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NOT_SET"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=says) as refused:
        Models({}, study_dir=tmp_path).open(spec, **opened)
    assert "\n" not in str(refused.value)


def test_a_key_that_cannot_be_sent_is_refused_and_not_quoted(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a\nb")
    with pytest.raises(InputError, match="OPENAI_API_KEY holds characters") as refused:
        Models({}, study_dir=tmp_path).open("openai:gpt-5.4")
    assert "sk-a" not in str(refused.value)


async def test_scripts_are_found_beside_the_study_and_counted(tmp_path):
    entry = {"role": "candidate", "cell": "u1/k1/A/1", "turn": 0, "text": "Come in."}
    (tmp_path / "replies.json").write_text(json.dumps([entry]))
    async with Models({}, study_dir=tmp_path) as models:
        model = models.open("scripted:replies.json")
        asked = request(purpose=Purpose("candidate", "u1/k1/A/1", 0))
        assert (await model.complete(asked)).text == "Come in."
        assert models.ledger.of("candidate", "scripted:replies.json").calls == 1


def test_the_width_is_the_sum_over_endpoints_and_not_over_models(tmp_path):
    tables = {"http://a/v1": EndpointSettings(max_concurrency=5)}
    models = Models(tables, study_dir=tmp_path)
    for spec in ("openai:x@http://a/v1", "openai:y@http://a/v1/", "openai:x@http://b/v1"):
        models.open(spec)
    assert models.width() == 5 + 16
    models.open("local:smollm2-135m")
    assert models.width() == 5 + 16 + 4


def test_what_a_model_can_do_is_known_when_it_is_opened(tmp_path):
    tables = {"http://a/v1": EndpointSettings(digits="logprobs", json_schema=True)}
    models = Models(tables, study_dir=tmp_path)
    able, plain = models.open("openai:x@http://a/v1"), models.open("openai:x@http://b/v1")
    assert (able.reads_digits, able.enforces_schema) == (True, True)
    assert (plain.reads_digits, plain.enforces_schema) == (False, False)
    assert models.open("local:smollm2-135m").reads_digits
