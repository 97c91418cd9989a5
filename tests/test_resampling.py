"""A simulator that slips is asked again, a bounded number of times, and every slip is counted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from palate import journal, manifest
from palate.errors import InputError, StudyChanged, TransportError
from palate.models.client import Completion, Sampling
from palate.plan import estimate
from palate.prepare import prepare
from palate.report.conduct import Conduct, warning
from palate.report.data import CellRecord
from palate.report.page import write_report
from palate.results import measure, report_data
from palate.roleplay import play
from palate.run import run
from palate.simulators import flags
from palate.store import RunFolder, RunReader
from palate.types import Cell, Message, Usage
from worlds import Listed, palate, steps_of, table, write_study

ASSISTANT = "As an AI language model, I cannot leave."


def flagged(text, own):
    return flags(text, own, character="Captain Mara Voss")


def seated(lines, *, replies=("c1", "c2", "c3"), depth=1, resample=2, temperature=None):
    """A table whose simulator says `lines`, with the flags of a real run."""
    made = table(Listed(lines), Listed(replies), depth=depth)
    simulator = replace(made.simulator, sampling=Sampling(temperature=temperature))
    return replace(made, simulator=simulator, flags_of_user=flagged, resample=resample)


async def played(made):
    """The accepted steps of a conversation, and its end."""
    steps = []
    trajectory = await play(made, steps.append)
    return steps, trajectory.ended_by


async def test_the_first_clean_draft_is_taken_and_the_others_are_counted_by_kind():
    made = seated([ASSISTANT, '{"say": "hi"}', "Let me in."])
    (user, _), _ = await played(made)
    assert (user.message.text, user.message.flags) == ("Let me in.", ())
    assert user.rejected == (("assistant_phrase",), ("leaked_json",))


async def test_where_no_draft_is_clean_the_last_is_taken_and_keeps_its_flags():
    made = seated([ASSISTANT, ASSISTANT, "Captain: aye", "never asked"])
    (user, _), _ = await played(made)
    assert (user.message.text, user.message.flags) == ("Captain: aye", ("speaks_as_character",))
    assert user.rejected == (("assistant_phrase",), ("assistant_phrase",))
    assert len(made.simulator.model.requests) == 3


@pytest.mark.parametrize(("resample", "calls"), [(0, 1), (1, 2), (5, 6)])
async def test_a_message_is_asked_for_again_as_often_as_the_protocol_says(resample, calls):
    made = seated([ASSISTANT] * 10, resample=resample)
    await played(made)
    assert len(made.simulator.model.requests) == calls


async def test_a_greedy_simulator_would_say_the_same_and_is_not_asked_again():
    made = seated([ASSISTANT, "never asked"], temperature=0.0)
    (user, _), _ = await played(made)
    assert (user.message.flags, user.rejected) == (("assistant_phrase",), ())


async def test_an_own_message_said_again_is_drawn_anew():
    made = seated(["Open!", "open", "Please?"], depth=2)
    steps, _ = await played(made)
    assert steps_of(steps) == ["Open!", "c1", "Please?", "c2"]
    assert [step.rejected for step in steps] == [(), (), (("repetition",),), ()]


async def test_a_simulator_that_only_repeats_itself_still_plays_to_the_depth():
    """One clean message, then five that are asked for three times each: 16 calls."""
    made = seated(["Open the gate!"] * 50, replies=["No."] * 50, depth=6)
    steps, end = await played(made)
    assert (end, len(steps), len(made.simulator.model.requests)) == ("depth_limit", 12, 16)


async def test_each_draft_has_an_attempt_and_a_seed_of_its_own():
    made = seated([ASSISTANT, ASSISTANT, "Let me in."])
    made = replace(made, simulator=replace(made.simulator, seeded=True))
    await played(made)
    requests = made.simulator.model.requests
    assert [request.purpose.attempt for request in requests] == [0, 1, 2]
    assert len({request.sampling.seed for request in requests}) == 3


async def test_drafts_that_were_not_taken_are_paid_for_with_the_step():
    """A call of these models costs 10 tokens to read and 2 to write."""
    (user, _), _ = await played(seated([ASSISTANT, ASSISTANT, "Let me in."]))
    assert (user.usage, user.attempts) == (Usage(30, 6, 0), 3)


async def test_a_farewell_is_judged_by_its_words():
    steps, end = await played(seated([f"{ASSISTANT} [QUIT]", "Good night. [QUIT]"]))
    assert (steps_of(steps), end) == (["Good night."], "quit")
    assert steps[0].rejected == (("assistant_phrase",),)


async def test_to_leave_without_a_word_is_clean():
    steps, end = await played(seated(["[QUIT]", "never asked"]))
    assert (steps[0].message, steps[0].rejected, end) == (None, (), "quit")


async def test_empty_drafts_are_counted_as_such():
    (user, _), _ = await played(seated(["", "  ", "Let me in."]))
    assert user.rejected == (("empty",), ("empty",))


async def test_three_empty_drafts_end_the_session_as_before():
    steps, end = await played(seated(["", "\u200b", "", "never asked"]))
    assert (end, steps[0].message, steps[0].rejected) == (
        "simulator_empty",
        None,
        (("empty",), ("empty",)),
    )


async def test_words_with_a_flag_are_taken_before_none_at_all():
    steps, end = await played(seated([ASSISTANT, "", "", "", "never asked"]))
    assert (steps[0].message.flags, end) == (("assistant_phrase",), "depth_limit")
    assert steps[0].rejected == (("empty",),) * 3


async def test_a_block_is_final_even_after_a_flag():
    made = seated([ASSISTANT, ("", "refused"), "never asked"])
    steps, end = await played(made)
    assert (steps_of(steps), end) == ([ASSISTANT, "c1"], "depth_limit")
    assert len(made.simulator.model.requests) == 2


async def test_nothing_of_a_candidate_is_drawn_anew_for_its_wording():
    made = seated(["hi", "so?"], replies=[ASSISTANT, ASSISTANT, "never asked"], depth=2)
    steps, _ = await played(made)
    assert steps_of(steps) == ["hi", ASSISTANT, "so?", ASSISTANT]
    assert len(made.candidate.model.requests) == 2


# In a run


def script(text, *, turn, role="simulator", **more):
    cell = "u1/k1/A/1"
    return {"role": role, "cell": cell, "turn": turn, "text": text, **more}


VERDICTS = [
    {"role": "judge", "cell": "u1/k1/A/1", "turn": turn, "text": text, "track": track}
    for track, turn, text in (
        ("personal", 0, '{"satisfaction": 4}'),
        ("generic", 0, json.dumps({f"G{n}": 4 for n in range(1, 13)})),
        ("session", None, json.dumps({f"S{n}": 4 for n in range(1, 12)})),
    )
]


def study_of(folder, entries, *, resample=None):
    """A study of one cell of two turns, played by a script."""
    study = write_study(folder, users=("u1",), cards=("k1",), candidates=("A",), repetitions=1)
    (study / "replies.json").write_text(json.dumps([*entries, *VERDICTS]), "utf-8")
    if resample is not None:
        toml = (study / "study.toml").read_text("utf-8")
        toml = toml.replace("[protocol]", f"[protocol]\nresample = {resample}")
        (study / "study.toml").write_text(toml, "utf-8")
    return study


REPLIES = [script("No.", turn=0, role="candidate"), script("Never.", turn=1, role="candidate")]
SLIPS = [
    *REPLIES,
    script("Open!", turn=0),
    script(ASSISTANT, turn=1, attempt=0),
    script("OPEN", turn=1, attempt=1),
    script("Please?", turn=1, attempt=2),
]


def messages_of(study):
    lines = (study / "runs" / "tiny" / "messages.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_keeps_the_kinds_of_what_it_did_not_take_and_never_its_text(tmp_path):
    study = study_of(tmp_path, SLIPS)
    done = palate("run", study)
    assert done.returncode == 0, done.stderr
    steps = messages_of(study)
    assert [step["text"] for step in steps] == ["Open!", "No.", "Please?", "Never."]
    assert steps[2]["rejected"] == [["assistant_phrase"], ["repetition"]]
    assert steps[2]["attempts"] == 3
    said = "u1: 2 messages; 1 drawn anew (assistant phrase 1, repetition 1); 0 stayed flagged"
    assert said in " ".join(done.stdout.split())
    for file in (study / "runs" / "tiny").iterdir():
        assert "language model" not in file.read_text("utf-8"), file


def test_a_script_without_attempts_says_the_same_again_and_that_is_no_error(tmp_path):
    study = study_of(tmp_path, [*REPLIES, script("Open!", turn=0), script("open", turn=1)])
    done = palate("run", study)
    assert done.returncode == 0, done.stderr
    assert messages_of(study)[2]["rejected"] == [["repetition"], ["repetition"]]
    assert messages_of(study)[2]["flags"] == ["repetition"]
    assert "The simulator of u1 slips: 1 of 2 messages (50%) stayed flagged" in done.stdout


def test_no_message_is_drawn_anew_where_the_study_says_so(tmp_path):
    study = study_of(tmp_path, SLIPS, resample=0)
    assert palate("run", study).returncode == 0
    assert [(step["text"], step["rejected"]) for step in messages_of(study)][2] == (ASSISTANT, [])


@pytest.mark.parametrize("wrong", ["6", "-1", "true", "1.0", '"2"'])
def test_the_setting_is_a_whole_number_from_0_to_5(tmp_path, wrong):
    with pytest.raises(InputError, match=r"study\.toml line \d+: protocol\.resample"):
        prepare(study_of(tmp_path, SLIPS, resample=wrong))


class Failing(Listed):
    """Gives out after its lines, as a server that was stopped."""

    async def complete(self, request):
        if len(self.requests) == len(self.lines):
            raise TransportError("no answer")
        return await super().complete(request)


class Players:
    """Opens one model for all: a simulator, and whoever answers the rest."""

    reads_digits = False
    enforces_schema = False
    name = "players"

    def __init__(self, simulator):
        self.simulator = simulator

    def open(self, spec, **_details):
        return self

    def width(self):
        return 1

    async def complete(self, request):
        if request.purpose.role == "simulator":
            return await self.simulator.complete(request)
        return Completion(judged(request), "ok")


def judged(request):
    if request.purpose.role == "candidate":
        return f"No. {request.purpose.turn}"
    names = {"personal": ["satisfaction"], "generic": [f"G{n}" for n in range(1, 13)]}
    track = request.purpose.track
    return json.dumps(dict.fromkeys(names.get(track, [f"S{n}" for n in range(1, 12)]), 4))


def played_study(folder):
    study = study_of(folder, [])
    text = (study / "study.toml").read_text("utf-8")
    text = text.replace("scripted:replies.json", "openai:m@http://127.0.0.1:9/v1")
    (study / "study.toml").write_text(text, "utf-8")
    return prepare(study)


async def conduct_of(prepared, path, *simulators):
    """What the run's simulator did, the run being taken up with one simulator after another."""
    about = manifest.about(prepared, run_id="r", created_at="")
    for simulator in simulators:
        with RunFolder(path, manifest.settings(prepared), about=about) as folder:
            await run(prepared, folder, Players(simulator))
    return measure(RunReader(path))


