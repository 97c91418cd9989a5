"""Authorship attribution, with people whom a child could tell apart and with one person twice."""

import random

import pytest

from palate.simulators.validation.attribution import attribution, grouped, training_messages
from palate.types import Session, TrainingSession, Turn

CALM = "the harbour is quiet and we wait for the tide to come back in"
LOUD = "OMG!!! yesss lol xD whyyy noooo haha stopp"


def messages(words, number, seed):
    dice = random.Random(seed)
    return [" ".join(dice.choices(words.split(), k=dice.randint(3, 7))) for _ in range(number)]


def trained(texts, name="s"):
    turns = []
    for text in texts:
        turns += [
            Turn(speaker="character", text="Go on, I am listening."),
            Turn(speaker="user", text=text),
        ]
    return [
        TrainingSession(Session(session_id=name, user_id="u", card_id="ash", turns=tuple(turns)))
    ]


TWO = {"calm": trained(messages(CALM, 60, 1)), "loud": trained(messages(LOUD, 60, 2))}


def test_messages_are_grouped_by_neighbours_and_none_is_left_over():
    """23 messages are two groups of about ten: 12 and 11."""
    groups = grouped([str(n) for n in range(23)], 10)
    assert [len(group.split("\n")) for group in groups] == [12, 11]
    assert groups[0].startswith("0\n1\n")


def test_half_a_group_is_one_and_less_is_none():
    assert [len(grouped(["a"] * n, 10)) for n in (0, 4, 5, 10, 15, 16)] == [0, 0, 1, 1, 2, 2]


def test_only_training_sessions_are_learned_from():
    with pytest.raises(TypeError, match="training sessions"):
        training_messages([TWO["calm"][0].session])


@pytest.mark.train
def test_people_who_write_differently_are_told_apart_and_their_simulators_attributed_to_them():
    found = attribution(
        TWO,
        {
            "human": {"calm": messages(CALM, 40, 3), "loud": messages(LOUD, 20, 4)},
            "lora": {"calm": messages(CALM, 30, 5), "loud": messages(LOUD, 30, 6)},
            "raw": {"calm": messages(CALM, 20, 7), "loud": messages(CALM, 20, 8)},
        },
        seed=1,
    )
    human, lora, raw = found.authors
    assert human.confusion == ((4, 0), (0, 2))
    assert (human.accuracy.value, human.accuracy.n) == (1.0, 6)
    assert human.accuracy.low == pytest.approx(0.60966, abs=1e-4)  # Wilson, 6 of 6: 6 / (6 + z²)
    assert found.chance == pytest.approx(4 / 6)
    assert lora.by_person["loud"].value == 1.0
    # The raw simulator writes calmly for everyone: for the loud one it is taken for another.
    assert raw.confusion == ((2, 0), (2, 0))
    assert (raw.accuracy.value, raw.by_person["loud"].value) == (0.5, 0.0)


@pytest.mark.train
def test_a_person_without_messages_in_a_source_is_left_out_of_it():
    found = attribution(TWO, {"lora": {"loud": messages(LOUD, 10, 3)}}, seed=1)
    assert list(found.authors[0].by_person) == ["loud"]
    assert found.chance is None


def test_one_person_has_nobody_to_be_taken_for():
    found = attribution({"calm": TWO["calm"]}, {"human": {"calm": ["a"] * 20}}, seed=1)
    assert found.authors == ()
    assert "only one person" in found.reason


def test_too_few_training_messages_are_named():
    found = attribution({**TWO, "new": trained(["hi"] * 12)}, {}, seed=1)
    assert found.authors == ()
    assert "new" in found.reason


def test_of_a_very_long_message_the_beginning_is_read():
    assert [len(group) for group in grouped(["x" * 5000], 1)] == [2000]


@pytest.mark.train
def test_three_groups_are_enough_to_learn_a_person_from():
    """25 messages are two groups and a half, which is two; 26 are three."""
    for number, told in ((24, True), (30, False)):
        found = attribution({**TWO, "new": trained(messages(LOUD, number, 9))}, {}, seed=1)
        assert (found.reason is not None) is told


@pytest.mark.train
def test_a_person_who_wrote_ten_times_as_much_is_not_for_that_the_likelier_author():
    """Groups of six calm messages and four loud ones: half would be his, weighed by number."""
    much = {"calm": trained(messages(CALM, 300, 1)), "loud": trained(messages(LOUD, 30, 2))}
    mixed = []
    for number in range(20):
        mixed += messages(CALM, 6, 100 + number) + messages(LOUD, 4, 200 + number)
    found = attribution(much, {"human": {"calm": mixed}}, seed=1)
    assert found.authors[0].confusion[0] == (0, 20)


@pytest.mark.train
def test_somebody_who_is_not_among_the_persons_counts_for_nothing():
    human = {"loud": messages(LOUD, 20, 4), "gone": messages(CALM, 60, 5)}
    found = attribution(TWO, {"human": human}, seed=1)
    assert found.authors[0].accuracy.n == 2
    assert (found.authors[0].confusion, found.chance) == (((0, 0), (0, 2)), 1.0)


@pytest.mark.train
def test_case_alone_tells_two_people_apart():
    two = {
        "low": trained(messages(CALM, 60, 1)),
        "high": trained([text.upper() for text in messages(CALM, 60, 2)]),
    }
    human = {"low": messages(CALM, 20, 3), "high": [t.upper() for t in messages(CALM, 20, 4)]}
    found = attribution(two, {"human": human}, seed=1)
    assert found.authors[0].confusion == ((2, 0), (0, 2))
