"""`palate study agreement`: the JSON that people rely on, tables, a page, exit codes, speed."""

import json
import os
import random
import runpy
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from palate.agreement_commands import Settings, show_agreement
from palate.cli import palate as command
from palate.errors import InputError, StoreError
from palate.studies.agreement_rows import ConditionScore, LabelRow
from palate.studies.human_agreement import agreement
from worlds import palate

LABELS = """user,session,reply,label,occasion
ada,a,0,1,1
ada,a,1,2,1
ada,a,2,3,1
ada,a,0,2,2
ada,a,1,2,2
ada,b,0,5,1
ada,b,1,4,1
ben,a,0,3,1
ben,a,1,3,1
"""
SCORES = """condition,user,session,reply,score
personal,ada,a,0,2
personal,ada,a,1,3
personal,ada,a,2,2
personal,ada,b,0,5
personal,ada,b,1,4
personal,ben,a,0,1
personal,ben,a,1,2
generic,ada,a,0,1
generic,ada,a,1,
generic,ada,a,2,1
generic,ada,b,0,1
generic,ada,b,1,2
"""


@pytest.fixture
def files(tmp_path):
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.csv"
    labels.write_text(LABELS, "utf-8")
    scores.write_text(SCORES, "utf-8")
    return labels, scores


def settings(*, as_json=False, out=None, seed=0, resamples=200, confidence=None):
    return Settings(as_json, out, seed, resamples=resamples, confidence=confidence)


def told(files, *options):
    arguments = ["study", "agreement", "--labels", str(files[0]), "--scores", str(files[1])]
    done = CliRunner().invoke(command, [*arguments, *options])
    assert done.exit_code == 0, done.output
    return done


def test_json_has_every_figure_of_the_contract(files):
    """ada, personal: (1 + 0.5 + 0 + 1) / 4; generic: one tie and one wrong pair: 0.5 / 2."""
    found = json.loads(told(files, "--json").stdout)
    personal, generic = found["conditions"]["personal"], found["conditions"]["generic"]
    assert personal["macro"] == 0.625
    assert personal["low"] <= 0.625 <= personal["high"]
    own = personal["users"]["ada"]
    assert {key: own[key] for key in ("agreement", "pairs", "judge_ties", "missing")} == {
        "agreement": 0.625,
        "pairs": 4,
        "judge_ties": 1,
        "missing": 0,
    }
    assert personal["users"]["ben"]["agreement"] is None
    assert generic["macro"] == 0.25
    assert generic["users"]["ada"]["missing"] == 1
    assert generic["users"]["ada"]["missing_pairs"] == 2
    assert generic["users"]["ben"]["missing"] == 2
    assert found["ceiling"]["macro"] == 0.5  # 1 and 2, both 2 at the second time
    [test] = found["tests"]
    assert (test["a"], test["b"], test["difference"]) == ("generic", "personal", 0.25 - 0.75)
    assert 0 < test["p"] <= 1


def test_the_tables_name_conditions_users_and_remarks(files):
    said = told(files).stdout
    assert "0.6250" in said
    assert "ada" in said
    assert "no pair of ben: outside the macro mean" in said
    assert "Between conditions" in said
    assert "second" in said


def test_the_same_seed_gives_the_same_figures(files):
    first, second = told(files, "--json", "--seed", "3"), told(files, "--json", "--seed", "3")
    assert first.stdout == second.stdout


