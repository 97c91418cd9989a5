"""Texts of strangers in a terminal, a spreadsheet and a script element."""

import json

import pytest
from hostile import EVERYTHING
from hypothesis import given
from hypothesis import strategies as st

from palate.report.safe import csv_safe, script_json, terminal_safe

ANY_TEXT = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m \x1b]0;OWNED\x07", "red "),
        ("\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1b]0;an unended title hides nothing", "0;an unended title hides nothing"),
        ("\x1bcreset, \x1b(0charset", "reset, charset"),
        ("back\b\b\bspace and bell\x07", "backspace and bell"),
        ("right\u202eto left", "rightto left"),
        ("two\r\nlines", "two lines"),
        ("[31m stays: no escape", "[31m stays: no escape"),
        ("灯塔 — café 🙂", "灯塔 — café 🙂"),
    ],
)
def test_a_terminal_gets_the_words_without_the_codes(text, shown):
    assert terminal_safe(text) == shown


def test_line_breaks_stay_where_they_are_asked_for():
    assert terminal_safe("one\r\ntwo\n", lines=True) == "one\ntwo\n"


@given(ANY_TEXT)
def test_nothing_that_a_terminal_acts_on_is_left(text):
    safe = terminal_safe(text)
    assert not [c for c in safe if ord(c) < 32 or 0x7F <= ord(c) < 0xA0]
    assert terminal_safe(safe) == safe


@pytest.mark.parametrize(
    "text",
    [
        '=HYPERLINK("http://example.invalid","x")',
        "+cmd",
        "-cmd|x",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        " =1",
        "＝1+1",
        "-1-1",
    ],
)
def test_a_spreadsheet_reads_a_formula_as_text(text):
    assert csv_safe(text) == "'" + text


@pytest.mark.parametrize("text", ["", "-1.5", "+3", "-2e-05", "plain", "a=b", "'quoted"])
def test_numbers_and_plain_text_stay_as_they_are_in_a_spreadsheet(text):
    assert csv_safe(text) == text


@pytest.mark.parametrize("text", EVERYTHING)
def test_hostile_text_survives_a_script_element(text):
    embedded = script_json({text: [text]})
    assert json.loads(embedded) == {text: [text]}
    assert not set(embedded) & set("<>&\u2028\u2029")


@given(ANY_TEXT)
def test_any_text_comes_back_from_a_script_element_as_it_went_in(text):
    embedded = script_json([text])
    assert json.loads(embedded) == [text]
    embedded.encode("utf-8")


def test_a_number_that_json_cannot_hold_is_an_error():
    with pytest.raises(ValueError):
        script_json(float("nan"))