async def test_a_resumed_run_counts_what_an_undisturbed_one_counts(tmp_path):
    prepared = played_study(tmp_path / "study")
    whole = await conduct_of(
        prepared, tmp_path / "a", Listed([ASSISTANT, "Open!", "open", "Please?"])
    )
    resumed = await conduct_of(
        prepared, tmp_path / "b", Failing([ASSISTANT, "Open!"]), Listed(["open", "Please?"])
    )
    assert resumed.conduct == whole.conduct
    assert whole.conduct["u1"] == Conduct(
        messages=2, resampled=2, rejected=Counter(assistant_phrase=1, repetition=1)
    )


async def test_runs_with_and_without_are_never_mixed(tmp_path):
    prepared = played_study(tmp_path / "study")
    await conduct_of(prepared, tmp_path / "run", Listed(["Open!", "Please?"]))
    content = prepared.study.content
    protocol = content.protocol.model_copy(update={"resample": 1})
    study = prepared.study.model_copy(
        update={"content": content.model_copy(update={"protocol": protocol})}
    )
    with pytest.raises(StudyChanged, match=r"protocol\.resample was 2, is 1"):
        RunFolder(tmp_path / "run", manifest.settings(replace(prepared, study=study)))


async def test_a_run_from_before_is_read_and_is_finished_without_drawing_anew(tmp_path):
    """Such a folder has neither the setting nor the field of a step."""
    prepared = played_study(tmp_path / "study")
    path = tmp_path / "run"
    await conduct_of(prepared, path, Listed(["Open!", "Please?"]))
    written = json.loads((path / "manifest.json").read_text("utf-8"))
    del written["settings"]["protocol"]["resample"], written["settings"]["hygiene_rules"]
    (path / "manifest.json").write_text(json.dumps(written), "utf-8")
    steps = (path / "messages.jsonl").read_text("utf-8").replace('"rejected":[],', "")
    assert "rejected" not in steps
    (path / "messages.jsonl").write_text(steps, "utf-8")

    measured = measure(RunReader(path))
    assert measured.conduct["u1"] == Conduct(messages=2)
    assert report_data(RunReader(path), measured).resample == 0
    with pytest.raises(StudyChanged, match=r"protocol\.resample was absent, is 2"):
        RunFolder(path, manifest.settings(prepared))
    study = prepared.study.folder / "study.toml"
    text = study.read_text("utf-8").replace("[protocol]", "[protocol]\nresample = 0")
    study.write_text(text, "utf-8")
    RunFolder(path, manifest.settings(prepare(study))).close()


