"""Branches of one chat: copies that were swiped, edited or gone on from; not a shared "hi"."""

import itertools
import time

import pytest

from palate.errors import InputError
from palate.histories import split
from palate.histories.branches import branches

from .chats import chat

OPENING = "The inn is full tonight, stranger."
ASKED = "I have walked nine miles in the rain and I can pay you in silver."
REPLY = "Silver opens doors here, and the loft has straw enough for one."
NEXT = "Then the loft it is, and a bowl of whatever is hot, please."
SECOND = "It is mutton, and you may thank the ewe that broke her leg on Sunday."
OTHER = "Keep your silver. Sit by the fire and tell me what chased you here."


def groups(*sessions):
    return [[session.session_id for session in group] for group in branches(sessions)]


def test_a_shared_opening_and_a_hi_do_not_make_a_branch():
    a = chat("a", OPENING, "hi", REPLY, "is the loft dry?", "Dry enough.")
    b = chat("b", OPENING, "hi", OTHER, "a dog, mostly", "Dogs have reasons.")
    assert groups(a, b) == [["a"], ["b"]]


def test_the_same_first_reply_to_the_same_words_makes_a_branch():
    a = chat("a", OPENING, "hi", REPLY, "is the loft dry?", "Dry enough.")
    b = chat("b", OPENING, "hi", REPLY, "how much silver?", "Two.")
    assert groups(a, b) == [["a", "b"]]


def test_a_swipe_of_the_first_reply_is_a_branch_where_the_user_said_something_of_their_own():
    a = chat("a", OPENING, ASKED, REPLY, "fine", "Good.")
    b = chat("b", OPENING, ASKED, OTHER, "a dog", "Ah.")
    assert groups(a, b) == [["a", "b"]]


def test_a_swipe_in_the_middle_is_a_branch():
    a = chat("a", OPENING, "hi", REPLY, NEXT, SECOND, "oh")
    b = chat("b", OPENING, "hi", REPLY, NEXT, "Soup. Do not ask.", "what soup", "Brown.")
    assert groups(a, b) == [["a", "b"]]


def test_an_edited_first_message_does_not_hide_a_copy():
    a = chat("a", OPENING, ASKED, REPLY, NEXT, SECOND)
    b = chat("b", OPENING, "I come in.", REPLY, NEXT, SECOND)
    assert groups(a, b) == [["a", "b"]]


def test_an_edited_opening_on_a_renamed_card_does_not_hide_a_copy():
    a = chat("a", OPENING, "hi", REPLY, NEXT, SECOND)
    b = chat("b", "Full up, stranger.", "hi", REPLY, NEXT, SECOND, card="ash copy")
    assert groups(a, b) == [["a", "b"]]


def test_white_space_case_and_commas_do_not_hide_a_copy():
    a = chat("a", OPENING, "Open the door, please!", "No.")
    b = chat("b", OPENING, " open  the\ndoor please", "no")
    assert groups(a, b) == [["a", "b"]]


def test_less_than_half_in_common_is_no_branch():
    """In common are ASKED and REPLY, 128 characters; the shorter, a, has more than 390."""
    a = chat("a", OPENING, "hi", "Who goes?", ASKED, REPLY, NEXT, SECOND, ASKED[::-1], OTHER)
    b = chat("b", OPENING, "ho", "What?", ASKED, REPLY, "x" * 150, "y" * 150)
    assert groups(a, b) == [["a"], ["b"]]
    c = chat("c", OPENING, "ho", "What?", ASKED, REPLY, "x" * 40, "y" * 40)
    assert groups(a, c) == [["a", "c"]]


def test_a_stock_reply_makes_no_branch_of_two_short_chats():
    a = chat("a", OPENING, "one", REPLY, "two", "Hm.")
    b = chat("b", OPENING, "three", REPLY, "four", "No.")
    assert groups(a, b) == [["a"], ["b"]]


def test_a_person_who_says_the_same_to_every_character_has_no_branches():
    """Only the user's words are shared: another card, another opening, other replies."""
    a = chat("a", OPENING, ASKED, "No.", NEXT, "No!")
    b = chat("b", "Ahoy.", ASKED, "Aye.", NEXT, "Aye!", card="bo")
    assert groups(a, b) == [["a"], ["b"]]


def test_without_an_opening_the_card_must_be_the_same():
    said = ("", "hi", "Hello.")
    assert groups(chat("a", *said), chat("b", *said)) == [["a", "b"]]
    assert groups(chat("a", *said), chat("b", *said, card="bo")) == [["a"], ["b"]]


def test_a_branch_of_a_branch_belongs_to_the_same_chat():
    a = chat("a", OPENING, "hi", REPLY, NEXT, SECOND)
    b = chat("b", OPENING, "hi", REPLY, ASKED, OTHER, "x" * 90, "y" * 90)
    c = chat("c", OPENING, "ho", "Hm.", ASKED, OTHER, "x" * 90, "y" * 90)
    assert groups(a, b, c) == [["a", "b", "c"]]
    assert groups(a, c) == [["a"], ["c"]]


