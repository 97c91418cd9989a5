"""Whole sessions, and long ones in parts."""

from __future__ import annotations

import json

import pytest

from judging.small_world import SESSION_VERDICT, FunctionJudge, lines, spoken, subject, turns
from palate.judging.sessions import split
from palate.judging.tracks import Item, Judge, judge
from palate.models.client import Completion
from palate.types import Usage

SESSION = Item("session", None)
WIDE = {f"S{n}": 3 for n in (1, 2, 3, 4, 5, 6, 8, 9, 11)}


def verdict(scores, **more):
    return json.dumps({"scores": scores, **more})


def close_up(world, variety, **more):
    return verdict({"S7": world, "S10": variety}, **more)


async def judged(count, *answers, ended_by="depth_limit"):
    model = FunctionJudge(lines(*answers))
    return await judge(SESSION, subject(*turns(count), ended_by=ended_by), Judge(model)), model


def bounds(count):
    return [(part.first, part.last) for part in split(spoken(turns(count)))]


def test_parts_hold_at_most_twenty_turns_and_are_nearly_equal():
    assert bounds(20) == [(1, 20)]
    assert bounds(21) == [(1, 10), (11, 21)]
    assert bounds(40) == [(1, 20), (21, 40)]
    assert bounds(50) == [(1, 16), (17, 33), (34, 50)]


@pytest.mark.parametrize("count", [0, 1, 20, 21, 47, 60])
def test_parts_hold_every_message_once_and_begin_with_the_user(count):
    messages = spoken([*turns(count), "a farewell"])
    parts = split(messages)
    assert tuple(m for part in parts for m in part.messages) == messages
    assert all(part.messages[0].speaker == "user" for part in parts)


async def test_twenty_turns_are_judged_in_one_call():
    judgement, model = await judged(20, SESSION_VERDICT)
    assert (judgement.overall, len(model.requests)) == (3.0, 1)


async def test_a_long_session_is_scored_close_up_in_parts_and_once_as_a_whole():
    """S7 is the mean of 4 and 1, S10 of 5 and 2; with nine times 3: (27 + 2.5 + 3.5) / 11."""
    judgement, model = await judged(40, close_up(4, 5), close_up(1, 2), verdict(WIDE))
    assert (judgement.scores["S7"], judgement.scores["S10"]) == (2.5, 3.5)
    assert list(judgement.scores) == [f"S{n}" for n in range(1, 12)]
    assert judgement.overall == pytest.approx(33 / 11)
    assert (judgement.attempts, judgement.usage) == (3, Usage(300, 30, 120))
    assert [request.purpose.attempt for request in model.requests] == [0, 1, 2]
    assert all(request.purpose.track == "session" for request in model.requests)


async def test_each_part_is_shown_alone_and_asked_for_its_own_dimensions():
    _, model = await judged(40, close_up(4, 5), close_up(1, 2), verdict(WIDE))
    first, second, whole = (request.messages for request in model.requests)
    assert "The gate is shut." in first[1].text
    assert "The gate is shut." not in second[1].text
    assert "reply 20\n" in first[1].text
    assert "reply 21\n" not in first[1].text
    assert "S7 " in first[0].text
    assert "S8 " not in first[0].text
    assert "S7 " not in whole[0].text
    assert "S8 " in whole[0].text


async def test_the_whole_is_read_from_first_and_last_part_and_summaries_between():
    answers = [close_up(3, 3)] * 3 + ["They crossed the ⟦river⟧.", verdict(WIDE)]
    judgement, model = await judged(60, *answers, ended_by="quit")
    summarised, whole = model.requests[3].messages[1].text, model.requests[4].messages[1].text
    assert judgement.overall == 3.0
    assert "reply 21\n" in summarised
    assert "reply 20\n" not in summarised
    assert "Turns 1 to 20, in full:" in whole
    assert "Turns 21 to 40, summary:\n⟦quoted⟧\nThey crossed the [[river]].\n⟦/quoted⟧" in whole
    assert "reply 21\n" not in whole
    assert whole.count("The user left here.") == 1


async def test_a_part_without_a_verdict_leaves_the_session_unscored_and_ends_the_calls():
    judgement, model = await judged(40, close_up(3, 3), "well", "well")
    assert judgement.overall is None
    assert judgement.unscored.startswith("turns 21 to 40: no verdict")
    assert (judgement.attempts, len(model.requests)) == (3, 3)


async def test_a_missing_summary_leaves_the_session_unscored():
    blocked = Completion("", "refused")
    judgement, _ = await judged(60, *[close_up(3, 3)] * 3, blocked)
    assert judgement.unscored == "turns 21 to 40: no summary, refused by the judge's provider"


async def test_flags_reasons_and_raw_texts_of_all_calls_are_kept():
    judgement, _ = await judged(
        21,
        close_up(3, 3, reason="steady", flags=["unsafe"]),
        close_up(3, 3, reason="a slip", flags=["breaks_fiction"]),
        verdict(WIDE, reason="holds", humour=4),
    )
    assert judgement.flags == ("breaks_fiction", "unsafe")
    assert judgement.reason == "steady\na slip\nholds"
    assert judgement.raw.count("scores") == 3
    assert judgement.ignored == ("humour",)


async def test_one_script_line_with_all_dimensions_serves_every_call():
    judgement, _ = await judged(40, *[SESSION_VERDICT] * 3)
    assert (judgement.overall, judgement.ignored) == (3.0, ())


async def test_a_long_session_can_be_judged_in_digits():
    """S7 and S10: 2 and 4 in each part; nine times 3: (27 + 6) / 11."""

    def answer(request):
        if not request.digits:
            return "They crossed the river."
        digits = "24" if request.digits == 2 else "3" * request.digits
        return Completion(digits, "ok", digit_probabilities=tuple({d: 1.0} for d in digits))

    model = FunctionJudge(answer, reads_digits=True)
    judgement = await judge(SESSION, subject(*turns(60)), Judge(model, form="digits"))
    assert [request.digits for request in model.requests] == [2, 2, 2, 0, 9]
    assert (judgement.overall, judgement.score_kind) == (3.0, "expected")
