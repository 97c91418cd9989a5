"""`palate simulator validate`: a small study with scripted models, from the call to the report."""

import json

import pytest
from rich.console import Console

from palate.cli import palate as command_line
from palate.config import load_study, read_study
from palate.errors import InputError, PalateError
from palate.models.client import Sampling
from palate.simulators import (
    Profile,
    ProfileProvenance,
    Simulator,
    freeze,
    measured,
    save_profile,
)
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.likelihood import SessionNll
from palate.simulators.validation.records import Validation
from palate.types import Session, TrainingSession
from palate.validation_conditions import Condition, conditions_named
from palate.validation_likelihood import likelihoods_of
from palate.validation_setup import Options, persons
from trained_folders import HUB, with_adapters
from worlds import write_study

USERS = ("u1", "u2")
SESSIONS = range(10)
TURNS = range(3)


def session(user, number):
    turns = []
    for turn in TURNS:
        turns += [
            {"speaker": "character", "text": f"The gate is shut, {number}.{turn}."},
            {"speaker": "user", "text": f"{user} says {number}.{turn}"},
        ]
    return {
        "session_id": f"{user}-s{number}",
        "user_id": user,
        "card_id": "k9",
        "language": "en",
        "ended_by": "limit",
        "turns": turns,
    }


def script(*, without=()):
    """Raw is found in both orders, prompted never told: the judge says "1" whatever it sees."""
    entries = []
    for user in USERS:
        for number in SESSIONS:
            for turn in TURNS:
                entries += _entries(user, f"{user}-s{number}", turn)
    return [entry for entry in entries if entry["cell"] not in without]


def _entries(user, session_id, turn):
    place = f"{session_id}#{turn}"
    answers = {
        f"human/{user}/raw/{place}/human_first": {"human": 1},
        f"human/{user}/raw/{place}/human_second": {"human": 2},
        f"human/{user}/prompted/{place}/human_first": {"human": 1},
        f"human/{user}/prompted/{place}/human_second": {"human": 1},
        f"identity/{user}/raw/{place}": {"score": 20},
        f"identity/{user}/prompted/{place}": {"score": 60},
        f"identity/{user}/human/{place}": {"score": 90},
        f"identity/{user}/another/{place}": {"score": 30},
    }
    entries = [
        {
            "role": "simulator",
            "cell": f"{user}/{session_id}/{kind}/1",
            "turn": turn,
            "text": f"{kind} speaks {turn}",
        }
        for kind in ("raw", "prompted")
    ]
    return entries + [
        {"role": "judge", "cell": cell, "turn": turn, "text": json.dumps(answer)}
        for cell, answer in answers.items()
    ]


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path / "study", users=USERS, cards=("k1",), candidates=("A",))
    toml = (folder / "study.toml").read_text("utf-8")
    for user in USERS:
        lines = "".join(json.dumps(session(user, number)) + "\n" for number in SESSIONS)
        (folder / f"{user}.jsonl").write_text(lines, "utf-8")
        toml = toml.replace(f'id = "{user}"', f'id = "{user}"\nhistory = "{user}.jsonl"')
    (folder / "study.toml").write_text(toml, "utf-8")
    (folder / "replies.json").write_text(json.dumps(script()), "utf-8")
    return folder


def validate(study, *options):
    arguments = ["simulator", "validate", str(study), *options]
    try:
        command_line(arguments, standalone_mode=False)
    except SystemExit as left:
        return left.code
    except PalateError as error:
        return error
    raise AssertionError("the command leaves with a code")


def result(study):
    path = study / "validations" / "tiny" / "validation.json"
    return Validation.model_validate_json(path.read_bytes())


def conditions(study, user="u1"):
    person = next(person for person in result(study).persons if person.user_id == user)
    return {condition.condition: condition for condition in person.conditions}


def test_a_study_is_validated_from_end_to_end(study, capsys):
    assert validate(study) == 0
    found = conditions(study)
    assert found["raw"].fooling.rate.value == 0.0
    assert found["prompted"].fooling.rate.value == 0.5
    assert found["prompted"].fooling.flips.value == 1.0
    raw = found["raw"].consistency
    assert (raw.own.value, raw.ceiling.value, raw.control.value) == (20, 90, 30)
    assert raw.tells_people_apart
    assert found["raw"].spoken.said == found["raw"].spoken.contexts == 6
    assert found["raw"].leaving.false_quit_rate.value == 0.0
    assert found["raw"].leaving.recall.reason == "no held-out session ended by the user's choice"
    printed = capsys.readouterr().out
    assert "Fooling rate" in printed
    assert "Report:" in printed
    assert (study / "validations" / "tiny" / "report.html").is_file()


def test_a_condition_that_is_not_there_is_shown_with_its_reason(study):
    validate(study)
    found = conditions(study)
    assert found["profile"].model is None
    assert "profile.json does not exist" in found["profile"].absent["fooling"]
    assert "holds no finished training" in found["lora"].absent["leaving"]
    assert found["lora"].verdict.level == "cannot be told"


