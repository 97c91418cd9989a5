"""What a judge wrote becomes scores, or a reason why there are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.judging.verdicts import Asked, read_verdict

TWO = (Asked("warmth", ("温暖",)), Asked("pacing", ("节奏",)))
THREE = (*TWO, Asked("agency", ("主动权",)))
SPARSE = (Asked("warmth"), Asked("lore", sparse=True))

WRAPPED = {
    "plain": '{"warmth": 4, "pacing": 2}',
    "fence": '```json\n{"warmth": 4, "pacing": 2}\n```',
    "bare fence": '```\n{"warmth": 4, "pacing": 2}\n```',
    "upper-case fence, CRLF": '```JSON\r\n{"warmth": 4,\r\n"pacing": 2}\r\n```\r\n',
    "fence not closed": '```json\n{"warmth": 4, "pacing": 2}',
    "tilde fence": '~~~\n{"warmth": 4, "pacing": 2}\n~~~',
    "prose around": 'Here is my verdict: {"warmth": 4, "pacing": 2} Hope that helps {smile}.',
    "prose with braces before": 'On {user}: {"warmth": 4, "pacing": 2}',
    "my verdict in the format": 'My verdict in the requested format:\n{"warmth": 4, "pacing": 2}',
    "thinking": '<think>maybe {"warmth": 1, "pacing": 1}?</think>{"warmth": 4, "pacing": 2}',
    "thinking, close only": 'or {"warmth": 1, "pacing": 1}</think>\n{"warmth": 4, "pacing": 2}',
    "trailing comma": '{"warmth": 4, "pacing": 2,}',
    "missing comma": '{"warmth": 4\n"pacing": 2}',
    "single quotes": "{'warmth': 4, 'pacing': 2}",
    "bare keys": "{warmth: 4, pacing: 2}",
    "line comment": '{"warmth": 4, // kind\n"pacing": 2}',
    "block comment": '{"warmth": 4, /* kind, {so} */ "pacing": 2}',
    "hash comment": '{"warmth": 4, # kind\n"pacing": 2}',
    "byte order mark": '\ufeff{"warmth": 4, "pacing": 2}',
    "full-width structure": "｛“warmth”：4，“pacing”：2｝",
    "full-width digits": "｛“warmth”：４，“pacing”：２｝",
    "curly quotes": "{“warmth”: 4, “pacing”: 2}",
    "Chinese keys, corner quotes": "{「温暖」：4，「节奏」：2}",
    "doubled braces": '{{"warmth": 4, "pacing": 2}}',
    "JSON inside a string": json.dumps('{"warmth": 4, "pacing": 2}'),
    "in a list": '[{"warmth": 4, "pacing": 2}]',
    "two equal verdicts": '{"warmth": 4, "pacing": 2}\n{"warmth": 4, "pacing": 2}',
    "one line a dimension": '{"warmth": 4}\n{"pacing": 2}',
    "example, then the verdict": 'Example: {"warmth": 1}\n\n{"warmth": 4, "pacing": 2}',
    "full-width comma alone": '{"warmth": 4，"pacing": 2}',
    "one brace too many": '{"warmth": 4, "pacing": 2}}',
    "tags around": '<answer>{"warmth": 4, "pacing": 2}</answer>',
}


@pytest.mark.parametrize("raw", WRAPPED.values(), ids=WRAPPED.keys())
def test_packaging_does_not_change_the_scores(raw):
    verdict = read_verdict(raw, TWO)
    assert (verdict.scores, verdict.unscored) == ({"warmth": 4, "pacing": 2}, None)


REASONS = {
    "a fence": "She used ```code``` oddly.",
    "Chinese quotes": "他说：“慢一点，好吗？”，很温柔。",
    "braces": "uses {{user}} and } oddly",
    "a comment mark": "see http://x.example // and # this /* too */",
    "an apostrophe": "it's fine, isn't it",
}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS.keys())
@pytest.mark.parametrize("tail", ["}", ",}"], ids=["valid", "repaired"])
def test_a_reason_is_kept_as_it_was_written(reason, tail):
    verdict = read_verdict(f'{{"reason": "{reason}", "warmth": 4, "pacing": 2{tail}', TWO)
    assert (verdict.reason, verdict.overall) == (reason, 3.0)


def test_a_reason_between_full_width_quotes_keeps_its_inner_quotes_and_commas():
    raw = "｛“warmth”：4，“pacing”：2，“reason”：“他说：“慢一点，好吗？”，很温柔。”｝"
    assert read_verdict(raw, TWO).reason == "他说：“慢一点，好吗？”，很温柔。"


def test_unescaped_quotes_inside_a_reason_belong_to_it():
    raw = '{"warmth": 4, "pacing": 2, "reason": "she says "no" and means it"}'
    assert read_verdict(raw, TWO).reason == 'she says "no" and means it'


def test_half_a_surrogate_pair_in_a_reason_can_still_be_stored():
    verdict = read_verdict(r'{"warmth": 4, "pacing": 2, "reason": "a\ud83d b"}', TWO)
    assert verdict.reason == "a\ufffd b"


UNREADABLE = {
    "two different verdicts": '{"warmth": 4, "pacing": 2}\nBetter: {"warmth": 2, "pacing": 2}',
    "cut off": '{"warmth": 4, "pac',
    "cut off after a whole inner object": '{"scores": {"warmth": 4, "pacing": 2}, "reason": "be',
    "empty": "",
    "only white space": " \n\ufeff ",
    "prose": "I would say four for warmth.",
    "a bare number": "4",
    "only thinking": '<think>{"warmth": 4, "pacing": 2}',
    "only a reason": '{"reason": "cannot judge"}',
    "only an overall": '{"overall": 5}',
    "a key twice, different": '{"warmth": 4, "pacing": 2, "warmth": 1}',
    "a dimension in two languages, different": '{"warmth": 4, "温暖": 1, "pacing": 2}',
    "the form sent back": '{"reason": "", "scores": {"warmth": "<1-5>", "pacing": "<1-5>"}}',
    "an example without a verdict": 'Output format: {"warmth": 5, "pacing": 5}',
    "an example in a fence": 'Output format:\n```json\n{"warmth": 5, "pacing": 5}\n```',
    "a Chinese example": '输出格式：{"warmth": 5, "pacing": 5}',
    "our own request sent back": 'Answer with this JSON: {"warmth": 5, "pacing": 5}',
    "braces without end": "{" * 5000,
    "brackets without end": '{"warmth": ' + "[" * 5000,
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_without_one_clear_verdict_there_is_no_score(raw):
    verdict = read_verdict(raw, TWO)
    assert (verdict.scores, verdict.overall) == ({}, None)
    assert verdict.unscored


SHAPES = {
    "flat": '{"warmth":4,"pacing":2,"agency":3}',
    "nested": '{"scores":{"warmth":4,"pacing":2,"agency":3},"reason":"x"}',
    "nested twice": '{"verdict":{"scores":{"warmth":4,"pacing":2,"agency":3}}}',
    "unknown wrapper": '{"my view":{"warmth":4,"pacing":2,"agency":3}}',
    "list": '{"scores":[{"dimension":"warmth","score":4},{"dimension":"pacing","score":2},'
    '{"dimension":"agency","score":3}]}',
    "objects": '{"warmth":{"score":4,"reason":"a"},"pacing":{"score":2,"reason":"b"},'
    '"agency":{"score":3,"reason":"c"}}',
    "Chinese keys": '{"温暖":4,"节奏":2,"主动权":3}',
    "case and spaces": '{"Warmth":4," pacing ":2,"AGENCY":3}',
    "reasons by dimension": '{"scores":{"warmth":4,"pacing":2,"agency":3},'
    '"reasons":{"warmth":"5 kind words","pacing":"1 slow"}}',
    "a key twice, equal": '{"warmth":4,"pacing":2,"agency":3,"warmth":4}',
    "names with additions": '{"1. Warmth": 4, "pacing_score": 2, "主动权（agency）": 3}',
    "scale beside the name": '{"warmth (1-5)": 4, "Pacing score": 2, "agency": {"rating": 3}}',
    "numbers as text": '{"warmth":"4","pacing":2.0,"agency":" 3 "}',
}


@pytest.mark.parametrize("raw", SHAPES.values(), ids=SHAPES.keys())
def test_the_shape_of_the_answer_does_not_matter(raw):
    verdict = read_verdict(raw, THREE)
    assert (verdict.scores, verdict.overall) == ({"warmth": 4, "pacing": 2, "agency": 3}, 3.0)


def test_a_missing_dimension_leaves_the_verdict_unscored_and_is_named():
    verdict = read_verdict('{"warmth":4,"pacing":2}', THREE)
    assert verdict.overall is None
    assert verdict.scores == {"warmth": 4, "pacing": 2}
    assert verdict.unscored == "agency is missing"


@pytest.mark.parametrize(
    "value", ["7", "0", "-1", "4.5", "true", '"4/5"', '"four"', '""', "[4]", '{"note": 4}', "1e999"]
)
def test_a_value_off_the_scale_is_never_a_score(value):
    verdict = read_verdict(f'{{"warmth": {value}, "pacing": 2}}', TWO)
    assert verdict.overall is None
    assert "warmth" not in verdict.scores
    assert verdict.unscored.startswith("warmth: ")


@pytest.mark.parametrize("value", ["null", '"n/a"', '"N/A"', '"not applicable"', '"不适用"'])
def test_not_applicable_is_left_out_of_the_mean_where_a_dimension_is_sparse(value):
    verdict = read_verdict(f'{{"warmth": 4, "lore": {value}}}', SPARSE)
    assert (verdict.scores, verdict.overall) == ({"warmth": 4, "lore": None}, 4.0)


@pytest.mark.parametrize("value", ["null", '"n/a"'])
def test_not_applicable_on_a_dense_dimension_leaves_the_verdict_unscored(value):
    verdict = read_verdict(f'{{"warmth": {value}, "lore": 3}}', SPARSE)
    assert (verdict.scores, verdict.overall) == ({"lore": 3}, None)
    assert verdict.unscored == "warmth was declared not applicable, which it cannot be"


def test_a_sparse_dimension_that_is_not_mentioned_is_a_gap_not_a_declaration():
    assert read_verdict('{"warmth": 4}', SPARSE).unscored == "lore is missing"


def test_dimensions_that_nobody_asked_for_are_ignored_and_named():
    verdict = read_verdict('{"warmth":4,"pacing":2,"humour":5,"mood":"high"}', TWO)
    assert (verdict.overall, verdict.ignored) == (3.0, ("humour",))


def test_the_judges_own_overall_is_kept_and_not_used():
    verdict = read_verdict('{"warmth":1,"pacing":1,"overall":5}', TWO)
    assert (verdict.overall, verdict.judge_overall) == (1.0, 5.0)


def test_reasons_of_single_dimensions_are_kept_one_a_line():
    assert read_verdict(SHAPES["objects"], THREE).reason == "warmth: a\npacing: b\nagency: c"


def test_flags_stand_beside_the_scores():
    raw = '{"warmth":4,"pacing":2,"flags":["unsafe","made up"],"breaks_fiction":true}'
    verdict = read_verdict(raw, TWO)
    assert (verdict.overall, verdict.flags) == (3.0, ("breaks_fiction", "unsafe"))


def test_flags_that_are_false_are_not_raised():
    raw = '{"warmth":4,"pacing":2,"flags":{"unsafe":false,"refusal_in_words":true}}'
    assert read_verdict(raw, TWO).flags == ("refusal_in_words",)


@given(st.text(max_size=200))
def test_no_text_at_all_makes_the_reader_fail(text):
    verdict = read_verdict(text, TWO)
    assert (verdict.overall is None) == (verdict.unscored is not None)


@given(st.text(), st.integers(1, 5), st.integers(1, 5))
def test_any_verdict_written_as_json_is_read_back(reason, warmth, pacing):
    raw = json.dumps({"reason": reason, "warmth": warmth, "pacing": pacing})
    verdict = read_verdict(f"```json\n{raw}\n```", TWO)
    assert verdict.scores == {"warmth": warmth, "pacing": pacing}
