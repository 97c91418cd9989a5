"""Which sessions are learned from, and which only stop the training."""

import pytest

from palate.errors import InputError
from palate.simulators.examples import Counts, Example
from palate.simulators.training_data import drawn, held_out
from palate.types import Session, TrainingSession, Turn


def session(name, said=3):
    turns = tuple(Turn(speaker="user", text="x") for _ in range(said))
    made = Session(session_id=name, user_id="u", card_id="k", turns=turns)
    return TrainingSession(made)


def encode(item):
    """A hundred tokens for each message, one of them supervised."""
    said = len(item.session.turns) if item.session.turns[0].text else 0
    ids = (1,) * (100 * said)
    mask = (False,) * (100 * said - 1) + (True,)
    example = Example(item.session.session_id, ids, mask, said)
    nothing = Counts(0, 0, 0, 0, 0, 0, 0, {"blank": 1})
    return ([example], Counts(1, 1, said, said, 100 * said, 0, 0, {})) if said else ([], nothing)


def silent(name):
    made = Session(
        session_id=name, user_id="u", card_id="k", turns=(Turn(speaker="user", text=""),)
    )
    return TrainingSession(made)


SESSIONS = [session(f"s{n}") for n in range(20)]


def names(encoded):
    return [one.item.session.session_id for one in encoded]


def test_without_a_budget_all_sessions_are_taken_in_their_order():
    assert names(drawn(SESSIONS, encode, budget=None, seed=1)) == [f"s{n}" for n in range(20)]


def test_a_budget_takes_whole_sessions_by_the_seed():
    """Three sessions of 300 tokens fit into 1,000."""
    one = names(drawn(SESSIONS, encode, budget=1000, seed=1))
    assert len(one) == 3
    assert one == names(drawn(list(reversed(SESSIONS)), encode, budget=1000, seed=1))[::-1]
    assert one != names(drawn(SESSIONS, encode, budget=1000, seed=2))


def test_a_session_that_does_not_fit_makes_room_for_others():
    mixed = [session("long", 50), session("short", 1)]
    assert names(drawn(mixed, encode, budget=200, seed=0)) == ["short"]


def test_a_budget_that_holds_no_session_is_refused_with_what_the_smallest_takes():
    """Sessions in which the user says nothing take no tokens, and are not what is asked for."""
    mixed = [session("long", 50), session("short", 1), silent("silent")]
    with pytest.raises(InputError) as refusal:
        drawn(mixed, encode, budget=99, seed=0)
    assert str(refusal.value) == (
        "no training session fits into 99 tokens: the smallest takes 100; give at least as many "
        "with --max-training-tokens"
    )
    assert set(names(drawn(mixed, encode, budget=100, seed=0))) == {"short", "silent"}


def test_a_tenth_of_the_chats_is_held_out_whole():
    """Twenty sessions in ten chats: one chat, with both of its branches."""
    encoded = drawn(SESSIONS, encode, budget=None, seed=1)
    chats = [{f"s{n}", f"s{n + 10}"} for n in range(10)]
    chosen = held_out(encoded, chats, seed=1)
    [chat] = [chat for chat in chats if names(chosen.validation)[0] in chat]
    assert set(names(chosen.validation)) == chat
    assert len(chosen.learned) == 18
    assert names(held_out(encoded, chats, seed=1).validation) == names(chosen.validation)


def test_with_few_chats_none_is_held_out():
    encoded = drawn(SESSIONS[:8], encode, budget=None, seed=1)
    chats = [{f"s{n}", f"s{n + 4}"} for n in range(4)]
    assert held_out(encoded, chats, seed=1).validation == ()
    assert len(held_out(encoded, [{f"s{n}"} for n in range(5)], seed=1).validation) == 1


def test_a_session_in_which_the_user_says_nothing_is_not_held_out():
    """It could not stop anything: five chats, and only four of them speak."""
    encoded = drawn([*SESSIONS[:4], silent("s4")], encode, budget=None, seed=1)
    assert held_out(encoded, [{f"s{n}"} for n in range(5)], seed=1).validation == ()


def test_the_record_counts_what_was_learned_from_and_names_all_that_was_used():
    encoded = drawn([*SESSIONS[:5], silent("s5")], encode, budget=None, seed=1)
    chosen = held_out(encoded, [{f"s{n}"} for n in range(6)], seed=1)
    record = chosen.record()
    assert set(record.training_sessions) == {"s0", "s1", "s2", "s3", "s4", "s5"}
    assert len(record.validation_sessions) == 1
    assert (record.examples, record.supervised_messages, record.tokens) == (4, 12, 1200)
    assert record.skipped == {"blank": 1}


def test_a_session_that_fills_the_budget_to_the_last_token_is_taken():
    assert len(drawn(SESSIONS, encode, budget=900, seed=1)) == 3
    assert names(drawn([session("short", 1)], encode, budget=100, seed=0)) == ["short"]


def test_the_seed_says_which_chat_is_held_out():
    encoded = drawn(SESSIONS, encode, budget=None, seed=1)
    chats = [{f"s{n}", f"s{n + 10}"} for n in range(10)]
    held = {tuple(names(held_out(encoded, chats, seed=seed).validation)) for seed in range(8)}
    assert len(held) > 1
    turned = held_out(encoded, chats[::-1], seed=1)
    assert names(turned.validation) == names(held_out(encoded, chats, seed=1).validation)


def test_what_stops_the_training_is_not_what_is_learned():
    encoded = drawn(SESSIONS[:5], encode, budget=None, seed=1)
    chosen = held_out(encoded, [{f"s{n}"} for n in range(5)], seed=1)
    learned = [example.session_id for example in chosen.training_examples]
    stopping = [example.session_id for example in chosen.validation_examples]
    assert sorted(learned + stopping) == ["s0", "s1", "s2", "s3", "s4"]
    assert (learned, stopping) == (names(chosen.learned), names(chosen.validation))


def test_of_a_chat_that_is_held_out_a_silent_branch_stops_nothing():
    encoded = drawn(
        [*SESSIONS[:5], *(silent(f"q{n}") for n in range(5))], encode, budget=None, seed=1
    )
    chosen = held_out(encoded, [{f"s{n}", f"q{n}"} for n in range(5)], seed=1)
    [held] = names(chosen.validation)
    assert held.startswith("s")
