"""What an HTTP 200 of either API amounts to: visible text, status, reasoning, usage."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loopback import request

from palate.models.answers import Malformed, decoded, encoded
from palate.models.anthropic_messages import AnthropicMessages
from palate.models.openai_chat import OpenAIChat
from palate.types import Usage

CHAT = OpenAIChat("m")
MESSAGES = AnthropicMessages("m")


def chat(content, finish="stop", **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}}
    return {"choices": [{**choice, "finish_reason": finish}]}


def parts(*pairs):
    return [{"type": kind, kind: value} for kind, value in pairs]


@pytest.mark.parametrize(
    ("body", "visible", "status"),
    [
        (chat("Hello."), "Hello.", "ok"),
        (chat(""), "", "empty"),
        (chat(None), "", "empty"),
        (chat(" \n\u200b "), "", "empty"),
        (chat("She opened the", "length"), "She opened the", "length"),
        (chat("", "length"), "", "empty"),
        (chat("", "length", reasoning_content="long thought"), "", "empty_after_reasoning"),
        (chat("", "content_filter"), "", "refused"),
        (chat("She opened", "content_filter"), "She opened", "refused"),
        (chat(None, refusal="I cannot continue."), "", "refused"),
        (chat("She opened", refusal="I cannot continue."), "She opened", "refused"),
        (chat("Fine.", refusal=None), "Fine.", "ok"),
        (chat("Fine.", refusal=""), "Fine.", "ok"),
        (chat("", "sensitive"), "", "refused"),
        (chat("Fine.", reasoning_content="user wants X"), "Fine.", "ok"),
        (chat("Fine.", reasoning="user wants X"), "Fine.", "ok"),
        (chat("", reasoning_content="I would say hi"), "", "empty_after_reasoning"),
        (chat(None, reasoning="I would say hi"), "", "empty_after_reasoning"),
        (chat("<think>plan\nplan</think>\n\nCome in."), "Come in.", "ok"),
        (chat("plan plan\n</think>\nCome in."), "Come in.", "ok"),
        (chat("<think>plan plan plan", "length"), "", "empty_after_reasoning"),
        (chat("<think>plan</think>Come", "length"), "Come", "length"),
        (chat("<think>a</think>Come <think>b</think>in."), "Come in.", "ok"),
        (chat("<THINKING>plan</THINKING>Come in."), "Come in.", "ok"),
        (chat("<think>\n\n</think>\n\nCome in."), "Come in.", "ok"),
        (chat("<think>\n\n</think>\n\n"), "", "empty"),
        (
            chat("He wrote `<think>` on the wall and laughed."),
            "He wrote `<think>` on the wall and laughed.",
            "ok",
        ),
        (chat(parts(("text", "Come"), ("text", " in."))), "Come in.", "ok"),
        (chat(["Come", " in."]), "Come in.", "ok"),
        (chat([]), "", "empty"),
        (chat(parts(("thinking", "plan"), ("text", "Come in."))), "Come in.", "ok"),
        (chat(parts(("thinking", [{"type": "text", "text": "x"}]))), "", "empty_after_reasoning"),
        (chat(parts(("refusal", "I cannot."))), "", "refused"),
        (chat("Hello.", None), "Hello.", "ok"),
        (
            {**chat("", "length"), "usage": {"completion_tokens_details": {"reasoning_tokens": 7}}},
            "",
            "empty_after_reasoning",
        ),
    ],
)
def test_a_chat_completion_has_this_text_and_status(body, visible, status):
    answer = CHAT.read(body, request())
    assert (answer.text, answer.status) == (visible, status)


@pytest.mark.parametrize(
    ("content", "stop", "visible", "status"),
    [
        (parts(("text", "Hello.")), "end_turn", "Hello.", "ok"),
        (parts(("thinking", "plan"), ("text", "Hello.")), "end_turn", "Hello.", "ok"),
        ([], "end_turn", "", "empty"),
        ([], "refusal", "", "refused"),
        (parts(("text", "She")), "refusal", "She", "refused"),
        (parts(("text", "She opened")), "max_tokens", "She opened", "length"),
        (parts(("text", "She")), "model_context_window_exceeded", "She", "length"),
        (parts(("thinking", "plan")), "max_tokens", "", "empty_after_reasoning"),
        (
            [{"type": "redacted_thinking", "data": "xyz"}],
            "end_turn",
            "",
            "empty_after_reasoning",
        ),
        (parts(("text", "Come"), ("text", " in.")), "stop_sequence", "Come in.", "ok"),
        (parts(("text", "<think>a</think>Hello.")), "end_turn", "Hello.", "ok"),
    ],
)
def test_a_message_has_this_text_and_status(content, stop, visible, status):
    body = {"type": "message", "content": content, "stop_reason": stop}
    answer = MESSAGES.read(body, request())
    assert (answer.text, answer.status) == (visible, status)


@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
@pytest.mark.parametrize(
    "body",
    [
        {"id": "r", "choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"message": None}]},
        {"choices": [{"text": "old API"}]},
        {"choices": [{"message": {"content": 7}}]},
        {"content": "text"},
        {"error": {"message": "upstream timeout", "code": 524}},
        {"error": "overloaded"},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        [],
        "text",
        None,
    ],
)
def test_an_answer_that_is_none_is_malformed(wire, body):
    with pytest.raises(Malformed):
        wire.read(body, request())


def test_an_answer_that_broke_off_is_malformed():
    with pytest.raises(Malformed):
        CHAT.read(chat("She ope", "error"), request())


NAMES = [
    "choices",
    "message",
    "content",
    "usage",
    "type",
    "text",
    "thinking",
    "error",
    "finish_reason",
    "prompt_tokens",
    "prompt_tokens_details",
    "stop_reason",
    "model",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(JSON, st.sampled_from([CHAT, MESSAGES]))
@example({"content": [], "stop_reason": []}, MESSAGES)
def test_whatever_an_endpoint_sends_is_read_or_malformed(value, wire):
    for body in (value, {"choices": [{"message": {"content": value}}], "content": value}):
        try:
            answer = wire.read(body, request())
        except Malformed:
            continue
        assert isinstance(answer.text, str)


def test_reasoning_beside_the_text_and_inside_it_is_kept_apart():
    answer = CHAT.read(chat("<think>b</think>Fine.", reasoning_content="a"), request())
    assert answer.reasoning == "a\nb"


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(9, 4, 0)),
        (
            {
                "prompt_tokens": 90,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 64},
            },
            Usage(90, 4, 64),
        ),
        (
            {"prompt_tokens": 90, "completion_tokens": 4, "prompt_cache_hit_tokens": 80},
            Usage(90, 4, 80),
        ),
        ({"prompt_tokens": None, "completion_tokens": "4"}, Usage(0, 0, 0)),
        (None, Usage(0, 0, 0)),
    ],
)
def test_usage_of_chat_completions_counts_cached_tokens_once(usage, read):
    assert CHAT.read({**chat("Hi."), "usage": usage}, request()).usage == read


def test_usage_of_messages_adds_what_was_read_from_and_written_to_the_cache():
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20,
        "output_tokens": 5,
    }
    body = {"content": parts(("text", "Hi.")), "stop_reason": "end_turn", "usage": usage}
    assert MESSAGES.read(body, request()).usage == Usage(100, 5, 70)


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("gpt-5.4-2026-01-01", "gpt-5.4-2026-01-01"),
        ("org/model:free", "org/model:free"),
        ("/home/ann/models/SmolLM2.gguf", "SmolLM2.gguf"),
        ("C:\\Users\\Ann\\SmolLM2.gguf", "SmolLM2.gguf"),
        (None, ""),
    ],
)
def test_the_served_model_is_named_without_its_folder(model, shown):
    assert CHAT.read({**chat("Hi."), "model": model}, request()).model == shown


def test_half_an_emoji_is_sent_and_read_as_a_question_mark():
    assert encoded({"text": "a\ud83d"}) == b'{"text": "a?"}'
    assert decoded(b'{"text": "a\\ud83d"}') == {"text": "a?"}


@pytest.mark.parametrize("content", [b"", b"  ", b"<html>", b'{"a": ', b"[" * 100_000])
def test_a_body_without_json_is_malformed(content):
    with pytest.raises(Malformed):
        decoded(content)
