"""Two people who write differently, an adapter of each on one small base: the diagonal wins."""

import random

import pytest

from palate.types import Session, Turn
from tiny_base import tiny_base
from trained_folders import write_trained

pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
]

CALM = "the harbour is quiet and we wait for the tide to come back in"
LOUD = "OMG yesss lol whyyy noooo haha stopp plz"


def history(person, words, number, seed, ended_by="quit"):
    dice = random.Random(seed)
    sessions = []
    for place in range(number):
        turns = []
        for _ in range(4):
            turns += [
                Turn(speaker="character", text="Go on."),
                Turn(speaker="user", text=" ".join(dice.choices(words.split(), k=5))),
            ]
        sessions.append(
            Session(
                session_id=f"{person}-{seed}-{place}",
                user_id=person,
                card_id="ash",
                ended_by=ended_by,
                turns=tuple(turns),
            )
        )
    return sessions


def system(session):
    return "You chat."


@pytest.fixture(scope="module")
def base():
    from palate.simulators.base_model import tokenizer_of

    tokenizer = tokenizer_of("local:smollm2-135m")
    base = tiny_base(vocab_size=len(tokenizer), max_position_embeddings=512)
    return base._replace(tokenizer=tokenizer)


def adapter(folder, base, sessions, person):
    """An adapter that took some steps on `sessions`, in a finished folder."""
    import torch
    from peft import LoraConfig, get_peft_model

    from palate.simulators.chat_form import ChatForm
    from palate.simulators.examples import session_examples
    from palate.simulators.loss import Scorer

    form = ChatForm.of(base.tokenizer, source="tiny")
    torch.manual_seed(1)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(base.model, LoraConfig(r=8, target_modules=targets))
    scorer = Scorer(model)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)
    examples = [
        example
        for session in sessions
        for example in session_examples(session, form, system=system(session), max_tokens=512)[0]
    ]
    for _ in range(12):
        losses, _ = scorer.losses(examples)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
    model.save_pretrained(folder / "adapter")
    model.unload()
    peft = folder / "adapter"
    (peft / "README.md").unlink(missing_ok=True)
    config, weights = peft / "adapter_config.json", peft / "adapter_model.safetensors"
    kept = config.read_bytes(), weights.read_bytes()
    write_trained(folder, person, base=base.record.model_dump(), weights=kept[1], gguf=None)
    config.write_bytes(kept[0])
    return folder


@pytest.fixture(scope="module")
def meter(base, tmp_path_factory):
    from palate.simulators.trained import Trained, TrainedRecord
    from palate.simulators.validation.meter import meter_of

    trained = {}
    for person, words in (("calm", CALM), ("loud", LOUD)):
        folder = adapter(
            tmp_path_factory.mktemp(person), base, history(person, words, 6, 1), person
        )
        record = TrainedRecord.model_validate_json((folder / "simulator.json").read_bytes())
        trained[person] = Trained(folder, record)
    return meter_of(base, trained, max_tokens=512)


HELD_OUT = {"calm": history("calm", CALM, 4, 7), "loud": history("loud", LOUD, 4, 8)}


def test_each_persons_messages_are_likeliest_under_their_own_adapter(meter):
    from palate.simulators.validation.likelihood import session_nlls
    from palate.simulators.validation.matrix import own_against_others

    measured = {
        person: {
            adapter: session_nlls(sessions, meter, system, adapter=adapter)
            for adapter in ("calm", "loud")
        }
        for person, sessions in HELD_OUT.items()
    }
    found = own_against_others(measured, seed=1)
    assert found.diagonal_wins is True
    assert all(row.margin.low > 0 for row in found.rows)


def test_an_adapter_beats_the_base_and_the_base_is_not_moved_by_switching(meter):
    from palate.simulators.validation.likelihood import likelihoods, session_nlls

    sessions = HELD_OUT["loud"]
    before = session_nlls(sessions, meter, system)
    lora = session_nlls(sessions, meter, system, adapter="loud")
    again = session_nlls(sessions, meter, system)
    assert before == again
    assert [nll.messages.tokens for nll in before] == [nll.messages.tokens for nll in lora]
    found = likelihoods({"prompted": before, "lora": lora}, seed=1)
    assert found["lora"].over_prompted.high < 0
    # Every session ended by choice: a line break, [QUIT] in pieces, the end of the turn.
    assert found["lora"].leaving.sessions == 4
    assert found["lora"].leaving.value < found["prompted"].leaving.value


def test_a_farewells_words_are_among_the_messages_and_its_leaving_is_not(meter):
    from palate.simulators.validation.likelihood import session_nlls

    sessions = HELD_OUT["calm"]
    stayed = [session.model_copy(update={"ended_by": "limit"}) for session in sessions]
    left, cut = session_nlls(sessions, meter, system), session_nlls(stayed, meter, system)
    for one, other in zip(left, cut, strict=True):
        # The end of the last message comes after [QUIT], and is told with it.
        assert one.messages.tokens == other.messages.tokens - 1
        assert one.messages.total < other.messages.total
        assert (one.leaving.tokens > 2, other.leaving.tokens) == (True, 0)
