"""From an item to a judgement, on each track."""

from __future__ import annotations

import pytest

from judging.small_world import (
    GENERIC_VERDICT,
    SESSION_VERDICT,
    FunctionJudge,
    lines,
    subject,
)
from palate.errors import InputError, TransportError
from palate.judging.asking import expectation
from palate.judging.tracks import Item, Judge, judge
from palate.models.client import Completion, Purpose
from palate.prompts import sheet
from palate.types import Usage

PERSONAL = Item("personal", 0)
GENERIC = Item("generic", 0)
SESSION = Item("session", None)
TALK = ("Open!", "Never.", "Why?")


async def said(text, item=PERSONAL, talk=TALK, **settings):
    return await judge(item, subject(*talk), Judge(FunctionJudge(lambda r: text), **settings))


async def test_the_personal_track_has_one_score():
    judgement = await said('{"reason": "terse", "scores": {"satisfaction": 4}, "flags": []}')
    assert (judgement.scores, judgement.overall) == ({"satisfaction": 4}, 4.0)
    assert (judgement.reason, judgement.reaction_shown) == ("terse", True)


@pytest.mark.parametrize("raw", ['{"satisfaction": 4}', '{"score": "4"}', '{"满意度": 4}'])
async def test_the_personal_score_may_go_by_other_names(raw):
    assert (await said(raw)).overall == 4.0


async def test_the_generic_overall_is_the_mean_of_the_answered_dimensions():
    """5+4+4+3+3+4+5+2+3+5 = 38 over ten; G5 and G6 were declared n/a."""
    judgement = await said(GENERIC_VERDICT, GENERIC)
    assert judgement.overall == pytest.approx(3.8)
    assert judgement.scores["G5"] is None
    assert len(judgement.scores) == 12
    assert not judgement.reaction_shown


async def test_the_session_overall_is_the_mean_of_eleven_dimensions():
    """4+4+3+3+2+3+5+3+2+1+3 = 33 over eleven."""
    judgement = await said(SESSION_VERDICT, SESSION)
    assert (judgement.overall, judgement.reply) == (3.0, None)


async def test_a_judgement_names_what_it_was_made_from():
    told = subject(*TALK)
    judgement = await judge(GENERIC, told, Judge(FunctionJudge(lambda r: GENERIC_VERDICT)))
    assert judgement.trajectory == told.trajectory.digest()
    assert judgement.rubric == told.rubrics.generic.digest()
    assert judgement.prompt == sheet("judge_generic", "en").sha256
    assert (judgement.judge, judgement.judge_revision) == ("test:judge", "judge-2026-01")
    assert judgement.key == "u1/k1/A/1|generic|0"
    assert (judgement.raw, judgement.score_kind) == (GENERIC_VERDICT, "integer")


async def test_the_personal_judgement_carries_the_frozen_rubrics_own_hash():
    told = subject(*TALK)
    judgement = await judge(PERSONAL, told, Judge(FunctionJudge(lambda r: '{"satisfaction": 4}')))
    assert judgement.rubric == told.rubrics.personal.sha256


async def test_calls_say_what_they_are_for():
    model = FunctionJudge(lines('{"satisfaction": 4}', SESSION_VERDICT))
    for item in (PERSONAL, SESSION):
        await judge(item, subject(*TALK), Judge(model))
    assert [request.purpose for request in model.requests] == [
        Purpose("judge", "u1/k1/A/1", 0, "personal"),
        Purpose("judge", "u1/k1/A/1", None, "session"),
    ]
    assert model.requests[0].sampling.temperature == 0


async def test_a_reply_without_a_reaction_is_unscored_without_a_call():
    model = FunctionJudge(lines())
    judgement = await judge(PERSONAL, subject("Open!", "Never."), Judge(model))
    assert (judgement.unscored, judgement.overall, judgement.attempts) == ("no reaction", None, 0)


async def test_a_study_may_score_a_reply_without_showing_its_reaction():
    model = FunctionJudge(lambda r: '{"satisfaction": 2}')
    judgement = await judge(PERSONAL, subject("Hi", "No."), Judge(model), reaction_shown=False)
    assert (judgement.overall, judgement.reaction_shown) == (2.0, False)


async def test_a_session_without_a_reply_is_unscored_without_a_call():
    judgement = await judge(SESSION, subject("Bye", ended_by="quit"), Judge(FunctionJudge(lines())))
    assert (judgement.unscored, judgement.overall, judgement.attempts) == ("no reply", None, 0)


async def test_an_unreadable_answer_is_asked_again_once_with_the_same_question():
    model = FunctionJudge(lines("I like it.", '{"satisfaction": 4}'))
    judgement = await judge(PERSONAL, subject(*TALK), Judge(model))
    first, second = model.requests
    assert (judgement.overall, judgement.attempts) == (4.0, 2)
    assert judgement.usage == Usage(200, 20, 80)
    assert "I like it." in judgement.raw
    assert second.messages[0] == first.messages[0]
    assert second.messages[1].text.startswith(first.messages[1].text)
    assert "JSON object alone" in second.messages[1].text
    assert second.purpose == Purpose("judge", "u1/k1/A/1", 0, "personal", attempt=1)
    for request in model.requests:  # for endpoints that enforce one
        assert list(request.json_schema["properties"]["scores"]["properties"]) == ["satisfaction"]
        assert request.cache_prefix == 1


