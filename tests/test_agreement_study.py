"""`palate study agreement STUDY`: from held-out ratings to the table, files, page and exit code."""

import asyncio
import csv
import dataclasses
import json
import random

import pytest
from click.testing import CliRunner

from palate.agreement_setup import StudyOptions, forecast, open_judges, prices_of, raters_of
from palate.cli import palate as command
from palate.config import load_study
from palate.errors import InputError, RubricError, TransportError
from palate.judging.asking import Judge
from palate.judging.subject import Rubrics
from palate.models.client import Completion
from palate.models.pool import Models
from palate.report.agreement import write_agreement_page
from palate.rubrics.freeze import as_json, freeze
from palate.simulators.validation.answers import Answers
from palate.studies.conditions import CONDITIONS, conditions_named
from palate.studies.held_out_agreement import (
    Setting,
    held_out_agreement,
    label_rows,
    labels_csv,
    score_rows,
    scores_csv,
)
from palate.studies.judging_held_out import HeldOutVerdict, jobs, judge_held_out, unscored_kind
from palate.studies.panel import panel_score
from rated_study import TASTES, LexicalJudge, write_rated_study
from worlds import pure_server

FOUR = conditions_named("personal,generic,examples,rubric+examples")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study(write_rated_study(tmp_path_factory.mktemp("rated")))


def options(conditions=FOUR, **changes):
    return StudyOptions(conditions=conditions, resamples=200, **{"examples": 40, **changes})


def setting(given, judges):
    return Setting(
        study="tiny",
        conditions=given.conditions,
        judges=judges,
        panel=given.panel,
        confidence=given.confidence,
        threshold=given.threshold,
        prices={},
        draw_seed=7,
        limit=given.limit,
        seed=0,
        resamples=given.resamples,
    )


async def judged(raters, given, folder, *models):
    judges = tuple(Judge(model) for model in models)
    wanted = list(jobs(raters, given.conditions, judges))
    with Answers(folder / "verdicts.jsonl", HeldOutVerdict) as journal:
        found = await judge_held_out(wanted, journal, confidence=given.confidence, width=4)
    return found, setting(given, judges)


async def measured(raters, given, folder, *models):
    found, made = await judged(raters, given, folder, *models)
    rows = score_rows(raters, found.verdicts, made)
    return held_out_agreement(raters, found.verdicts, rows, made, made_at="2026-01-01")


async def test_judging_by_what_the_person_is_known_to_like_agrees_with_them(study, tmp_path):
    """The judge reads prompts alone; three people with opposite tastes."""
    given = options()
    found = await measured(raters_of(study, given), given, tmp_path, LexicalJudge())
    assert found.order == ("personal", "generic", "examples", "rubric+examples")
    assert found.conditions["personal"].macro > 0.95
    assert found.conditions["examples"].macro > 0.7
    assert found.conditions["examples"].low > 0.5
    assert found.conditions["generic"].macro == 0.5  # a constant judge
    assert found.labels == 36
    assert found.ceiling is None
    assert any("one rating of a reply, so there is no human ceiling" in c for c in found.cautions)


async def test_what_another_person_likes_agrees_worse(study, tmp_path):
    given = options(conditions_named("personal,examples"))
    raters = raters_of(study, given)
    own = await measured(raters, given, tmp_path / "own", LexicalJudge())
    turned = raters[1:] + raters[:1]
    others = [given_to(rater, other) for rater, other in zip(raters, turned, strict=True)]
    foreign = await measured(others, given, tmp_path / "foreign", LexicalJudge())
    for name in ("personal", "examples"):
        assert foreign.conditions[name].macro < own.conditions[name].macro - 0.15


def given_to(rater, other):
    """The rater with what is known of another person in place of their own."""
    shared = rater.replies[0].subject.rubrics
    rubrics = Rubrics(other.rubric, shared.generic, shared.session)
    replies = tuple(
        reply._replace(subject=dataclasses.replace(reply.subject, rubrics=rubrics))
        for reply in rater.replies
    )
    return dataclasses.replace(rater, replies=replies, examples=other.examples)


