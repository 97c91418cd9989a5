"""What is odd in the chats themselves, each with its place as SESSION#TURN."""

from palate.histories.review_turns import turn_findings
from palate.types import Session, Turn

from .chats import chat, rated

LONG_REPLY = "It is mutton, and you may thank the ewe that broke her leg on Sunday."


def found(*sessions):
    return {one.kind: one for one in turn_findings(sessions)}


def turns(name, *said):
    """A session of (speaker, text) pairs."""
    return Session(
        session_id=name,
        user_id="u1",
        card_id="ash",
        turns=tuple(
            Turn(speaker="user" if who == "u" else "character", text=text) for who, text in said
        ),
    )


def test_ordinary_chats_are_left_alone():
    assert found(rated("a", 1, None, 2), rated("b", 3)) == {}


def test_five_unrated_replies_in_a_row_are_a_stretch_and_four_are_none():
    one = found(rated("a", 1, *[None] * 5, 2, *[None] * 6), rated("b", 1, *[None] * 4))
    assert one["unrated-stretch"].text == (
        "In sessions that are rated elsewhere, 5 or more replies in a row have no rating 2 times "
        "(from a#4, a#16); what is rated may be chosen, not typical."
    )
    assert found(rated("c", *[None] * 9)) == {}


def test_copies_are_told_together():
    said = ("Yes?", "hello", LONG_REPLY, "and then")
    one = found(chat("a", *said), chat("b", *said), rated("c", 1))["near-duplicates"]
    assert one.text == (
        "2 of 3 sessions are branches or copies of one another (a = b); the split counts each "
        "such chat once."
    )
    assert "repeated-replies" not in found(chat("a", *said), chat("b", *said))


def test_a_reply_that_comes_again_is_quoted_once_with_its_places():
    one = found(
        chat("a", "Yes?", "one", LONG_REPLY, "two", LONG_REPLY.upper()),
        chat("b", "Yes?", "three", "Hm.", "four", LONG_REPLY),
    )["repeated-replies"]
    assert one.text == (
        "2 replies repeat an earlier one of 4; most often, 3 times, “It is mutton, and you may "
        "thank the ewe that broke her leg o…” (a#2, a#4, b#4)."
    )
    assert one.places == ("a#4", "b#4")


def test_short_replies_may_come_again():
    assert found(chat("a", "Yes?", "one day", "Hm.", "two days", "Hm.")) == {}


def test_a_history_of_single_words_is_weak():
    one = found(chat("a", "Yes?", "ok", "No.", "why", "So.", "tell me then", "No!"))
    assert one["one-word-messages"].text == (
        "2 of 3 messages of the user are a single word; there is little of their voice to learn."
    )


def test_sessions_that_the_user_begins_have_no_opening():
    one = found(turns("a", ("u", "good evening"), ("c", "Hm.")), rated("b", 1))["no-opening"]
    assert one.text.startswith("1 of 2 sessions begins with the user (a): no opening is kept")


def test_runs_of_one_speaker_are_placed_at_the_second_turn():
    one = found(turns("a", ("c", "Yes?"), ("c", "Speak."), ("u", "good evening"), ("u", "all")))
    assert one["speaker-run"].places == ("a#1", "a#3")
    assert one["speaker-run"].text.startswith("2 turns follow another of the same speaker")


def test_very_long_turns_are_placed():
    assert found(chat("a", "Yes?", "word " * 1700, "No."))["long-turn"].places == ("a#1",)
    assert "long-turn" not in found(chat("a", "Yes?", "word " * 1500, "No."))


def test_turns_that_show_nothing_are_placed():
    assert found(chat("a", "Yes?", "\u200b\u2800", "No.", "so be it"))["blank-turn"].places == (
        "a#1",
    )
    assert found(chat("a", "Yes?", "🙂 :)", "No.", "so be it")) == {}
    assert "blank-turn" not in found(chat("a", "Yes?", "so be it", ("\u200b", 1)))


def test_a_quit_token_in_the_text_is_told_and_one_that_is_talked_about_is_not():
    one = found(chat("a", "Yes?", "good night then [QUIT]"))["quit-token"]
    assert one.text.startswith("1 message of the user ends with the token [QUIT] (a#1); take it")
    assert found(chat("a", "Yes?", "what does [QUIT] mean?")) == {}


def test_a_long_list_of_places_is_cut_in_the_sentence_alone():
    one = found(*(turns(f"s{n}", ("u", f"evening {n} to you"), ("c", "Hm.")) for n in range(6)))
    assert "(s0, s1, s2 and 3 more)" in one["no-opening"].text
    assert len(one["no-opening"].places) == 6


def test_two_thousand_tokens_are_not_yet_a_very_long_turn():
    assert "long-turn" not in found(chat("a", "Yes?", "abcd" * 2000, "No."))
    assert "long-turn" in found(chat("a", "Yes?", "abcd" * 2001, "No."))
