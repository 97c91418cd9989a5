"""Readers that go away, full and closed outputs, narrow encodings, polite kills."""

import os
import signal
import subprocess
import sys
import time

import pytest

from worlds import pure_server, write_study

COMMAND = [sys.executable, "-m", "palate"]


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path / "资料 夹")
    (folder / "replies.json").write_text("[]", "utf-8")
    return folder


def test_a_reader_that_goes_away_is_no_fault(study):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "plan", study], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_output_is_no_fault(study):
    script = f'exec "{sys.executable}" -m palate plan "$0" >&-'
    done = subprocess.run(["sh", "-c", script, study], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_a_full_output_is_one_sentence(study):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, "plan", study], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert done.stderr.startswith(b"palate: the output cannot be read or written")
    assert done.stderr.count(b"\n") == 1


def test_an_output_that_knows_only_ascii_is_no_fault(study):
    narrow = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "plan", study], env=narrow, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_a_model_name_full_of_markup_is_shown_as_it_is(study):
    file = study / "study.toml"
    name = "openai:x[/red][bold]@http://127.0.0.1:9/v1"
    text = file.read_text("utf-8").replace("scripted:replies.json", name)
    file.write_text(text, "utf-8")
    done = subprocess.run([*COMMAND, "plan", study], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"No price for {name}" in done.stdout


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_kill_leaves_a_run_that_goes_on(tmp_path, how):
    with pure_server(tmp_path, delay=0.05) as server:
        study = write_study(
            tmp_path / "study",
            model=server.models.format("chat"),
            judge=server.models.format("judge"),
        )
        command = [*COMMAND, "run", study, "--max-concurrency", "2"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            while run.poll() is None and server.requests() < 6:
                time.sleep(0.01)
            run.send_signal(how)
            _, told = run.communicate()
        assert run.returncode == 3
        assert "Traceback" not in told
        done = subprocess.run([*COMMAND, "run", study], capture_output=True, check=False)
        assert done.returncode == 0
