"""Personal rubrics: frozen, verified, and never used on what built them."""

from __future__ import annotations

import hashlib
import json

import pytest

from palate.errors import RubricError
from palate.rubrics.freeze import (
    as_json,
    freeze,
    read,
    refuse_if_built_from,
    render,
    verify_evidence,
)
from palate.types import Session, Turn


def session(session_id="s1", user_id="u1", count=3):
    turns = tuple(
        Turn(speaker=("character", "user")[n % 2], text=f"{session_id} {n}") for n in range(count)
    )
    return Session(session_id=session_id, user_id=user_id, card_id="k1", turns=turns)


def draft(**changes):
    content = {
        "schema": "palate.rubric/1",
        "track": "personal",
        "user_id": "u1",
        "language": "en",
        "summary": "Wants short, tense replies.",
        "rewards": [
            {"id": "r1", "rule": "says little", "weight": "major", "evidence": ["s1#0", "s1#2"]}
        ],
        "penalties": [{"id": "p1", "rule": "flatters", "weight": "minor", "evidence": []}],
        "reactions": [
            {"pattern": "one word", "meaning": "absorbed", "direction": 1, "evidence": ["s1#1"]}
        ],
        "anchors": {"1": "bored", "2": "cool", "3": "fine", "4": "keen", "5": "gripped"},
        "provenance": {
            "author": "hand",
            "model": None,
            "prompt_sha256": None,
            "training_sessions": {"s1": session().digest()},
        },
    }
    return {**content, **changes}


def saved(tmp_path, content):
    path = tmp_path / "u1.json"
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    path.write_text(text, "utf-8")
    return path


def test_a_frozen_rubric_is_read_back_unchanged(tmp_path):
    frozen = freeze(draft())
    assert read(saved(tmp_path, as_json(frozen))) == frozen


