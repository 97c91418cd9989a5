"""The shared rubrics: 12 generic and 11 session dimensions, in both languages."""

from __future__ import annotations

import re

import pytest

from palate.errors import RubricError
from palate.prompts.rubric_text import dimension_lines, dimensions_text
from palate.rubrics.shared import load_shared, parse_shared

RUBRIC = """
track = "generic"
version = "test/1"
[[dimensions]]
id = "D1"
label = { en = "Warmth", zh = "温暖" }
definition = { en = "Kind.", zh = "和善。" }
[dimensions.anchors.en]
1 = "cold"
3 = "civil"
5 = "kind"
[dimensions.anchors.zh]
1 = "冷"
3 = "客气"
5 = "和善"
"""


def test_there_are_twelve_generic_dimensions_two_of_them_sparse():
    rubric = load_shared("generic")
    assert [d.id for d in rubric.dimensions] == [f"G{n}" for n in range(1, 13)]
    assert [d.id for d in rubric.dimensions if d.sparse] == ["G5", "G6"]


def test_there_are_eleven_session_dimensions_none_of_them_sparse():
    rubric = load_shared("session")
    assert [d.id for d in rubric.dimensions] == [f"S{n}" for n in range(1, 12)]
    assert not any(d.sparse for d in rubric.dimensions)


@pytest.mark.parametrize("track", ["generic", "session"])
def test_the_chinese_texts_are_chinese_and_the_english_ones_are_not(track):
    for d in load_shared(track).dimensions:
        chinese = [d.label["zh"], d.definition["zh"], *d.anchors["zh"].values()]
        english = [d.label["en"], d.definition["en"], *d.anchors["en"].values()]
        assert all(re.search(r"[\u4e00-\u9fff]", text) for text in chinese)
        assert not any(re.search(r"[\u4e00-\u9fff]", text) for text in english)


def test_no_label_is_shared_between_the_two_rubrics():
    labels = [
        x
        for t in ("generic", "session")
        for d in load_shared(t).dimensions
        for x in d.label.values()
    ]
    assert len(labels) == len(set(labels)) == 46


def test_a_dimension_is_shown_with_its_anchors():
    rubric = parse_shared(RUBRIC, source="test")
    assert dimensions_text(rubric.dimensions, "en") == (
        "D1 Warmth: Kind.\n  1: cold\n  3: civil\n  5: kind"
    )
    assert dimension_lines(rubric.dimensions, "zh") == "- 温暖：和善。"


def test_the_digest_changes_with_any_text():
    changed = RUBRIC.replace("civil", "polite")
    one, other = (parse_shared(text, source="test") for text in (RUBRIC, changed))
    assert one.digest() != other.digest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('track = "generic"', "track = generic", "is not valid TOML"),
        ('version = "test/1"', 'version = "test/1"\nmood = "x"', "mood: Extra inputs"),
        ('zh = "和善。" }', '"zh-TW" = "和善。" }', "D1.definition has"),
        ('3 = "civil"\n', "", "D1.anchors.en has \\['1', '5'\\]"),
        ('5 = "kind"', '5 = " "', "D1 has an empty text"),
        ('label = { en = "Warmth"', 'label = { en = "温暖"', "'温暖' names two dimensions"),
    ],
)
def test_a_malformed_rubric_is_refused_in_one_sentence(old, new, message):
    assert old in RUBRIC
    with pytest.raises(RubricError, match=message) as refused:
        parse_shared(RUBRIC.replace(old, new), source="test.toml")
    assert str(refused.value).startswith("test.toml")
    assert "\n" not in str(refused.value)


def test_a_rubric_without_dimensions_is_refused():
    with pytest.raises(RubricError, match="has no dimensions"):
        parse_shared('track = "session"\nversion = "x"\ndimensions = []', source="test.toml")
