"""Which adapter reads whose held-out messages, and what it is told: from a study to the journal."""

import json
from collections import Counter

import pytest
from click.testing import CliRunner
from rich.console import Console

from palate.cli import palate
from palate.config import read_study
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.likelihood import SessionNll
from palate.validation_likelihood import likelihoods_of
from palate.validation_setup import Options, persons
from tiny_base import write_tiny_base

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
]

STUDY = """
[study]
name = "t"
panel = ["cards/*.json"]
[judge]
model = "openai:nobody-asks"
[[users]]
id = "u1"
history = "u1.jsonl"
rubric = "r.json"
simulator = { kind = "lora" }
[[users]]
id = "u2"
history = "u2.jsonl"
rubric = "r.json"
simulator = { kind = "lora" }
[[candidates]]
name = "A"
model = "openai:nobody-asks"
"""
KINDS = ("raw", "prompted", "lora")


def session(user, number):
    """u1 says yo and u2 says ok; each session begins in its own way, or it were one chat."""
    said = {"u1": "yo yo yo", "u2": "ok ok ok"}[user]
    return {
        "session_id": f"{user}-{number}",
        "user_id": user,
        "card_id": "gone",
        "language": "en",
        "ended_by": "limit",
        "turns": [
            {"speaker": "character", "text": f"Hi, {number}."},
            {"speaker": "user", "text": said},
        ],
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study of two people whose adapters took some steps on one tiny base."""
    folder = tmp_path_factory.mktemp("study")
    base = write_tiny_base(tmp_path_factory.mktemp("base"))
    (folder / "cards").mkdir()
    card = {"name": "C", "description": "d", "personality": "", "scenario": "s"}
    (folder / "cards/k1.json").write_text(json.dumps({**card, "first_mes": "", "mes_example": ""}))
    (folder / "study.toml").write_text(STUDY, "utf-8")
    for user in ("u1", "u2"):
        lines = "".join(json.dumps(session(user, number)) + "\n" for number in range(10))
        (folder / f"{user}.jsonl").write_text(lines, "utf-8")
    options = ("--base", str(base), "--epochs", "2", "--all-users")
    done = CliRunner().invoke(palate, ["simulator", "train", str(folder), *options])
    assert done.exit_code == 0, done.output
    return read_study(folder)


def measured(study, journal, *, tokens=20_000):
    options = Options(
        conditions=KINDS, likelihood_tokens=tokens, base="openai:nobody-asks", device="cpu"
    )
    everyone = persons(study, options)
    with Answers(journal, SessionNll) as answers:
        found = likelihoods_of(everyone, options, answers, seed=1, console=Console(quiet=True))
    lines = journal.read_text("utf-8").splitlines()
    kept = [SessionNll.model_validate_json(line) for line in lines]
    return everyone, found, kept


@pytest.fixture(scope="module")
def everything(trained, tmp_path_factory):
    return measured(trained, tmp_path_factory.mktemp("journal") / "nll.jsonl")


def test_prompts_are_read_by_the_base_and_each_adapter_reads_everybody_once(everything):
    """A session of u1: raw and prompted on the base; u1's adapter, which is lora's and the
    diagonal's number at once, for both are told the same; and u2's."""
    everyone, found, kept = everything
    assert found.reason == ""
    for person in everyone:
        assert person.sessions()
        for one in person.sessions():
            adapters = Counter(nll.adapter for nll in kept if nll.session_id == one.session_id)
            assert adapters == {"": 2, "u1": 1, "u2": 1}


def test_the_diagonal_is_the_likelihood_of_the_adapters_condition(everything):
    _, found, _ = everything
    for place, user in enumerate(("u1", "u2")):
        own = found.by_person[user]["lora"].messages.value
        assert found.matrix.rows[place].nll[place] == pytest.approx(own)
        assert found.matrix.rows[place].nll[1 - place] != pytest.approx(own)


def test_a_condition_is_told_its_own_text_and_every_adapter_the_scene_alone(everything):
    """Other text, other questions: none of the four readings of a session shares one."""
    everyone, _, kept = everything
    assert (
        len({nll.key for nll in kept})
        == len(kept)
        == 4 * sum(len(person.sessions()) for person in everyone)
    )


def test_of_held_out_sessions_as_many_as_the_budget_holds_are_read(trained, tmp_path):
    everyone, _, kept = measured(trained, tmp_path / "nll.jsonl", tokens=1)
    assert all(len(person.sessions()) > 1 for person in everyone)
    for person in everyone:
        assert len({nll.session_id for nll in kept if nll.user_id == person.user_id}) == 1