def test_the_hash_is_that_of_the_canonical_json_without_the_hash():
    canonical = json.dumps(draft(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert freeze(draft()).sha256 == hashlib.sha256(canonical.encode()).hexdigest()


def test_freezing_replaces_an_old_hash():
    assert freeze(draft(sha256="f" * 64)) == freeze(draft())


def test_the_order_of_keys_and_white_space_do_not_matter_to_the_hash(tmp_path):
    content = json.loads(as_json(freeze(draft())))
    turned = dict(reversed(content.items()))
    assert read(saved(tmp_path, json.dumps(turned, indent=7))) == freeze(draft())


@pytest.mark.parametrize(
    "change", [{"summary": "Wants long replies."}, {"user_id": "u2"}, {"sha256": "0" * 64}]
)
def test_a_rubric_changed_after_freezing_is_refused(tmp_path, change):
    content = {**json.loads(as_json(freeze(draft()))), **change}
    with pytest.raises(RubricError, match="was changed after it was frozen"):
        read(saved(tmp_path, content))


def rule(**changes):
    return {"id": "r1", "rule": "says little", "weight": "major", "evidence": [], **changes}


MALFORMED = {
    "unknown field": ({"mood": "good"}, "mood: Extra inputs"),
    "unknown field in a rule": ({"rewards": [rule(score=5)]}, "rewards.0.score: Extra inputs"),
    "unknown weight": ({"rewards": [rule(weight="huge")]}, "rewards.0.weight"),
    "another schema": ({"schema": "palate.rubric/2"}, "schema is 'palate.rubric/2'"),
    "another track": ({"track": "generic"}, "track is 'generic'"),
    "a missing anchor": ({"anchors": {"1": "a", "2": "b", "3": "c", "4": "d"}}, "differ in 5"),
    "an anchor too many": (
        {"anchors": {"0": "z", "1": "a", "2": "b", "3": "c", "4": "d", "5": "e"}},
        "differ in 0",
    ),
    "an empty anchor": (
        {"anchors": {"1": " ", "2": "b", "3": "c", "4": "d", "5": "e"}},
        "anchors.1 is empty",
    ),
    "no rules": ({"rewards": [], "penalties": []}, "neither rewards nor penalties"),
    "one id twice": ({"penalties": [rule(id="r1")]}, "two rules have the id 'r1'"),
    "an empty rule": ({"rewards": [rule(rule="")]}, "rule 'r1' is empty"),
    "an empty summary": ({"summary": ""}, "summary is empty"),
    "an unknown direction": (
        {"reactions": [{"pattern": "a", "meaning": "b", "direction": 2, "evidence": []}]},
        "reactions.0.direction",
    ),
    "a citation without a turn": ({"rewards": [rule(evidence=["s1"])]}, "not of the form"),
    "a citation with a negative turn": ({"rewards": [rule(evidence=["s1#-1"])]}, "not of the form"),
    "a citation of another session": (
        {"rewards": [rule(evidence=["s9#1"])]},
        "cites session 's9', which is not among",
    ),
    "a model's rule without evidence": (
        {"provenance": {"author": "model", "training_sessions": {"s1": "x"}}},
        "rule 'p1' cites no turn",
    ),
}


@pytest.mark.parametrize(("change", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_draft_is_refused_in_one_sentence(change, message):
    with pytest.raises(RubricError, match=message) as refused:
        freeze(draft(**change))
    assert "\n" not in str(refused.value)


BROKEN_FILES = {
    "not JSON": ('{"schema": ', "is not valid JSON"),
    "not an object": ("[]", "holds no JSON object"),
    "a key twice": ('{"schema": "palate.rubric/1", "schema": "x"}', "'schema' stands twice"),
    "no hash": (json.dumps(draft()), "a draft that was not frozen yet"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN_FILES.values(), ids=BROKEN_FILES.keys())
def test_a_broken_file_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(RubricError, match=message) as refused:
        read(saved(tmp_path, text))
    assert "u1.json" in str(refused.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(RubricError, match=r"nobody\.json cannot be read"):
        read(tmp_path / "nobody.json")


def test_evidence_that_exists_is_accepted():
    verify_evidence(freeze(draft()), [session(), session("s2")])


@pytest.mark.parametrize(
    ("sessions", "message"),
    [
        ([], "turn 0 of session 's1', which is not in the history"),
        ([session("s2")], "which is not in the history"),
        ([session(count=5)], "session 's1' differs from the one"),
    ],
)
def test_evidence_that_does_not_exist_is_refused(sessions, message):
    with pytest.raises(RubricError, match=message):
        verify_evidence(freeze(draft()), sessions)


def built_from(one):
    return {"author": "hand", "training_sessions": {one.session_id: one.digest()}}


def test_a_turn_past_the_end_of_the_session_is_refused():
    cited = draft(rewards=[rule(evidence=["s1#3"])])
    with pytest.raises(RubricError, match=r"turn 3 of session 's1', which has only 3 turns"):
        verify_evidence(freeze(cited), [session()])


def test_a_session_of_another_user_is_no_evidence():
    theirs = session(user_id="u2")
    with pytest.raises(RubricError, match="which belongs to u2"):
        verify_evidence(freeze(draft(provenance=built_from(theirs))), [theirs])


def test_session_names_may_hold_the_mark_between_session_and_turn():
    odd = session("2024#05")
    cited = draft(rewards=[rule(evidence=["2024#05#2"])], reactions=[], provenance=built_from(odd))
    verify_evidence(freeze(cited), [odd])


@pytest.mark.parametrize("one", [session(), session(count=9)], ids=["the same", "a longer copy"])
def test_scoring_a_session_that_built_the_rubric_is_refused(one):
    with pytest.raises(RubricError, match="session 's1' built it"):
        refuse_if_built_from(freeze(draft()), [session("s2"), one])


def test_other_sessions_may_be_scored():
    refuse_if_built_from(freeze(draft()), [session("s2"), session("s3")])


def test_a_rubric_is_rendered_for_the_judge_without_ids_and_provenance():
    assert render(freeze(draft()), "en") == (
        "Wants short, tense replies.\n"
        "What pleases this person:\n"
        "- says little (major)\n"
        "What displeases this person:\n"
        "- flatters (minor)\n"
        "What this person's reactions mean:\n"
        "- one word: absorbed (pleased)\n"
        "Scale:\n"
        "1: bored\n2: cool\n3: fine\n4: keen\n5: gripped"
    )


def test_a_reader_sees_the_turns_behind_each_rule():
    text = render(freeze(draft()), "zh", cited=True)
    assert "- says little（主要） [s1#0, s1#2]\n" in text
    assert "- one word：absorbed（满意） [s1#1]\n" in text
