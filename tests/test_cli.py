"""The command line: help that teaches and starts fast, one sentence a fault, exit codes."""

import json
import subprocess
import sys
import time

import pytest

from worlds import palate, personal_rubric, pure_server, write_study

HEAVY = ("pydantic", "aiohttp", "numpy", "scipy", "jinja2", "rich", "xllamacpp", "torch")


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from palate.cli import palate\n"
        "try: palate(['--help'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("demo",),
        ("init",),
        ("plan",),
        ("run",),
        ("report",),
        ("aggregate",),
        ("simulator",),
        ("simulator", "profile"),
        ("rubric",),
        ("rubric", "show"),
        ("rubric", "freeze"),
        ("rubric", "verify"),
    ],
)
def test_every_command_explains_itself(command):
    done = palate(*command, "--help")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 4


def test_a_folder_that_is_no_study_is_one_sentence(tmp_path):
    done = palate("run", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("palate: ")
    assert len(done.stderr.splitlines()) == 1
    assert "study.toml does not exist" in done.stderr


def test_init_writes_a_study_and_touches_nothing_that_is_there(tmp_path):
    folder = tmp_path / "资料 夹"
    assert palate("init", folder).returncode == 0
    assert (folder / "study.toml").is_file()
    assert not (folder / "tastes.md").exists()
    again = palate("init", folder)
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_the_sample_study_plans_and_its_rubrics_hold(tmp_path):
    folder = tmp_path / "sample"
    assert palate("init", folder).returncode == 0
    planned = palate("plan", folder, "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["cost"] == 0
    verified = palate("rubric", "verify", folder)
    assert verified.returncode == 0, verified.stderr
    assert verified.stdout.count(" holds;") == 2


def test_aggregate_prints_the_indices_of_a_table_worked_out_by_hand(tmp_path):
    """P = 4, G = 3, S = 5: U 80, G-Score 10·(3 + 5) = 80, Overall 100/15·12 = 80."""
    rows = ["user,card,candidate,repetition,track,reply,score"]
    for card in ("k1", "k2"):
        rows += [f"u1,{card},A,1,personal,0,4", f"u1,{card},A,1,generic,0,3"]
        rows += [f"u1,{card},A,1,session,,5"]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(rows), "utf-8")
    done = palate("aggregate", path, "--json")
    assert done.returncode == 0, done.stderr
    candidate = json.loads(done.stdout)["candidates"][0]
    assert [candidate[c]["mean"] for c in ("u_score", "g_score", "overall")] == [80, 80, 80]
    assert palate("aggregate", path).returncode == 0


def test_aggregate_names_the_line_of_a_fault(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(
        "user,card,candidate,repetition,track,reply,score\nu1,k1,A,1,personal,0,9\n", "utf-8"
    )
    done = palate("aggregate", path)
    assert done.returncode == 2
    assert "line 2" in done.stderr


def test_rubric_show_prints_the_rules_and_refuses_a_changed_file(tmp_path):
    path = tmp_path / "u1.json"
    path.write_text(json.dumps(personal_rubric("u1")), "utf-8")
    shown = palate("rubric", "show", path)
    assert "a concrete thing happens" in shown.stdout
    path.write_text(path.read_text("utf-8").replace("concrete", "vague"), "utf-8")
    refused = palate("rubric", "show", path)
    assert refused.returncode == 2
    assert "changed" in refused.stderr


@pytest.fixture
def served(tmp_path):
    with pure_server(tmp_path, delay=0.05) as server:
        yield (
            write_study(
                tmp_path / "study",
                model=server.models.format("m"),
                judge=server.models.format("judge"),
            ),
            server,
        )


def test_a_second_run_on_the_same_folder_stops_and_the_first_goes_on(served):
    study, server = served
    command = [sys.executable, "-m", "palate", "run", str(study), "--max-concurrency", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        while first.poll() is None and not server.requests():
            time.sleep(0.01)
        second = palate("run", study)
        assert second.returncode == 3
        assert f"in use by process {first.pid}" in second.stderr
        first.communicate()
    assert first.returncode == 0


def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on_later(served):
    study, _ = served
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        f"sys.argv = ['palate', 'run', {str(study)!r}]; from palate.cli import main; main()"
    )
    full = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert full.returncode == 3
    assert "make room" in full.stderr.splitlines()[-1]
    assert "Traceback" not in full.stderr
    for journal in (study / "runs" / "tiny").glob("*.jsonl"):
        for line in journal.read_text("utf-8").splitlines():
            json.loads(line)
    done = palate("run", study)
    assert done.returncode == 0, done.stderr


def test_an_endpoint_that_is_down_is_reported_and_left_to_be_resumed(tmp_path):
    dead = "openai:m@http://127.0.0.1:9/v1"
    once = '[endpoints."http://127.0.0.1:9/v1"]\nmax_attempts = 1\n'
    study = write_study(tmp_path, model=dead, extra=once)
    done = palate("run", study)
    assert done.returncode == 3
    assert "24 of 24 cells are open: stopped after" in done.stderr
    assert "127.0.0.1:9" in done.stderr
    assert not (study / "runs" / "tiny" / "results.json").exists()


def test_a_key_reaches_no_file_and_no_output(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_TEST", "sk-very-secret-0123456789")
    endpoint = '[endpoints."http://127.0.0.1:9/v1"]\nmax_attempts = 1\nkey_env = "SECRET_OF_TEST"\n'
    study = write_study(tmp_path, model="openai:m@http://127.0.0.1:9/v1", extra=endpoint)
    done = palate("run", study)
    assert "sk-very-secret" not in done.stdout + done.stderr
    for path in (study / "runs").rglob("*"):
        assert path.is_dir() or b"sk-very-secret" not in path.read_bytes()
