"""Which lorebook entries a chat brings in: worked out by hand from the V3 specification."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.cards.activation import active, chat
from palate.cards.lorebook import lorebook, settled
from palate.cards.macros import Dice
from test_lorebook_entries import card
from worlds import said

OPENING = "The gate is shut."
TALK = ("I want in.", "No, at dusk.", "Who guards the WALL?", "I do.", "Let me in.")
#       user          character       user                    character user


def found(*entries, talk=TALK, greeting=0, opening=OPENING, **book):
    """The texts brought in for the next reply, in order."""
    whole = settled(lorebook(card(*entries, book=book)), char="Ash", user="Lin", dice=Dice("7|u1"))
    return [e.content for e in active(whole, chat(opening, said(talk)), greeting=greeting)]


def one(talk=TALK, greeting=0, opening=OPENING, book=None, **fields):
    """Whether the one entry with these fields is brought in."""
    entry = {"content": "LORE", "keys": ["gate"], **fields}
    return found(entry, talk=talk, greeting=greeting, opening=opening, **(book or {})) == ["LORE"]


@pytest.mark.parametrize(
    ("why", "fields", "expected"),
    [
        ("a key in the opening", {"keys": ["gate"]}, True),
        ("a key in a user's message", {"keys": ["want"]}, True),
        ("a key in a reply", {"keys": ["dusk"]}, True),
        ("no key there", {"keys": ["sea"]}, False),
        ("one of two keys", {"keys": ["sea", "gate"]}, True),
        ("any case, unless said", {"keys": ["wall", "GATE"]}, True),
        ("case said not to matter", {"keys": ["wall"], "case_sensitive": False}, True),
        ("case said to matter", {"keys": ["wall"], "case_sensitive": True}, False),
        ("case matters and fits", {"keys": ["WALL"], "case_sensitive": True}, True),
        (
            "secondary keys in any case",
            {"keys": ["gate"], "selective": True, "secondary_keys": ["wall"]},
            True,
        ),
        (
            "secondary keys where case is said to matter",
            {"selective": True, "secondary_keys": ["wall"], "case_sensitive": True},
            False,
        ),
        ("its name and comment are no text", {"name": "Gate", "comment": "the gate"}, True),
        ("part of a word", {"keys": ["guard"]}, True),
        (
            "a whole word asked for",
            {"keys": ["guard"], "extensions": {"match_whole_words": True}},
            False,
        ),
        (
            "a whole word there",
            {"keys": ["guards"], "extensions": {"match_whole_words": True}},
            True,
        ),
        ("a phrase over a message's end", {"keys": ["shut. I want"]}, False),
        ("no keys", {"keys": []}, False),
        ("no keys and constant", {"keys": [], "constant": True}, True),
        ("disabled and constant", {"constant": True, "enabled": False}, False),
        ("disabled and activated", {"content": "@@activate\nLORE", "enabled": False}, False),
        ("names in keys", {"keys": ["{{user}}"]}, False),
        ("secondary there", {"selective": True, "secondary_keys": ["sea", "dusk"]}, True),
        ("secondary not there", {"selective": True, "secondary_keys": ["sea"]}, False),
        ("secondary not there, not selective", {"secondary_keys": ["sea"]}, True),
        ("selective without secondary", {"selective": True, "secondary_keys": []}, True),
        ("secondary as text", {"selective": True, "secondary_keys": "sea, dusk"}, True),
        (
            "secondary alone",
            {"keys": ["sea"], "selective": True, "secondary_keys": ["dusk"]},
            False,
        ),
        (
            "constant without its secondary",
            {"constant": True, "selective": True, "secondary_keys": ["sea"]},
            True,
        ),
        ("additional there", {"content": "@@additional_keys sea,dusk\nLORE"}, True),
        ("additional not there", {"content": "@@additional_keys sea\nLORE"}, False),
        (
            "two additional, one there",
            {"content": "@@additional_keys dusk\n@@additional_keys sea\nLORE"},
            False,
        ),
        (
            "constant without its additional",
            {"constant": True, "content": "@@additional_keys sea\nLORE"},
            False,
        ),
        ("excluded there", {"content": "@@exclude_keys sea,dusk\nLORE"}, False),
        ("excluded not there", {"content": "@@exclude_keys sea\nLORE"}, True),
        (
            "excluded with another case",
            {"keys": ["WALL"], "content": "@@exclude_keys DUSK\nLORE", "case_sensitive": True},
            True,
        ),
        ("a pattern", {"keys": ["g[aä]te?"], "use_regex": True}, True),
        ("a pattern minds case", {"keys": ["wall"], "use_regex": True}, False),
        (
            "a pattern told not to",
            {"keys": ["wall"], "use_regex": True, "case_sensitive": False},
            True,
        ),
        ("a pattern with flags", {"keys": ["/wall/i"], "use_regex": True}, True),
        ("a pattern with many flags", {"keys": ["/^i do.$/gim"], "use_regex": True}, True),
        ("a pattern over a line, s", {"keys": ["/shut.+WALL/s"], "use_regex": True}, True),
        ("a pattern over a line", {"keys": ["/shut.+WALL/"], "use_regex": True}, False),
        ("an invalid pattern", {"keys": ["("], "use_regex": True}, False),
        ("an invalid pattern beside a valid one", {"keys": ["(", "gate"], "use_regex": True}, True),
        ("a look-around is invalid here", {"keys": ["(?=gate)"], "use_regex": True}, False),
        ("a code point", {"keys": ["\\u0067ate"], "use_regex": True}, True),
        ("slashes without use_regex are words", {"keys": ["/gate/"]}, False),
        ("constant with a pattern", {"keys": ["x"], "use_regex": True, "constant": True}, False),
        ("a name in a pattern", {"keys": ["gate|{{char}}"], "use_regex": True}, True),
        ("off", {"content": "@@dont_activate\nLORE"}, False),
        ("off and constant", {"content": "@@dont_activate\nLORE", "constant": True}, False),
        ("off and on", {"content": "@@dont_activate\n@@activate\nLORE"}, True),
        ("on without a key there", {"keys": ["sea"], "content": "@@activate\nLORE"}, True),
        ("this greeting", {"content": "@@is_greeting 0\nLORE"}, True),
        ("another greeting", {"content": "@@is_greeting 1\nLORE"}, False),
        ("another greeting and on", {"content": "@@is_greeting 1\n@@activate\nLORE"}, False),
        (
            "another greeting, constant",
            {"content": "@@is_greeting 2\nLORE", "constant": True},
            False,
        ),
        ("three character messages: after 3", {"content": "@@activate_only_after 3\nLORE"}, True),
        ("three character messages: after 4", {"content": "@@activate_only_after 4\nLORE"}, False),
        ("three character messages: every 3", {"content": "@@activate_only_every 3\nLORE"}, True),
        ("three character messages: every 2", {"content": "@@activate_only_every 2\nLORE"}, False),
        ("an invalid every", {"content": "@@activate_only_every 0\nLORE"}, True),
        ("too early but on", {"content": "@@activate_only_after 9\n@@activate\nLORE"}, True),
        (
            "too early and constant",
            {"content": "@@activate_only_after 9\nLORE", "constant": 1},
            False,
        ),
        ("its own scan depth", {"content": "@@scan_depth 5\nLORE"}, False),
        ("its own scan depth, deep", {"content": "@@scan_depth 6\nLORE"}, True),
        ("an instruct scan depth", {"content": "@@instruct_scan_depth 1\nLORE"}, True),
        ("scan depth 0", {"content": "@@scan_depth 0\nLORE"}, False),
        ("SillyTavern's scan depth", {"extensions": {"scan_depth": 2}}, False),
        ("nothing but a comment", {"content": "{{// x}}"}, False),
    ],
)
def test_an_entry_matches_or_not(why, fields, expected):
    assert one(**fields) is expected, why


@pytest.mark.parametrize(
    ("rule", "keys", "expected"),
    [
        (0, ["dusk", "sea"], True),
        (0, ["sea"], False),
        (1, ["dusk", "sea"], True),
        (1, ["dusk", "gate"], False),
        (2, ["sea"], True),
        (2, ["dusk", "sea"], False),
        (3, ["dusk", "gate"], True),
        (3, ["dusk", "sea"], False),
    ],
)
def test_sillytaverns_rules_for_secondary_keys(rule, keys, expected):
    """0 any, 1 not all, 2 not any, 3 all."""
    extensions = {"selectiveLogic": rule}
    assert one(selective=True, secondary_keys=keys, extensions=extensions) is expected


@pytest.mark.parametrize(
    ("depth", "expected"), [(None, True), (6, True), (5, False), (1, False), (0, False)]
)
def test_the_lorebooks_scan_depth_counts_messages_with_the_opening(depth, expected):
    """Six messages; the opening, with "gate", is the sixth from the newest."""
    assert one(book={"scan_depth": depth}) is expected


def test_an_entrys_scan_depth_goes_before_the_lorebooks():
    assert one(content="@@scan_depth 6\nLORE", book={"scan_depth": 1})


@pytest.mark.parametrize(
    ("key", "message", "whole", "expected"),
    [
        ("哥哥", "店长哥哥在吗", False, True),
        ("哥哥", "店长哥哥在吗", True, True),
        ("Lin", "我叫Lin。", True, True),
        ("Lin", "我叫Linda。", True, False),
        ("cat", "concatenate", True, False),
        ("cat", "The cat!", True, True),
        ("red cat", "a red cat's", True, True),
        ("C++", "I write C++.", True, True),
        ("Straße", "STRASSE", False, True),
        ("\ud83e", "half \ud83e", False, False),
    ],
)
def test_words_have_borders_where_their_script_does(key, message, whole, expected):
    extensions = {"match_whole_words": whole}
    assert one(keys=[key], talk=[message], extensions=extensions) is expected


def test_an_alternate_greeting_has_its_number():
    assert one(content="@@is_greeting 2\nLORE", greeting=2)
    assert not one(content="@@is_greeting 0\nLORE", greeting=2)


def test_without_an_opening_only_replies_count():
    assert not one(keys=["want"], content="@@activate_only_after 3\nLORE", opening="")
    assert one(keys=["want"], content="@@activate_only_after 2\nLORE", opening="")


def over_the_chat(**fields):
    """For each of the three replies, whether the entry is brought in."""
    return [one(talk=TALK[:length], **fields) for length in (1, 3, 5)]


def test_every_counts_each_reply():
    """Before the replies the character has spoken 1, 2 and 3 times."""
    assert over_the_chat(content="@@activate_only_every 2\nLORE") == [False, True, False]
    assert over_the_chat(content="@@activate_only_after 2\nLORE") == [False, True, True]


def test_a_kept_entry_stays_after_its_first_match():
    """With a scan depth of 1, "WALL" is seen for the second reply alone."""
    seen = {"keys": ["wall"], "book": {"scan_depth": 1}}
    assert over_the_chat(**seen) == [False, True, False]
    kept = over_the_chat(content="@@keep_activate_after_match\nLORE", **seen)
    assert kept == [False, True, True]


def test_an_entry_that_is_not_to_return_is_gone_after_its_first_match():
    gone = {"content": "@@dont_activate_after_match\nLORE"}
    assert over_the_chat(**gone) == [True, False, False]
    assert over_the_chat(keys=["wall"], **gone) == [False, True, False]
    both = "@@dont_activate_after_match\n@@keep_activate_after_match\nLORE"
    assert over_the_chat(content=both) == [True, False, False]
    on = "@@dont_activate_after_match\n@@activate\nLORE"
    assert over_the_chat(content=on) == [True, True, True]


CHAIN = (
    {"keys": ["gate"], "content": "The gate is of iron."},
    {"keys": ["iron"], "content": "Iron comes by the sea."},
    {"keys": ["sea"], "content": "The sea is far."},
)


@pytest.mark.parametrize(("recursive", "count"), [(True, 3), (False, 1), (None, 1)])
def test_entries_bring_in_entries_where_the_lorebook_says_so(recursive, count):
    assert len(found(*CHAIN, recursive_scanning=recursive)) == count


def test_entries_bring_in_entries_whatever_the_scan_depth():
    first = {"content": "Of iron.", "constant": True}
    assert len(found(first, *CHAIN[1:], recursive_scanning=True, scan_depth=0)) == 3


def test_a_hidden_key_is_found_by_entries_alone_and_a_comment_by_nobody():
    hidden = {"content": "A{{hidden_key:iron}}", "constant": True}
    comment = {"content": "A{{// iron}}{{comment: iron}}", "constant": True}
    assert found(hidden, CHAIN[1], recursive_scanning=True) == ["A", "Iron comes by the sea."]
    assert found(hidden, CHAIN[1]) == ["A"]
    assert found(comment, CHAIN[1], recursive_scanning=True) == ["A"]


def test_sillytaverns_bars_to_recursion_are_kept():
    def barred(number, name):
        chain = [dict(entry) for entry in CHAIN]
        chain[number]["extensions"] = {name: True}
        return len(found(*chain, recursive_scanning=True))

    assert barred(1, "exclude_recursion") == 1
    assert barred(1, "prevent_recursion") == 2


def test_an_entry_is_brought_in_once_in_the_order_of_its_number():
    entries = [
        {"content": name, "constant": True, "insertion_order": order}
        for name, order in (("c", 30), ("a", -1), ("b1", 10), ("b2", 10), ("late", None))
    ]
    assert found(*entries) == ["a", "b1", "b2", "c", "late"]


WIDE = "x" * 40  # ten tokens, as estimated


@pytest.mark.parametrize(
    ("budget", "names"),
    [(None, "abc"), (30, "abc"), (29, "bc"), (20, "bc"), (19, "b"), (9, ""), (0, "abc")],
)
def test_over_the_budget_the_lowest_priority_goes_first(budget, names):
    """Ten tokens each; without a priority the insertion order counts as one: a 1, b 9, c 5."""
    entries = [
        {"content": "a" + WIDE[1:], "constant": True, "insertion_order": 1},
        {"content": "b" + WIDE[1:], "constant": True, "insertion_order": 2, "priority": 9},
        {"content": "c" + WIDE[1:], "constant": True, "insertion_order": 5},
    ]
    assert "".join(text[0] for text in found(*entries, token_budget=budget)) == names


def test_of_equals_the_later_goes_first():
    entries = [{"content": name + WIDE[1:], "constant": True} for name in "abc"]
    assert [text[0] for text in found(*entries, token_budget=20)] == ["a", "b"]


def test_macros_in_entries_are_replaced_and_never_read_again():
    entry = {"content": "{{user}} owes {{Char}}.", "keys": ["{{user}}"]}
    whole = settled(lorebook(card(entry)), char="{{user}}", user="Lin", dice=Dice())
    texts = active(whole, chat("Lin?", ()), greeting=0)
    assert [e.content for e in texts] == ["Lin owes {{user}}."]


def test_a_name_in_a_pattern_is_sought_as_it_is_written():
    entry = {"content": "LORE", "keys": ["^{{char}}$"], "use_regex": True}
    whole = settled(lorebook(card(entry)), char="A.h", user="Lin", dice=Dice())
    assert [len(active(whole, chat(text, ()), greeting=0)) for text in ("A.h", "Ash")] == [1, 0]


@pytest.mark.parametrize(("before", "matches"), [(19_996, 1), (19_997, 0)])
def test_keys_are_sought_in_the_first_20000_characters_of_a_message(before, matches):
    entry = {"content": "LORE", "keys": ["gate"]}
    assert len(found(entry, talk=["x" * before + "gate"], opening="")) == matches


def test_a_lorebook_of_many_keys_and_much_text_ends():
    """8,000 keys against an entry of 1 MB that brings in entries: seconds, not minutes."""
    keys = [f"key number {at}" for at in range(8_000)]
    entries = [
        {"content": "b" * 1_000_000, "constant": True, "keys": []},
        {"content": "LORE", "keys": keys, "case_sensitive": True},
    ]
    began = time.perf_counter()
    assert len(found(*entries, recursive_scanning=True)) == 1
    assert time.perf_counter() - began < 5


def test_a_hostile_pattern_ends():
    began = time.perf_counter()
    assert not one(keys=["(a+)+$"], use_regex=True, talk=["a" * 19_000 + "!"], opening="")
    assert not one(keys=["((a{1000}){1000}){1000}"], use_regex=True)
    assert time.perf_counter() - began < 5


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "content": st.text(max_size=20) | st.just("@@keep_activate_after_match\ngate"),
                "keys": st.lists(st.text(max_size=4), max_size=3),
                "use_regex": st.booleans(),
                "constant": st.booleans(),
            }
        ),
        max_size=5,
    ),
    st.lists(st.text(max_size=12), max_size=5),
    st.booleans(),
)
def test_no_lorebook_and_no_chat_raise(entries, talk, recursive):
    found(*entries, talk=talk, recursive_scanning=recursive, token_budget=5)
