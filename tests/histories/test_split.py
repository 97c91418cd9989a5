"""The split: whole sessions, branches together, panel cards kept away, labels in one place."""

import collections
import itertools
import json
import random

import pytest

from palate.errors import InputError
from palate.histories import read_split, split, write_split
from palate.types import Session, TrainingSession, Turn


def session(name, card="ash", ended_by="quit", *, first=None, opening="Yes?", user="u1"):
    return Session(
        session_id=name,
        user_id=user,
        card_id=card,
        ended_by=ended_by,
        turns=(
            *([Turn(speaker="character", text=opening)] if opening else []),
            Turn(speaker="user", text=first or f"words of {name}"),
            Turn(speaker="character", text="Hm.", satisfaction=4, note="nice"),
        ),
    )


def ids(items):
    return sorted(item.session.session_id for item in items)


TEN = [
    session(f"s{i}", card, ended_by)
    for i, (card, ended_by) in enumerate(
        [("ash", "quit")] * 4 + [("ash", "limit")] * 1 + [("bo", "quit")] * 4 + [("bo", "limit")]
    )
]


def test_a_fifth_of_the_sessions_is_held_out_and_no_session_is_in_both_parts():
    made = split(TEN, seed=7)
    assert (len(made.training), len(made.held_out)) == (8, 2)
    assert sorted(ids(made.training) + ids(made.held_out)) == [f"s{i}" for i in range(10)]
    assert all(isinstance(item, TrainingSession) for item in made.training)


@pytest.mark.parametrize("seed", range(8))
def test_each_card_gives_its_share(seed):
    made = split(TEN, seed=seed)
    assert sorted(item.session.card_id for item in made.held_out) == ["ash", "bo"]


def test_each_ending_gives_its_share():
    """20 sessions that ended by quit and 10 by the limit on one card: 4 and 2 are held out."""
    many = [session(f"q{i}") for i in range(20)] + [
        session(f"l{i}", ended_by="limit") for i in range(10)
    ]
    held = collections.Counter(item.session.ended_by for item in split(many, seed=1).held_out)
    assert held == {"quit": 4, "limit": 2}


def test_the_split_depends_on_content_and_seed_and_not_on_order():
    shuffled = TEN[:]
    random.Random(3).shuffle(shuffled)
    assert ids(split(TEN, seed=7).held_out) == ids(split(shuffled, seed=7).held_out)
    drawn = {tuple(ids(split(TEN, seed=seed).held_out)) for seed in range(20)}
    assert len(drawn) > 5


def test_the_split_is_the_same_on_every_machine():
    assert ids(split(TEN, seed=7).held_out) == ["s3", "s7"]


@pytest.mark.parametrize("seed", range(8))
def test_branches_of_one_chat_stay_together(seed):
    branches = [
        session("a1", first="open the door"),
        session("a2", first="open  the\ndoor"),  # an edited copy: white space only
        session("a3", card="ash copy", first="open the door", ended_by="limit"),
    ]
    others = [session(f"b{i}", card="bo") for i in range(3)]
    training = set(ids(split(branches + others, seed=seed).training))
    assert training & {"a1", "a2", "a3"} in (set(), {"a1", "a2", "a3"})


def test_the_opening_alone_does_not_make_a_branch_but_a_first_word_without_one_asks_for_the_card():
    """Same opening, other words: five chats. Same "hi", other cards: two chats; same card: one."""
    assert len(split([session(f"s{i}") for i in range(5)], seed=0).held_out) == 1
    with pytest.raises(InputError, match="too few sessions to split: 2, branches"):
        split(
            [
                session("x", card="ash", first="hi", opening=""),
                session("y", card="ash", first="hi", opening=""),
                session("z", card="bo", first="hi", opening=""),
            ],
            seed=0,
        )


def test_sessions_on_panel_cards_are_held_out():
    panel = [session(f"p{i}", card="harbour") for i in range(3)]
    made = split(TEN + panel, seed=7, panel_cards={"harbour", "unseen"})
    assert {"p0", "p1", "p2"} <= set(ids(made.held_out))
    assert (len(made.training), len(made.held_out)) == (8, 5)
    assert made.panel_in_training == ()


def test_a_branch_of_a_panel_session_is_held_out_with_it():
    made = split(
        [*TEN, session("p", card="harbour", first="x"), session("q", card="copy", first="x")],
        seed=7,
        panel_cards={"harbour"},
    )
    assert {"p", "q"} <= set(ids(made.held_out))


