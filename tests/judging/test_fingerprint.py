"""A run must notice when the words around the material change, wherever they are written."""

from __future__ import annotations

import itertools

import pytest

from palate import chat
from palate.judging import asking, fingerprint, questions, sampling, sessions, transcript
from palate.prompts import rubric_text

BOTH = tuple(itertools.product(("en", "zh"), ("json", "digits")))


def prints():
    return {pair: fingerprint.fingerprint(*pair) for pair in BOTH}


def reworded(words, **changes):
    return {language: words[language]._replace(**changes) for language in words}


CHANGES = {
    "the names of the speakers": lambda patch: patch(
        transcript,
        "_WORDS",
        reworded(transcript._WORDS, speaker={"user": "P", "character": "Q"}),
    ),
    "the heading of the opening": lambda patch: patch(
        transcript, "_WORDS", reworded(transcript._WORDS, opening="X")
    ),
    "the heading of the reaction": lambda patch: patch(
        transcript, "_WORDS", reworded(transcript._WORDS, reaction="X")
    ),
    "the heading of a summary": lambda patch: patch(
        transcript, "_WORDS", reworded(transcript._WORDS, summary="X")
    ),
    "the fields of the card": lambda patch: patch(
        transcript,
        "_CARD_FIELDS",
        {form: dict.fromkeys(fields, ("name",)) for form, fields in FIELDS.items()},
    ),
    "the headings of a rubric": lambda patch: patch(
        rubric_text, "_WORDS", reworded(rubric_text._WORDS, penalties="X")
    ),
    "the words for leaving": lambda patch: [
        patch(module, "USER_LEFT", {"en": "X", "zh": "X"}) for module in (chat, transcript)
    ],
    "the words for asking again": lambda patch: [
        patch(module, "AGAIN", {"en": "X", "zh": "X"}) for module in (asking, fingerprint)
    ],
    "how replies are drawn": lambda patch: patch(sampling, "STRATA", 5),
    "where a long session is cut": lambda patch: [
        patch(module, "PART_TURNS", 7) for module in (sessions, fingerprint)
    ],
}
FIELDS = transcript._CARD_FIELDS


def test_it_is_the_same_each_time_and_one_for_each_language_and_form():
    assert prints() == prints()
    assert len(set(prints().values())) == 4


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_the_words_in_code_is_noticed(monkeypatch, change):
    before = prints()
    change(monkeypatch.setattr)
    after = prints()
    assert all(before[pair] != after[pair] for pair in BOTH)


def test_a_change_of_the_form_to_fill_in_is_noticed(monkeypatch):
    before = prints()
    monkeypatch.setattr(questions, "form_text", lambda dimensions, language: "{}")
    changed = {pair for pair, value in prints().items() if value != before[pair]}
    assert changed == {("en", "json"), ("zh", "json")}
