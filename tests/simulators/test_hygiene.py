"""Flags on a simulator's messages."""

import pytest

from palate.simulators import flags


def of(text, *earlier, character="Captain Mara Voss"):
    return flags(text, earlier, character=character)


@pytest.mark.parametrize(
    "text",
    [
        "ok, where to?",
        "I want to ask the AI in the ship's core something",
        "Mara, stop. What is in the box?",
        "she said: [laughs] fine",
        "*nods* {sure}",
        "I need to think about that",
        "mara asked: why",
        "你是机器人吗？",
        "how can I open it?",
        "I asked Captain Mara Voss: why?",
    ],
)
def test_an_ordinary_message_has_no_flag(text):
    assert of(text, "something else") == ()


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("Where to?", "where to"),
        ("  OK!! ", "ok."),
        ("ＡＢＣ", "abc"),
        ("_hm_", "hm"),
        ("…", "…"),
        ("🦊", "🦊"),
        ("去哪里？", "去哪里"),
    ],
)
def test_saying_an_own_message_again_is_repetition(text, earlier):
    assert of(text, "first", earlier, "last") == ("repetition",)


def test_signs_without_letters_are_compared_as_they_stand():
    assert of("…", "?!") == ()


@pytest.mark.parametrize(
    "text",
    [
        "As an AI language model, I can't feel that.",
        "How can I assist you today?",
        "I’m sorry, but I cannot continue this.",
        "I'd be happy to help!",
        "Feel free to ask me anything",
        "作为一个人工智能，我没有感情。",
        "请问有什么可以帮您？",
        "如果您有任何问题，请告诉我",
    ],
)
def test_an_assistants_stock_phrase_is_flagged(text):
    assert of(text) == ("assistant_phrase",)


@pytest.mark.parametrize(
    "text",
    [
        "Captain Mara Voss: Welcome aboard.",
        "hello\n**Captain Mara Voss:** Sit.",
        "captain mara voss： 坐。",
        "*Captain*: aye",
        "[Captain Mara Voss]: aye",
    ],
)
def test_a_line_headed_with_the_characters_name_is_flagged(text):
    assert of(text) == ("speaks_as_character",)


def test_a_chinese_name_is_found_and_an_article_is_no_name():
    assert of("守灯人：你回来了。", character="守灯人") == ("speaks_as_character",)
    assert of("The: thing", character="The Keeper") == ()
    assert of("Keeper: come in", character="The Keeper") == ("speaks_as_character",)
    assert of(": hm", character="") == ()


@pytest.mark.parametrize(
    "text",
    [
        "<think>they seem bored</think> hi",
        "hi</think>",
        "Reasoning: I would leave.\nBye",
        "**Thought process:** short answer",
        "The user wants a short reply. ok",
        "思考过程：先打招呼",
    ],
)
def test_leaked_reasoning_is_flagged(text):
    assert of(text) == ("leaked_reasoning",)


@pytest.mark.parametrize(
    "text",
    [
        '{"message": "hi"}',
        '```json\n{"message": "hi"}\n```',
        'Sure {"action": "quit"',
        '["hi", "there"]',
    ],
)
def test_leaked_json_is_flagged(text):
    assert of(text) == ("leaked_json",)


def test_flags_come_in_a_fixed_order():
    text = 'Captain: as an AI\n{"a": 1}'
    assert of(text, text) == (
        "repetition",
        "assistant_phrase",
        "speaks_as_character",
        "leaked_json",
    )


@pytest.mark.parametrize("text", ["a" + " " * 300000 + "b", "\n" * 300000 + "x", "<think " * 40000])
def test_a_hostile_message_is_looked_at_in_one_pass(text):
    """Each took minutes where a pattern was tried from every place to the end."""
    assert of(text) == ()
