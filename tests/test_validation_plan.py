"""What a validation leaves out and reads, told before it begins, and how far the reading is."""

import io
import json

import pytest
from rich.console import Console

from palate.cli import palate as command_line
from palate.config import read_study
from palate.simulators.examples import Example
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.likelihood import Meter, SessionNll
from palate.validation_likelihood import measured, to_read
from palate.validation_plan import not_asked, reading
from palate.validation_setup import Options, persons
from palate.validation_view import StepsView
from trained_folders import HUB, with_adapters
from worlds import write_study

USERS = ("u1", "u2")
SESSION_TOKENS = 27  # three times 22 characters and 11, four to a token: 6 and 3


def session(user, number):
    turns = []
    for turn in range(3):
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


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path / "study", users=USERS, cards=("k1",), candidates=("A",))
    toml = (folder / "study.toml").read_text("utf-8")
    for user in USERS:
        lines = "".join(json.dumps(session(user, number)) + "\n" for number in range(10))
        (folder / f"{user}.jsonl").write_text(lines, "utf-8")
        toml = toml.replace(f'id = "{user}"', f'id = "{user}"\nhistory = "{user}.jsonl"')
    (folder / "study.toml").write_text(toml, "utf-8")
    (folder / "replies.json").write_text("[]", "utf-8")
    return folder


def everyone(study, *conditions):
    options = Options(conditions=conditions or ("raw", "prompted", "profile", "lora"))
    return persons(read_study(study), options)


@pytest.fixture
def extra(monkeypatch):
    """The extra train looks installed, whether it is or not."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


def test_a_plan_names_what_is_left_out_once_a_reason_with_its_users(study):
    command = f"palate simulator {{}} {study} --user USER"
    assert list(not_asked(everyone(study))) == [
        "Not asked: profile (u1, u2): no profile was written; write one with "
        f"`{command.format('profile')}`.",
        "Not asked: lora (u1, u2): no adapter was trained; train one with "
        f"`{command.format('train')}`.",
    ]
    assert list(not_asked(everyone(study, "raw", "prompted"))) == []


def test_the_reason_of_one_person_names_the_command_for_that_person(study):
    [person, _] = everyone(study, "profile")
    folder = study / "simulators" / "u1"
    assert person.conditions[0].reason == (
        f"{folder / 'profile.json'} does not exist; write it with `palate simulator profile "
        f"{study} --user u1`"
    )


def test_a_plan_counts_what_is_read_under_every_text_and_adapter(study, extra):
    """Two people, two held-out sessions each."""
    with_adapters(study, u1={"base": HUB}, u2={"base": HUB})
    found = everyone(study, "raw", "prompted", "lora")
    told = reading(found, Options(likelihood_tokens=500), seed=7)
    assert told == (
        f"Likelihoods: 4 held-out sessions of about {4 * SESSION_TOKENS} tokens "
        "(--likelihood-tokens 500 a person), read under 2 texts and 2 adapters each: about "
        f"{4 * SESSION_TOKENS * 4} tokens, besides what each text says first."
    )


def test_fewer_tokens_read_fewer_sessions(study, extra):
    with_adapters(study, u1={"base": HUB})
    found = everyone(study, "raw", "lora")
    told = reading(found, Options(likelihood_tokens=SESSION_TOKENS), seed=7)
    assert told.startswith("Likelihoods: 2 held-out sessions of about 54 tokens")
    # Both have the base's own text, and u1 alone an adapter: 27 twice and 27 once.
    assert "read under 1 text and 1 adapter each: about 81 tokens" in told


def test_a_plan_says_why_nothing_is_read(study, extra, monkeypatch):
    found = everyone(study)
    assert reading(found, Options(likelihood_tokens=0), seed=7) == (
        "No likelihoods: was not asked for (--likelihood-tokens 0)."
    )
    assert reading(found, Options(), seed=7) == (
        "No likelihoods: the weights are not on this machine, and nobody's adapter names any."
    )
    with_adapters(study, u1={"base": HUB})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "needs the extra train" in reading(everyone(study), Options(), seed=7)


def test_the_command_prints_it_below_the_table(study, capsys):
    with pytest.raises(SystemExit) as left:
        command_line(["simulator", "validate", str(study), "--plan"], standalone_mode=False)
    assert left.value.code == 0
    printed = capsys.readouterr().out
    assert printed.index("At most") < printed.index("Not asked: profile (u1, u2): no profile")
    assert "No likelihoods: the weights are not on this machine" in printed


def test_the_help_says_that_another_number_of_contexts_draws_other_places(capsys):
    command_line(["simulator", "validate", "--help"], standalone_mode=False)
    words = " ".join(capsys.readouterr().out.split())
    assert "a person; another number draws other places." in words


def word_by_word(session, system):
    """Every word of the user is a token; what was said before does not matter."""
    words = [w for turn in session.turns if turn.speaker == "user" for w in turn.text.split()]
    tokens = (0, *range(1, len(words) + 1))
    return [Example(session.session_id, tokens, (False, *[True] * len(words)), 3)]


def test_the_reading_tells_sessions_of_all_and_whose_they_are(study, tmp_path, monkeypatch):
    with_adapters(study, u1={"base": HUB}, u2={"base": HUB})
    found = to_read(everyone(study, "prompted", "lora"), Options(), seed=7)
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slow(user, examples):
        now[0] += 20
        return [[1.0] * sum(example.supervised) for example in examples]

    meter = Meter("base", word_by_word, slow, {"u1": "one", "u2": "two"})

    def lines():
        out = io.StringIO()
        with (
            Answers(tmp_path / "nll.jsonl", SessionNll) as answers,
            StepsView(Console(file=out), "Reading", 12, "of 12") as view,
        ):
            measured(found, meter, answers, 7, view)
        return out.getvalue().splitlines()

    told = lines()
    # Two people, two sessions, a text and two adapters: 12 readings, two at a time in 20 s.
    assert told == [
        "Reading: u1, prompted · 0 of 12",
        "Reading: u1, prompted · 2 of 12 · 1:40 left",
        "Reading: u1, lora · 4 of 12 · 1:20 left",
        "Reading: u1, adapter of u2 · 6 of 12 · 1:00 left",
        "Reading: u2, prompted · 8 of 12 · 0:40 left",
        "Reading: u2, lora · 10 of 12 · 0:20 left",
        "Reading: u2, adapter of u1 · 12 of 12",
    ]
    # What was read before is not read again, and tells nothing of the pace.
    assert lines() == ["Reading: u1, prompted · 0 of 12", "Reading: u2, adapter of u1 · 12 of 12"]
    assert now[0] == 120.0
