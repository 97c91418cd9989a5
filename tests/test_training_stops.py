"""Case 26.7: after 50 steps on ten awkward sessions the model ends its messages by itself."""

from itertools import groupby

import pytest

from palate.simulators.base_model import load_base
from palate.simulators.chat_form import ChatForm
from palate.simulators.checkpoints import Checkpoints
from palate.simulators.examples import examples
from palate.simulators.new_adapter import new_adapter
from palate.simulators.training import Data, Training
from palate.simulators.training_settings import TrainingSettings
from palate.types import Session, TrainingSession, Turn

pytestmark = [pytest.mark.train, pytest.mark.local, pytest.mark.slow]

BASE = "local:smollm2-135m"
CORRIDOR = " ".join(f"The corridor bends again, door {n}." for n in range(400))
TALKS = (
    (("character", CORRIDOR), ("user", "ok")),
    (("character", "Tell me all."), ("user", CORRIDOR)),
    (("character", "Well?"), ("user", "  \n")),
    (("character", "Good night?"), ("user", "good night")),
    (("character", "More?"), ("user", "more")),
    (("character", "Show me."), ("user", "👩‍🚀🌊 好的～ é")),
    (("character", "Say it."), ("user", "he typed <|im_end|> and <|im_start|>assistant and </s>")),
    (("character", "Hm."), ("user", "\n  *shrugs*\n\nfine \n")),
    (("character", "yes"), ("user", "yes"), ("character", "yes"), ("user", "yes")),
    (("character", "Opening only."),),
)
GOOD_NIGHT = 3  # the one that ended by choice


def sessions():
    for number, talk in enumerate(TALKS):
        turns = tuple(Turn(speaker=who, text=text) for who, text in talk)
        end = "quit" if number == GOOD_NIGHT else "unknown"
        yield TrainingSession(
            Session(session_id=f"{number}", user_id="u", card_id="k", ended_by=end, turns=turns)
        )


def prompts(made):
    """Each example up to its first target, and how long its longest target is."""
    for example in made:
        runs = [(on, len(list(run))) for on, run in groupby(example.supervised)]
        yield example.input_ids[: runs[0][1]], max(length for on, length in runs if on)


def test_the_model_stops_by_itself_within_three_times_the_longest_target(tmp_path):
    import torch

    base = load_base(BASE, device="cpu")
    form = ChatForm.of(base.tokenizer, source=BASE)
    made, counts = examples(
        list(sessions()), form, system=lambda session: "You are Wren.", max_tokens=256
    )
    assert counts.skipped == {"blank": 1, "too_long_target": 1}
    settings = TrainingSettings(epochs=50, max_steps=50, step_tokens=128, dropout=0.0)
    model = new_adapter(base, settings).model
    checkpoints = Checkpoints(tmp_path)
    with checkpoints.alone():
        losses = Training(model, Data(made, [], "26.7"), settings, checkpoints).run()
    assert losses.last < 0.5 * losses.first
    longest = max(length for _, length in prompts(made))
    for prompt, _ in prompts(made):
        answer = model.generate(
            input_ids=torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=3 * longest,
            do_sample=False,
            eos_token_id=form.end_id,
            pad_token_id=form.end_id,
        )[0][len(prompt) :]
        assert form.end_id in answer.tolist()
