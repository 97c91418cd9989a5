"""Models that answer from a script or by a function."""

import json

import pytest
from loopback import request

from palate.errors import InputError, ScriptError
from palate.models.client import Purpose
from palate.models.scripted import Entry, ScriptedModel

CELL = "u1/k1/A/1"


async def say(model, role="judge", turn=0, track=None, attempt=0, cell=CELL):
    completion = await model.complete(request(purpose=Purpose(role, cell, turn, track, attempt)))
    return completion.text


def entry(text, role="judge", turn=0, **more):
    return Entry(role=role, cell=CELL, turn=turn, text=text, **more)


async def test_the_most_exact_entry_answers():
    model = ScriptedModel.from_entries(
        [
            entry("anything"),
            entry("second time", attempt=1),
            entry("personal", track="personal"),
            entry("personal, second time", track="personal", attempt=1),
        ]
    )
    assert await say(model) == "anything"
    assert await say(model, track="generic") == "anything"
    assert await say(model, track="generic", attempt=1) == "second time"
    assert await say(model, track="personal") == "personal"
    assert await say(model, track="personal", attempt=1) == "personal, second time"
    assert await say(model, track="personal", attempt=2) == "personal"


async def test_leaving_the_track_out_comes_before_leaving_the_attempt_out():
    model = ScriptedModel.from_entries([entry("by track", track="personal"), entry("x", attempt=1)])
    assert await say(model, track="personal", attempt=1) == "x"


async def test_a_verdict_about_the_session_has_no_turn(tmp_path):
    script = tmp_path / "replies.json"
    script.write_text(
        json.dumps(
            [
                {"role": "judge", "cell": CELL, "track": "session", "text": "missing"},
                {"role": "judge", "cell": "c/c/c/1", "turn": None, "text": "null"},
            ]
        )
    )
    model = ScriptedModel.read("scripted:replies.json", script)
    assert await say(model, turn=None, track="session") == "missing"
    assert await say(model, turn=None, track="session", cell="c/c/c/1") == "null"


async def test_a_call_without_an_entry_names_the_key_and_the_file():
    model = ScriptedModel.from_entries([entry("x")], source="replies.json")
    with pytest.raises(ScriptError) as missing:
        await say(model, role="candidate", turn=3)
    assert str(missing.value) == (
        "replies.json has no entry for role 'candidate', cell 'u1/k1/A/1', turn 3, attempt 0; "
        "add one"
    )


async def test_a_text_is_read_as_an_endpoints_would_be():
    model = ScriptedModel.from_entries(
        [
            entry("<think>plan</think>Come in."),
            entry("", turn=1),
            entry("", turn=2, status="refused"),
            entry("She", turn=3, status="length"),
        ]
    )
    first = await model.complete(request(purpose=Purpose("judge", CELL, 0)))
    assert (first.text, first.reasoning, first.status) == ("Come in.", "plan", "ok")
    for turn, status in [(1, "empty"), (2, "refused"), (3, "length")]:
        reply = await model.complete(request(purpose=Purpose("judge", CELL, turn)))
        assert reply.status == status


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "JSON list"),
        ('{"role": "judge"}', "JSON list"),
        ('[{"role": "judge", "cell": "c", "text": "x"}, 7]', "entry 2"),
        ('[{"role": "judge", "cell": "c"}]', "entry 1 has no 'text'"),
        ('[{"role": "judge", "cell": "c", "text": "x", "trun": 1}]', "entry 1: 'trun' is not a"),
        ('[{"role": "critic", "cell": "c", "text": "x"}]', "entry 1: role"),
        ('[{"role": "judge", "cell": "c", "text": "x", "turn": -1}]', "entry 1: turn"),
        ('[{"role": "judge", "cell": "c", "text": null}]', "entry 1: text"),
        (
            '[{"role": "judge", "cell": "c", "text": "x"},'
            ' {"role": "judge", "cell": "c", "text": "y"}]',
            "entries 1 and 2 answer the same call",
        ),
    ],
)
def test_a_wrong_script_is_refused_in_a_sentence(tmp_path, content, says):
    script = tmp_path / "replies.json"
    script.write_text(content)
    with pytest.raises(InputError, match=says) as refused:
        ScriptedModel.read("scripted:replies.json", script)
    assert "replies.json" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_script_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        ScriptedModel.read("scripted:none.json", tmp_path / "none.json")


async def test_a_script_with_a_byte_order_mark_is_read(tmp_path):
    script = tmp_path / "replies.json"
    script.write_bytes(b'\xef\xbb\xbf[{"role":"judge","cell":"u1/k1/A/1","turn":0,"text":"x"}]')
    assert await say(ScriptedModel.read("s", script)) == "x"