def test_where_too_few_others_are_left_panel_sessions_are_learned_from_and_named():
    """Two sessions off the panel cannot be split, so all five are drawn from: one is held out."""
    few = [session("s0"), session("s1")] + [session(f"p{i}", card="harbour") for i in range(3)]
    made = split(few, seed=7, panel_cards={"harbour"})
    assert (len(made.training), len(made.held_out)) == (4, 1)
    assert made.panel_in_training == tuple(
        item.session.session_id for item in made.training if item.session.card_id == "harbour"
    )
    assert len(made.panel_in_training) >= 2


def test_a_panel_that_is_newer_than_the_split_is_still_checked():
    assert len(split(TEN, seed=7).training_on({"bo"})) == 4


def test_too_few_sessions_are_refused_with_their_number():
    with pytest.raises(
        InputError, match=r"user u1 has too few sessions to split: 2, .* at least 3"
    ):
        split(TEN[:2], seed=0)


def test_sessions_of_two_users_and_none_are_refused():
    with pytest.raises(InputError, match="one user's sessions, but these are of: u1, u2"):
        split([*TEN, session("other", user="u2")], seed=0)
    with pytest.raises(InputError, match="but these are of: none"):
        split([], seed=0)


def test_held_out_sessions_carry_no_label_and_their_labels_are_in_one_object():
    made = split(TEN, seed=7)
    for item in made.held_out:
        assert [(t.satisfaction, t.note) for t in item.session.turns] == [(None, None)] * 3
    name = made.held_out[0].session.session_id
    assert made.labels.satisfaction(name, 2) == 4
    assert made.labels.satisfaction(name, 0) is None
    assert made.labels.satisfaction(made.training[0].session.session_id, 2) is None
    assert len(made.labels) == 2
    assert "4" not in repr(made.labels)


def test_ratings_that_an_importer_kept_under_extra_are_held_out_too():
    kept = {"turns": {"2": {"rating": 9}}, "session_rating": 5}
    made = split([one.model_copy(update={"extra": kept}) for one in TEN], seed=7)
    assert [item.session.extra for item in made.held_out] == [{}, {}]
    assert made.training[0].session.extra == kept


def test_training_digests_are_those_of_the_sessions():
    made = split(TEN, seed=7)
    assert made.training_digests()["s0"] == TEN[0].digest()


def test_a_written_split_reads_back_the_same(tmp_path):
    path = tmp_path / "splits" / "u1.json"
    made = split(TEN, seed=7, panel_cards={"harbour"})
    write_split(made, path)
    write_split(made, path)
    again = read_split(path, TEN)
    assert ids(again.training) == ids(made.training)
    assert (again.seed, again.panel_cards, again.held_out_share) == (7, ("harbour",), 0.2)
    assert "words of" not in path.read_text()
    assert json.loads(path.read_text())["schema"] == "palate.split/1"
    assert [p.name for p in path.parent.iterdir()] == ["u1.json"]


def test_another_split_does_not_overwrite_the_first(tmp_path):
    write_split(split(TEN, seed=7), tmp_path / "u1.json")
    with pytest.raises(InputError, match=r"u1\.json holds another split"):
        write_split(split(TEN, seed=8), tmp_path / "u1.json")


def test_a_history_that_changed_since_the_split_is_refused(tmp_path):
    path = tmp_path / "u1.json"
    write_split(split(TEN, seed=7), path)
    edited = [session("s0", first="other words"), *TEN[1:]]
    for sessions, message in [
        (edited, "session 's0' has changed since"),
        ([*TEN, session("new")], "session 'new' was added since"),
        (TEN[1:], "session 's0' is missing since"),
    ]:
        with pytest.raises(InputError, match=message):
            read_split(path, sessions)


def test_a_record_that_was_edited_is_refused(tmp_path):
    path = tmp_path / "u1.json"
    write_split(split(TEN, seed=7), path)
    value = json.loads(path.read_text())
    moved = next(iter(value["held_out"].items()))
    edits = itertools.chain(
        [(json.dumps({**value, "training": {**value["training"], moved[0]: moved[1]}}), "changed")],
        [(json.dumps({**value, "seed": 8}), "u1.json was changed after it was written")],
        [(json.dumps({**value, "note": 1}), "u1.json is not a split: note")],
        [("{", "u1.json is not JSON"), ("[]", "u1.json is not a split")],
    )
    for text, message in edits:
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_split(path, TEN)
    with pytest.raises(InputError, match="does not exist; split the history first"):
        read_split(tmp_path / "none.json", TEN)


def test_something_is_left_to_learn_from_whatever_the_share():
    made = split(TEN[:3], seed=7, held_out_share=0.99)
    assert (len(made.training), len(made.held_out)) == (1, 2)
