"""A base that cannot read a person's language is named before anything is trained on it."""

import json

import pytest
from click.testing import CliRunner

from chat_templates import CHATML, byte_tokenizer
from palate.cli import palate
from palate.simulators.foreign import foreign
from palate.simulators.plain_text import PlainText
from palate.types import Session, Turn
from worlds import write_history, write_study

pytestmark = pytest.mark.train
ADVICE = (
    "; an adapter teaches a manner of writing, not a language: give a --base that was trained on "
    "this one"
)


def session(text, tag="en"):
    turns = (Turn(speaker="character", text="どうですか？"), Turn(speaker="user", text=text))
    return Session(session_id=text, user_id="u", card_id="k", language=tag, turns=turns)


@pytest.fixture(scope="module")
def bytewise():
    """A token a byte: one a Latin letter, three a kana."""
    return PlainText(byte_tokenizer(CHATML))


def test_a_base_that_spells_the_users_signs_in_bytes_is_named_with_the_rate(bytewise):
    assert foreign("org/base", bytewise, [session("はい", "ja"), session("いいえ", "ja")]) == (
        "org/base spells the user's messages in bytes, at 3.0 tokens a character" + ADVICE
    )


def test_a_token_a_character_is_no_fault_and_the_characters_words_do_not_count(bytewise):
    assert foreign("org/base", bytewise, [session("yes"), session("no", "ja")]) == ""


def test_the_embedded_base_knows_english_alone(bytewise):
    tagged = [session("oui", "fr"), session("yes"), session("non", "fr-CA"), session("si", "fr")]
    assert foreign("local:smollm2-135m", bytewise, tagged) == (
        "local:smollm2-135m was trained on English alone, while 3 of 4 sessions are in another "
        "language (fr)" + ADVICE
    )
    assert foreign("org/base", bytewise, tagged) == ""


def test_half_of_the_sessions_in_english_are_enough_for_the_embedded_base(bytewise):
    assert foreign("local:smollm2-135m", bytewise, [session("oui", "fr"), session("yes")]) == ""


def test_both_reasons_stand_in_one_sentence(bytewise):
    assert foreign("local:smollm2-135m", bytewise, [session("はい", "ja")]) == (
        "local:smollm2-135m spells the user's messages in bytes, at 3.0 tokens a character, and "
        "was trained on English alone, while 1 of 1 sessions are in another language (ja)" + ADVICE
    )


def test_a_user_who_said_nothing_is_no_fault_of_the_base(bytewise):
    silent = session("x").model_copy(update={"turns": ()})
    assert foreign("org/base", bytewise, [silent]) == ""
    assert foreign("org/base", bytewise, []) == ""


def test_training_says_it_once_before_the_base_is_loaded(tmp_path):
    """The budget of tokens lets nothing in, so that the command ends there."""
    from transformers import LlamaConfig

    base = tmp_path / "base"
    byte_tokenizer(CHATML).save_pretrained(base)
    LlamaConfig().save_pretrained(base)
    study = write_study(tmp_path / "study", users=("u1",), cards=("k1",), candidates=("A",))
    write_history(study, [])
    lines = [session("はい" * number, "ja").model_dump(mode="json") for number in range(1, 6)]
    lines = [json.dumps({**line, "user_id": "u1"}) + "\n" for line in lines]
    (study / "u1.jsonl").write_text("".join(lines), "utf-8")
    command = ["simulator", "train", str(study), "--user", "u1", "--base", str(base)]
    done = CliRunner().invoke(palate, [*command, "--max-tokens", "16"])
    assert "no message of the user to learn from" in str(done.exception)
    assert done.output.count("warning: ") == 1
    assert "/base spells the user's messages in bytes, at 3.0 tokens a character;" in done.output
    assert "Loading" not in done.output
