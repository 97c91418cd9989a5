"""`palate simulator train` from a study to a finished folder, on a base of some kilobytes."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import util

import pytest
from click.testing import CliRunner

from palate.cli import palate
from palate.errors import InputError, Stopped
from palate.simulators.trained import RECORD, read_trained
from palate.train_commands import TrainOptions, train_simulators
from tiny_base import write_tiny_base

pytestmark = pytest.mark.train

STUDY = """
[study]
name = "t"
panel = ["cards/*.json"]
[protocol]
seed = 3
[judge]
model = "openai:needs-a-key-that-training-does-not"
[[users]]
id = "u1"
name = "Wren"
history = "histories/u1.jsonl"
rubric = "rubrics/u1.json"
simulator = { kind = "lora" }
[[users]]
id = "u2"
history = "histories/u2.jsonl"
rubric = "rubrics/u2.json"
simulator = { kind = "lora", path = "elsewhere/u2" }
[[candidates]]
name = "A"
model = "openai:needs-a-key-that-training-does-not"
"""
WORDS = ("rope", "gull", "tide", "lamp", "fog", "oar", "salt", "pier", "mast", "eel")


def session(user, number, said, ended_by="unknown"):
    turns = [("character", f"What of the {said}?"), ("user", f"the {said} is old")]
    turns += [("character", "And?"), ("user", "no more")]
    return {
        "session_id": f"{user}-{number}",
        "user_id": user,
        "card_id": "off-the-panel",
        "language": "en",
        "ended_by": ended_by,
        "turns": [{"speaker": who, "text": text} for who, text in turns],
    }


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "study"
    for name in ("cards", "histories"):
        (folder / name).mkdir(parents=True)
    (folder / "study.toml").write_text(STUDY, "utf-8")
    card = {"name": "C", "description": "d", "personality": "", "scenario": "s"}
    card |= {"first_mes": "Hi.", "mes_example": ""}
    (folder / "cards/k1.json").write_text(json.dumps(card))
    for user in ("u1", "u2"):
        words = WORDS if user == "u1" else reversed(WORDS)
        lines = [json.dumps(session(user, n, word, "quit")) for n, word in enumerate(words)]
        (folder / f"histories/{user}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def train(study, base, *options):
    arguments = ["simulator", "train", str(study), "--base", str(base), "--epochs", "2"]
    return CliRunner().invoke(palate, [*arguments, *options])


def test_it_leaves_a_finished_simulator_and_says_what_it_learned_from(study, base):
    done = train(study, base, "--user", "u1")
    assert done.exit_code == 0, done.output
    folder = study / "simulators/u1"
    record = read_trained(folder, user_id="u1").record
    # Ten sessions on one card: two held out by the split, one of the eight to stop in time.
    assert len(record.learned.training_sessions) == 8
    assert len(record.learned.validation_sessions) == 1
    assert record.learned.supervised_messages == 7 * 2
    assert record.losses.steps == record.losses.best_step or record.losses.validation_best
    assert record.base.name == str(base)
    assert record.settings["learning_rate"] == 5e-4
    assert record.settings["seed"] == 3
    assert record.adapted_layers == 7
    assert sorted(path.name for path in folder.iterdir()) == [
        "adapter",
        "adapter.gguf",
        "chat_template.jinja",
        "simulator.json",
        "training.jsonl",
    ]
    assert "7 examples from 7 sessions: 14 messages of the user" in done.output
    assert "without a card here: 7 sessions" in done.output
    losses = record.losses
    assert (
        f"held-out loss {losses.validation_before:.3f} -> {losses.validation_best:.3f} nats a "
        f"token at step {losses.best_step}\n"
    ) in done.output
    assert "u1: trained" in done.output
    config = json.loads((folder / "adapter/adapter_config.json").read_text("utf-8"))
    assert config["base_model_name_or_path"] == str(base)
    assert not (study / "elsewhere").exists()


def test_what_is_finished_is_passed_over_and_what_differs_is_not_replaced_unasked(study, base):
    assert train(study, base, "--user", "u1").exit_code == 0
    before = (study / "simulators/u1" / RECORD).read_bytes()
    again = train(study, base, "--user", "u1")
    assert again.exit_code == 0
    assert "u1 is trained already" in again.output
    other = train(study, base, "--user", "u1", "--rank", "4")
    assert isinstance(other.exception, InputError)
    assert "trained with other settings, sessions or prompts; --force" in str(other.exception)
    assert (study / "simulators/u1" / RECORD).read_bytes() == before
    forced = train(study, base, "--user", "u1", "--rank", "4", "--force")
    assert forced.exit_code == 0, forced.output
    assert read_trained(study / "simulators/u1").record.rank == 4


def test_what_another_process_finished_just_before_the_lock_is_passed_over(study, base):
    """Someone reads the first line of this training, and meanwhile another one runs to its end."""

    class Meanwhile(io.StringIO):
        def write(self, text):
            if "u1: " in text and not (study / "simulators/u1" / RECORD).exists():
                assert train(study, base, "--user", "u1").exit_code == 0
                first.append((study / "simulators/u1" / RECORD).read_bytes())
            return super().write(text)

    first = []
    options = TrainOptions(base=str(base), device="auto", force=False, settings={"epochs": 2})
    with contextlib.redirect_stderr(Meanwhile()), contextlib.redirect_stdout(io.StringIO()) as said:
        train_simulators(study, users=["u1"], all_users=False, options=options)
    assert "u1 is trained already" in said.getvalue()
    assert [(study / "simulators/u1" / RECORD).read_bytes()] == first
    assert not (study / "simulators/u1/.training").exists()


def out_of_memory(monkeypatch):
    """From now on torch has no memory for a forward pass, and says so as it does of a GPU."""
    import torch
    from transformers import LlamaModel

    def forward(self, *arguments, **named):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(LlamaModel, "forward", forward)


def test_a_training_that_the_memory_does_not_hold_says_what_to_make_smaller(
    study, base, monkeypatch
):
    out_of_memory(monkeypatch)
    done = train(study, base, "--user", "u1")
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == (
        "the memory of this machine does not suffice: give a smaller --batch-tokens or "
        "--max-tokens, --gradient-checkpointing, or a smaller base"
    )
    assert not (study / "simulators").exists()


def test_a_fault_that_speaks_of_memory_is_not_taken_for_too_little_of_it(study, base, monkeypatch):
    from transformers import LlamaModel

    def forward(self, *arguments, **named):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(LlamaModel, "forward", forward)
    done = train(study, base, "--user", "u1")
    assert type(done.exception) is RuntimeError


def test_likelihoods_that_the_memory_does_not_hold_say_how_to_go_on(study, base, monkeypatch):
    toml = study / "study.toml"
    needs_no_key = toml.read_text("utf-8").replace(
        "openai:needs-a-key-that-training-does-not", "scripted:none.json"
    )
    toml.write_text(needs_no_key, "utf-8")
    (study / "none.json").write_text("[]", "utf-8")
    assert train(study, base, "--user", "u1").exit_code == 0
    command = ["simulator", "validate", str(study), "--user", "u1", "--conditions", "lora"]
    command += ["--no-judge"]
    assert CliRunner().invoke(palate, command).exit_code == 0
    (study / "validations/t/likelihood.jsonl").unlink()
    out_of_memory(monkeypatch)
    assert CliRunner().invoke(palate, command).exit_code == 0  # the report is there without them
    result = json.loads((study / "validations/t/validation.json").read_text("utf-8"))
    (condition,) = result["persons"][0]["conditions"]
    assert condition["absent"]["likelihood"] == (
        "the memory of this machine does not suffice: read the held-out sessions with --device cpu "
        "or on a bigger machine, or leave likelihoods out with --likelihood-tokens 0"
    )


def test_a_damaged_folder_is_said_with_the_option_that_replaces_it(study, base):
    assert train(study, base, "--user", "u1").exit_code == 0
    record = study / "simulators/u1" / RECORD
    record.write_bytes(record.read_bytes()[:200])
    again = train(study, base, "--user", "u1")
    assert isinstance(again.exception, InputError)
    assert "--force replaces what is there" in str(again.exception)
    assert train(study, base, "--user", "u1", "--force").exit_code == 0
    read_trained(study / "simulators/u1", user_id="u1")


def test_one_users_adapter_is_never_replaced_by_anothers(study, base):
    toml = study / "study.toml"
    toml.write_text(toml.read_text("utf-8").replace("elsewhere/u2", "simulators/u1"), "utf-8")
    assert train(study, base, "--user", "u1").exit_code == 0
    for options in ((), ("--force",)):
        other = train(study, base, "--user", "u2", *options)
        assert isinstance(other.exception, InputError)
        assert "holds the simulator of 'u1'" in str(other.exception)
    read_trained(study / "simulators/u1", user_id="u1")


def test_two_users_with_one_adapter_are_reported(study, base):
    """Case 28.5: nobody is two people. Here a folder was copied."""
    done = train(study, base, "--all-users")
    assert done.exit_code == 0, done.output
    assert "same adapter" not in done.output
    for name in ("adapter", RECORD, "adapter.gguf"):
        source, target = study / "simulators/u1" / name, study / "elsewhere/u2" / name
        shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else shutil.copy(
            source, target
        )
    again = train(study, base, "--user", "u1")
    assert "u1 and u2 have the same adapter, byte for byte" in again.output


def test_a_budget_is_of_whole_sessions(study, base):
    done = train(study, base, "--user", "u1", "--max-training-tokens", "900")
    assert done.exit_code == 0, done.output
    learned = read_trained(study / "simulators/u1").record.learned
    assert 2 <= len(learned.training_sessions) < 8
    assert learned.tokens <= 900
    sessions = len(learned.training_sessions) - len(learned.validation_sessions)
    assert f"without a card here: {sessions} sessions" in done.output


def test_every_file_has_the_mode_that_the_umask_gives(study, base):
    before = os.umask(0o027)
    try:
        assert train(study, base, "--user", "u1").exit_code == 0
    finally:
        os.umask(before)
    files = [path for path in (study / "simulators/u1").rglob("*") if path.is_file()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o640}


def test_a_step_line_that_an_interrupt_comes_to_is_the_last_one_before_the_checkpoint(study, base):
    """As the terminal's Ctrl-C does it when it comes within a write to standard error."""

    class Interrupted(io.RawIOBase):
        def writable(self):
            return True

        def fileno(self):
            return descriptor

        def write(self, content):
            if b"step 0/" in bytes(content):
                signal.raise_signal(signal.SIGINT)
            return len(content)

    reading, descriptor = os.pipe()
    options = TrainOptions(base=str(base), device="auto", force=False, settings={"epochs": 2})
    stream = io.TextIOWrapper(io.BufferedWriter(Interrupted()), line_buffering=True)
    with contextlib.redirect_stderr(stream), pytest.raises(Stopped, match="stopped after step 1"):
        train_simulators(study, users=["u1"], all_users=False, options=options)
    os.close(descriptor)
    with os.fdopen(reading, "rb") as said:
        assert said.read() == b"palate: stopping after this step; once more to stop at once\n"
    assert (study / "simulators/u1/.training/checkpoint.pt").exists()
    assert train(study, base, "--user", "u1").exit_code == 0