async def test_shuffled_ratings_agree_by_chance(study, tmp_path):
    given = options(conditions_named("personal"))
    raters = raters_of(study, given)
    found, made = await judged(raters, given, tmp_path, LexicalJudge())
    rows = score_rows(raters, found.verdicts, made)
    agreements = []
    for seed in range(20):
        shuffled = [with_shuffled_labels(rater, seed) for rater in raters]
        result = held_out_agreement(shuffled, found.verdicts, rows, made, made_at="now")
        agreements.append(result.conditions["personal"].macro)
    assert sum(agreements) / len(agreements) == pytest.approx(0.5, abs=0.06)


def with_shuffled_labels(rater, seed):
    labels = [row.label for row in rater.labels]
    random.Random(f"{rater.user} {seed}").shuffle(labels)
    rows = tuple(row._replace(label=new) for row, new in zip(rater.labels, labels, strict=True))
    return dataclasses.replace(rater, labels=rows)


async def test_no_rating_of_a_held_out_reply_reaches_a_judge(tmp_path):
    """Every held-out rating is a 5 here and every other a 2; no prompt mentions a 5."""
    folder = write_rated_study(tmp_path / "study", users=("u1",))
    given = options(conditions_named("examples"))
    held_out = {row.session for row in raters_of(load_study(folder), given)[0].labels}
    path = folder / "u1.jsonl"
    sessions = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for session in sessions:
        for turn in session["turns"]:
            if "satisfaction" in turn:
                turn["satisfaction"] = 5 if session["session_id"] in held_out else 2
    path.write_text("".join(json.dumps(one) + "\n" for one in sessions), "utf-8")
    (folder / "splits" / "u1.json").unlink()
    raters = raters_of(load_study(folder), given)
    assert {row.label for row in raters[0].labels} == {5}
    judge = LexicalJudge()
    await measured(raters, given, tmp_path, judge)
    assert judge.requests
    assert all("message: 2" in r.messages[0].text for r in judge.requests)
    assert not any("message: 5" in m.text for r in judge.requests for m in r.messages)


async def test_a_reply_without_a_reaction_is_unscored_where_it_would_be_shown(study, tmp_path):
    given = options(conditions_named("personal,personal-no-reaction"), users=("u1",), limit=4)
    [rater] = raters_of(study, given)
    silent = tuple(reply._replace(has_reaction=False) for reply in rater.replies)
    judge = LexicalJudge()
    found, _ = await judged((dataclasses.replace(rater, replies=silent),), given, tmp_path, judge)
    assert {(one.condition, one.unscored) for one in found.verdicts} == {
        ("personal", "no reaction"),
        ("personal-no-reaction", None),
    }
    assert {one.score for one in found.verdicts if one.condition == "personal"} == {None}
    assert len(judge.requests) == len(silent) == 4


async def test_what_was_answered_is_not_asked_again(study, tmp_path):
    given = options(conditions_named("personal,baseline"))
    raters = raters_of(study, given)
    first, again = LexicalJudge(), LexicalJudge()
    one = await measured(raters, given, tmp_path, first)
    two = await measured(raters, given, tmp_path, again)
    assert (len(first.requests), len(again.requests)) == (72, 0)
    assert one == two


async def test_another_judge_or_other_examples_are_asked_for_anew(study, tmp_path):
    given = options(conditions_named("examples"), users=("u1",))
    await measured(raters_of(study, given), given, tmp_path, LexicalJudge())
    other, fewer = LexicalJudge("test:other"), LexicalJudge()
    await measured(raters_of(study, given), given, tmp_path, other)
    smaller = options(given.conditions, users=("u1",), examples=3)
    await measured(raters_of(study, smaller), smaller, tmp_path, fewer)
    assert (len(other.requests), len(fewer.requests)) == (12, 12)


async def test_a_call_that_does_not_come_back_is_left_and_is_no_score(study, tmp_path):
    given = options(conditions_named("personal"), users=("u1",))
    raters = raters_of(study, given)
    down = LexicalJudge(broken=lambda request: TransportError("the line is dead"))
    found, _ = await judged(raters, given, tmp_path, down)
    assert (found.left, found.verdicts, found.stopped_early) == (12, [], True)
    assert found.failures[-1] == "the line is dead"
    result = await measured(raters, given, tmp_path, down)
    assert result.conditions["personal"].macro is None
    assert result.counts["personal"].unscored == {"no answer came back": 12}
    found, _ = await judged(raters, given, tmp_path, LexicalJudge())
    assert (found.left, len(found.verdicts)) == (0, 12)


