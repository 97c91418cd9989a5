"""The numbers of a history, worked out by hand."""

import math

import pytest

from palate.histories.figures import figures, reply_turns

from .chats import chat, rated


def test_ratings_are_counted_with_their_mean_and_entropy():
    """Labels 1 1 5 5: mean 3, one bit."""
    numbers = figures([rated("a", 1, 1, None), rated("b", 5, 5)])
    assert numbers.ratings.counts == (2, 0, 0, 0, 2)
    assert (numbers.ratings.mean, numbers.ratings.entropy) == (3.0, 1.0)
    assert (numbers.sessions, numbers.turns, numbers.replies) == (2, 12, 5)


def test_five_labels_alike_have_the_largest_entropy():
    assert figures([rated("a", 1, 2, 3, 4, 5)]).ratings.entropy == pytest.approx(math.log2(5))
    assert figures([rated("a", 4, 4)]).ratings.entropy == 0


def test_pairs_are_those_of_one_session_with_different_labels():
    """a: 1 2 2 has (1,2) twice of three pairs; b: one label, one pair; across sessions: none."""
    numbers = figures([rated("a", 1, 2, 2), rated("b", 5, 5)])
    assert (numbers.pairs, numbers.rated_pairs) == (2, 4)


def test_nothing_rated_has_no_mean_and_no_entropy():
    numbers = figures([rated("a", None)])
    assert (numbers.ratings.mean, numbers.ratings.entropy, numbers.pairs) == (None, None, 0)


def test_the_rating_of_an_opening_is_counted_apart():
    session = chat("a", ("Yes?", 5), "hi", ("No.", 2))
    numbers = figures([session])
    assert (numbers.ratings.counts, numbers.opening_ratings) == ((0, 1, 0, 0, 0), 1)
    assert reply_turns(session) == [2]


def test_lengths_are_in_words_and_in_characters():
    numbers = figures([chat("a", "Yes?", "two words", "A B C", "one", "你好")])
    assert numbers.user.words.model_dump() == {"p10": 1, "median": 1, "p90": 2, "longest": 2}
    assert numbers.user.characters.longest == 8
    assert numbers.character.words.longest == 3
    assert numbers.character.messages == 3
    assert numbers.habits.lower_case == 1


def test_a_user_without_a_word_has_no_lengths_and_no_habits():
    numbers = figures([chat("a", "Yes?")])
    assert (numbers.user.messages, numbers.user.words, numbers.habits) == (0, None, None)


def test_leaving_is_counted_over_sessions_that_ended_by_choice():
    numbers = figures(
        [
            rated("a", 1, 2),
            rated("b", 1, 2),
            rated("c", 1, 2, 3, 4, 5),
            rated("d", 1, ended_by="limit"),
        ]
    )
    assert numbers.left_after == {2: 2, 5: 1}
    assert numbers.messages_before_leaving == 2
    assert numbers.endings == {"quit": 3, "limit": 1, "unknown": 0}
    assert figures([rated("d", 1, ended_by="limit")]).messages_before_leaving is None


def test_ratings_run_over_the_session_over_time_and_by_card():
    numbers = figures([rated("a", 1, None, 3), rated("b", 5, card="bo"), rated("c", None)])
    course = [(at.reply, at.ratings.number, at.ratings.mean) for at in numbers.course]
    assert course == [(1, 2, 3.0), (3, 1, 3.0)]
    of_time = [(of.number, of.session_id, of.ratings.mean) for of in numbers.time]
    assert of_time == [(1, "a", 2.0), (2, "b", 5.0), (3, "c", None)]
    assert [(c.card_id, c.sessions, c.quits, c.ratings.mean) for c in numbers.cards] == [
        ("ash", 2, 2, 2.0),
        ("bo", 1, 1, 5.0),
    ]


def test_languages_are_counted_as_they_are_marked():
    sessions = [rated("a", 1), rated("b", 1, language="zh"), rated("c", 1)]
    assert figures(sessions).languages == {"en": 2, "zh": 1}


def test_the_json_names_every_number():
    value = figures([rated("a", 1, 2)]).model_dump(mode="json")
    assert value["habits"]["exclamation"] == 0
    assert value["left_after"] == {"2": 1}


def test_of_a_cards_sessions_those_that_the_user_left_are_counted_alone():
    ends = ("quit", "limit", "unknown", "quit")
    (card,) = figures([rated(str(n), 3, ended_by=end) for n, end in enumerate(ends)]).cards
    assert (card.sessions, card.quits) == (4, 2)
