"""A study made ready: what makes a run this run, and what is refused or warned of beforehand."""

from __future__ import annotations

import json

import pytest

from palate import cards, manifest
from palate.errors import RubricError
from palate.judging import transcript
from palate.prepare import judge_form, prepare
from palate.rubrics.freeze import as_json, freeze
from palate.simulators import Profile, ProfileProvenance, measured, save_profile
from palate.simulators import freeze as freeze_profile
from palate.store import differences
from palate.types import Cell, Session, TrainingSession, Turn
from worlds import card, personal_rubric, write_history, write_study

MODEL = "openai:m@http://127.0.0.1:9/v1"


@pytest.fixture
def study(tmp_path):
    return write_study(
        tmp_path, users=("u1",), cards=("k1", "k2"), candidates=("A", "B"), model=MODEL
    )


def change(folder, *pairs, file="study.toml"):
    text = (folder / file).read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / file).write_text(text, "utf-8")


def changed(folder, *pairs, file="study.toml"):
    """Names of the settings that the change of a file moves."""
    before = manifest.settings(prepare(folder))
    change(folder, *pairs, file=file)
    return [
        line.split(" was ")[0] for line in differences(before, manifest.settings(prepare(folder)))
    ]


JUDGE = 'form = "json"'
SIMULATOR = 'kind = "prompted"'
CANDIDATE = 'name = "A"'
DECODING = (
    ("top_p = 0.5", "top_p"),
    ("max_tokens = 7", "max_tokens"),
    ('stop = ["x"]', "stop"),
    ('headers = { X-A = "b" }', "headers.X-A"),
    ("body = { a = 1 }", "body.a"),
)


@pytest.mark.parametrize(("line", "name"), [*DECODING, ("temperature = 0.7", "temperature")])
def test_a_judges_decoding_makes_a_run_another(study, line, name):
    assert changed(study, (JUDGE, f"{JUDGE}\n{line}")) == [f"judge.{name}"]


@pytest.mark.parametrize(("line", "name"), [*DECODING, ("temperature = 0.7", "temperature")])
def test_a_simulators_decoding_makes_a_run_another(study, line, name):
    moved = changed(study, (SIMULATOR, f"{SIMULATOR}, {line}"))
    assert moved == [f"users.u1.simulator.{name}"]


@pytest.mark.parametrize(("line", "name"), DECODING)
def test_a_candidates_decoding_makes_a_run_another(study, line, name):
    assert changed(study, (CANDIDATE, f"{CANDIDATE}\n{line}")) == [f"candidates.A.{name}"]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("repetitions = 2", "repetitions = 3", "protocol.repetitions"),
        ("depth_limit = 2", "depth_limit = 3", "protocol.depth_limit"),
        ("sampled_replies = 1", "sampled_replies = 2", "protocol.sampled_replies"),
        ("seed = 7", "seed = 8", "protocol.seed"),
        (MODEL, "openai:n@http://127.0.0.1:9/v1", "judge.model"),
        (MODEL, "openai:m@http://127.0.0.1:8/v1", "judge.model"),
        ("temperature = 0.01\n", "temperature = 0.3\n", "candidates.A.temperature"),
        (CANDIDATE, f'{CANDIDATE}\nprompt = "none"', "candidates.A.prompt"),
        (CANDIDATE, f'{CANDIDATE}\nhistory = "last"', "candidates.A.history"),
        ("u1 by name", "Robin", "users.u1.name"),
        (SIMULATOR, 'kind = "raw"', "users.u1.simulator.kind"),
    ],
)
def test_what_moves_a_score_makes_a_run_another(study, old, new, name):
    assert name in changed(study, (old, new))


def test_the_words_of_a_card_a_rubric_and_a_prompt_make_a_run_another(study):
    assert "cards.k2.sha256" in changed(
        study, ("trusts nobody", "trusts all"), file="cards/k2.json"
    )
    other = freeze({**personal_rubric("u1"), "summary": "Likes long answers."})
    before = manifest.settings(prepare(study))
    (study / "rubrics" / "u1.json").write_text(as_json(other), "utf-8")
    moved = differences(before, manifest.settings(prepare(study)))
    assert [line.split(" was ")[0] for line in moved] == ["users.u1.rubric_sha256"]
    (study / "mine.md").write_text("You are <<name>>.", "utf-8")
    change(study, (CANDIDATE, f'{CANDIDATE}\nprompt = "mine.md"'))
    moved = changed(study, ("You are", "Be"), file="mine.md")
    assert "candidates.A.prompt_sha256" in moved


def test_the_profile_of_a_simulator_makes_a_run_another(study):
    change(study, (SIMULATOR, 'kind = "profile"'))
    seen = []
    for text in ("You write short.", "You write long."):
        save_profile(profile(text), study / "simulators" / "u1" / "profile.json")
        seen.append(manifest.settings(prepare(study)))
    assert "users.u1.simulator.profile_sha256" in [
        line.split(" was ")[0] for line in differences(*seen)
    ]


def profile(text):
    """A profile of u1 with these words, made from one session."""
    talk = Session(
        session_id="s0", user_id="u1", card_id="k1", turns=(Turn(speaker="user", text="Hi."),)
    )
    training = [TrainingSession(talk)]
    made = ProfileProvenance(
        model="m", prompts={}, training_sessions={"s0": talk.digest()}, calls=1
    )
    draft = Profile(
        user_id="u1",
        language="en",
        text=text,
        facts=measured(training, "en"),
        provenance=made,
    )
    return freeze_profile(draft)


