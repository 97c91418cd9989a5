"""Macros in card text, by the rows of the card specification and its dice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.cards.macros import Dice, draws, draws_anew, filled, scanned, unknown


@pytest.mark.parametrize(
    ("template", "char", "user", "expected"),
    [
        ("{{char}} greets {{user}}", "Ash", "Lin", "Ash greets Lin"),
        ("{{Char}} / {{CHAR}} / {{User}} / {{USER}}", "Ash", "Lin", "Ash / Ash / Lin / Lin"),
        ("{{ user }} and {{char }}", "Ash", "Lin", "Lin and Ash"),
        ("<USER>, <user>, <BOT>, <bot>, <char>", "Ash", "Lin", "Lin, Lin, Ash, Ash, Ash"),
        ("{{char}}'s and {{user}}’s", "Ash", "Lin", "Ash's and Lin’s"),
        ("{{char}}{{user}}{{char}}", "Ash", "Lin", "AshLinAsh"),
        ("{{charlie}} stays", "Ash", "Lin", "{{charlie}} stays"),
        ("{user} and {{user} only", "Ash", "Lin", "{user} and {{user} only"),
        ("hello {{user}}", "Ash", "{{char}}", "hello {{char}}"),
        ("hello {{char}}", "{{// gone?}}", "Lin", "hello {{// gone?}}"),
        ("hello {{user}}", "Ash", "back\\1slash \\g<0>", "hello back\\1slash \\g<0>"),
        ("hello {{char}}", "Cash $& $1 (Ltd.) [x]*", "Lin", "hello Cash $& $1 (Ltd.) [x]*"),
        ("A{{// private note}}B", "Ash", "Lin", "AB"),
        ("{{{user}}}", "Ash", "Lin", "{Lin}"),
        ("A{{comment: seen}}{{hidden_key:k}}B", "Ash", "Lin", "AB"),
        ("A{{// two\nlines, {{user}} and a } in it}}B", "Ash", "Lin", "AB"),
        ("{{user}}", "Ash", "", ""),
        ("｛｛user｝｝", "Ash", "Lin", "｛｛user｝｝"),
        ("{{user\n}}", "Ash", "Lin", "Lin"),
        ("{{time}} {{getvar::mood}}", "Ash", "Lin", "{{time}} {{getvar::mood}}"),
        ("<user> in code: `if a <user> b`", "Ash", "Lin", "Lin in code: `if a Lin b`"),
    ],
)
def test_names_are_filled_in_every_spelling_and_never_read_again(template, char, user, expected):
    assert filled(template, char=char, user=user) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{reverse:Hello}}", "olleH"),
        ("{{Reverse: Hello }}", " olleH "),
        ("{{reverse:{{user}}}}", "niL"),
        ("{{random:one}}", "one"),
        ("{{random::one}}", "one"),
        ("{{ RANDOM : one }}", "one"),
        ("{{random:}}", ""),
        ("{{random:a\\,b}}", "a,b"),
        ("{{pick:{{user}}}}", "Lin"),
        ("{{roll:1}} {{roll:d1}} {{roll:D1}} {{roll::1}} {{ roll : 1 }}", "1 1 1 1 1"),
        ("{{roll d1}} {{roll:3d1}} {{roll:3d1+4}}", "1 3 7"),
        ("{{hidden_key: k}}{{comment: c}}{{// x}}{{Comment:{{user}}}}.", "."),
        ("{{original}}.", "."),
        ("{{roll:0}} {{roll:x}} {{roll}} {{random}}", "{{roll:0}} {{roll:x}} {{roll}} {{random}}"),
        ("{{getvar::{{user}}}}", "{{getvar::Lin}}"),
        ("{{ open {{user}} }} {{", "{{ open Lin }} {{"),
        ("{{{{user}}}}", "{{Lin}}"),
        ("}} {{user}} {{", "}} Lin {{"),
        ("{{us{{// x}}er}}", "Lin"),
        ("{{{{// x}}user}}", "Lin"),
    ],
)
def test_calls_and_comments(template, expected):
    assert filled(template, char="Ash", user="Lin") == expected


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("{{random:red,green}}", {"red", "green"}),
        ("{{random:red, green ,}}", {"red", "green", ""}),
        ("{{random::red::light, green}}", {"red", "light, green"}),
        ("{{pick:red,a\\,b}}", {"red", "a,b"}),
        ("{{pick::Hello,Hi,Hey}}", {"Hello", "Hi", "Hey"}),
        ("{{random:{{user}},b}}", {"Li, n::x", "b"}),
        ("{{random:{{pick:a,b}}z,{{char}}}}", {"az", "bz", "Ash"}),
        ("{{roll:d3}}", {"1", "2", "3"}),
        ("{{roll:2d2}}", {"2", "3", "4"}),
    ],
)
def test_every_value_of_a_list_is_drawn_and_no_other(template, values):
    drawn = {
        filled(template, char="Ash", user="Li, n::x", dice=Dice(f"7|u1|k1|{n}")) for n in range(200)
    }
    assert drawn == values


def test_a_value_is_a_function_of_the_chat_the_place_and_the_macro():
    text = "{{roll:1000000}}"
    one = filled(text, char="", user="", dice=Dice("7|u1"), place="scenario")
    assert one == filled(text, char="", user="", dice=Dice("7|u1"), place="scenario")
    others = [
        filled(text, char="", user="", dice=Dice("8|u1"), place="scenario"),
        filled(text, char="", user="", dice=Dice("7|u1"), place="opening"),
        filled(text, char="", user="", dice=Dice("7|u1", moment=1), place="scenario"),
        filled("{{roll:999999}}", char="", user="", dice=Dice("7|u1"), place="scenario"),
    ]
    assert len({one, *others}) == 5


def test_equal_macros_of_one_text_are_rolled_apart():
    text = filled("{{roll:1000000}} {{roll:1000000}}", char="", user="")
    first, second = text.split()
    assert first != second


def test_a_pick_stays_while_a_roll_moves_from_reply_to_reply():
    at = [
        filled("{{pick:a,b,c,d,e,f}}", char="", user="", dice=Dice("7|u1", moment=n))
        for n in range(9)
    ]
    assert len(set(at)) == 1


@pytest.mark.parametrize(
    ("text", "drawn", "anew"),
    [
        ("{{user}} {{reverse:x}}", False, False),
        ("{{Pick: a,b}}", True, False),
        ("{{ roll:6 }}", True, True),
        ("{{pick:a}} {{random::a}}", True, True),
        ("random: a", False, False),
    ],
)
def test_texts_with_dice_are_told_from_others(text, drawn, anew):
    assert (draws(text), draws_anew(text)) == (drawn, anew)


def test_a_hidden_key_shows_where_entries_are_scanned_and_comments_do_not():
    text = "A{{hidden_key: the {{user}} gate}}{{// no}}{{comment: no}}B"
    assert scanned(text, char="Ash", user="Lin") == "A the Lin gateB"


def test_unknown_macros_are_named_once_and_long_ones_cut():
    long = f"{{{{setvar::x::{'y' * 100}}}}}"
    assert unknown(f"{{{{time}}}} {{{{time}}}} {{{{a::{{{{user}}}}}}}} {long} {{{{}}}}") == (
        "{{time}}",
        "{{a::{{user}}}}",
        f"{long[:59]}…",
    )


# No single brace: a comment taken out between two would make a pair.
_PARTS = ["{{", "}}", "user", "char", "<bot>", "<USER>", "random:", "roll:", "pick:", "// ", "x"]
_PARTS += ["::", ",", "\\,", "original", "d6", " ", "\n", "hidden_key:"]
_texts = st.lists(st.sampled_from(_PARTS), max_size=40).map("".join)


@given(_texts | st.text())
def test_no_text_raises_and_no_name_is_left(text):
    told = filled(text, char="Ash", user="Lin").lower()
    for macro in ("{{user}}", "{{char}}", "{{original}}", "<user>", "<char>", "<bot>"):
        assert macro not in told
    unknown(text)


@given(_texts)
def test_text_without_braces_or_angles_stays(text):
    bare = text.translate(str.maketrans("", "", "{}<>"))
    assert filled(bare, char="Ash", user="Lin") == bare


def test_hostile_nesting_is_read_in_one_pass():
    for text in ("{{a" * 50_000 + "}}" * 50_000, "{{random:" * 100_000, "{{roll:6" * 50_000):
        assert filled(text, char="Ash", user="Lin").startswith("{{")
