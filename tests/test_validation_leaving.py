"""[QUIT] against what the person did: counts and shares worked out by hand."""

import pytest

from palate.simulators.validation.contexts import Context
from palate.simulators.validation.leaving import (
    NEVER_LEFT,
    NO_CHOSEN_END,
    Decision,
    by_turn,
    decisions,
    leaving,
)
from palate.simulators.validation.speaking import Utterance
from palate.types import Usage


def context(session, turn, left=False, weight=1.0):
    return Context(session, turn, (), "" if left else "hm", left, weight)


def said(session, turn, text="hm", left=False):
    return Utterance(
        user_id="u1",
        condition="lora",
        session_id=session,
        turn=turn,
        sample=0,
        text=text,
        left=left,
        finish="ok",
        attempts=1,
        usage=Usage(),
        model="",
        question="q",
    )


# a: left at turn 2, the simulator too; b: left at turn 2, the simulator at turn 1; c: never left.
EVERYWHERE = [
    context("a", 0),
    context("a", 1),
    context("a", 2, left=True),
    context("b", 0),
    context("b", 1),
    context("b", 2, left=True),
    context("c", 0),
    context("c", 1),
]
SAID = [
    said("a", 0),
    said("a", 1),
    said("a", 2, text="", left=True),
    said("b", 0),
    said("b", 1, text="bye", left=True),
    said("b", 2),
    said("c", 0),
    said("c", 1),
]


def test_precision_recall_and_f1_by_hand():
    """1 hit, 1 miss, 1 false, 5 stayed: precision 1/2, recall 1/2, F1 2/(2+1+1), false 1/6."""
    found = leaving(decisions(EVERYWHERE, SAID), EVERYWHERE, seed=1)
    assert (found.hits, found.misses, found.false, found.stayed) == (1, 1, 1, 5)
    assert found.precision.value == 0.5
    assert found.recall.value == 0.5
    assert found.f1.value == 0.5
    assert found.f1.n == 8
    assert found.false_quit_rate.value == pytest.approx(1 / 6)
    assert found.real_rate == 0.25


def test_the_curve_has_the_hazard_at_each_turn_of_those_who_came_to_it():
    """Turn 1: nobody of 3. Turn 2: the simulator at 1 of 3. Turn 3: 2 of 2 left, it at 1 of 2."""
    curve = by_turn(decisions(EVERYWHERE, SAID), EVERYWHERE)
    assert [at.turn for at in curve] == [1, 2, 3]
    assert [at.real.value for at in curve] == [0.0, 0.0, 1.0]
    assert [at.simulated.value for at in curve] == [0.0, pytest.approx(1 / 3), 0.5]
    assert [at.real.n for at in curve] == [3, 3, 2]
    assert curve[2].real.low == pytest.approx(0.34238, abs=1e-4)  # Wilson, 2 of 2: 2 / (2 + z²)


def test_a_drawn_context_weighs_as_many_as_it_stands_for():
    """2 leaving contexts of weight 1, both told; 2 others of weight 4, one left by mistake.

    Precision 2 / (2 + 4), recall 1, F1 4 / (4 + 4), false quits 4 / 8.
    """
    made = [
        Decision("a", 1, True, True),
        Decision("b", 1, True, True),
        Decision("a", 0, False, True, 4.0),
        Decision("b", 0, False, False, 4.0),
    ]
    found = leaving(made, EVERYWHERE, seed=1)
    assert found.precision.value == pytest.approx(1 / 3)
    assert found.recall.value == 1.0
    assert found.f1.value == pytest.approx(0.5)
    assert found.false_quit_rate.value == 0.5


def test_without_a_chosen_end_only_false_quits_can_be_told():
    stayed = [context("a", 0), context("b", 0)]
    found = leaving(decisions(stayed, [said("a", 0), said("b", 0)]), stayed, seed=1)
    for measure in (found.precision, found.recall, found.f1):
        assert (measure.value, measure.reason) == (None, NO_CHOSEN_END)
    assert found.false_quit_rate.value == 0.0
    assert found.false_quit_rate.high > 0.3


def test_a_simulator_that_never_leaves_has_recall_0_and_no_precision():
    stays = [said(c.session_id, c.turn) for c in EVERYWHERE]
    found = leaving(decisions(EVERYWHERE, stays), EVERYWHERE, seed=1)
    assert (found.recall.value, found.f1.value) == (0.0, 0.0)
    assert (found.precision.value, found.precision.reason) == (None, NEVER_LEFT)


def test_silence_is_no_decision():
    silent = [said("a", 0, text=""), said("a", 1)]
    assert [d.turn for d in decisions(EVERYWHERE, silent)] == [1]


def test_a_drawn_contexts_weight_is_its_decisions():
    assert decisions([context("a", 0, weight=4.0)], [said("a", 0)]) == [
        Decision("a", 0, False, False, 4.0)
    ]


def test_how_often_the_person_left_is_told_over_all_contexts_not_those_answered():
    """2 of 8, though only the first three of them were answered."""
    found = leaving(decisions(EVERYWHERE, SAID[:3]), EVERYWHERE, seed=1)
    assert found.real_rate == 0.25


def test_a_share_names_the_sessions_that_it_rests_on():
    """The persons left in a and b; stayed in a, b and c; the simulator left in a and b."""
    found = leaving(decisions(EVERYWHERE, SAID), EVERYWHERE, seed=1)
    shares = (found.recall, found.precision, found.false_quit_rate)
    assert [(share.n, share.sessions) for share in shares] == [(2, 2), (2, 2), (6, 3)]