def test_the_prompts_of_every_side_are_part_of_the_settings(study):
    prompts = set(manifest.settings(prepare(study))["prompts"])
    assert {
        "simulator_prompted.en_sha256",
        "candidate_instructions.en_sha256",
        "candidate_card.en_sha256",
        "judge_personal.en_sha256",
        "judge_generic.en_sha256",
        "judge_session.en_sha256",
    } <= prompts


def test_how_hard_an_endpoint_may_be_asked_changes_no_run(study):
    before = manifest.settings(prepare(study))
    rules = '[endpoints."http://127.0.0.1:9/v1"]\nmax_concurrency = 3\ntimeout_s = 5.0\n'
    (study / "study.toml").write_text((study / "study.toml").read_text("utf-8") + rules, "utf-8")
    assert manifest.settings(prepare(study)) == before


def test_the_plan_is_the_whole_grid_with_candidates_varying_fastest(study):
    cells = list(prepare(study).cells())
    assert len(cells) == len(set(cells)) == 1 * 2 * 2 * 2
    assert cells[:3] == [
        Cell("u1", "k1", "A", 1),
        Cell("u1", "k1", "B", 1),
        Cell("u1", "k2", "A", 1),
    ]


@pytest.mark.parametrize(
    ("model", "form", "read"),
    [
        ("local:smollm2-135m", "auto", "digits"),
        (MODEL, "auto", "json"),
        ("local:smollm2-135m", "json", "json"),
    ],
)
def test_verdicts_are_digits_for_the_embedded_model_unless_the_study_says_otherwise(
    study, model, form, read
):
    change(study, (f'model = "{MODEL}"', f'model = "{model}"'), (JUDGE, f'form = "{form}"'))
    assert judge_form(prepare(study).study) == read


def history(study, *, cards, user="u1"):
    """Three sessions, each of one reply and its reaction, on these cards."""
    write_history(study, cards, user=user)
    return prepare(study).sessions["u1"]


def with_rubric(study, sessions, evidence):
    """A rubric of u1 that was made from `sessions` and cites `evidence`."""
    draft = personal_rubric("u1")
    draft["rewards"][0]["evidence"] = [evidence]
    draft["provenance"]["training_sessions"] = {s.session_id: s.digest() for s in sessions}
    (study / "rubrics" / "u1.json").write_text(as_json(freeze(draft)), "utf-8")


def test_a_rubric_built_on_panel_cards_is_warned_of(study):
    sessions = history(study, cards=("k2", "other", "k1"))
    with_rubric(study, sessions[:2], "s1#0")
    (warning,) = prepare(study).warnings()
    assert "rubric of u1" in warning
    assert "panel cards (k2)" in warning
    assert "flatters" in warning


def test_a_rubric_built_on_other_cards_needs_no_warning(study):
    sessions = history(study, cards=("x", "other", "k1"))
    with_rubric(study, sessions[:2], "s1#0")
    assert list(prepare(study).warnings()) == []


def test_evidence_that_is_not_in_the_history_is_refused(study):
    sessions = history(study, cards=("x", "y", "z"))
    with_rubric(study, sessions, "s1#9")
    with pytest.raises(RubricError, match="cites turn 9 of session 's1', which has only 2 turns"):
        prepare(study)


def test_a_rubric_serves_the_person_it_was_made_from(study):
    (study / "rubrics" / "u1.json").write_text(json.dumps(personal_rubric("u2")), "utf-8")
    with pytest.raises(RubricError, match="is the rubric of 'u2'"):
        prepare(study)


def test_a_chinese_card_is_judged_by_chinese_prompts(study):
    whole = card("k2", language="zh")
    (study / "cards" / "k2.json").write_text(json.dumps(whole), "utf-8")
    assert "judge_personal.zh_sha256" in manifest.settings(prepare(study))["prompts"]


RULES = '[endpoints."http://127.0.0.1:9/v1"]\n'


@pytest.mark.parametrize(
    "rule",
    [
        "system_role = false",
        'first_role = "user"',
        "alternate = true",
        "max_system = 1",
        "json_schema = true",
        'digits = "logprobs"',
    ],
)
def test_what_an_endpoint_changes_in_a_request_makes_a_run_another(study, rule):
    before = manifest.settings(prepare(study))
    text = (study / "study.toml").read_text("utf-8")
    (study / "study.toml").write_text(f"{text}{RULES}{rule}\n", "utf-8")
    moved = {
        line.split(" was ")[0] for line in differences(before, manifest.settings(prepare(study)))
    }
    name = rule.split(" = ")[0]
    assert f"candidates.A.endpoint.{name}" in moved
    assert f"judge.endpoint.{name}" in moved


def test_our_own_words_and_defaults_make_a_run_another(study, monkeypatch):
    before = manifest.settings(prepare(study))
    assert before["judge"]["max_tokens"] == 2000
    assert before["judge"]["temperature"] == 0.0
    monkeypatch.setattr(transcript, "USER_LEFT", {"en": "Gone.", "zh": "走了。"})
    monkeypatch.setattr(cards.prompts, "nickname", lambda card: "Nick")
    moved = {
        line.split(" was ")[0] for line in differences(before, manifest.settings(prepare(study)))
    }
    assert moved >= {
        "prompts.judge_words.en_sha256",
        "users.u1.simulator.told_sha256",
        "candidates.A.told_sha256",
    }


def test_a_profile_written_from_panel_cards_is_warned_of(study):
    history(study, cards=("k1", "other", "x"))
    change(study, (SIMULATOR, 'kind = "profile"'))
    save_profile(profile("You write short."), study / "simulators" / "u1" / "profile.json")
    (warning,) = prepare(study).warnings()
    assert "simulator of u1" in warning
    assert "panel cards (k1)" in warning
