"""The run folder survives kills, full disks, torn tails and second writers."""

import json
import os
import subprocess
import sys

import pytest

from palate import store
from palate.errors import InputError, StoreError, StudyChanged
from palate.store import RunFolder, RunReader, differences

SETTINGS = {"judge": {"temperature": 0.0}, "seed": 7}


def test_records_come_back_in_the_order_written(tmp_path):
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        for n in range(3):
            run.append("messages", {"n": n, "text": "a\nb\u2028c"})
    reader = RunReader(tmp_path / "run")
    assert [r["n"] for r in reader.records("messages")] == [0, 1, 2]
    assert next(reader.records("messages"))["text"] == "a\nb\u2028c"
    assert reader.warnings == []


def test_a_torn_tail_is_cut_off_with_a_warning_and_writing_goes_on(tmp_path):
    with RunFolder(tmp_path, SETTINGS) as run:
        run.append("cells", {"cell": "U1/A/tin/1"})
    with (tmp_path / "cells.jsonl").open("ab") as file:
        file.write(b'{"cell": "U1/B/tin/1", "status": "do')
    with RunFolder(tmp_path, SETTINGS) as run:
        assert len(run.warnings) == 1
        assert "torn line (36 bytes)" in run.warnings[0]
        run.append("cells", {"cell": "U1/C/tin/1"})
    assert [r["cell"] for r in RunReader(tmp_path).records("cells")] == ["U1/A/tin/1", "U1/C/tin/1"]


def test_a_damaged_line_in_the_middle_is_ignored_with_its_number(tmp_path):
    (tmp_path / "cells.jsonl").write_bytes(b'{"cell":"a"}\n{"cell"\n[1]\n{"cell":"b"}\n')
    reader = RunReader(tmp_path)
    assert [r["cell"] for r in reader.records("cells")] == ["a", "b"]
    assert [w[:18] for w in reader.warnings] == ["cells.jsonl line 2", "cells.jsonl line 3"]


def test_a_changed_study_is_refused_with_the_difference_named(tmp_path):
    with RunFolder(tmp_path, SETTINGS) as run:
        run.append("messages", {"cell": "u1/k1/A/1"})
    changed = {"judge": {"temperature": 0.5}, "seed": 7}
    with pytest.raises(StudyChanged, match=r"judge\.temperature was 0\.0, is 0\.5"):
        RunFolder(tmp_path, changed)
    RunFolder(tmp_path, SETTINGS).close()  # and the refusal left nothing locked


def test_a_study_that_was_mended_before_anything_was_answered_begins_in_the_same_folder(tmp_path):
    with RunFolder(tmp_path, SETTINGS) as run:
        run.append("failures", {"cell": "u1/k1/A/1", "error": "HTTP 404"})
    mended = {"judge": {"temperature": 0.5}, "seed": 7}
    with RunFolder(tmp_path, mended) as run:
        assert run.manifest()["settings"] == mended


def test_a_run_does_not_begin_among_other_files(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="not empty and is no run folder"):
        RunFolder(tmp_path, SETTINGS)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_journals_without_their_manifest_are_not_mixed_with_a_new_run(tmp_path):
    with RunFolder(tmp_path, SETTINGS) as run:
        run.append("messages", {"cell": "u1/k1/A/1"})
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(InputError, match="no manifest"):
        RunFolder(tmp_path, SETTINGS)


def test_differences_name_added_and_removed_settings():
    assert differences({"a": 1, "b": {"c": 2}}, {"b": {"c": 3, "d": 4}}) == [
        "a was 1, is absent",
        "b.c was 2, is 3",
        "b.d was absent, is 4",
    ]


def test_a_second_writer_is_told_which_process_has_the_folder(tmp_path):
    held = RunFolder(tmp_path, SETTINGS)
    script = (
        "import sys, pathlib; from palate.store import RunFolder\n"
        "RunFolder(pathlib.Path(sys.argv[1]), {'judge': {'temperature': 0.0}, 'seed': 7})"
    )
    second = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    held.close()
    assert second.returncode != 0
    assert f"in use by process {os.getpid()}" in second.stderr


def test_the_lock_of_a_killed_writer_is_taken_over(tmp_path):
    script = (
        "import os, signal, sys, pathlib; from palate.store import RunFolder\n"
        "run = RunFolder(pathlib.Path(sys.argv[1]), {'judge': {'temperature': 0.0}, 'seed': 7})\n"
        "run.append('cells', {'cell': 'a'}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    with RunFolder(tmp_path, SETTINGS) as run:
        assert list(run.records("cells")) == [{"cell": "a"}]


def test_a_full_disk_leaves_every_line_whole_and_says_so(tmp_path):
    script = (
        "import resource, signal, sys, pathlib\n"
        "from palate.store import RunFolder; from palate.errors import StoreError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "run = RunFolder(pathlib.Path(sys.argv[1]), {'judge': {'temperature': 0.0}, 'seed': 7})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    while True: run.append('cells', {'cell': 'x' * 100})\n"
        "except StoreError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "make room" in done.stdout
    lines = (tmp_path / "cells.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 8  # 8 lines of 113 bytes fit into 1,000
    assert all(json.loads(line) for line in lines)
    assert lines[-1].endswith(b"\n")


def test_a_whole_file_is_written_or_left_as_it_was(tmp_path, monkeypatch):
    target = tmp_path / "results.json"
    target.write_text("old", "utf-8")
    monkeypatch.setattr(store.os, "fsync", _no_room)
    with pytest.raises(OSError, match="No space"):
        store.write_atomically(target, "new")
    assert target.read_text("utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def _no_room(_file):
    raise OSError(28, "No space left on device")


def test_a_folder_that_is_no_run_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        RunReader(tmp_path).manifest()


def test_a_file_in_the_place_of_a_run_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(InputError, match="is not a folder"):
        RunFolder(tmp_path / "file", SETTINGS)
    with pytest.raises(StoreError, match="cannot write to"):
        RunFolder(tmp_path / "file" / "run", SETTINGS)