def test_no_folder_of_the_machine_reaches_the_report(study):
    toml = (study / "study.toml").read_text("utf-8")
    scripted = f"scripted:{study / 'replies.json'}"
    (study / "study.toml").write_text(toml.replace("scripted:replies.json", scripted), "utf-8")
    assert validate(study) == 0
    folder = study / "validations" / "tiny"
    for name in ("validation.json", "report.html"):
        text = (folder / name).read_text("utf-8")
        assert str(study.parent) not in text
        assert "simulators/u1/profile.json does not exist" in text
    found = conditions(study)
    assert found["profile"].absent["surface"] == (
        "simulators/u1/profile.json does not exist; write it with `palate simulator profile study "
        "--user u1`"
    )
    assert "`palate simulator train study --user u1`" in found["lora"].absent["surface"]
    assert found["raw"].model == "scripted:replies.json"


def test_off_a_terminal_the_asking_says_whose_turn_it_is_and_answers_of_all(study, capsys):
    assert validate(study, "--conditions", "raw,prompted") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "Asking:" in line]
    # Two people and six contexts; a message, a pair and a score of each condition, two controls.
    assert lines[0] == "Asking: u1, their own messages, judged · 0 of at most 96 answers"
    assert lines[-1] == "Asking: u2, prompted, judged · 96 of at most 96 answers"


def test_likelihoods_of_a_model_that_is_elsewhere_have_a_reason(study):
    validate(study, "--conditions", "raw")
    reason = conditions(study)["raw"].absent["likelihood"]
    assert reason.startswith("the weights are not on this machine")


def test_without_a_judge_the_judges_measures_are_named_as_missing(study):
    assert validate(study, "--no-judge", "--conditions", "raw") == 0
    raw = conditions(study)["raw"]
    assert raw.absent["fooling"] == raw.absent["consistency"] == "no judge was asked (--no-judge)"
    assert result(study).judge is None
    assert {"fooling", "consistency"} <= set(raw.verdict.missing)


def test_only_what_is_asked_needs_a_key(study, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    text = (study / "study.toml").read_text("utf-8")
    rest, found, candidates = text.partition("[[candidates]]")
    before, _, after = rest.partition("[judge]")
    judged = after.replace("scripted:replies.json", "openai:gpt-5.4", 1)
    played = candidates.replace("scripted:replies.json", "openai:gpt-5.4", 1)
    (study / "study.toml").write_text(f"{before}[judge]{judged}{found}{played}", "utf-8")
    assert validate(study, "--no-judge", "--conditions", "raw") == 0
    refused = validate(study, "--conditions", "raw")
    assert isinstance(refused, InputError)
    assert "judge.model: openai:gpt-5.4 needs the environment variable" in str(refused)


def test_calls_that_fail_leave_work_and_the_same_command_makes_only_them_again(study, capsys):
    validate(study, "--plan")
    held_out = next(iter(json.loads((study / "splits" / "u1.json").read_text())["held_out"]))
    lost = {f"u1/{held_out}/raw/1", f"identity/u1/prompted/{held_out}#0"}
    (study / "replies.json").write_text(json.dumps(script(without=lost)), "utf-8")
    assert validate(study) == 3
    assert "4 calls failed" in capsys.readouterr().err  # three messages and a score
    assert conditions(study)["raw"].spoken.failed == 3
    kept = (study / "validations" / "tiny" / "spoken.jsonl").read_bytes()
    (study / "replies.json").write_text(json.dumps(script()), "utf-8")
    assert validate(study) == 0
    again = (study / "validations" / "tiny" / "spoken.jsonl").read_bytes()
    assert again.startswith(kept)
    assert again.count(b"\n") == kept.count(b"\n") + 3
    assert conditions(study)["raw"].spoken.failed == 0


def test_what_was_answered_is_not_asked_again(study):
    validate(study)
    before = result(study)
    (study / "replies.json").write_text("[]", "utf-8")
    assert validate(study) == 0
    assert result(study).model_copy(update={"made_at": before.made_at}) == before


def test_damaged_lines_are_counted_in_the_report_and_asked_again(study, capsys):
    assert validate(study) == 0
    folder = study / "validations" / "tiny"
    whole = conditions(study)["raw"].spoken
    for name, broken in (("spoken.jsonl", 2), ("judged.jsonl", 1)):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        lines[:broken] = [b"{]\n"] * broken
        (folder / name).write_bytes(b"".join(lines))
    capsys.readouterr()
    assert validate(study) == 0
    spoken, judged = result(study).warnings[:2]
    assert spoken == (
        "Damaged and left out: 2 of the lines of spoken.jsonl; what they held is asked again where "
        "it is needed."
    )
    assert "1 of the lines of judged.jsonl" in judged
    assert spoken in capsys.readouterr().out
    assert "2 of the lines of spoken.jsonl" in (folder / "report.html").read_text("utf-8")
    assert conditions(study)["raw"].spoken == whole


def test_a_model_that_answers_nothing_stops_the_work(study):
    (study / "replies.json").write_text("[]", "utf-8")
    stopped = validate(study, "--no-judge")
    assert stopped.exit_code == 3
    assert "not one call to" in str(stopped)


def test_a_plan_counts_calls_and_makes_none(study, capsys):
    assert validate(study, "--plan", "--conditions", "raw,prompted") == 0
    # Two people, six contexts, two conditions: 24 messages. Of the judge, a context: two orders of
    # two pairs, and scores of two messages, of the person's own and of another's.
    printed = capsys.readouterr().out
    assert "At most 120 calls" in printed
    assert not (study / "validations").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--user", "nobody"), "has no user 'nobody'; its users are u1, u2"),
        (("--conditions", "raw,cooked"), "'cooked' is no condition"),
        (("--conditions", "lora"), "no condition of any user can be set up"),
    ],
)
def test_a_wrong_option_is_told_in_a_sentence_and_nothing_is_written(study, options, words):
    error = validate(study, *options)
    assert isinstance(error, InputError)
    assert words in str(error)
    assert not (study / "validations").exists()


