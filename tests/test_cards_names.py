"""File names from card names."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.cards.names import file_stem
from palate.study_rules import fault_of_id

NAMES = [
    ("../../escape", "_.._escape"),
    ("/etc/hosts2", "_etc_hosts2"),
    ("C:\\temp\\x", "C_temp_x"),
    ("CON", "_CON"),
    ("nul.txt", "_nul.txt"),
    ("Com1 .x", "_Com1 .x"),
    ("console", "console"),
    ('What? Who: "me" <x>|*', "What_ Who_ _me_ _x_"),
    ("ends with dot.", "ends with dot"),
    (" space around ", "space around"),
    (".hidden", "hidden"),
    ("..", "card"),
    ("", "card"),
    ("\u00e9", "\u00e9"),
    ("e\u0301", "\u00e9"),
    ("ALICE-x", "ALICE-x"),
    ("\U0001f98a\U0001f525", "\U0001f98a\U0001f525"),
    ("名" * 100, "名" * 66),
    ("a" * 300, "a" * 99),
    ("a" * 100, "a" * 99),
    ("a" * 99, "a" * 99),
    ("line\nbreak", "line break"),
    ("tab\there", "tab here"),
    ("%2e%2e%2f", "%2e%2e%2f"),
    ("-rf", "rf"),
    ("~", "card"),
    ("???", "card"),
    ("$(touch pwned)", "$(touch pwned)"),
    ("{{user}}", "{{user}}"),
    ("\u202egnp.x\x00\x1b", "gnp.x"),
    ("守灯人", "守灯人"),
]


@pytest.mark.parametrize(("name", "stem"), NAMES)
def test_a_name_becomes_a_file_name_that_can_be_read(name, stem):
    assert file_stem(name) == stem


def test_names_that_a_disk_may_take_for_one_get_numbers():
    taken = []
    for name in ["ALICE-x", "alice-x", "é", "e\u0301", "É", "Vesper", "Vesper", "ﬁn", "fin"]:
        taken.append(file_stem(name, taken))
    assert taken == [
        "ALICE-x",
        "alice-x (2)",
        "é",
        "é (2)",
        "É (3)",
        "Vesper",
        "Vesper (2)",
        "ﬁn",
        "fin (2)",
    ]


def test_a_numbered_name_is_as_short_as_another():
    long = file_stem("名" * 100)
    again = file_stem("名" * 100, [long])
    assert again == "名" * 65 + " (2)"
    assert file_stem("a" * 99, ["a" * 99]) == "a" * 96 + " (2)"


@given(st.lists(st.text(max_size=120), max_size=6))
def test_any_names_give_safe_and_different_files(names):
    taken = []
    for name in names:
        stem = file_stem(name, taken)
        assert 0 < len(stem.encode()) <= 200
        assert fault_of_id(stem) == ""
        assert not set(stem) & set('<>:"/\\|?*\0\n')
        assert stem[0] not in " .-~"
        assert stem[-1] not in " ."
        taken.append(stem)
    assert len({unicodedata.normalize("NFKC", s.casefold()) for s in taken}) == len(taken)
