"""The classifier two-sample test: its AUC by hand, and worlds where the answer is known."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.simulators.validation.speaking import Pair
from palate.simulators.validation.two_sample import Wins, auc, two_sample

WORDS = "the a of to and in is it you that was for on are with they be at one have this"

scores = st.lists(st.integers(-3, 3), min_size=1, max_size=8)


def test_an_auc_by_hand():
    """Human 3, 2; simulated 2, 1: 3 beats both, 2 ties with 2 and beats 1: (1+1+0.5+1) / 4."""
    assert auc([3, 2], [2, 1]) == 0.875


def test_scores_that_are_all_equal_tell_nothing():
    assert auc([1, 1, 1], [1, 1]) == 0.5


@given(scores, scores)
def test_an_auc_seen_from_the_other_side_is_the_rest(human, simulated):
    assert auc(human, simulated) == pytest.approx(1 - auc(simulated, human))


def test_an_auc_needs_both_sides():
    with pytest.raises(ValueError, match="both sides"):
        auc([1.0], [])


def test_a_draw_of_sessions_counts_their_comparisons_as_often():
    """Session a beats itself and b; b loses to a, ties with itself.

    Twice a and never b: 4 wins of 4. Each once: (1 + 1 + 0 + 0.5) / 4.
    """
    wins = Wins(np.array([[1.0, 1.0], [0.0, 0.5]]), np.ones((2, 2)))
    assert wins.auc() == 0.625
    redrawn = wins.redrawn(np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
    assert redrawn.tolist() == [1.0, 0.625, 0.5]


def world(change, *, sessions=8, messages=8, seed=1):
    """Both sides draw from the same words; the simulated ones are changed by `change`."""
    dice = random.Random(seed)

    def message():
        return " ".join(dice.choices(WORDS.split(), k=dice.randint(2, 9)))

    return [
        Pair(f"s{session}", turn, message(), change(message()))
        for session in range(sessions)
        for turn in range(messages)
    ]


@pytest.mark.train
def test_a_simulator_that_is_the_person_cannot_be_told_apart():
    found = two_sample(world(lambda text: text), seed=1, permutations=39)
    assert found.auc.low < 0.5 < found.auc.high
    assert found.p > 0.05
    assert (found.human, found.simulated, found.folds) == (64, 64, 5)
    assert (found.auc.n, found.auc.sessions) == (128, 8)


@pytest.mark.train
def test_a_mark_at_the_end_gives_a_simulator_away():
    """1 / 40 is the least that 39 swaps can say."""
    found = two_sample(world(lambda text: f"{text}!"), seed=1, permutations=39)
    assert found.auc.low > 0.9
    assert found.p == pytest.approx(1 / 40)


@pytest.mark.train
def test_length_alone_gives_a_simulator_away():
    found = two_sample(world(lambda text: f"{text} {text} {text}"), seed=1, permutations=0)
    assert found.auc.low > 0.75


@pytest.mark.train
def test_the_same_messages_on_both_sides_tie():
    """Every text is there once as a human's and once as a simulator's: 0.5, or nearly."""
    both = [pair._replace(simulated=pair.human) for pair in world(lambda text: text)]
    assert two_sample(both, seed=1, permutations=0).auc.value == pytest.approx(0.5, abs=0.01)


@pytest.mark.train
def test_the_order_of_the_pairs_and_the_seed_do_not_move_the_auc():
    pairs = world(lambda text: text.replace("the", "teh"))
    one = two_sample(pairs, seed=1, permutations=0)
    other = two_sample(pairs[::-1], seed=2, permutations=0)
    assert one.auc.value == pytest.approx(other.auc.value, abs=1e-6)


@pytest.mark.parametrize(("sessions", "messages"), [(4, 10), (6, 3)])
def test_too_few_sessions_or_messages_are_not_measured(sessions, messages):
    found = two_sample(world(str, sessions=sessions, messages=messages), seed=1)
    assert (found.auc.value, found.p) == (None, None)
    assert f"{sessions * messages} pairs of {sessions} sessions" in found.auc.reason


@pytest.mark.train
def test_twenty_messages_of_five_sessions_are_enough():
    found = two_sample(world(str, sessions=5, messages=4), seed=1, permutations=0)
    assert found.auc.value is not None
    assert (found.human, found.folds) == (20, 5)


@pytest.mark.train
def test_the_seed_draws_the_swaps():
    pairs = world(lambda text: text.replace("the", "teh"), sessions=6, messages=4)
    found = {two_sample(pairs, seed=seed, permutations=19).p for seed in range(4)}
    assert len(found) > 1
