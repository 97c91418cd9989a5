"""Free role-play: who speaks when, and how a session ends (paper 3.2)."""

from dataclasses import replace

import pytest

from palate.errors import TransportError
from palate.roleplay import Step, play
from palate.types import Cell
from worlds import Listed, said, steps_of, table

MORE = [f"more {n}" for n in range(50)]
REPLIES = [f"reply {n}" for n in range(50)]

ENDINGS = [
    pytest.param(["[QUIT]"], ["unused"], "quit", 0, 0, id="quit at once"),
    pytest.param(
        ["Not my kind of story. [QUIT]"], ["unused"], "quit", 1, 0, id="quit with words at once"
    ),
    pytest.param(MORE, REPLIES, "depth_limit", 6, 6, id="never quits"),
    pytest.param(
        ["a", "b", "c", "d", "e", "done. [QUIT]"],
        ["u", "v", "w", "x", "y", "z"],
        "quit",
        6,
        5,
        id="quit on the last turn allowed",
    ),
    pytest.param(
        ["hello", "", "  ", "\n", ""], ["yes?"] * 5, "simulator_empty", 1, 1, id="simulator empty"
    ),
    pytest.param(["hello"] * 6, [""] * 10, "candidate_empty", 1, 0, id="candidate empty"),
    pytest.param(
        ["hello"] * 6,
        [("She opened", "refused")],
        "candidate_blocked",
        1,
        0,
        id="candidate blocked by its provider",
    ),
    pytest.param(
        ["Open the gate!"] * 50, ["No."] * 50, "depth_limit", 6, 6, id="simulator repeats"
    ),
    pytest.param(
        ["hello", "still here", "[QUIT]"], ["[QUIT]", "fine."], "quit", 2, 2, id="character quits"
    ),
]


@pytest.mark.parametrize(("simulator", "candidate", "end", "users", "replies"), ENDINGS)
async def test_a_session_ends_for_its_reason(simulator, candidate, end, users, replies):
    trajectory = await play(table(Listed(simulator), Listed(candidate), depth=6), lambda step: None)
    assert trajectory.ended_by == end
    assert sum(m.speaker == "user" for m in trajectory.messages) == users
    assert len(trajectory.replies()) == replies


async def test_opening_then_user_and_character_in_turn_up_to_the_depth():
    simulator, candidate = Listed(["u1", "u2", "u3", "u4"]), Listed(["c1", "c2", "c3", "c4"])
    trajectory = await play(table(simulator, candidate, depth=3), lambda step: None)
    assert [m.text for m in trajectory.messages] == ["u1", "c1", "u2", "c2", "u3", "c3"]
    assert (len(simulator.requests), len(candidate.requests)) == (3, 3)


async def test_the_opening_is_context_for_both_and_never_the_users_words_to_the_candidate():
    simulator, candidate = Listed(["u1"]), Listed(["c1"])
    await play(table(simulator, candidate, depth=1), lambda step: None)
    assert candidate.requests[0].messages == (("assistant", "O"), ("user", "u1"))
    assert simulator.requests[0].messages == (("user", "O"),)


@pytest.mark.parametrize(
    ("half", "simulator_calls", "candidate_calls"),
    [(["u1", "c1", "u2"], 1, 2), (["u1", "c1", "u2", "c2"], 1, 1)],
)
async def test_a_resumed_chat_goes_on_with_the_side_whose_turn_it_is(
    half, simulator_calls, candidate_calls
):
    lines = {"u": ["u3"], "c": ["c2", "c3"] if len(half) == 3 else ["c3"]}
    simulator, candidate = Listed(lines["u"]), Listed(lines["c"])
    trajectory = await play(table(simulator, candidate, depth=3), lambda step: None, said(half))
    assert [m.text for m in trajectory.messages] == ["u1", "c1", "u2", "c2", "u3", "c3"]
    assert len(simulator.requests) == simulator_calls
    assert len(candidate.requests) == candidate_calls


async def test_a_card_without_an_opening_starts_with_the_user():
    simulator, candidate = Listed(["u1", "u2", "u3"]), Listed(["c1", "c2", "c3"])
    trajectory = await play(table(simulator, candidate, depth=3, opening=""), lambda step: None)
    assert [m.text for m in trajectory.messages] == ["u1", "c1", "u2", "c2", "u3", "c3"]
    assert candidate.requests[0].messages == (("user", "u1"),)


@pytest.mark.parametrize(("depth", "replies"), [(0, 0), (1, 1)])
async def test_depths_zero_and_one(depth, replies):
    trajectory = await play(table(Listed(["u1"]), Listed(["c1"]), depth=depth), lambda step: None)
    assert trajectory.ended_by == "depth_limit"
    assert len(trajectory.replies()) == replies