async def test_a_rejected_draft_of_a_candidate_is_a_damaged_line(tmp_path):
    prepared = played_study(tmp_path / "study")
    path = tmp_path / "run"
    await conduct_of(prepared, path, Listed(["Open!", "Please?"]))
    lines = (path / "messages.jsonl").read_text("utf-8")
    first, reply, *rest = lines.splitlines(keepends=True)
    reply = reply.replace('"rejected":[]', '"rejected":[["repetition"]]')
    (path / "messages.jsonl").write_text("".join([first, reply, *rest]), "utf-8")
    reader = RunReader(path)
    assert [step.n for step in journal.steps(reader)] == [0]
    assert "messages.jsonl line 2 is damaged" in reader.warnings[0]


# The forecast


def test_a_plan_says_how_much_drawing_anew_can_add_at_most(tmp_path):
    """One cell of 2 turns: 2 messages of the user, each at most twice more."""
    study = study_of(tmp_path, [])
    forecast = estimate(study)
    (simulator,) = [m for m in forecast.models if m.role == "simulator"]
    assert (simulator.calls, forecast.resampling.times, forecast.resampling.calls) == (2, 2, 4)
    assert forecast.resampling.prompt_tokens == 2 * simulator.prompt_tokens
    assert forecast.resampling.completion_tokens == 2 * simulator.completion_tokens
    assert forecast.resampling.cost == 0
    assert "4 more calls" in " ".join(palate("plan", study).stdout.split())


