"""Which examples go into which step."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from palate.simulators.batches import Step, by_length, plan


def test_neighbours_in_length_share_a_batch():
    """Of 100 tokens: 40 and 30 padded to 40 each are 80; 30 more would be 120."""
    assert by_length([30, 40, 30, 90, 5], 100) == [(3,), (1, 0), (2, 4)]


def test_an_example_longer_than_a_batch_stands_alone():
    assert by_length([500, 10, 10], 100) == [(0,), (1, 2)]


def test_a_step_is_full_when_it_has_its_tokens():
    steps = plan([100] * 4, epochs=1, batch_tokens=100, step_tokens=200, seed=0)
    assert [len(step.batches) for step in steps] == [2, 2]
    assert [len(batch) for step in steps for batch in step.batches] == [1, 1, 1, 1]


def test_a_small_rest_joins_the_last_step():
    """Seven hundreds in steps of three hundred: 3 + 4, because 1 alone would weigh as much."""
    steps = plan([100] * 7, epochs=1, batch_tokens=100, step_tokens=300, seed=0)
    assert [len(step.batches) for step in steps] == [3, 4]


def test_epochs_differ_in_their_order_and_the_seed_decides():
    lengths = list(range(10, 60))
    one = plan(lengths, epochs=2, batch_tokens=100, step_tokens=100, seed=3)
    assert one == plan(lengths, epochs=2, batch_tokens=100, step_tokens=100, seed=3)
    assert one != plan(lengths, epochs=2, batch_tokens=100, step_tokens=100, seed=4)
    first = [step.batches for step in one if step.epoch == 0]
    assert first != [step.batches for step in one if step.epoch == 1]


def test_nothing_makes_no_step():
    assert plan([], epochs=2, batch_tokens=10, step_tokens=10, seed=0) == []


@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=60),
    batch_tokens=st.integers(1, 400),
    step_tokens=st.integers(1, 800),
    seed=st.integers(0, 5),
)
def test_every_example_comes_once_an_epoch(lengths, batch_tokens, step_tokens, seed):
    steps = plan(lengths, epochs=2, batch_tokens=batch_tokens, step_tokens=step_tokens, seed=seed)
    for epoch in (0, 1):
        mine = [step for step in steps if step.epoch == epoch]
        assert Counter(n for step in mine for batch in step.batches for n in batch) == Counter(
            range(len(lengths))
        )
    for step in steps:
        assert isinstance(step, Step)
        for batch in step.batches:
            width = max(lengths[n] for n in batch)
            assert len(batch) == 1 or width * len(batch) <= batch_tokens
