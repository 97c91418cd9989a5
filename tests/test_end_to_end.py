"""The whole paper in small: study file to profiles, through scripted models and a pure server."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from worlds import palate, pure_server, write_study

GENERIC = {
    "fluency": 4,
    "contextual_coherence": 4,
    "persona_consistency": 4,
    "voice_style": 4,
    "knowledge_fidelity": "n/a",
    "boundary_discipline": "n/a",
    "emotional_expression": 4,
    "user_attunement": 4,
    "agency_respect": 4,
    "initiative_hook": 4,
    "expressive_freshness": 4,
    "immersion_humanlikeness": 4,
}
SESSION = (
    "persona_stability long_horizon_coherence memory_callback relationship_development "
    "narrative_progression pacing_control world_temporal_consistency emotional_arc "
    "adaptive_responsiveness variety_over_time sustained_quality"
)


def script(personal):
    """Two turns a cell: the user talks, then leaves after the first reply; all verdicts given.

    `personal` maps a cell to its satisfaction.
    """
    entries = []
    for user in ("u1", "u2"):
        for card in ("k1", "k2"):
            for candidate in ("A", "B", "C"):
                for repetition in (1, 2):
                    cell = f"{user}/{card}/{candidate}/{repetition}"
                    say = {"cell": cell, "role": "simulator"}
                    entries += [
                        {**say, "turn": 0, "text": "Let me in."},
                        {**say, "turn": 1, "text": "Night, then. [QUIT]"},
                        {"cell": cell, "role": "candidate", "turn": 0, "text": "Why?"},
                    ]
                    judge = {"cell": cell, "role": "judge"}
                    score = personal(user, card, candidate, repetition)
                    session = dict.fromkeys(SESSION.split(), 3)
                    entries += [
                        {
                            **judge,
                            "turn": 0,
                            "track": "personal",
                            "text": json.dumps({"satisfaction": score}),
                        },
                        {**judge, "turn": 0, "track": "generic", "text": json.dumps(GENERIC)},
                        {**judge, "turn": None, "track": "session", "text": json.dumps(session)},
                    ]
    return json.dumps(entries)


TASTES = {
    ("u1", "A"): 5,
    ("u1", "B"): 2,
    ("u1", "C"): 3,
    ("u2", "A"): 1,
    ("u2", "B"): 4,
    ("u2", "C"): 3,
}


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path / "study")
    (folder / "replies.json").write_text(script(lambda u, k, c, r: TASTES[u, c]), "utf-8")
    return folder


def test_a_scripted_study_gives_the_profiles_worked_out_by_hand(study):
    """A: P = (5 + 1) / 2 = 3, G = 4, S = 3: U 60, G-Score 70, Overall (3 + 4 + 3) / 15 = 66.67."""
    done = palate("run", study)
    assert done.returncode == 0, done.stderr
    results = json.loads((study / "runs" / "tiny" / "results.json").read_text("utf-8"))
    a, b, c = results["candidates"]
    assert [a["name"], b["name"], c["name"]] == ["A", "B", "C"]
    assert [x["p_bar"]["mean"] for x in (a, b, c)] == [3.0, 3.0, 3.0]
    assert a["personal"]["u1"]["mean"] == 5.0
    assert a["u_score"]["mean"] == 60.0
    assert a["g_score"]["mean"] == 70.0
    assert a["overall"]["mean"] == pytest.approx(66.6667, abs=1e-4)
    assert results["winners"] == {"u1": ["A"], "u2": ["B"]}
    assert a["coverage"]["scored"] == 4 * 2
    assert a["coverage"]["sessions_planned"] == 8
    assert a["dimensions"]["G1"]["mean"] == 4.0
    assert a["dimensions"]["G5"]["na"] == 8
    page = (study / "runs" / "tiny" / "report.html").read_text("utf-8")
    assert "Night, then." in page
    assert "[QUIT]" not in page


def test_a_finished_run_asks_nothing_again_and_prints_the_same_results(study):
    assert palate("run", study).returncode == 0
    before = (study / "runs" / "tiny" / "results.json").read_text("utf-8")
    (study / "replies.json").write_text("[]", "utf-8")
    again = palate("run", study)
    assert again.returncode == 0, again.stderr
    assert (study / "runs" / "tiny" / "results.json").read_text("utf-8") == before
    printed = palate("report", study / "runs" / "tiny", "--json")
    assert json.loads(printed.stdout) == json.loads(before)


def test_the_first_cells_alone_and_then_the_rest(study):
    first = palate("run", study, "--limit", 5)
    assert first.returncode == 0, first.stderr
    reader = (study / "runs" / "tiny" / "cells.jsonl").read_text("utf-8")
    assert len(reader.splitlines()) == 5
    assert palate("run", study).returncode == 0
    assert len((study / "runs" / "tiny" / "cells.jsonl").read_text("utf-8").splitlines()) == 24


def test_a_missing_line_of_a_script_leaves_its_cell_open_and_the_others_done(study):
    entries = json.loads((study / "replies.json").read_text("utf-8"))
    kept = [e for e in entries if not (e["cell"] == "u1/k1/B/1" and e["role"] == "judge")]
    (study / "replies.json").write_text(json.dumps(kept), "utf-8")
    done = palate("run", study)
    assert done.returncode == 3
    assert "1 of 24 cells are open" in done.stderr
    failures = (study / "runs" / "tiny" / "failures.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["cell"] for line in failures} == {"u1/k1/B/1"}
    results = json.loads((study / "runs" / "tiny" / "results.json").read_text("utf-8"))
    coverage = results["candidates"][1]["coverage"]
    assert (coverage["sessions_scored"], coverage["sessions_planned"]) == (7, 8)


def test_a_changed_study_is_refused_and_nothing_of_the_run_is_touched(study):
    assert palate("run", study, "--limit", 2).returncode == 0
    run = study / "runs" / "tiny"
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    text = (study / "study.toml").read_text("utf-8")
    (study / "study.toml").write_text(text.replace("depth_limit = 2", "depth_limit = 3"), "utf-8")
    refused = palate("run", study)
    assert refused.returncode == 2
    assert "protocol.depth_limit was 2, is 3" in refused.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_plan_counts_every_call_before_any_is_made(study):
    """24 cells × (2 turns × 2 sides + 2 verdicts of a reply + 1 of the session) = 168 calls."""
    (study / "replies.json").write_text("[]", "utf-8")
    planned = palate("plan", study, "--json")
    assert planned.returncode == 0, planned.stderr
    forecast = json.loads(planned.stdout)
    assert (forecast["cells"], forecast["calls"]) == (24, 168)
    assert forecast["cost"] == 0
    assert not (study / "runs").exists()


def test_a_plan_counts_every_part_of_a_long_session(study):
    """45 turns: 8 verdicts of 4 replies; 3 parts scored close up, 1 summary, 1 whole."""
    (study / "replies.json").write_text("[]", "utf-8")
    text = (study / "study.toml").read_text("utf-8")
    text = text.replace("depth_limit = 2", "depth_limit = 45")
    text = text.replace("sampled_replies = 1", "sampled_replies = 4")
    (study / "study.toml").write_text(text, "utf-8")
    planned = palate("plan", study, "--json", "--limit", 1)
    models = {m["role"]: m["calls"] for m in json.loads(planned.stdout)["models"]}
    assert models == {"simulator": 45, "candidate": 45, "judge": 8 + 5}


FAULTS = [
    pytest.param("scripted:replies.json", "opneai:x", "provider must be one of", id="model name"),
    pytest.param("rubrics/u2.json", "rubrics/u3.json", "u3.json cannot be read", id="rubric"),
    pytest.param("depth_limit", "depht_limit", "protocol.depht_limit is not", id="unknown field"),
    pytest.param("scripted:replies.json", "openai:gpt-5.4", "OPENAI_API_KEY", id="unset key"),
    pytest.param(
        'kind = "prompted"', 'kind = "lora"', "holds no finished training", id="no adapter"
    ),
]


@pytest.mark.parametrize(("right", "wrong", "sentence"), FAULTS)
def test_a_wrong_study_is_one_sentence_and_no_call(study, monkeypatch, right, wrong, sentence):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    text = (study / "study.toml").read_text("utf-8")
    (study / "study.toml").write_text(text.replace(right, wrong), "utf-8")
    refused = palate("run", study)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    assert not (study / "runs").exists()


def test_a_plan_and_a_run_that_only_plays_need_no_key_of_the_judge(study, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    text = (study / "study.toml").read_text("utf-8")
    before, _, after = text.partition("[judge]")
    judged = after.replace("scripted:replies.json", "openai:gpt-5.4", 1)
    (study / "study.toml").write_text(f"{before}[judge]{judged}", "utf-8")
    planned = palate("plan", study)
    assert planned.returncode == 0, planned.stderr
    played = palate("run", study, "--judging", "later")
    assert (played.returncode, "OPENAI_API_KEY" in played.stderr) == (3, False), played.stderr
    assert (study / "runs/tiny/messages.jsonl").read_text("utf-8").count("\n") > 0
    judged_now = palate("run", study)
    assert judged_now.returncode == 2
    assert "OPENAI_API_KEY" in judged_now.stderr


def test_a_card_without_an_opening_is_refused_before_any_call(study):
    path = study / "cards" / "k2.json"
    path.write_text(path.read_text("utf-8").replace("The gate is shut.", "  "), "utf-8")
    refused = palate("run", study)
    assert refused.returncode == 2
    assert "k2" in refused.stderr
    assert "opening" in refused.stderr


def scores_of(run: Path) -> list[tuple[object, ...]]:
    """Everything that was said and scored, without times and attempts."""
    read = lambda name: [  # noqa: E731
        json.loads(line) for line in (run / name).read_text("utf-8").splitlines()
    ]
    messages = {(m["cell"], m["n"], m["text"], m["ended_by"]) for m in read("messages.jsonl")}
    verdicts = {
        (j["cell"], j["track"], j["reply"], j["overall"], j["unscored"], json.dumps(j["scores"]))
        for j in read("judgements.jsonl")
    }
    assert len(read("messages.jsonl")) == len(messages)
    assert len(read("judgements.jsonl")) == len(verdicts)
    return sorted(map(str, messages)) + sorted(map(str, verdicts))


def test_faults_of_a_server_are_retried_and_score_nothing_that_was_not_said(tmp_path):
    with pure_server(tmp_path, faults=0.0) as calm:
        reference = write_study(
            tmp_path / "a", model=calm.models.format("m"), judge=calm.models.format("judge")
        )
        assert palate("run", reference).returncode == 0
    (tmp_path / "b").mkdir()
    with pure_server(tmp_path / "b", faults=0.2) as broken:
        study = write_study(
            tmp_path / "b", model=broken.models.format("m"), judge=broken.models.format("judge")
        )
        for _ in range(5):
            done = palate("run", study)
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stderr
        requests = broken.requests()
    assert scores_of(study / "runs" / "tiny") == scores_of(reference / "runs" / "tiny")
    assert requests > len(scores_of(study / "runs" / "tiny"))


@pytest.mark.slow
def test_twenty_kills_cost_at_most_the_calls_in_flight_and_change_nothing(tmp_path):
    limit, rng = 4, random.Random(20)
    with pure_server(tmp_path, delay=0.05) as server:
        models = {"model": server.models.format("m"), "judge": server.models.format("judge")}
        size = {"cards": ("tin",), "repetitions": 2, "depth": 2}
        reference = write_study(tmp_path / "ref", **models, **size)
        assert palate("run", reference, "--max-concurrency", limit).returncode == 0
        undisturbed = server.requests()
        expected = scores_of(reference / "runs" / "tiny")
        study = write_study(tmp_path / "kill", **models, **size)
        extra = []
        for kill in range(20):
            out = study / "runs" / f"k{kill}"
            command = [sys.executable, "-m", "palate", "run", str(study), "--out", str(out)]
            command += ["--max-concurrency", str(limit)]
            before = server.requests()
            process = subprocess.Popen(
                command,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            moment = before + rng.randrange(1, undisturbed)
            while server.requests() < moment:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.06))  # before, while or after an answer arrives
            process.send_signal(signal.SIGKILL)
            process.wait()
            resumed = palate("run", study, "--out", out, "--max-concurrency", limit)
            assert resumed.returncode == 0, resumed.stderr
            assert scores_of(out) == expected
            extra.append(server.requests() - before - undisturbed)
    print("extra calls per kill:", extra)
    assert min(extra) >= 0
    assert max(extra) <= limit
