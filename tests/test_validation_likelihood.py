"""Held-out likelihoods: sums by hand, with a model whose loss is a word's length."""

import pytest

from palate.simulators.examples import Example
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.likelihood import (
    Meter,
    SessionNll,
    Summed,
    comparable,
    drawn,
    leaving_tokens,
    likelihoods,
    session_nlls,
)
from palate.types import Session, Turn

IDS: dict[str, int] = {}


def number(word):
    return IDS.setdefault(word, len(IDS))


def session(name, *texts, ended_by="unknown"):
    turns = []
    for text in texts:
        turns += [Turn(speaker="character", text="Well?"), Turn(speaker="user", text=text)]
    return Session(
        session_id=name, user_id="u1", card_id="ash", ended_by=ended_by, turns=tuple(turns)
    )


def encode(session, system):
    """A token a word, "." ends a message; the system text and the character are context."""
    ids, supervised = [number(word) for word in system.split()], [False] * len(system.split())
    texts = [turn.text for turn in session.turns if turn.speaker == "user"]
    leaves = None
    if session.ended_by == "quit":
        texts[-1] += " [QUIT]"
    for place, text in enumerate(texts):
        words = [*text.split(), "."]
        if session.ended_by == "quit" and place == len(texts) - 1:
            leaves = len(ids) + 1
        ids += [number("Well?"), *map(number, words)]
        supervised += [False, *[True] * len(words)]
    return [Example(session.session_id, tuple(ids), tuple(supervised), len(texts), leaves)]


class Scoring:
    """A token costs its word's letters; under an adapter, a tenth of that. Counts its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, user, examples):
        self.calls.append((user, len(examples)))
        words = {token: word for word, token in IDS.items()}
        rate = 1.0 if user is None else 0.1
        return [
            [
                len(words[token]) * rate
                for token, is_target in zip(example.input_ids, example.supervised, strict=True)
                if is_target
            ]
            for example in examples
        ]


def meter(score, identity="base-1", adapters=None):
    return Meter(identity, encode, score, adapters or {"u1": "a1", "u2": "a2"})


def plain(session):
    return "you chat"


TWO = [session("s1", "hi there", "ok"), session("s2", "bye now", ended_by="quit")]


def test_messages_and_their_ends_are_counted_and_nothing_else():
    """s1: hi there . ok . = 2+5+1+2+1 over 5; s2: bye now = 3+3 over 2, its end is [QUIT]'s."""
    found = session_nlls(TWO, meter(Scoring()), plain)
    assert [nll.messages for nll in found] == [(11.0, 5), (6.0, 2)]


def test_leaving_is_told_apart_from_the_words_of_the_farewell():
    """[QUIT] and the end after it: 6 + 1 over 2 tokens, in the session that ended by choice."""
    found = session_nlls(TWO, meter(Scoring()), plain)
    assert [nll.leaving for nll in found] == [(0.0, 0), (7.0, 2)]


def test_the_adapter_of_the_named_user_is_in_use():
    score = Scoring()
    found = session_nlls(TWO, meter(score), plain, adapter="u2")
    assert found[0].messages.total == pytest.approx(1.1)
    assert {user for user, _ in score.calls} == {"u2"}


def test_what_was_measured_is_not_measured_again(tmp_path):
    first, second = Scoring(), Scoring()
    with Answers(tmp_path / "nll.jsonl", SessionNll) as answers:
        before = session_nlls(TWO[:1], meter(first), plain, answers=answers)
    done = []
    with Answers(tmp_path / "nll.jsonl", SessionNll) as answers:
        after = session_nlls(TWO, meter(second), plain, answers=answers, done=done.append)
    assert after[0] == before[0]
    assert second.calls == [(None, 1)]
    assert done == [1, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"system": lambda session: "you talk"},
        {"meter": ("base-2", {"u1": "a1"})},
        {"meter": ("base-1", {"u1": "trained again"})},
    ],
)
def test_another_text_base_or_adapter_is_measured_anew(tmp_path, changes):
    identity, adapters = changes.get("meter", ("base-1", {"u1": "a1"}))
    score = Scoring()
    with Answers(tmp_path / "nll.jsonl", SessionNll) as answers:
        session_nlls(
            TWO, meter(Scoring(), adapters={"u1": "a1"}), plain, adapter="u1", answers=answers
        )
        session_nlls(
            TWO,
            meter(score, identity, adapters),
            changes.get("system", plain),
            adapter="u1",
            answers=answers,
        )
    assert score.calls


def test_conditions_are_compared_over_the_same_tokens_paired_by_session():
    """Base 17/7; the adapter a tenth of it, nine tenths of it less a token."""
    measuring = meter(Scoring())
    found = likelihoods(
        {
            "prompted": session_nlls(TWO, measuring, plain),
            "lora": session_nlls(TWO, measuring, plain, adapter="u1"),
        },
        seed=1,
    )
    assert found["prompted"].messages.value == pytest.approx(17 / 7)
    assert (found["prompted"].messages.n, found["prompted"].messages.sessions) == (7, 2)
    assert found["lora"].messages.value == pytest.approx(1.7 / 7)
    assert found["lora"].over_prompted.value == pytest.approx(-15.3 / 7)
    assert found["lora"].leaving.value == pytest.approx(0.35)
    assert found["lora"].over_profile.reason == "the condition profile was not measured"
    assert found["prompted"].over_prompted.value is None


def test_a_session_that_lost_a_message_in_one_condition_is_left_out_of_all():
    measured = {
        "raw": session_nlls(TWO, meter(Scoring()), plain),
        "profile": session_nlls(TWO, meter(Scoring()), plain),
    }
    short = measured["profile"][0].model_copy(update={"messages": Summed(3.0, 2)})
    measured["profile"] = [short, measured["profile"][1]]
    same = comparable(measured)
    assert [[nll.session_id for nll in nlls] for nlls in same.values()] == [["s2"], ["s2"]]


