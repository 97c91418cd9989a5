"""A real Japanese speaker through palate's own commands, from the public file to an adapter.

RealPersonaChat (CC BY-SA 4.0) is read where it lies beside the repository. No multilingual base
comes with palate, so the base is a random Qwen3 of 0.1 million parameters made on the spot; its
tokenizer is learned from another speaker's chats. That shows the way of Japanese text through
encoding, mask, training, saving and loading, not how well a person can be learned.
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from chat_templates import CHATML
from palate.cli import palate
from palate.histories import read, read_split
from palate.simulators.trained import read_trained

DATA = Path(__file__).parents[2] / "shared" / "data" / "realpersonachat" / "sessions.jsonl.gz"
pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="RealPersonaChat is not beside the repository"),
]
SPEAKER, OTHER = "FA", "CC"
EVEN = 6.9078  # nats a token of a guess among 1,000 tokens that are all as likely: ln 1000
STUDY = """
[study]
name = "rpc"
panel = ["cards/*.json"]
[protocol]
seed = 3
[judge]
model = "openai:needs-a-key-that-nothing-here-does"
[[users]]
id = "FA"
history = "histories/FA.jsonl"
rubric = "rubrics/FA.json"
simulator = { kind = "lora" }
[[candidates]]
name = "A"
model = "openai:needs-a-key-that-nothing-here-does"
"""
MAPPING = """
[fields]
session = "session_id"
user = "user_id"
character = "character.name"
language = "language"
turns = "turns"
speaker = "role"
text = "text"
session_rating = "session_rating"
"""


def rows():
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def japanese_tokenizer(texts):
    """Byte-level BPE of 1,000 entries learned from `texts`, with the ChatML template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>")
    tokenizer.chat_template = CHATML
    return tokenizer


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("base")
    said = (turn["text"] for row in rows() if row["user_id"] == OTHER for turn in row["turns"])
    tokenizer = japanese_tokenizer(said)
    torch.manual_seed(0)
    shape = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=2048,
        initializer_range=0.1,  # a head this size lets a small adapter say something
        tie_word_embeddings=True,
    )
    Qwen3ForCausalLM(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rpc")
    (folder / "cards").mkdir()
    card = {"name": "C", "description": "d", "personality": "", "scenario": "s"}
    card |= {"first_mes": "Hi.", "mes_example": ""}
    (folder / "cards/k1.json").write_text(json.dumps(card), "utf-8")
    (folder / "study.toml").write_text(STUDY, "utf-8")
    (folder / "map.toml").write_text(MAPPING, "utf-8")
    return folder


@pytest.fixture(scope="module")
def said(study, base):
    """What the three commands print."""
    where = ["--into", study, "--map", study / "map.toml", "--user", SPEAKER]
    train = ["--base", base, "--rank", "16", "--epochs", "6", "--learning-rate", "2e-2"]
    train += ["--max-training-tokens", "12000", "--max-tokens", "1024", "--precision", "float32"]
    commands = {
        "import": ["history", "import", DATA, *where],
        "split": ["history", "split", study, "--user", SPEAKER],
        "train": ["simulator", "train", study, "--user", SPEAKER, "--device", "cpu", *train],
    }
    printed = {}
    for name, command in commands.items():
        done = CliRunner().invoke(palate, list(map(str, command)))
        assert done.exit_code == 0, (name, done.output, done.exception)
        printed[name] = done.output
    return printed


def test_the_speaker_is_the_one_with_the_most_chats():
    assert Counter(row["user_id"] for row in rows()).most_common(2) == [("FA", 199), ("DA", 198)]


def test_the_chats_are_imported_and_split_without_a_key(said):
    assert "199 sessions, 5968 turns (2983 of the character, 2985 of the user)" in said["import"]
    assert "histories/FA.jsonl got 198 sessions; already there: rpc-11838" in said["import"]
    assert "FA: 159 sessions train, 39 are held out" in said["split"]


def test_a_tokenizer_of_the_language_brings_no_warning(said):
    assert "tokens a character" not in said["train"]
    assert "warning" not in said["train"]


def test_every_word_of_the_speaker_is_a_target_and_no_other_is(study, base, said):
    from palate.simulators.base_model import tokenizer_of
    from palate.simulators.chat_form import ChatForm
    from palate.simulators.examples import session_examples

    tokenizer = tokenizer_of(str(base))
    form = ChatForm.of(tokenizer, source="base")
    assert form.one_pass, form.why
    for session in read(study / "histories/FA.jsonl", user_id=SPEAKER)[:20]:
        made, counts = session_examples(session, form, system="あなたはFAです。", max_tokens=2048)
        (whole,) = made
        pairs = zip(whole.input_ids, whole.supervised, strict=True)
        learned = tokenizer.decode([number for number, target in pairs if target])
        own = [turn.text for turn in session.turns if turn.speaker == "user"]
        assert learned == "".join(text.strip() + "<|im_end|>" for text in own)
        assert counts.skipped == {}


def test_the_held_out_loss_falls_and_the_record_says_what_was_learned_from(study, said):
    record = read_trained(study / "simulators/FA", user_id=SPEAKER).record
    assert record.base.architecture == "Qwen3ForCausalLM"
    assert record.learned.skipped == {}
    assert record.learned.tokens <= 12000
    losses = record.losses
    assert losses.validation_best < EVEN - 0.2 < EVEN < losses.validation_before
    assert (study / "simulators/FA/adapter.gguf").is_file()


def test_the_saved_adapter_predicts_sessions_that_the_split_held_out(study, base, said):
    from palate.simulators.base_model import load_base
    from palate.simulators.lora_prompt import lora_system
    from palate.simulators.validation.likelihood import session_nlls
    from palate.simulators.validation.meter import meter_of
    from palate.types import Scene

    sessions = read(study / "histories/FA.jsonl", user_id=SPEAKER)
    parts = read_split(study / "splits/FA.json", sessions)
    held_out = [one.session for one in parts.held_out[:12]]
    trained = read_trained(study / "simulators/FA", user_id=SPEAKER)
    assert set(trained.record.learned.training_sessions).isdisjoint(s.session_id for s in held_out)
    meter = meter_of(load_base(str(base), device="cpu"), {SPEAKER: trained}, max_tokens=2048)

    def system(session):
        return lora_system(Scene("zh", "CQ", "", SPEAKER))

    def nats(adapter):
        found = session_nlls(held_out, meter, system, adapter=adapter)
        parts = [nll.messages for nll in found]
        return sum(part.total for part in parts) / sum(part.tokens for part in parts)

    assert nats(SPEAKER) < EVEN - 0.2 < EVEN < nats(None)