async def test_after_the_last_try_the_verdict_is_unscored_with_its_reason_and_raw_text():
    judgement = await said("I like it.")
    assert (judgement.overall, judgement.attempts) == (None, 2)
    assert judgement.unscored == "no verdict: the reply scores none of the dimensions"
    assert judgement.raw.count("I like it.") == 2


async def test_asking_again_can_be_switched_off():
    assert (await said("I like it.", max_reparse=0)).attempts == 1


@pytest.mark.parametrize(
    ("status", "reason", "attempts"),
    [
        ("refused", "refused by the judge's provider", 1),
        ("length", "truncated", 1),
        ("empty", "empty reply", 2),
        ("empty_after_reasoning", "empty reply after reasoning", 2),
    ],
)
async def test_an_answer_that_is_none_is_unscored(status, reason, attempts):
    """A cut answer is not read, even where its JSON happens to be whole."""
    judgement = await said(Completion('{"satisfaction": 5}', status))
    assert (judgement.overall, judgement.unscored) == (None, reason)
    assert judgement.attempts == attempts


async def test_a_missing_dimension_is_unscored_and_what_was_said_is_kept():
    raw = GENERIC_VERDICT.replace('"G12": 5', '"G13": 5')
    judgement = await said(raw, GENERIC)
    assert (judgement.overall, judgement.unscored) == (None, "G12 is missing")
    assert judgement.ignored == ("G13",)
    assert judgement.scores["G1"] == 5


async def test_a_call_that_does_not_come_back_is_an_error_not_a_judgement():
    def broken(request):
        raise TransportError("no answer")

    with pytest.raises(TransportError):
        await judge(PERSONAL, subject(*TALK), Judge(FunctionJudge(broken)))


def certain(*digits):
    """A digit answer with all weight on the digits given."""
    return Completion(
        "".join(digits), "ok", digit_probabilities=tuple({digit: 1.0} for digit in digits)
    )


def digits_judge(answer):
    return Judge(FunctionJudge(answer, reads_digits=True), form="digits")


async def test_a_digit_is_read_as_its_expected_score():
    """0.5·2 + 0.25·4 + 0.25·5 = 3.25, though the digit that was written is 2."""
    told = Completion("2", "ok", digit_probabilities=({"2": 0.5, "4": 0.25, "5": 0.25},))
    judgement = await judge(PERSONAL, subject(*TALK), digits_judge(lambda r: told))
    assert (judgement.overall, judgement.score_kind) == (3.25, "expected")
    assert judgement.raw == "2\n0.0000 0.5000 0.0000 0.2500 0.2500"


async def test_digits_answer_the_dense_dimensions_in_order_and_sparse_ones_are_not_asked():
    """1+2+3+4+5+1+2+3+4+5 = 30 over ten."""
    judge_ = digits_judge(lambda r: certain(*"1234512345"))
    judgement = await judge(GENERIC, subject(*TALK), judge_)
    request = judge_.model.requests[0]
    assert (request.digits, request.digit_choices) == (10, "12345")
    assert (judgement.overall, judgement.scores["G4"], judgement.scores["G7"]) == (3.0, 4, 5)
    assert [key for key, score in judgement.scores.items() if score is None] == ["G5", "G6"]


@pytest.mark.parametrize(
    "completion",
    [
        Completion("4", "ok"),
        Completion('{"satisfaction": 4}', "ok"),
        Completion("4", "ok", digit_probabilities=({},)),
        Completion("4", "ok", digit_probabilities=({"4": float("nan")},)),
        Completion("44", "ok", digit_probabilities=({"4": 1.0}, {"4": 1.0})),
    ],
)
async def test_without_probabilities_a_digit_is_not_a_score(completion):
    judgement = await judge(PERSONAL, subject(*TALK), digits_judge(lambda r: completion))
    assert (judgement.overall, judgement.unscored) == (None, "no probabilities")
    assert judgement.attempts == 1


def test_an_expected_score_is_renormalised_over_the_scale():
    """0.2·1 + 0.2·5 over 0.4; what lies beside the scale has no part in it."""
    assert expectation({"1": 0.2, "5": 0.2, "9": 0.6}) == pytest.approx(3.0)


def test_the_digits_form_needs_a_model_that_reads_digits():
    with pytest.raises(InputError, match="test:judge returns no token probabilities"):
        Judge(FunctionJudge(lines()), form="digits")


async def test_a_chinese_card_is_judged_in_chinese():
    model = FunctionJudge(lambda r: '{"满意度": 4}')
    told = subject(*TALK, language="zh")
    judgement = await judge(PERSONAL, told, Judge(model))
    assert judgement.prompt == sheet("judge_personal", "zh").sha256
    assert "这个人喜欢" in model.requests[0].messages[0].text