def test_without_a_chosen_end_leaving_is_not_measured_and_says_why():
    found = likelihoods({"raw": session_nlls(TWO[:1], meter(Scoring()), plain)}, seed=1)
    assert found["raw"].leaving.value is None
    assert "ended by the user's choice" in found["raw"].leaving.reason


def test_leaving_without_a_word_is_the_whole_last_target():
    with_quit = [
        Example("s", (1, 2, 9, 7, 8, 3), (False, True, True, False, True, True), 2, leaves_from=4)
    ]
    without = [Example("s", (1, 2, 9), (False, True, True), 1)]
    assert leaving_tokens(with_quit, without) == 2


def test_after_a_farewell_leaving_begins_where_the_message_would_have_ended():
    """5 6 are the farewell, 9 ends a message; 4 8 9 are a line break, [QUIT] and the end."""
    with_quit = [
        Example("s", (1, 5, 6, 4, 8, 9), (False, True, True, True, True, True), 1, leaves_from=1)
    ]
    without = [Example("s", (1, 5, 6, 9), (False, True, True, True), 1)]
    assert leaving_tokens(with_quit, without) == 3


def test_a_leaving_target_that_did_not_fit_is_not_measured():
    example = Example("s", (1, 2, 9), (False, True, True), 1)
    assert leaving_tokens([example], [example]) == 0
    assert leaving_tokens([], []) == 0


def test_whole_sessions_are_drawn_until_the_budget_is_full():
    """Ten sessions of some 25 tokens each ("Well?" and 96 letters): 60 tokens are two."""
    sessions = [session(f"s{n}", "x" * 96) for n in range(10)]
    taken = drawn(sessions, max_tokens=60, seed=1)
    assert len(taken) == 2
    assert taken == drawn(sessions[::-1], max_tokens=60, seed=1)
    assert len(drawn(sessions, max_tokens=1, seed=1)) == 1
    assert drawn(sessions, max_tokens=None, seed=1) == sessions


def by_message(session, system):
    """As `encode`, but each message is an example, as where a template needs it turn by turn."""
    [whole] = encode(session, system)
    ends = [n for n, token in enumerate(whole.input_ids, 1) if token == number(".")]
    found = []
    for start, end in zip([0, *ends], ends, strict=False):
        leaves = whole.leaves_from if end == ends[-1] else None
        supervised = tuple(start <= n and whole.supervised[n] for n in range(end))
        found.append(Example(session.session_id, whole.input_ids[:end], supervised, 1, leaves))
    return found


def test_a_session_of_several_examples_has_the_sums_of_all():
    """The sessions that, in one example each, have 11 over 5 and 6 over 2 (and 7 over 2)."""
    several = Meter("base-1", by_message, Scoring(), {})
    found = session_nlls([TWO[0], session("s3", "so", "bye now", ended_by="quit")], several, plain)
    assert [nll.messages for nll in found] == [(11.0, 5), (9.0, 4)]
    assert [nll.leaving for nll in found] == [(0.0, 0), (7.0, 2)]


def test_sessions_are_scored_sixteen_together_and_none_is_lost():
    score, done = Scoring(), []
    sessions = [session(f"s{n}", "a" * n) for n in range(1, 18)]
    found = session_nlls(sessions, meter(score), plain, done=done.append)
    assert [nll.messages.total for nll in found] == [n + 1.0 for n in range(1, 18)]
    assert score.calls == [(None, 16), (None, 1)]
    assert done == [0, 16, 1]


def test_a_session_whose_text_changed_is_measured_anew(tmp_path):
    with Answers(tmp_path / "nll.jsonl", SessionNll) as answers:
        session_nlls([session("s1", "hi")], meter(Scoring()), plain, answers=answers)
        [found] = session_nlls([session("s1", "hello")], meter(Scoring()), plain, answers=answers)
    assert found.messages == (6.0, 2)


def test_a_session_that_is_left_out_is_in_no_conditions_number():
    """Of s1 one condition lost a message, so s2 alone counts: 6 over 2 in both."""
    whole = session_nlls(TWO, meter(Scoring()), plain)
    short = whole[0].model_copy(update={"messages": Summed(3.0, 2)})
    found = likelihoods({"raw": whole, "profile": [short, whole[1]]}, seed=1)
    for condition in ("raw", "profile"):
        estimate = found[condition].messages
        assert (estimate.value, estimate.n, estimate.sessions) == (3.0, 2, 1)


def test_leaving_begins_with_the_first_token_that_differs():
    """5 is the farewell's; 7 and 6 differ, and what comes after is leaving's, though alike."""
    with_quit = [Example("s", (1, 5, 7, 8, 9), (False, True, True, True, True), 1, leaves_from=1)]
    without = [Example("s", (1, 5, 6, 8, 9), (False, True, True, True, True), 1)]
    assert leaving_tokens(with_quit, without) == 3


def test_a_session_that_is_too_long_for_what_is_left_makes_room_for_a_shorter_one():
    """25 tokens, 301 and 25: beside either short one the long one has no room in 50."""
    sessions = [session("a", "x" * 96), session("long", "x" * 1200), session("b", "x" * 96)]
    taken = [drawn(sessions, max_tokens=50, seed=seed) for seed in range(20)]
    found = {tuple(sorted(one.session_id for one in some)) for some in taken}
    assert found == {("a", "b"), ("long",)}


def test_the_seed_says_which_sessions_are_measured():
    sessions = [session(f"s{n}", "x" * 96) for n in range(10)]
    found = {drawn(sessions, max_tokens=1, seed=seed)[0].session_id for seed in range(8)}
    assert len(found) > 1