def test_chinese_is_compared_by_its_characters():
    asked = "我在雨里走了九里路，可以付你银子。"
    a = chat("a", "客满了。", asked, "坐吧。", language="zh")
    b = chat("b", "客满了。", asked.replace("，", ", "), "走吧。", language="zh")
    assert groups(a, b) == [["a", "b"]]


def test_the_groups_do_not_depend_on_the_order():
    sessions = [
        chat("a", OPENING, "hi", REPLY, NEXT, SECOND),
        chat("b", OPENING, "ho", REPLY, NEXT, SECOND),
        chat("c", OPENING, "hi", OTHER),
    ]
    for order in itertools.permutations(sessions):
        assert groups(*order) == [["a", "b"], ["c"]]


def test_chats_without_a_word_of_the_user_or_with_marks_alone_are_told_apart():
    a, b = chat("a", "Yes?"), chat("b", "Yes?", "…", "No.")
    c, d = chat("c", "Yes?", "?", "No."), chat("d", "Yes?", "!!", "No.")
    assert groups(a, b, c, d) == [["a"], ["b"], ["c"], ["d"]]


@pytest.mark.parametrize("seed", range(8))
def test_the_split_keeps_branches_that_differ_in_the_middle_together(seed):
    copies = [
        chat("a1", OPENING, ASKED, REPLY, NEXT, SECOND),
        chat("a2", OPENING, ASKED, OTHER, NEXT, SECOND),
        chat("a3", OPENING, "I come in.", REPLY, NEXT, SECOND, ended_by="limit"),
    ]
    others = [chat(f"b{n}", OPENING, f"word {n}", f"Reply {n}.", card="bo") for n in range(4)]
    training = {item.session.session_id for item in split(copies + others, seed=seed).training}
    assert training & {"a1", "a2", "a3"} in (set(), {"a1", "a2", "a3"})


def test_five_copies_of_one_chat_are_too_few_sessions():
    copies = [chat(f"a{n}", OPENING, f"try {n}", REPLY, NEXT, SECOND) for n in range(5)]
    with pytest.raises(InputError, match="too few sessions to split: 1, branches of one chat"):
        split(copies, seed=0)


def test_a_habit_of_a_thousand_sessions_costs_no_time():
    sessions = [
        chat(f"s{n}", OPENING, f"go {n}", REPLY, NEXT, f"Number {n}.", f"so {n}", SECOND)
        for n in range(1000)
    ]
    began = time.process_time()
    assert len(branches(sessions)) == 1000
    assert time.process_time() - began < 3


def test_a_hi_and_its_hello_make_no_branch_and_neither_does_a_short_stock_reply():
    """As a simple bot talks: the same three turns, then another chat."""
    said = ("Hello!", "Hi there!", "I don't know what to say.")
    a = chat("a", *said, "How are you?", "Good.", "What are you up to?", "Nothing.")
    b = chat("b", *said, "Where do you live?", "In town.", "Are you a man?", "No.")
    assert groups(a, b) == [["a"], ["b"]]


def test_a_chat_that_an_importer_found_to_be_made_from_another_is_its_branch():
    a = chat("a", OPENING, "hi", "Hm.")
    b = chat("b", OPENING, "ho", "No.").model_copy(update={"extra": {"branch_of": "a"}})
    c = chat("c", OPENING, "he", "So.").model_copy(update={"extra": {"branch_of": "gone"}})
    d = chat("d", OPENING, "ha", "Do.").model_copy(update={"extra": {"branch_of": "gone"}})
    e = chat("e", OPENING, "hu", "Oh.").model_copy(update={"extra": {"branch_of": 7}})
    assert groups(a, b, c, d, e) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_branch_finds_the_chat_that_is_named_by_its_file():
    """SillyTavern's file names hold spaces, which a session id does not."""
    source = {"source": {"file": "Ash - 2024.jsonl"}}
    a = chat("Ash---2024", OPENING, "hi", "Hm.").model_copy(update={"extra": source})
    b = chat("b", OPENING, "ho", "No.").model_copy(update={"extra": {"branch_of": "Ash - 2024"}})
    assert groups(a, b) == [["Ash---2024", "b"]]


def test_what_the_user_alone_says_again_makes_no_branch():
    """A person tells several characters the same stories; only a reply in common is a copy."""
    lost = "My brother lost both of his shoes in that very lake, and he blames the moon for it."
    a = chat("a", OPENING, "hi", "Hm.", ASKED, "Yes.", lost, "Ah.")
    b = chat("b", OPENING, "ho", "No.", ASKED, "Oh.", lost, "So.")
    assert groups(a, b) == [["a"], ["b"]]


def test_full_width_letters_do_not_hide_a_copy():
    """As an input method for Chinese leaves them."""
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in ASKED)
    a = chat("a", OPENING, ASKED, "No.")
    b = chat("b", OPENING, wide, "Aye.")
    assert groups(a, b) == [["a", "b"]]
