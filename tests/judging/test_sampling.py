"""Which replies are judged: those with a reaction, spread out, always the same ones."""

from __future__ import annotations

import pytest

from judging.small_world import trajectory, turns
from palate.judging.tracks import Item, sample_replies, wanted
from palate.types import Cell, Message

CELLS = [Cell("u1", f"k{n}", "A", 1) for n in range(30)]


def test_the_last_reply_has_no_reaction_at_the_depth_limit():
    assert sample_replies(trajectory(*turns(3)), count=9, seed=7) == (0, 1)


def test_leaving_is_a_reaction_to_the_last_reply():
    assert sample_replies(trajectory(*turns(3), ended_by="quit"), count=9, seed=7) == (0, 1, 2)


def test_a_farewell_is_a_reaction_to_the_last_reply():
    talk = trajectory(*turns(2), "bye", ended_by="quit")
    assert sample_replies(talk, count=9, seed=7) == (0, 1)


def test_a_reply_after_which_the_simulator_fell_silent_is_not_drawn():
    assert sample_replies(trajectory(*turns(1), ended_by="simulator_empty"), count=4, seed=7) == ()


@pytest.mark.parametrize("ended_by", ["candidate_empty", "candidate_blocked"])
def test_a_user_message_that_got_no_reply_is_a_reaction_all_the_same(ended_by):
    talk = trajectory(*turns(1), "and now?", ended_by=ended_by)
    assert sample_replies(talk, count=4, seed=7) == (0,)


def test_a_blocked_message_is_no_reply_to_score():
    blocked = Message(speaker="character", text="", finish="refused")
    talk = trajectory(*turns(1), "go on", ended_by="quit")
    talk = talk.model_copy(update={"messages": (*talk.messages, blocked)})
    assert sample_replies(talk, count=4, seed=7) == (0,)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.key)
def test_early_middle_and_late_replies_are_all_drawn(cell):
    """Twelve replies with a reaction: thirds are 0..3, 4..7 and 8..11."""
    drawn = sample_replies(trajectory(*turns(13), cell=cell), count=4, seed=7)
    thirds = [reply // 4 for reply in drawn]
    assert len(set(drawn)) == 4
    assert set(thirds) == {0, 1, 2}
    assert list(drawn) == sorted(drawn)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.key)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_last_reply_before_leaving_is_always_drawn(cell, count):
    talk = trajectory(*turns(12), ended_by="quit", cell=cell)
    drawn = sample_replies(talk, count=count, seed=7)
    assert (drawn[-1], len(drawn)) == (11, count)


def test_the_draw_is_fixed_by_cell_and_seed():
    """Literal values: a change here re-judges every study and is a breaking release."""
    talk = trajectory(*turns(20))
    assert sample_replies(talk, count=4, seed=7) == (4, 5, 7, 15)
    assert sample_replies(talk, count=4, seed=8) == (5, 10, 17, 18)


def test_different_cells_draw_differently():
    assert len({sample_replies(trajectory(*turns(20), cell=c), count=4, seed=7) for c in CELLS}) > 9


def test_every_reply_can_be_drawn():
    drawn = {
        reply
        for cell in CELLS
        for seed in range(5)
        for reply in sample_replies(trajectory(*turns(10), cell=cell), count=4, seed=seed)
    }
    assert drawn == set(range(9))


def test_both_turn_tracks_judge_the_same_replies_and_the_session_is_judged_once():
    assert wanted(trajectory(*turns(3)), count=4, seed=7) == (
        Item("personal", 0),
        Item("generic", 0),
        Item("personal", 1),
        Item("generic", 1),
        Item("session", None),
    )


def test_the_session_is_wanted_even_where_no_reply_was_written():
    assert wanted(trajectory(ended_by="quit"), count=4, seed=7) == (Item("session", None),)