async def test_two_judges_whose_verdicts_cannot_be_read_give_counts_and_no_number(study, tmp_path):
    given = options(conditions_named("personal"))
    raters = raters_of(study, given)
    judges = [LexicalJudge(name, lambda r: "I like it.") for name in ("test:a", "test:b")]
    found = await measured(raters, given, tmp_path, *judges)
    one = found.conditions["personal"]
    assert (one.macro, one.low, one.pairs, one.missing) == (None, None, 0, 36)
    assert found.counts["personal"].model_dump() == {"scored": 0, "unscored": {"no verdict": 36}}
    assert [judge.unscored for judge in found.judges] == [{"no verdict": 36}] * 2
    assert any("test:a gave no score for 36 of 36 verdicts" in line for line in found.cautions)
    assert found.disagreement[0].model_dump() == {
        "a": "test:a",
        "b": "test:b",
        "replies": 0,
        "difference": None,
        "same_order": None,
        "pairs": 0,
    }


async def test_a_judge_that_refuses_half_leaves_that_half_without_a_score(study, tmp_path):
    given = options(conditions_named("personal"))
    raters = raters_of(study, given)

    def refuses(request):
        """Every second reply of a session."""
        return Completion("", "refused") if request.purpose.turn % 4 == 0 else None

    judges = [LexicalJudge(name, refuses) for name in ("test:a", "test:b")]
    found = await measured(raters, given, tmp_path, *judges)
    counts = found.counts["personal"]
    assert (counts.scored, counts.unscored) == (18, {"refused by the judge's provider": 18})
    assert found.conditions["personal"].missing == 18
    assert found.conditions["personal"].missing_pairs > 0


async def test_a_panel_stands_on_those_that_answered_and_says_who_did_not(study, tmp_path):
    given = options(conditions_named("personal"))
    raters = raters_of(study, given)
    deaf = LexicalJudge("test:deaf", lambda r: "no")
    found = await measured(raters, given, tmp_path, LexicalJudge("test:good"), deaf)
    assert found.panel == "mean"
    assert found.conditions["personal"].macro == found.judges[0].agreement["personal"] > 0.95
    assert found.judges[1].agreement["personal"] is None
    assert found.cautions[0].startswith("test:deaf gave no score for 36 of 36 verdicts")


async def test_two_judges_are_set_against_each_other(study, tmp_path):
    """The second gives 6 - x: |x - (6 - x)| = |2x - 6| on average, and every order is turned."""

    class Contrary(LexicalJudge):
        def verdict(self, request):
            score = json.loads(super().verdict(request))["scores"]["satisfaction"]
            return json.dumps({"satisfaction": 6 - score})

    given = options(conditions_named("personal"), users=("u1",))
    raters = raters_of(study, given)
    found, made = await judged(raters, given, tmp_path, LexicalJudge("test:a"), Contrary("test:b"))
    result = held_out_agreement(
        raters, found.verdicts, score_rows(raters, found.verdicts, made), made, made_at=""
    )
    scores = [one.score for one in found.verdicts if one.judge == "test:a"]
    (pair,) = result.disagreement
    assert pair.difference == pytest.approx(sum(abs(2 * x - 6) for x in scores) / len(scores))
    assert (pair.replies, pair.same_order) == (12, 0)
    assert pair.pairs > 0
    assert result.conditions["personal"].macro == 0.5  # the mean of both is 3 everywhere


def test_a_panels_score_is_the_mean_or_the_median_of_those_that_answered():
    assert panel_score([1, 2, 5], "mean") == pytest.approx(8 / 3)
    assert panel_score([1, 2, 5], "median") == 2
    assert panel_score([], "mean") is None


async def test_confidence_is_asked_for_kept_and_used(study, tmp_path):
    def says(request):
        sure = 5 if request.purpose.turn < 5 else 1
        quiet = request.purpose.turn == 8
        return json.dumps({"satisfaction": 3, "confidence": sure, "abstain": quiet})

    given = options(conditions_named("personal"), confidence=True, threshold=4.0)
    raters = raters_of(study, given)
    found = await measured(raters, given, tmp_path, LexicalJudge(broken=says))
    assert found.counts["personal"].unscored == {"abstained": 9}
    assert found.conditions["personal"].confident.threshold == 4.0
    assert 0 < found.conditions["personal"].confident.share < 1
    text = (tmp_path / "verdicts.jsonl").read_text("utf-8")
    assert '"confidence":5.0' in text


