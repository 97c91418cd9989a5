"""What of a model's text is reasoning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.models.thinking import is_blank, strip_thinking


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("Hello.", "Hello."),
        ("<think>plan\nplan</think>\n\nCome in.", "Come in."),
        ("plan plan\n</think>\nCome in.", "Come in."),
        ("<think>plan plan plan", ""),
        ("<think>a</think>Come <think>b</think>in.", "Come in."),
        ("<THINKING>plan</THINKING>Come in.", "Come in."),
        ("<think>\n\n</think>\n\nCome in.", "Come in."),
        ("<think>one</think><think>two</think>Come in.", "Come in."),
        ("< think >plan</ think >Come in.", "Come in."),
        ('<think budget="9">plan</think>Come in.', "Come in."),
        ("<seed:think>plan</seed:think>Come in.", "Come in."),
        ("<thought>plan</thought>Come in.", "Come in."),
        ("[THINK]plan[/THINK]Come in.", "Come in."),
        ("◁think▷plan◁/think▷Come in.", "Come in."),
        ("<think/>Come in.", "Come in."),
        ("</think>Come in.", "Come in."),
        ("plan\n</think>", ""),
        ("<think>a <think>b</think> c</think>Come in.", "Come in."),
        ("<think>I may write <think> here</think>Come in.", "Come in."),
        ("<think>ends with </think>, I know</think>Come in.", "Come in."),
        ("<think>a</think>Come in.</think>", "Come in."),
        ("Come in. <think>should I", "Come in."),
        ("<think>it's `odd</think>Come `in`.", "Come `in`."),
        ("<think>a `</think>` ends it</think>Come in.", "Come in."),
    ],
)
def test_reasoning_is_taken_out(text, visible):
    assert strip_thinking(text).visible == visible


@pytest.mark.parametrize(
    "text",
    [
        "He wrote `<think>` on the wall and laughed.",
        "他在墙上写了`<think>`。",
        "```\n<think>\n```\nWhat does this line do?",
        "I <3 you, and 2 < 3 > 1.",
        "<thinks> and <b>bold</b>",
    ],
)
def test_a_tag_in_code_and_what_only_looks_like_one_are_text(text):
    assert strip_thinking(text) == (text, "")


def test_reasoning_is_kept_apart_in_order():
    assert strip_thinking("<think> a </think>Come <think>b</think>in.").reasoning == "a\nb"


def test_text_of_invisible_characters_alone_is_empty():
    assert strip_thinking(" \n\u200b\u2060\ufeff\u3000\u00a0 ").visible == ""
    assert is_blank("\u200e\u00ad\u2800")
    assert not is_blank("…")


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "`", "a", " ", "\n", "<think/>", "[THINK]"]))
)
def test_no_mixture_of_tags_hangs_or_adds_words(pieces):
    text = "".join(pieces)
    thinking = strip_thinking(text)
    assert (thinking.visible + thinking.reasoning).count("a") == text.count("a")