def test_a_folder_with_other_things_in_it_is_left_alone(study, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("x", "utf-8")
    assert "holds no validation" in str(validate(study, "--out", str(other)))
    assert [file.name for file in other.iterdir()] == ["mine.txt"]


def test_one_person_alone_has_no_control_and_says_so(study):
    assert validate(study, "--user", "u2", "--conditions", "raw") == 0
    raw = conditions(study, "u2")["raw"].consistency
    assert raw.control.value is None
    assert raw.control.reason.startswith("nobody else is validated")


def test_no_message_of_a_training_session_is_asked_about(study):
    validate(study)
    person = result(study).persons[0]
    split = json.loads((study / "splits" / "u1.json").read_text("utf-8"))
    assert set(person.held_out_sessions).isdisjoint(split["training"])
    spoken = (study / "validations" / "tiny" / "spoken.jsonl").read_text("utf-8")
    asked = {json.loads(line)["session_id"] for line in spoken.splitlines()}
    assert {name for name in asked if name.startswith("u1")} <= set(person.held_out_sessions)


def test_conditions_are_named_once_each_in_the_order_of_the_table():
    assert conditions_named(" lora, raw,lora") == ("raw", "lora")
    with pytest.raises(InputError, match="nothing"):
        conditions_named(" , ")


@pytest.mark.parametrize("changed", [{"revision": "b" * 40}, {"name": "tiny-test/other"}])
def test_adapters_of_two_bases_are_not_read_side_by_side(study, tmp_path, changed):
    with_adapters(study, u1={"base": HUB}, u2={"base": {**HUB, **changed}})
    options = Options(conditions=("lora",))
    everyone = persons(read_study(study), options)
    with Answers(tmp_path / "nll.jsonl", SessionNll) as answers:
        found = likelihoods_of(everyone, options, answers, seed=1, console=Console(quiet=True))
    assert found.reason.startswith("the adapters belong to 2 bases")
    assert (found.by_person, found.matrix) == ({}, None)


def test_a_simulator_that_no_server_holds_is_not_asked():
    simulator = Simulator("u1", "raw", "scripted:replies.json", Sampling())
    assert Condition("raw", simulator).asked is simulator
    assert Condition("raw", simulator, "no server holds it").asked is None


def profile_from(user, sessions):
    training = [
        TrainingSession(Session.model_validate(session(user, number))) for number in SESSIONS
    ]
    return freeze(
        Profile(
            user_id=user,
            language="en",
            text="Says little.",
            facts=measured(training, "en"),
            provenance=ProfileProvenance(
                model="m",
                prompts={},
                training_sessions=dict.fromkeys(sessions, "0" * 64),
                calls=1,
            ),
        )
    )


def test_a_simulator_that_was_made_from_a_held_out_session_proves_nothing(study):
    loaded = load_study(study)
    [person] = persons(loaded, Options(users=("u1",), conditions=("profile",)))
    held_out = person.sessions()[0].session_id
    save_profile(profile_from("u1", [held_out]), study / "simulators" / "u1" / "profile.json")
    [person] = persons(loaded, Options(users=("u1",), conditions=("profile",)))
    [condition] = person.conditions
    assert condition.simulator is None
    assert f"made from sessions that are held out now ({held_out})" in condition.reason

    learned = [item.session.session_id for item in person.training]
    save_profile(profile_from("u1", learned), study / "simulators" / "u1" / "profile.json")
    [person] = persons(loaded, Options(users=("u1",), conditions=("profile",)))
    assert person.conditions[0].asked.model == "scripted:replies.json"
