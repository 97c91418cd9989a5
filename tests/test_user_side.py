"""What of a session the model that plays the user reads and writes."""

import pytest

from palate.models.client import ChatMessage
from palate.simulators.user_side import user_side
from palate.types import Session, Turn


def session(*turns: tuple[str, str], ended_by="unknown"):
    return Session(
        session_id="s",
        user_id="wren",
        card_id="harbour",
        ended_by=ended_by,
        turns=tuple(
            Turn(speaker={"c": "character", "u": "user"}[who], text=text) for who, text in turns
        ),
    )


def said(*turns: tuple[str, str], ended_by="unknown"):
    return [
        ({"user": "c", "assistant": "u"}[message.role], message.text)
        for message in user_side(session(*turns, ended_by=ended_by)).messages
    ]


def skipped(*turns: tuple[str, str], ended_by="unknown"):
    return user_side(session(*turns, ended_by=ended_by)).skipped


def test_roles_flip():
    assert user_side(session(("c", "yes"), ("u", "no"))).messages == (
        ChatMessage("user", "yes"),
        ChatMessage("assistant", "no"),
    )


def test_a_run_of_one_side_is_one_message():
    chat = [("c", "One."), ("c", "Two."), ("u", "a"), ("u", "b"), ("u", "c")]
    assert said(*chat) == [("c", "One.\nTwo."), ("u", "a\nb\nc")]


def test_blank_messages_are_left_out_and_those_of_the_user_counted():
    chat = [("c", "Well?"), ("u", "  \n"), ("c", "\u200b"), ("c", "Hm?"), ("u", "x"), ("u", "")]
    assert said(*chat) == [("c", "Well?\nHm?"), ("u", "x")]
    assert skipped(*chat) == {"blank": 2}


def test_outer_white_space_is_the_persons():
    assert said(("c", "Hm."), ("u", "\n  *shrugs*\n\nfine \n")) == [
        ("c", "Hm."),
        ("u", "\n  *shrugs*\n\nfine \n"),
    ]


def test_a_farewell_and_quit_are_one_message():
    chat = [("c", "Good night?"), ("u", "good night")]
    assert said(*chat, ended_by="quit") == [("c", "Good night?"), ("u", "good night\n[QUIT]")]


def test_quit_stands_alone_after_a_last_message_of_the_character():
    chat = [("c", "Hi."), ("u", "hi"), ("c", "And?")]
    assert said(*chat, ended_by="quit") == [*chat, ("u", "[QUIT]")]
    assert user_side(session(*chat, ended_by="quit")).leaves


@pytest.mark.parametrize("ended_by", ["limit", "unknown"])
def test_quit_is_taught_at_chosen_ends_alone(ended_by):
    chat = [("c", "More?"), ("u", "more")]
    assert said(*chat, ended_by=ended_by) == chat
    assert not user_side(session(*chat, ended_by=ended_by)).leaves


@pytest.mark.parametrize("chat", [[("c", "Opening only.")], [], [("c", "Well?"), ("u", " \n")]])
@pytest.mark.parametrize("ended_by", ["quit", "unknown"])
def test_a_session_in_which_the_user_wrote_nothing_teaches_nothing(chat, ended_by):
    assert said(*chat, ended_by=ended_by) == []
    assert not user_side(session(*chat, ended_by=ended_by)).leaves


def test_leaving_without_a_word_in_a_whole_session_is_counted():
    assert skipped(("c", "Opening only."), ended_by="quit") == {"quit_without_a_message": 1}
    assert skipped(("c", "Opening only."), ended_by="unknown") == {}


def test_a_typed_token_is_taken_from_a_message_that_did_not_leave():
    chat = [("c", "Hi."), ("u", "brb [QUIT]"), ("c", "Back?"), ("u", "yes")]
    assert said(*chat) == [("c", "Hi."), ("u", "brb"), ("c", "Back?"), ("u", "yes")]
    assert skipped(*chat) == {}


def test_a_typed_token_at_a_chosen_end_is_not_doubled():
    chat = [("c", "Hi."), ("u", "bye! [quit]")]
    assert said(*chat, ended_by="quit") == [("c", "Hi."), ("u", "bye!\n[QUIT]")]


def test_nothing_but_a_typed_token_is_left_out_in_mid_chat_and_counted():
    chat = [("c", "Hi."), ("u", "yo"), ("c", "And?"), ("u", "[QUIT]"), ("c", "Still there?")]
    assert said(*chat) == [("c", "Hi."), ("u", "yo"), ("c", "And?\nStill there?")]
    assert skipped(*chat) == {"only_quit_typed": 1}


def test_nothing_but_a_typed_token_at_a_chosen_end_is_the_leaving():
    chat = [("c", "Hi."), ("u", "yo"), ("c", "And?"), ("u", "[QUIT]")]
    assert said(*chat, ended_by="quit") == chat
    assert skipped(*chat, ended_by="quit") == {}


def test_a_typed_token_in_mid_chat_is_counted_where_the_session_ended_by_choice_too():
    chat = [("c", "Hi."), ("u", "[QUIT]"), ("c", "And?"), ("u", "bye")]
    assert said(*chat, ended_by="quit") == [("c", "Hi.\nAnd?"), ("u", "bye\n[QUIT]")]
    assert skipped(*chat, ended_by="quit") == {"only_quit_typed": 1}


def test_a_token_inside_a_sentence_and_a_characters_token_are_text():
    chat = [("c", "Type [QUIT]"), ("u", "what does [QUIT] do?")]
    assert said(*chat) == chat
