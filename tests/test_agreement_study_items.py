"""What the study on held-out ratings judges: excerpts, draws, examples."""

import pytest

from palate.histories import split
from palate.studies.agreement_rows import LabelRow, held_out_labels
from palate.studies.excerpts import excerpt, has_reaction, reply_of
from palate.studies.held_out import drawn_labels
from palate.studies.rated_examples import rated_examples
from palate.types import Session, TrainingSession, Turn


def session(*turns, ended_by="limit", name="s1"):
    """Turns as "u:text", "c:text" or "c4:text", the digit a rating."""
    made = []
    for turn in turns:
        head, _, text = turn.partition(":")
        rating = int(head[1:]) if head[1:] else None
        speaker = "user" if head[0] == "u" else "character"
        made.append(Turn(speaker=speaker, text=text, satisfaction=rating))
    return Session(session_id=name, user_id="u", card_id="k", turns=tuple(made), ended_by=ended_by)


def texts(cut):
    return [message.text for message in cut.messages]


def test_an_excerpt_ends_with_the_users_next_message_and_holds_nothing_later():
    cut = excerpt(session("c:open", "u:hi", "c4:one", "u:oh", "c:two", "u:bye"), 2)
    assert (cut.opening, texts(cut)) == ("open", ["hi", "one", "oh"])
    assert (reply_of(cut), has_reaction(cut), cut.ended_by) == (0, True, "depth_limit")


def test_a_reaction_in_several_messages_is_one():
    cut = excerpt(session("u:hi", "c4:one", "u:oh", "u:no", "c:two"), 1)
    assert texts(cut)[-1] == "oh\nno"


def test_an_answer_to_several_messages_of_the_character_is_the_reaction_to_each():
    told = session("u:hi", "c4:one", "c2:two", "u:oh")
    assert texts(excerpt(told, 1)) == ["hi", "one", "oh"]
    assert texts(excerpt(told, 2)) == ["hi", "one", "two", "oh"]


def test_leaving_is_a_reaction_with_and_without_a_farewell():
    silent = excerpt(session("u:hi", "c1:one", ended_by="quit"), 1)
    assert (texts(silent), silent.ended_by, has_reaction(silent)) == (["hi", "one"], "quit", True)
    spoken = excerpt(session("u:hi", "c1:one", "u:bye", ended_by="quit"), 1)
    assert (texts(spoken)[-1], spoken.ended_by) == ("bye", "quit")


def test_a_last_reply_has_no_reaction_unless_the_user_left():
    assert not has_reaction(excerpt(session("u:hi", "c1:one"), 1))
    assert not has_reaction(excerpt(session("u:hi", "c1:one", "u: "), 1))


def test_an_earlier_reply_does_not_end_by_the_users_leaving():
    told = session("u:hi", "c1:one", "u:oh", "c1:two", ended_by="quit")
    assert excerpt(told, 1).ended_by == "depth_limit"


def rated(ratings, name):
    turns = [turn for n, r in enumerate(ratings) for turn in (f"u:{name} {n}", f"c{r}:reply {n}")]
    return session(*turns, name=name)


def test_examples_let_the_ratings_take_turns():
    """Nine replies of rating 3, one of 1, one of 5: of four examples one is a 1 and one a 5."""
    training = [TrainingSession(rated([3] * 9 + [1], "a")), TrainingSession(rated([5], "b"))]
    drawn = rated_examples(training, count=4, seed=1)
    assert sorted(one.example.satisfaction for one in drawn) == [1, 3, 3, 5]
    assert rated_examples(training, count=4, seed=1) == drawn
    assert rated_examples(training, count=4, seed=2) != drawn
    assert len(rated_examples(training, count=99, seed=1)) == 11


def test_an_example_shows_the_message_before_the_reply_and_the_reaction_alone():
    told = session("c:open", "u:first", "c:early", "u:hi", "c4:one", "u:oh", "c:late")
    (drawn,) = rated_examples([TrainingSession(told)], count=8, seed=1)
    assert (texts(drawn.example.excerpt), drawn.example.excerpt.opening) == (
        ["hi", "one", "oh"],
        "",
    )
    assert drawn.source == "s1#4"


def test_examples_of_anything_but_training_sessions_are_a_type_error():
    with pytest.raises(TypeError, match="training sessions, not Session"):
        rated_examples([rated([1, 2], "a")], count=2, seed=1)


def held_out(*ratings):
    """A split whose held-out sessions have these ratings."""
    sessions = [rated(given, f"h{n}") for n, given in enumerate(ratings)]
    sessions += [rated([3], f"t{n}") for n in range(3)]
    from palate.histories.split import parts

    return parts(sessions, {"t0", "t1", "t2"}, seed=1, panel_cards=(), held_out_share=0.2)


def test_without_a_limit_every_held_out_rating_is_drawn():
    parts = held_out([1, 2], [3, 3])
    assert drawn_labels(parts, limit=None, seed=1) == tuple(held_out_labels(parts))
    assert drawn_labels(parts, limit=None, seed=1)[0] == LabelRow("u", "h0", 1, 1)


def test_a_limit_draws_whole_sessions_and_first_those_that_can_give_a_pair():
    parts = held_out([3, 3], [1, 2], [4, 4], [2, 5])
    drawn = drawn_labels(parts, limit=4, seed=1)
    assert [(row.session, row.label) for row in drawn] == [
        ("h1", 1),
        ("h1", 2),
        ("h3", 2),
        ("h3", 5),
    ]


def test_what_does_not_fit_as_a_whole_gives_a_part():
    parts = held_out([1, 2, 3, 4, 5, 1])
    assert len(drawn_labels(parts, limit=4, seed=1)) == 4
    assert drawn_labels(parts, limit=4, seed=1) == drawn_labels(parts, limit=4, seed=1)


def test_the_draw_takes_no_part_too_small_for_a_pair():
    parts = held_out([1, 2, 3], [2, 1, 5])
    assert len(drawn_labels(parts, limit=4, seed=1)) == 3


def test_the_split_that_the_study_uses_keeps_ratings_apart():
    sessions = [rated([1, 5], f"s{n}") for n in range(10)]
    parts = split(sessions, seed=1)
    assert all(t.satisfaction is None for item in parts.held_out for t in item.session.turns)
    assert len(list(held_out_labels(parts))) == 4
