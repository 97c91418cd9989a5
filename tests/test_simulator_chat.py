"""`palate simulator chat`: a person plays the character, a simulator the user."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from palate import histories
from palate.cli import palate as cli
from palate.errors import PalateError
from trained_folders import HUB, random_adapter, with_adapters
from worlds import card, write_study


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


OPENING = "Keeper: The gate is shut."
FIRST = "u1 by name: Let me in."


def says(turn, text, **more):
    return {"role": "simulator", "cell": "u1/k1/chat/1", "turn": turn, "text": text, **more}


def study_of(folder, *entries, **world):
    study = write_study(folder / "study", users=("u1",), cards=("k1", "k2"), **world)
    for name in ("k1", "k2"):
        written = json.dumps(card("Keeper"))
        (study / "cards" / f"{name}.json").write_text(written, "utf-8")
    (study / "replies.json").write_text(json.dumps(entries), "utf-8")
    return study


class Done(NamedTuple):
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def chat(study, typed, *options, user="u1"):
    """The chat of a person who types `typed` and then ends their input."""
    arguments = ["simulator", "chat", str(study), "--user", user, *options]
    done = CliRunner().invoke(cli, arguments, input=typed, standalone_mode=False)
    if done.exception is None:
        return Done(0, done.stdout, done.stderr)
    if not isinstance(done.exception, PalateError):
        raise done.exception
    return Done(done.exception.exit_code, done.stdout, f"{done.stderr}{done.exception}")


def test_the_opening_comes_first_then_the_user_speaks_and_the_person_answers(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "Please?"))
    done = chat(study, "No.\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [OPENING, FIRST, "u1 by name: Please?"]
    assert "You play Keeper; u1 by name is a simulator (prompted, scripted:replies" in done.stderr


def test_quit_ends_the_chat_after_its_farewell(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "Then no. [QUIT]"))
    done = chat(study, "No.\nnever read\n")
    assert done.stdout.splitlines()[2:] == ["u1 by name: Then no.", "The user left here."]
    assert done.returncode == 0


def test_flags_stand_below_the_message_and_nothing_is_drawn_anew(tmp_path):
    study = study_of(
        tmp_path, says(0, "Let me in."), says(1, "let me in", attempt=0), says(1, "x", attempt=1)
    )
    assert chat(study, "No.\n").stdout.splitlines()[2:] == [
        "u1 by name: let me in",
        "  (repetition)",
    ]


def test_retry_takes_the_last_message_back_and_asks_with_another_attempt(tmp_path):
    study = study_of(
        tmp_path,
        says(0, "Let me in.", attempt=0),
        says(0, "Hello?", attempt=1),
        says(0, "Hey!", attempt=2),
        says(1, "So?"),
    )
    done = chat(study, "/retry\n/retry\nNo.\n")
    assert done.stdout.splitlines()[1:] == [
        FIRST,
        *(f"u1 by name: {t}" for t in ("Hello?", "Hey!", "So?")),
    ]


def test_lines_that_end_with_a_backslash_go_on_and_empty_ones_are_not_sent(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "So?"))
    done = chat(study, "\n   \nNo.\\\nNever.\n/save kept.jsonl\n")
    assert done.returncode == 0, done.stderr
    (session,) = histories.read(tmp_path / "kept.jsonl")
    assert [turn.text for turn in session.turns] == [
        "The gate is shut.",
        "Let me in.",
        "No.\nNever.",
        "So?",
    ]


def test_what_is_kept_goes_on_to_the_end_and_is_no_history_of_the_person(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "Then no. [QUIT]"))
    chat(study, "/save kept.jsonl\nNo.\n")
    (session,) = histories.read(tmp_path / "kept.jsonl")
    assert [turn.speaker for turn in session.turns] == ["character", "user", "character", "user"]
    assert session.turns[-1].text == "Then no."
    assert (session.user_id, session.card_id, session.ended_by) == ("simulator-of-u1", "k1", "quit")
    assert session.extra["simulator"]["kind"] == "prompted"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("/save there.jsonl\n", "there.jsonl is there already"),
        ("/save\n", "/save needs the name of a file"),
        (f"/save {'x' * 300}\n", "File name too long"),
        ("/save /proc/none/x.jsonl\n", "cannot write to /proc/none/x.jsonl"),
        ("/dance\n", "There is no /dance; commands are /retry, /save FILE and /quit."),
    ],
)
def test_a_command_that_cannot_be_done_is_a_sentence_and_the_chat_goes_on(
    tmp_path, typed, sentence
):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "So?"))
    (tmp_path / "there.jsonl").write_text("mine", "utf-8")
    done = chat(study, f"{typed}No.\n")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "u1 by name: So?")
    assert sentence in done.stderr
    assert (tmp_path / "there.jsonl").read_text("utf-8") == "mine"


def test_a_reply_that_begins_with_a_slash_has_a_space_before_it(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "So?"))
    done = chat(study, " /quit they say\n/save kept.jsonl\n")
    assert done.stdout.splitlines()[-1] == "u1 by name: So?"
    assert "/quit they say" in (tmp_path / "kept.jsonl").read_text("utf-8")


def test_quit_by_the_person_ends_it(tmp_path):
    done = chat(study_of(tmp_path, says(0, "Let me in.")), "/quit\nnever read\n")
    assert (done.returncode, done.stdout.splitlines()) == (0, [OPENING, FIRST])


def test_a_user_who_says_nothing_is_asked_three_times_and_then_it_is_said(tmp_path):
    study = study_of(
        tmp_path,
        *(says(0, "", attempt=n) for n in range(3)),
        says(0, "Hello?", attempt=3),
    )
    done = chat(study, "No.\n/retry\n")
    assert done.stdout.splitlines()[1:] == ["u1 by name: ", "  (empty)", "u1 by name: Hello?"]
    assert "u1 by name has said nothing; /retry asks again." in done.stderr


def test_a_piped_chat_whose_call_fails_ends_with_its_reason(tmp_path):
    done = chat(study_of(tmp_path, says(0, "Let me in.")), "No.\n/quit\n")
    assert done.returncode == 1
    assert "has no entry for role 'simulator', cell 'u1/k1/chat/1', turn 1" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_card_and_another_condition(tmp_path):
    study = study_of(tmp_path, says(0, "x"), says(0, "Hm.") | {"cell": "u1/k2/chat/1"})
    done = chat(study, "", "--card", "k2", "--condition", "raw")
    assert done.stdout.splitlines()[-1] == "u1 by name: Hm."
    assert "(raw, scripted:replies.json)" in done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"user": "u9"}, "has no user 'u9'; its users are u1"),
        ({"options": ("--card", "../k1")}, "the panel has no card '../k1'; its cards are k1, k2"),
        ({"options": ("--condition", "lora")}, "holds no finished training"),
        ({"options": ("--condition", "profile")}, "profile.json"),
        ({"options": ("--model", "opneai:x")}, "provider must be one of"),
    ],
)
def test_what_cannot_be_talked_with_is_one_sentence(tmp_path, options, sentence):
    study = study_of(tmp_path, says(0, "x"))
    done = chat(study, "", *options.get("options", ()), user=options.get("user", "u1"))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_base_of_a_served_adapter_has_to_be_named(tmp_path):
    study = study_of(tmp_path, says(0, "Hm."))
    served = "openai:{}@http://127.0.0.1:9/v1"
    with_adapters(study, model=served, u1={"base": HUB, "gguf": None})
    refused = chat(study, "", "--condition", "raw")
    assert refused.returncode == 2
    assert "name its base as a server holds it, for example --model openai:tiny-test/base@" in (
        refused.stderr
    )
    named = chat(study, "", "--condition", "raw", "--model", "scripted:replies.json")
    assert named.stdout.splitlines()[-1] == "u1 by name: Hm."


def test_nothing_that_a_model_or_a_card_wrote_steers_the_terminal(tmp_path):
    study = study_of(tmp_path, says(0, "\x1b[2J\x1b]0;owned\x07Let\u202e me in.\r\x08"))
    path = study / "cards" / "k1.json"
    hostile = card("Keep\x1b[31mer", opening="The \x1b[2Jgate\x07 is shut.")
    path.write_text(json.dumps(hostile), "utf-8")
    done = chat(study, "")
    assert done.stdout.splitlines() == [OPENING, FIRST]
    assert not set(done.stderr) & set("\x1b\x07\x08\r")


def piped(study, typed):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "palate", "simulator", "chat", str(study), "--user", "u1"]
    return subprocess.run(command, input=typed, capture_output=True, timeout=120, check=False)


def test_a_piped_chat_is_the_same_in_a_process_of_its_own(tmp_path):
    done = piped(study_of(tmp_path, says(0, "Let me in."), says(1, "So?")), b"No.\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == [OPENING, FIRST, "u1 by name: So?"]


def test_input_that_is_no_text_is_a_sentence(tmp_path):
    done = piped(study_of(tmp_path, says(0, "Let me in.")), b"\xff\xfe\n")
    assert done.returncode == 2
    assert b"standard input is no UTF-8 text" in done.stderr


# Makes a terminal the controlling one, as a shell would: Ctrl-C is a signal only then.
ON_TERMINAL = (
    "import os, sys; os.login_tty(0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def on_a_terminal(study, *typed):
    """All that a terminal shows while a person types each of `typed` at a prompt."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", ON_TERMINAL, "-m", "palate", "simulator", "chat", str(study)]
    process = subprocess.Popen(
        [*command, "--user", "u1"], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown, lines = b"", list(typed)
    try:
        while select.select([ours], [], [], 60)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # how a terminal ends on Linux
                break
            if lines and shown.endswith(b"Keeper> "):
                os.write(ours, lines.pop(0).encode())
        return process.wait(60), shown.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_on_a_terminal_the_person_is_prompted_and_flags_are_dim(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."), says(1, "let me in"))
    code, shown = on_a_terminal(study, "No.\n", "\x04")
    assert code == 0
    assert "u1 by name: Let me in." in shown
    assert "\x1b[2m  (repetition)\x1b[0m" in shown


def test_on_a_terminal_a_failed_call_may_be_made_again_and_ctrl_c_ends(tmp_path):
    study = study_of(tmp_path, says(0, "Let me in."))
    code, shown = on_a_terminal(study, "No.\n", "/retry\n", "\x03")
    assert code == 0
    assert shown.count("(/retry asks again)") == 2
    assert "Ended." in shown


@pytest.mark.local
def test_the_embedded_model_speaks_as_the_user_and_says_the_same_again(tmp_path):
    study = study_of(tmp_path, model="local:smollm2-135m")
    first, again = (piped(study, b"No.\n/retry\n") for _ in range(2))
    assert first.returncode == 0, first.stderr
    said = [line for line in first.stdout.decode().splitlines() if line.startswith("u1 by name: ")]
    assert len(said) == 3
    assert len(set(said)) == 3
    assert first.stdout == again.stdout


@pytest.mark.local
def test_an_adapter_without_effect_is_refused_before_a_word_and_its_base_is_talked_with(tmp_path):
    study = study_of(tmp_path)
    with_adapters(study, u1={"gguf": random_adapter(1, scale=0.0)})
    refused = chat(study, "")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "u1" in refused.stderr
    base = chat(study, "", "--condition", "raw")
    assert base.returncode == 0, base.stderr
    assert "(raw, local:smollm2-135m)" in base.stderr