@pytest.mark.parametrize("changed", ["greedy", "off"])
def test_a_plan_of_greedy_simulators_or_without_drawing_anew_adds_nothing(tmp_path, changed):
    study = study_of(tmp_path, [], resample=0 if changed == "off" else None)
    if changed == "greedy":
        text = (study / "study.toml").read_text("utf-8")
        text = text.replace('kind = "prompted",', 'kind = "prompted", temperature = 0,')
        (study / "study.toml").write_text(text, "utf-8")
    assert estimate(study).resampling.calls == 0
    assert "more calls" not in palate("plan", study).stdout


# The report


def record(*user_flags, resampled=()):
    cell = Cell("u1", "k1", "A", 1)
    said = [
        Message(speaker=speaker, text=f"m{n}", flags=found if speaker == "user" else ())
        for n, found in enumerate(user_flags)
        for speaker in ("user", "character")
    ]
    return CellRecord(cell, None, so_far=tuple(said), resampled=resampled)


def conduct(*records):
    made = Conduct()
    for found in records:
        made.add(found)
    return made


def test_conduct_counts_messages_drafts_and_what_stayed():
    made = conduct(
        record((), ("repetition",), resampled=((("repetition", "leaked_json"), ("empty",)),)),
        record(("repetition", "assistant_phrase"), resampled=((("repetition",),),)),
    )
    assert made.sentence() == (
        "3 messages; 2 drawn anew (repetition 2, leaked json 1, empty 1); 2 stayed flagged "
        "(repetition 2, assistant phrase 1)"
    )


@pytest.mark.parametrize(("odd", "of", "slips"), [(1, 10, False), (2, 19, True), (0, 0, False)])
def test_a_simulator_slips_where_more_than_a_tenth_stayed_flagged(odd, of, slips):
    made = conduct(record(*[("repetition",)] * odd, *[()] * (of - odd)))
    assert made.slips is slips


def test_the_warning_says_what_it_means_for_the_scores():
    assert warning("u1", conduct(record(("repetition",), (), ()))) == (
        "The simulator of u1 slips: 1 of 3 messages (33%) stayed flagged, so the scores of the "
        "candidates that it talked with are less trustworthy."
    )


async def test_the_page_shows_it_and_warns(tmp_path):
    prepared = played_study(tmp_path / "study")
    path = tmp_path / "run"
    measured = await conduct_of(
        prepared, path, Listed([ASSISTANT, "Open!", "open", "Open.", ASSISTANT])
    )
    page = write_report(report_data(RunReader(path), measured), tmp_path / "report.html")
    text = " ".join(page.read_text("utf-8").split())
    assert "The simulator of u1 slips: 1 of 2 messages (50%) stayed flagged" in text
    assert "<bdi>repetition</bdi> (2); <bdi>assistant phrase</bdi> (1)" in text
    assert "drawn anew, at most 2 times" in text