def test_a_fault_is_one_sentence_with_its_line_and_exit_code_2(files):
    labels, scores = files
    scores.write_text(SCORES + "personal,ada,a,0,4\n", "utf-8")
    done = palate("study", "agreement", "--labels", labels, "--scores", scores, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"palate: {scores}, line 14 repeats line 2: keep one of the two\n"
    done = palate("study", "agreement", "--labels", labels, "--scores", scores.parent / "none.csv")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--confidence", "nan"),
        ("--confidence", "inf"),
        ("--resamples", "1"),
        ("--seed", "-1"),
        ("--scores", ""),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(files, options):
    arguments = ["study", "agreement", "--labels", str(files[0]), "--scores", str(files[1])]
    done = CliRunner().invoke(command, [*arguments, *options])
    assert done.exit_code == 2 or isinstance(done.exception, InputError)


def test_help_explains_both_files():
    done = palate("study", "agreement", "--help")
    assert done.returncode == 0
    for word in ("user,session,reply,label", "condition,user,session,reply,score", "occasion"):
        assert word in done.stdout


def test_the_page_is_written_and_never_over_an_input(files, tmp_path, capsys):
    out = tmp_path / "agreement.html"
    show_agreement(*files, settings(out=out, as_json=True))
    said = capsys.readouterr()
    json.loads(said.out)
    assert said.err == f"Wrote {out}\n"
    assert "0.6250" in out.read_text("utf-8")
    with pytest.raises(InputError, match="overwrite"):
        show_agreement(*files, settings(out=files[0]))
    assert files[0].read_text("utf-8") == LABELS
    with pytest.raises(StoreError, match="cannot be written"):
        show_agreement(*files, settings(out=files[0] / "x.html"))


def test_a_folder_in_the_place_of_the_page_is_refused_before_anything_is_printed(files):
    labels, scores = files
    result = palate(
        *("study", "agreement", "--labels", labels, "--scores", scores, "--out", labels.parent)
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "which is a folder; name the HTML file to write" in result.stderr


def test_names_cannot_steer_the_terminal(tmp_path, capsys):
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.csv"
    name = "\x1b[31mred\x1b]0;OWNED\x07 [bold]"
    labels.write_text(f"user,session,reply,label\n{name},s,0,1\n{name},s,1,2\n", "utf-8")
    scores.write_text(
        f"condition,user,session,reply,score\n{name},{name},s,0,1\n{name},{name},s,1,1\n", "utf-8"
    )
    show_agreement(labels, scores, settings())
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "red [bold]" in said


def test_more_users_and_conditions_than_a_terminal_holds_are_counted(tmp_path, capsys):
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.csv"
    rows = [(f"u{n:02}", reply) for n in range(23) for reply in (0, 1)]
    labels.write_text(
        "user,session,reply,label\n"
        + "".join(f"{user},s,{reply},{reply + 1}\n" for user, reply in rows),
        "utf-8",
    )
    scores.write_text(
        "condition,user,session,reply,score\n"
        + "".join(f"c{n:02},{user},s,{reply},{n}\n" for n in range(10) for user, reply in rows),
        "utf-8",
    )
    show_agreement(labels, scores, settings(resamples=20))
    said = capsys.readouterr().out
    assert "3 more users" in said
    assert "5 more comparisons" in said  # of 45


@pytest.mark.slow
def test_two_hundred_thousand_labels_take_less_than_twenty_seconds_of_computing(tmp_path):
    """20 users with 1,000 sessions of 10 replies; and two sessions of 10,000 replies."""
    draw = random.Random(0)
    shape = [(f"u{n % 20}", f"s{n}", 10) for n in range(18_000)] + [
        ("v", "x", 10_000),
        ("v", "y", 10_000),
    ]
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.csv"
    with labels.open("w") as one, scores.open("w") as other:
        one.write("user,session,reply,label\n")
        other.write("condition,user,session,reply,score\n")
        for user, session, replies in shape:
            for n in range(replies):
                label = draw.randint(1, 5)
                one.write(f"{user},{session},{n},{label}\n")
                other.write(f"noisy,{user},{session},{n},{label + draw.gauss(0, 3):.3f}\n")
    start = time.process_time()
    show_agreement(labels, scores, settings(as_json=True, resamples=2000))
    assert time.process_time() - start < 20


def test_real_raters_agree_with_the_others_as_computed_before():
    """DBDC3, where it is beside the repository or named by PALATE_DBDC3: 234,000 ratings."""
    beside = Path(__file__).parents[2] / "shared/data/dbdc3/dbdc3_revised_pseudonymised.zip"
    archive = Path(os.environ.get("PALATE_DBDC3") or beside)
    if not archive.exists():
        pytest.skip("DBDC3 is not beside the repository; name its zip in PALATE_DBDC3")
    script = runpy.run_path(
        str(Path(__file__).parents[1] / "benchmarks" / "agreement_dbdc3.py"), run_name="benchmark"
    )
    mine = [row for row in script["rated_replies"](archive) if row.rater in script["EXPECTED"]]
    found = agreement(
        [LabelRow(row.rater, row.session, row.reply, row.label) for row in mine],
        [ConditionScore("others", row.rater, row.session, row.reply, row.others) for row in mine],
    )
    users = found.conditions["others"].users
    assert {name: (round(own.agreement, 4), own.pairs) for name, own in users.items()} == {
        "en-a0014": (0.6686, 3950),
        "en-a0036": (0.7652, 3637),
        "en-a0024": (0.5632, 9151),
    }
