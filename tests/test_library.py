"""The card library: what CI holds all 600 cards to. docs/library.md has the standard in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from card_library import (
    ACTS_FOR_THE_USER,
    coverage_table,
    function_words,
    han,
    narrations,
    not_simplified,
    overused,
    prose,
    repeated,
    shared_phrases,
    units,
    words,
)
from palate import cards, language
from palate.cards import library, panel
from palate.cards.labels import Labels
from palate.cards.library import GENRES
from palate.cards.macros import unknown
from palate.errors import InputError
from palate.types import Card

CHARACTERS = 300
FIELDS = ("name", "description", "personality", "scenario", "first_mes", "mes_example")
# Least and most, in English words and in Han characters.
LENGTHS = {
    "en": {
        "opening": (30, 180), "persona": (45, 220), "personality": (8, 80),
        "scenario": (10, 100), "example_dialogue": (12, 160),
    },
    "zh": {
        "opening": (40, 300), "persona": (70, 360), "personality": (10, 130),
        "scenario": (20, 160), "example_dialogue": (15, 260),
    },
}  # fmt: skip
# Set phrases of machine-made stories. One may be meant; a habit may not.
WORN_OUT = {
    "en": (
        "look up", "looking up", "half-smile", "hangs in the air", "ozone", "glint",
        "let out a breath",
    ),
    "zh": ("头也不抬", "嘴角", "叹了口气", "微微一笑", "空气仿佛", "闪过一丝", "眼神复杂"),
}  # fmt: skip


@cache
def all_cards() -> tuple[Card, ...]:
    return library.cards()


def in_language(tag: str) -> tuple[Card, ...]:
    return tuple(card for card in all_cards() if card.language == tag)


def labels(card: Card) -> Labels:
    found = library.labels(card)
    assert found is not None, card.id
    return found


def failing(check) -> list[str]:
    return [card.id for card in all_cards() if not check(card)]


# Form


def test_there_are_300_characters_each_in_english_and_in_chinese_with_the_same_labels():
    by_language = {
        tag: {labels(c).character: labels(c) for c in in_language(tag)} for tag in LENGTHS
    }
    assert len(by_language["en"]) == CHARACTERS
    assert by_language["en"] == by_language["zh"]
    assert {path.stem for path in library.paths()} == {
        f"{character}-{tag}" for tag in LENGTHS for character in by_language["en"]
    }


def test_every_card_is_a_complete_v3_card_labelled_as_invented_that_palate_has_no_complaint_about():
    def complete(card: Card) -> bool:
        data = card.original["data"]
        return (
            (card.original["spec"], card.original["spec_version"]) == ("chara_card_v3", "3.0")
            and all(data[field].strip() for field in FIELDS)
            and 3 <= len(data["tags"]) <= 6
            and data["creator"] == "palate (synthetic)"
            and ("invented" in data["creator_notes"] or "虚构" in data["creator_notes"])
            and data["group_only_greetings"] == []
            and cards.warnings(card) == ()
        )

    assert failing(complete) == []


def test_parallel_cards_offer_the_same_extras():
    def extras(card: Card) -> tuple[int, int, bool, bool]:
        data = card.original["data"]
        return (
            len(data["alternate_greetings"]),
            len(data.get("character_book", {}).get("entries", [])),
            bool(card.post_history_instructions),
            "nickname" in data,
        )

    english, chinese = (
        {labels(card).character: extras(card) for card in in_language(tag)} for tag in LENGTHS
    )
    assert english == chinese


def test_both_sides_are_named_by_placeholder_and_no_opening_names_the_user():
    def well_placed(card: Card) -> bool:
        return (
            "{{char}}" in card.persona
            and "{{user}}" in card.scenario
            and "{{" not in card.opening
            and card.example_dialogue.startswith("<START>")
            and {"{{user}}", "{{char}}"} <= set(re.findall(r"\{\{\w+\}\}", card.example_dialogue))
            and unknown(prose(card)) == ()
        )

    assert failing(well_placed) == []


def test_every_text_is_within_its_bounds():
    wrong = {
        f"{card.id} {field}": count
        for card in all_cards()
        for field, (least, most) in LENGTHS[card.language].items()
        if not least <= (count := len(units(card, getattr(card, field)))) <= most
    }
    assert wrong == {}


# Language


def test_every_card_is_in_the_language_it_says_by_its_text_alone():
    assert failing(lambda card: language.of_text(prose(card)) == card.language) == []


def test_english_cards_hold_no_chinese_and_read_as_english_prose():
    assert [c.id for c in in_language("en") if han(prose(c))] == []
    assert [c.id for c in in_language("en") if function_words(prose(c)) < 0.3] == []


def test_chinese_cards_are_simplified_with_chinese_punctuation_and_hardly_a_latin_letter():
    texts = {card.id: prose(card) for card in in_language("zh")}
    assert {i: odd for i, text in texts.items() if len(odd := not_simplified(text)) > 2} == {}
    half_width = re.compile(r"[\u4e00-\u9fff][,.?!;:]|\"")
    assert {i: m[0] for i, text in texts.items() if (m := half_width.search(text))} == {}
    latin = {i: len(re.findall("[A-Za-z]", t)) / len(han(t)) for i, t in texts.items()}
    assert {i: share for i, share in latin.items() if share > 0.05} == {}


# Difference


@pytest.mark.parametrize("tag", LENGTHS)
def test_no_two_characters_share_a_name(tag):
    assert repeated(card.name.lower() for card in in_language(tag)) == {}


def test_no_given_or_family_name_comes_more_than_three_times():
    parts = [w for c in in_language("en") for w in set(words(c.name)) if len(w) > 3]
    assert repeated(parts, most=3) == {}


def test_no_two_characters_share_an_occupation():
    assert repeated(labels(card).role.lower() for card in in_language("en")) == {}


@pytest.mark.parametrize(("tag", "length"), [("en", 6), ("zh", 10)])
def test_no_two_cards_share_more_than_three_phrases(tag, length):
    pairs = shared_phrases(in_language(tag), length)
    assert {pair: count for pair, count in pairs.items() if count > 3} == {}


@pytest.mark.parametrize(("tag", "length", "most"), [("en", 4, 6), ("zh", 6, 6)])
def test_no_phrase_returns_in_many_openings(tag, length, most):
    openings = {card.id: units(card, card.opening) for card in in_language(tag)}
    common = overused(openings, length)
    assert {" ".join(run): count for run, count in common.items() if count > most} == {}


@pytest.mark.parametrize(("tag", "length"), [("en", 3), ("zh", 4)])
def test_no_two_openings_begin_alike(tag, length):
    assert repeated(tuple(units(c, c.opening)[:length]) for c in in_language(tag)) == {}


@pytest.mark.parametrize("tag", LENGTHS)
def test_openings_begin_and_end_in_different_ways(tag):
    openings = [card.opening.strip() for card in in_language(tag)]
    told = sum(text.startswith("*") for text in openings) / len(openings)
    asked = sum(text.rstrip('*”"').endswith(("?", "？")) for text in openings) / len(openings)
    assert 0.2 < told < 0.75
    assert 0.1 < asked < 0.75


def test_no_opening_acts_for_the_user():
    acting = {
        card.id: found[0]
        for card in in_language("en")
        for part in narrations(card.opening)
        if (found := ACTS_FOR_THE_USER.search(part))
    }
    assert acting == {}


@pytest.mark.parametrize("tag", LENGTHS)
def test_worn_out_phrases_are_rare(tag):
    found = {
        phrase: [card.id for card in in_language(tag) if phrase in card.opening.lower()]
        for phrase in WORN_OUT[tag]
    }
    assert {phrase: ids for phrase, ids in found.items() if len(ids) > 3} == {}


# Coverage


def test_the_library_spans_genres_relationships_moods_and_openings_of_every_length():
    counted = library.coverage(library.characters(all_cards()))
    assert set(counted["genre"]) == set(GENRES)
    assert set(counted["genre"].values()) == {10}
    for label, kinds, most in (("relationship", 15, 0.15), ("mood", 12, 0.15), ("rhythm", 8, 0.2)):
        assert len(counted[label]) >= kinds, label
        assert max(counted[label].values()) <= most * CHARACTERS, label
    lengths = Counter(len(words(card.opening)) // 60 for card in in_language("en"))
    assert min(lengths[0], lengths[1], lengths[2]) >= 0.15 * CHARACTERS


# The panel


def test_the_panel_is_what_the_stated_rule_gives_and_what_was_frozen():
    frozen = panel.panel()
    record = json.loads((panel.FOLDER / "panel.json").read_text("utf-8"))
    found = panel.chosen(
        library.characters(all_cards()),
        version=frozen.version,
        passed_over=record["passed_over"],
    )
    assert tuple(found) == frozen.characters
    assert {
        f"{path.parent.name}/{path.name}": panel.digest_of(path) for path in panel.panel_files()
    } == dict(frozen.files)


def test_no_two_panel_characters_share_a_genre_a_relationship_or_a_mood():
    members = [labels(c) for c in library.cards("panel") if c.language == "en"]
    assert len(members) == panel.SIZE
    for field in ("genre", "relationship", "mood"):
        assert repeated(getattr(one, field) for one in members) == {}, field


def test_a_changed_panel_card_is_refused(tmp_path, monkeypatch):
    frozen = panel.panel()
    name = f"en/{frozen.characters[0]}-en.json"
    for path in panel.panel_files():
        copy = tmp_path / path.parent.name / path.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(panel, "FOLDER", tmp_path)
    assert len(panel.panel_files()) == 2 * panel.SIZE
    with (tmp_path / name).open("a") as file:
        file.write(" ")
    with pytest.raises(InputError, match="not the card that the panel was frozen with"):
        panel.panel_files()


def test_the_rule_takes_the_lowest_lot_of_each_stratum_and_no_relationship_or_mood_twice():
    """Two genres, a stratum each; the lots were worked out with sha256sum."""
    one = Labels("a", "x", "g1", "rival", "wry", "plain", ())
    library_of_four = [
        one,
        one._replace(character="b", relationship="guest", mood="tense"),
        one._replace(character="c", genre="g2", relationship="guest", mood="eerie"),
        one._replace(character="d", genre="g2", relationship="rival", mood="angry"),
    ]
    # cbde… (a) before e45e… (b); then c957… (d) is a rival as a is, so 6cff… (c).
    assert panel.chosen(library_of_four, version=1, passed_over=()) == ["a", "c"]
    assert panel.chosen(library_of_four, version=1, passed_over={"a"}) == ["b", "d"]


def test_a_pattern_names_panels_cards_and_globs():
    assert [p.stem for p in library.matching("gu-qiuping-zh")] == ["gu-qiuping-zh"]
    assert len(library.matching("*-zh")) == CHARACTERS
    assert len(library.matching("panel")) == 2 * panel.SIZE
    assert {p.parent.name for p in library.matching("panel-zh")} == {"zh"}
    with pytest.raises(InputError, match="names no card of the library"):
        library.matching("../en/gu-qiuping-en")


def test_the_coverage_table_in_the_docs_is_that_of_the_cards():
    docs = Path(__file__).parent.parent / "docs" / "library.md"
    if not docs.is_file():
        pytest.skip("docs are not beside this installation")
    assert coverage_table() in docs.read_text("utf-8")
