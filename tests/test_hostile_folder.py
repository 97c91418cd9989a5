"""Run folders that were cut, doubled, mixed up or edited: calls again, never a wrong number."""

import json
import shutil

import pytest

from palate.commands import report_run, run_study
from palate.errors import InputError
from palate.results import measure
from palate.store import MOST_WARNINGS, RunReader
from test_end_to_end import TASTES, script
from worlds import write_study


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study of 24 cells, played and judged."""
    study = write_study(tmp_path_factory.mktemp("finished"))
    (study / "replies.json").write_text(script(lambda u, k, c, r: TASTES[u, c]), "utf-8")
    assert go_on(study) == 0
    return study


@pytest.fixture
def study(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "study")


def go_on(study):
    return run_study(study, out=None, limit=None, max_concurrency=None)


def folder(study):
    return study / "runs" / "tiny"


def results(study):
    return (folder(study) / "results.json").read_text("utf-8")


def edit(study, journal, change):
    """Let `change` rewrite the lines of a journal."""
    file = folder(study) / f"{journal}.jsonl"
    lines = change(file.read_bytes().splitlines())
    file.write_bytes(b"".join(line + b"\n" for line in lines))


def changed(line, **fields):
    return json.dumps(json.loads(line) | fields).encode()


DAMAGE = {
    "lost": lambda lines: lines[:4] + lines[5:],
    "all gone": lambda lines: [],
    "doubled": lambda lines: [twice for line in lines for twice in (line, line)],
    "backwards": lambda lines: lines[::-1],
    "no JSON": lambda lines: [*lines[:4], b"\xff{", *lines[5:]],
    "other JSON": lambda lines: [b"null", b"[]", b"{}", *lines],
    "of another study": lambda lines: [*lines, changed(lines[0], cell="u9/k9/Z/1")],
    "wrong types": lambda lines: [changed(lines[0], cell=3, at=[]), *lines[1:]],
}


@pytest.mark.parametrize("journal", ["messages", "judgements", "cells"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_whatever_happens_to_a_journal_the_next_run_brings_the_same_results(
    study, finished, journal, damage
):
    edit(study, journal, DAMAGE[damage])
    report_run(folder(study), as_json=True)
    for _ in range(2):
        assert go_on(study) == 0
        assert results(study) == results(finished)


def test_a_verdict_on_other_words_than_the_folder_holds_does_not_count(study):
    """The user's first message of one cell is edited: its three verdicts are about another chat."""
    edit(study, "messages", lambda lines: [changed(lines[0], text="Other words."), *lines[1:]])
    measured = measure(RunReader(folder(study))).results
    coverage = [candidate.coverage.sessions_scored for candidate in measured.candidates]
    assert sorted(coverage) == [7, 8, 8]


@pytest.mark.parametrize(
    ("field", "value"),
    [("overall", 9.0), ("overall", None), ("scores", {}), ("unscored", "x"), ("reply", -1)],
)
def test_a_verdict_that_contradicts_itself_is_asked_for_again(study, finished, field, value):
    edit(study, "judgements", lambda lines: [changed(lines[0], **{field: value}), *lines[1:]])
    assert go_on(study) == 0
    assert results(study) == results(finished)


def test_very_many_damaged_lines_are_told_in_few_words(study):
    edit(study, "messages", lambda lines: [b"{}"] * 500 + lines)
    reader = RunReader(folder(study))
    measure(reader)
    assert len(reader.warnings) == MOST_WARNINGS + 1
    assert reader.warnings[-1].startswith("480 more")


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("openings"),
        lambda manifest: manifest["openings"].popitem(),
        lambda manifest: manifest.update(cards=3),
        lambda manifest: manifest["settings"].pop("users"),
        lambda manifest: manifest["settings"]["protocol"].update(seed="7"),
        lambda manifest: manifest.update(prices={"m": {"input": "free"}}),
    ],
)
def test_a_manifest_that_was_edited_is_refused(study, change):
    file = folder(study) / "manifest.json"
    manifest = json.loads(file.read_bytes())
    change(manifest)
    file.write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(InputError, match="was changed after it was written"):
        report_run(folder(study), as_json=True)


def test_a_folder_in_the_place_of_a_journal_is_one_sentence(study):
    (folder(study) / "messages.jsonl").unlink()
    (folder(study) / "messages.jsonl").mkdir()
    with pytest.raises(InputError, match=r"messages\.jsonl cannot be read"):
        report_run(folder(study), as_json=True)
