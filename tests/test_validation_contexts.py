"""Where in held-out sessions a simulator is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.simulators.validation.contexts import contexts, of_session
from palate.types import Session, Turn


def session(name, *turns, ended_by="unknown"):
    return Session(
        session_id=name,
        user_id="u1",
        card_id="ash",
        ended_by=ended_by,
        turns=tuple(
            Turn(speaker={"c": "character", "u": "user"}[who], text=text) for who, text in turns
        ),
    )


def told(context):
    return [(message.speaker, message.text) for message in context.history]


TALK = (("c", "Yes?"), ("u", "hi"), ("c", "Well?"), ("u", "bye"))


def test_each_message_of_the_user_is_a_context_with_all_that_came_before():
    first, second = of_session(session("s", *TALK))
    assert (first.turn, first.human, told(first)) == (0, "hi", [("character", "Yes?")])
    assert (second.turn, second.human) == (1, "bye")
    assert told(second) == [("character", "Yes?"), ("user", "hi"), ("character", "Well?")]


def test_the_last_message_before_a_chosen_end_is_a_farewell():
    first, second = of_session(session("s", *TALK, ended_by="quit"))
    assert (first.left, second.left, second.human) == (False, True, "bye")


def test_leaving_without_a_word_is_a_context_of_its_own():
    found = of_session(session("s", *TALK, ("c", "Wait."), ended_by="quit"))
    assert [(c.turn, c.human, c.left) for c in found] == [
        (0, "hi", False),
        (1, "bye", False),
        (2, "", True),
    ]
    assert told(found[2])[-1] == ("character", "Wait.")


@pytest.mark.parametrize("ended_by", ["limit", "unknown"])
def test_a_session_that_did_not_end_by_choice_has_no_context_where_the_user_left(ended_by):
    found = of_session(session("s", *TALK, ("c", "Wait."), ended_by=ended_by))
    assert [(c.human, c.left) for c in found] == [("hi", False), ("bye", False)]


def test_what_one_speaker_sent_in_a_row_is_one_message_and_blanks_are_none():
    (found,) = of_session(
        session("s", ("c", "Yes?"), ("c", "You?"), ("u", "hi"), ("u", "  "), ("u", "it's me"))
    )
    assert told(found) == [("character", "Yes?\nYou?")]
    assert found.human == "hi\nit's me"


def test_a_blank_last_message_of_the_user_is_leaving_without_a_word():
    found = of_session(session("s", *TALK[:3], ("u", "\n"), ended_by="quit"))
    assert [(c.turn, c.human, c.left) for c in found] == [(0, "hi", False), (1, "", True)]


def test_a_session_that_begins_with_the_user_has_an_empty_history():
    (found,) = of_session(session("s", ("u", "hello?")))
    assert (found.history, found.human) == ((), "hello?")


def test_a_session_in_which_the_user_never_wrote_has_no_context():
    """Not even where they left: training passes over it too."""
    assert of_session(session("s", ("c", "Yes?"))) == []
    assert of_session(session("s", ("c", "Yes?"), ended_by="quit")) == []


def test_a_token_that_the_user_typed_is_not_among_their_words():
    """It would tell the human's message from a simulated one, whose token is taken off."""
    found = of_session(session("s", ("c", "Yes?"), ("u", "bye [QUIT]"), ended_by="quit"))
    assert [(c.human, c.left) for c in found] == [("bye", True)]


def many(sessions, turns, ended_by="quit"):
    talk = [("c", "Yes?")]
    for number in range(turns):
        talk += [("u", f"m{number}"), ("c", "Well?")]
    return [session(f"s{n}", *talk, ended_by=ended_by) for n in range(sessions)]


def test_a_limited_draw_spreads_over_sessions_and_turns():
    """100 contexts of 10 sessions, 20 drawn: two of each session, in its two halves."""
    drawn = contexts(many(10, 10, ended_by="limit"), limit=20, seed=4)
    by_session = {}
    for context in drawn:
        by_session.setdefault(context.session_id, []).append(context.turn)
    assert len(by_session) == 10
    assert all(len(turns) == 2 and turns[0] < 5 <= turns[1] for turns in by_session.values())
    assert {context.weight for context in drawn} == {5.0}


def test_contexts_where_the_user_left_have_a_quarter_of_a_limited_draw():
    """10 of 110 contexts; of 20 drawn, 5 at weight 2 and 15 at weight 100 / 15."""
    drawn = contexts(many(10, 10), limit=20, seed=4)
    left = [context for context in drawn if context.left]
    assert (len(drawn), len(left)) == (20, 5)
    assert {context.weight for context in left} == {2.0}
    assert sum(context.weight for context in drawn) == pytest.approx(110)


def test_a_draw_repeats_by_its_seed_and_does_not_depend_on_the_order_of_sessions():
    sessions = many(6, 8)
    drawn = contexts(sessions, limit=9, seed=1)
    assert drawn == contexts(sessions, limit=9, seed=1)
    assert drawn != contexts(sessions, limit=9, seed=2)
    assert set(drawn) == set(contexts(sessions[::-1], limit=9, seed=1))


def test_without_a_limit_every_context_stands_for_itself():
    found = contexts(many(2, 3))
    assert len(found) == 8
    assert {context.weight for context in found} == {1.0}


@given(st.integers(1, 6), st.integers(1, 7), st.integers(1, 60), st.integers(0, 99))
def test_a_draw_has_as_many_different_contexts_as_asked_for(sessions, turns, limit, seed):
    everything = many(sessions, turns)
    drawn = contexts(everything, limit=limit, seed=seed)
    places = {(context.session_id, context.turn) for context in drawn}
    assert len(places) == len(drawn) == min(limit, sessions * (turns + 1))


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="limit"):
        contexts(many(1, 3), limit=0)


def test_few_contexts_where_the_user_stayed_leave_the_room_to_those_where_they_left():
    """6 left and 6 stayed; of 11 a quarter is 3, but 8 who stayed are not to be had."""
    drawn = contexts(many(6, 1), limit=11, seed=1)
    assert sum(context.left for context in drawn) == 5
    assert len({(context.session_id, context.turn) for context in drawn}) == 11


def test_the_seed_says_in_which_order_the_sessions_are_gone_through():
    """Every second of six: in one fixed order there would be two draws, whatever the seed."""
    sessions = many(6, 1, ended_by="limit")
    drawn = [contexts(sessions, limit=3, seed=seed) for seed in range(20)]
    assert len({tuple(context.session_id for context in some) for some in drawn}) > 2


def test_the_seed_says_with_which_turn_a_draw_begins():
    """Every second of a session's ten turns: the even by some seeds, the odd by others."""
    sessions = many(1, 10, ended_by="limit")
    drawn = [contexts(sessions, limit=5, seed=seed) for seed in range(20)]
    assert {tuple(context.turn for context in some) for some in drawn} == {
        (0, 2, 4, 6, 8),
        (1, 3, 5, 7, 9),
    }