async def test_the_files_reproduce_the_numbers_in_the_csv_mode(study, tmp_path):
    given = options(CONDITIONS)
    raters = raters_of(study, given)
    found, made = await judged(raters, given, tmp_path, LexicalJudge())
    rows = score_rows(raters, found.verdicts, made)
    result = held_out_agreement(raters, found.verdicts, rows, made, made_at="now")
    (tmp_path / "labels.csv").write_text(labels_csv(label_rows(raters)), "utf-8")
    (tmp_path / "scores.csv").write_text(scores_csv(rows), "utf-8")
    done = CliRunner().invoke(
        command,
        ["study", "agreement", "--labels", str(tmp_path / "labels.csv"), "--scores",
         str(tmp_path / "scores.csv"), "--json", "--resamples", "200"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told, own = json.loads(done.output), result.model_dump(mode="json")
    assert told == {key: own[key] for key in told}
    assert len(told["conditions"]) == 7


async def test_length_and_its_correlation_are_there(study, tmp_path):
    given = options(conditions_named("personal"))
    found = await measured(raters_of(study, given), given, tmp_path, LexicalJudge())
    assert found.conditions["personal"].length.replies == 36
    assert -1 <= found.conditions["personal"].length.score <= 1


async def test_a_page_shows_judges_prompts_and_unscored_replies_as_text(study, tmp_path):
    given = options(conditions_named("personal,baseline"))
    raters = raters_of(study, given)
    hostile = LexicalJudge("test:<script>alert(1)</script>", lambda r: "no")
    found = await measured(raters, given, tmp_path, hostile)
    page = write_agreement_page(found, tmp_path / "page.html", title="tiny").read_text("utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "judge_baseline.en.md" in page
    assert "personal: 36 of 36 (no verdict 36)" in page
    assert "re-implementation of a public description" in page
    assert "Held-out replies alone were judged" in page


def test_the_forecast_counts_what_was_not_answered_yet(study):
    given = options(conditions_named("personal,examples"), users=("u1",))
    raters = raters_of(study, given)
    judge = Judge(LexicalJudge("openai:big@http://127.0.0.1:9/v1"))
    wanted = list(jobs(raters, given.conditions, (judge,)))
    asks = forecast(wanted, lambda key: "personal|" in key, {}, confidence=False)
    assert [(one.calls, one.cost) for one in asks] == [(12, None)]
    assert asks[0].usage.prompt > 12 * 200


def judges_of(folder, **changes):
    async def opened():
        given = load_study(folder)
        async with Models({}, study_dir=folder) as models:
            return open_judges(given, options(**changes), models)

    return asyncio.run(opened())


def test_judges_of_two_forms_are_no_panel(study):
    toml = study.folder / "study.toml"
    text = toml.read_text("utf-8")
    toml.write_text(text.replace('form = "json"', 'form = "auto"'), "utf-8")
    try:
        with pytest.raises(InputError, match=r"different forms .* cannot be averaged"):
            judges_of(study.folder, judges=("local:smollm2-135m", "scripted:none.json"))
    finally:
        toml.write_text(text, "utf-8")


def test_a_judge_named_twice_is_refused_and_the_studys_headers_stay_with_its_judge(study):
    with pytest.raises(InputError, match="twice"):
        judges_of(study.folder, judges=("scripted:none.json", "scripted:none.json"))
    (judge,) = judges_of(study.folder)
    assert judge.model.name == "scripted:none.json"
    assert prices_of(study, (judge,))["scripted:none.json"].input == 0


def test_a_rubric_that_saw_what_it_would_score_is_refused(tmp_path):
    folder = write_rated_study(tmp_path, users=("u1",))
    study = load_study(folder)
    held_out = raters_of(study, options(conditions_named("generic")))[0].sessions
    path = folder / "rubrics" / "u1.json"
    draft = json.loads(path.read_text("utf-8"))
    draft["provenance"]["training_sessions"] = dict(held_out)
    path.write_text(as_json(freeze(draft)), "utf-8")
    with pytest.raises(RubricError, match="built it, so it cannot score"):
        raters_of(study, options(conditions_named("personal")))
    assert raters_of(study, options(conditions_named("generic")))


def test_a_study_without_ratings_or_with_unknown_users_is_refused(study, tmp_path):
    with pytest.raises(InputError, match="has no user 'nobody'; its users are u1, u2, u3"):
        raters_of(study, options(users=("nobody",)))
    folder = write_rated_study(tmp_path, users=("u1",))
    path = folder / "u1.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for session in lines:
        for turn in session["turns"]:
            turn.pop("satisfaction", None)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    with pytest.raises(InputError, match="no held-out reply of u1 was rated"):
        raters_of(load_study(folder), options(conditions_named("generic")))
    with pytest.raises(InputError, match="rated no reply of a training session"):
        raters_of(load_study(folder), options(conditions_named("examples")))


def test_a_limit_is_of_replies_a_user(study):
    raters = raters_of(study, options(limit=8))
    assert [len(rater.replies) for rater in raters] == [8, 8, 8]
    assert [rater.rated for rater in raters] == [12, 12, 12]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("broken JSON: breaks off", "broken JSON"),
        ("no verdict: the reply scores none of the dimensions", "no verdict"),
        ("G3 is missing; G4: 9 is not a whole number 1 to 5", "incomplete or off the scale"),
        ("truncated", "truncated"),
    ],
)
def test_reasons_are_counted_by_kind(reason, kind):
    assert unscored_kind(reason) == kind


def test_the_command_judges_writes_shows_and_resumes(tmp_path):
    with pure_server(tmp_path) as server:
        judge = server.models.format("judge")
        folder = write_rated_study(tmp_path / "study", users=("u1", "u2"), judge=judge)
        arguments = ["study", "agreement", str(folder), "--limit", "8", "--resamples", "50"]
        planned = CliRunner().invoke(command, [*arguments, "--plan"])
        assert planned.exit_code == 0, planned.output
        assert "At most 112 calls" in planned.output
        assert not (folder / "studies").exists()
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == 0, done.output
        asked = server.requests()
        again = CliRunner().invoke(command, [*arguments, "--json"])
        assert again.exit_code == 0, again.output
        assert server.requests() == asked
    out = folder / "studies" / "agreement"
    assert sorted(file.name for file in out.iterdir() if file.name[0] != ".") == [
        "labels.csv",
        "report.html",
        "results.json",
        "scores.csv",
        "verdicts.jsonl",
    ]
    results = json.loads((out / "results.json").read_text("utf-8"))
    # The server knows no baseline: nothing of it can be read, and none of it is a number.
    assert results["conditions"]["baseline"]["macro"] is None
    assert results["counts"]["baseline"] == {"scored": 0, "unscored": {"no verdict": 16}}
    assert results["counts"]["personal"]["scored"] == 16
    with (out / "scores.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["condition"] == "baseline"]
    assert {row["score"] for row in rows} == {""}
    places = [done.output.index(f"\n u1    {one.name} ") for one in CONDITIONS]
    assert places == sorted(places)
    assert "Unscored replies" in done.output
    assert "expected to pass" not in done.output


def test_work_that_is_left_is_exit_3(tmp_path):
    folder = write_rated_study(tmp_path, users=("u1",))  # a script without a line
    done = CliRunner().invoke(
        command, ["study", "agreement", str(folder), "--conditions", "personal"]
    )
    assert done.exit_code == 3, done.output
    assert "12 verdicts are left" in done.output
    assert (folder / "studies" / "agreement" / "results.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{study}", "--labels", "a.csv"], "not both"),
        (["--limit", "5", "--labels", "a.csv", "--scores", "b.csv"], "belong to a STUDY"),
        ([], "Name a STUDY"),
        (["--labels", "a.csv", "--scores", "b.csv", "--confidence"], "needs a number"),
        (["{study}", "--conditions", "worst"], "is no condition"),
        (["{study}", "--out", "{study}"], "holds no agreement study"),
    ],
)
def test_what_does_not_go_together_is_exit_2(study, arguments, said):
    filled = [argument.format(study=study.folder) for argument in arguments]
    done = CliRunner().invoke(command, ["study", "agreement", *filled])
    told = done.output if done.exception is None else f"{done.output}{done.exception}"
    assert said in told
    assert done.exit_code == 2 or isinstance(done.exception, InputError)


def test_the_tastes_of_the_planted_world_differ():
    assert len(set(TASTES.values())) == 3