def test_a_history_without_a_word_of_the_user_trains_nothing(study, base):
    """Case 26.6: it stops before step 1, after the counts."""
    lines = [session("u1", n, word) for n, word in enumerate(WORDS)]
    for line in lines:
        line["turns"] = line["turns"][::2]
    (study / "histories/u1.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = train(study, base, "--user", "u1")
    assert isinstance(done.exception, InputError)
    assert "no message of the user to learn from" in str(done.exception)
    assert "0 messages of the user" in done.output
    assert not (study / "simulators").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "say whose simulator is trained: --user ID, repeatable, or --all-users"),
        (("--user", "u1", "--all-users"), "say whose simulator is trained"),
        (("--user", "nobody"), "no user 'nobody'; its users are u1, u2"),
        (("--user", "u1", "--epochs", "0"), "--epochs: "),
        (("--user", "u1", "--learning-rate", "7"), "--learning-rate: "),
        (("--user", "u1", "--target", "q_projj"), "q_projj match no linear layer"),
        (("--user", "u1", "--learning-rate", "nan"), "--learning-rate: Input should be a finite"),
        (("--user", "u1", "--device", "tpu"), "device 'tpu' is not known"),
        (("--user", "u1", "--device", "tpu", "--base", "gone/"), "device 'tpu' is not known"),
        (("--user", "u1", "--routed-experts"), "has no routed experts to adapt; leave --routed"),
        (("--user", "u1", "--routed-experts", "--target", "q_proj"), "with --target nothing but"),
        (("--user", "u1", "--max-training-tokens", "5"), "into 5 tokens: the smallest takes 1"),
        (("--user", "u1", "--base", "gone/"), "the base model gone/ is no folder"),
        (("--user", "u1", "--max-tokens", "16"), "no message of the user to learn from"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(study, base, options, message):
    done = train(study, base, *options)
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
    assert "Loading" not in done.output
    assert not (study / "simulators").exists()


def test_without_the_extra_it_says_what_to_install(study, base, monkeypatch):
    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "peft" else found(name))
    done = train(study, base, "--user", "u1")
    assert str(done.exception) == "palate simulator train needs peft: pip install 'palate[train]'"


@pytest.mark.slow
def test_an_interrupt_leaves_a_checkpoint_that_the_same_command_takes_up(study, base):
    """As a person does it: Ctrl-C in the middle, exit code 3, the same command again."""
    command = [sys.executable, "-m", "palate", "simulator", "train", str(study)]
    command += ["--base", str(base), "--user", "u1", "--epochs", "500"]
    command += ["--max-steps", "700", "--precision", "float32"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=environment)
    lines = study / "simulators/u1/.training/training.jsonl"
    deadline = time.monotonic() + 100
    while not lines.exists() or lines.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < deadline
        assert running.poll() is None, running.communicate()
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=100)
    assert running.returncode == 3, said
    assert "stopping after this step" in said
    assert "the same command takes it up there" in said
    assert not (study / "simulators/u1" / RECORD).exists()
    again = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert again.returncode == 0, again.stderr
    record = read_trained(study / "simulators/u1").record
    assert record.losses.steps == 700 or record.losses.stopped == "early"
    assert not (study / "simulators/u1/.training").exists()