async def test_every_step_is_accepted_before_the_next_call():
    seen: list[tuple[int, int]] = []
    simulator, candidate = Listed(["u1", "bye [QUIT]"]), Listed(["c1"])
    steps: list[Step] = []

    def accept(step: Step) -> None:
        steps.append(step)
        seen.append((len(simulator.requests), len(candidate.requests)))

    await play(table(simulator, candidate, depth=3), accept)
    assert seen == [(1, 0), (1, 1), (2, 1)]
    assert steps_of(steps) == ["u1", "c1", "bye"]
    assert [step.ended_by for step in steps] == [None, None, "quit"]


async def test_the_quit_token_reaches_no_one():
    simulator, candidate = Listed(["u1", "Night, then. [QUIT]"]), Listed(["c1"])
    trajectory = await play(table(simulator, candidate, depth=3), lambda step: None)
    assert trajectory.messages[-1].text == "Night, then."
    assert all("QUIT" not in m.text for r in candidate.requests for m in r.messages)


async def test_repetition_is_a_flag_and_not_an_end():
    trajectory = await play(
        table(Listed(["again", "again"]), Listed(["c", "c"]), depth=2), lambda step: None
    )
    assert [m.flags for m in trajectory.messages if m.speaker == "user"] == [(), ("repetition",)]


async def test_usage_of_empty_attempts_is_counted_with_the_step():
    steps: list[Step] = []
    await play(table(Listed(["", "", "u1"]), Listed(["c1"]), depth=1), steps.append)
    assert (steps[0].usage.prompt, steps[0].attempts) == (30, 3)
    assert (steps[1].usage.prompt, steps[1].attempts) == (10, 1)


async def test_a_cut_reply_is_kept_and_marked():
    trajectory = await play(
        table(Listed(["u1"]), Listed([("She opened the", "length")]), depth=1), lambda step: None
    )
    assert trajectory.messages[1].finish == "length"
    assert trajectory.messages[1].text == "She opened the"


async def test_what_a_simulator_said_up_to_a_block_is_kept_and_marked():
    trajectory = await play(
        table(Listed([("She opened", "refused")]), Listed(["c1"]), depth=1), lambda step: None
    )
    assert (trajectory.messages[0].text, trajectory.messages[0].finish) == ("She opened", "refused")


async def test_a_block_without_a_word_is_an_empty_simulator_and_is_not_asked_again():
    simulator = Listed([("", "refused"), "never asked"])
    trajectory = await play(table(simulator, Listed(["c1"]), depth=1), lambda step: None)
    assert (trajectory.ended_by, len(simulator.requests)) == ("simulator_empty", 1)


async def test_a_service_with_a_memory_gets_the_new_message_and_a_session_id():
    candidate = Listed(["c1", "c2"])
    await play(
        table(Listed(["u1", "u2"]), candidate, depth=2, gets_session=True, remembers=True),
        lambda step: None,
    )
    assert [r.messages for r in candidate.requests] == [(("user", "u1"),), (("user", "u2"),)]
    assert [r.session for r in candidate.requests] == ["s-1", "s-1"]


async def test_a_failed_call_raises_and_keeps_what_was_accepted():
    class Failing(Listed):
        async def complete(self, request):
            raise TransportError("no answer")

    steps: list[Step] = []
    with pytest.raises(TransportError):
        await play(table(Listed(["u1"]), Failing([]), depth=1), steps.append)
    assert steps_of(steps) == ["u1"]


async def test_seeds_differ_by_turn_and_repeat_when_resumed():
    first, again = Listed(["c1", "c2"]), Listed(["c2"])
    await play(table(Listed(["u1", "u2"]), first, depth=2, seeded=True), lambda step: None)
    await play(
        table(Listed([]), again, depth=2, seeded=True), lambda step: None, said(["u1", "c1", "u2"])
    )
    seeds = [r.sampling.seed for r in first.requests]
    assert seeds[0] != seeds[1]
    assert again.requests[0].sampling.seed == seeds[1]


async def test_seeds_differ_by_cell_repetition_study_seed_and_attempt():
    """Otherwise two repetitions of a cell would be copies, and ranks would look steadier."""
    cells = [Cell("u1", "k1", "A", 1), Cell("u1", "k1", "A", 2), Cell("u2", "k1", "A", 1)]
    found = set()
    for cell, seed in [*((cell, 7) for cell in cells), (cells[0], 8)]:
        candidate = Listed(["", "c1"])
        seated = table(Listed(["u1"]), candidate, depth=1, seeded=True)
        await play(replace(seated, cell=cell, seed=seed), lambda step: None)
        found |= {request.sampling.seed for request in candidate.requests}
    assert len(found) == 8
    assert all(0 <= seed < 2**31 for seed in found)


async def test_what_is_said_after_the_history_comes_last_and_the_instructions_are_a_shared_prefix():
    candidate = Listed(["c1"])
    seated = table(Listed(["u1"]), candidate, depth=1, system="S", after_history="P")
    await play(seated, lambda step: None)
    assert candidate.requests[0].messages == (
        ("system", "S"),
        ("assistant", "O"),
        ("user", "u1"),
        ("system", "P"),
    )
    assert candidate.requests[0].cache_prefix == 1
    assert candidate.requests[0].session is None
