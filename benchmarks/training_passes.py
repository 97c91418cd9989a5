"""What one pass a session saves, and how fast training is beside a plain PEFT loop.

    python -m benchmarks.training_passes [--tokens 5000] [--epochs 2] [--json FILE]

On the training sessions of a sample user, with the embedded base on the CPU:

1. each session encoded once with a mask over all of the user's messages, for so many epochs and for
   twice as many, against one example a message. Batches are filled alike, so each takes about the
   same steps an epoch; compared is the first of the two that reaches the held-out loss of the last;
2. tokens a second of the same training against the usual loop over the same examples: fixed
   batches of two in random order, padded to the longest, `model(**batch).loss` over the whole
   vocabulary at every position, 32 bits. Padding does not count as tokens.

Ratios are of one run on one machine. Needs the extra train; about ten minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from palate.cards import library, read, scene
from palate.histories import read as read_history
from palate.histories import split
from palate.simulators.base_model import load_base
from palate.simulators.chat_form import ChatForm
from palate.simulators.checkpoints import Checkpoints
from palate.simulators.examples import examples
from palate.simulators.lora_prompt import lora_system
from palate.simulators.loss import rows
from palate.simulators.new_adapter import new_adapter
from palate.simulators.precision import best_precision
from palate.simulators.training import Data, Training
from palate.simulators.training_data import drawn, held_out
from palate.simulators.training_settings import TrainingSettings

USER = "synthetic-oskar"
BASE = "local:smollm2-135m"
SEED = 7
PLAIN_BATCH = 2  # four sessions padded, scored at every position, outgrow 20 GB
PLAIN_STEPS = 6


def sessions():
    """The user's training sessions, as the package ships them."""
    import palate

    path = Path(palate.__file__).parent / "sample" / "histories" / f"{USER}.jsonl"
    return split(read_history(path, user_id=USER), seed=SEED).training


def system(session):
    """What a trained simulator is told of a session's card."""
    (path,) = library.matching(session.card_id)
    return lora_system(scene(read(path)))


def encoded(form, tokens, *, per_turn):
    """Learned and held-out examples; the sessions are the same either way."""

    def encode(item):
        return examples([item], form, system=system, max_tokens=2048, per_turn=per_turn)

    once = drawn(sessions(), lambda i: examples([i], form, system=system, max_tokens=2048),
                 budget=tokens, seed=SEED)  # fmt: skip
    items = [one.item for one in once]
    again = drawn(items, encode, budget=None, seed=SEED)
    chats = [[item.session.session_id] for item in items]
    chosen = held_out(again, chats, seed=SEED)
    if not chosen.validation:
        raise SystemExit(
            "too few sessions to hold one out: give more --tokens (5 sessions or more)"
        )
    return chosen


def trained(base, form, chosen, settings):
    """Train; losses, seconds in steps alone, and the tokens of one step."""
    adapter = new_adapter(base, settings)
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder))
        with checkpoints.alone():
            data = Data(chosen.training_examples, chosen.validation_examples, "benchmark")
            losses = Training(adapter.model, data, settings, checkpoints, observe=seen.append).run()
    adapter.model.unload()
    return losses, seen[-1].seconds


def passed(base, form, options, *, per_turn, epochs):
    """One training; what it processed and what it reached."""
    chosen = encoded(form, options.tokens, per_turn=per_turn)
    once = encoded(form, options.tokens, per_turn=False)
    tokens = sum(len(e.input_ids) for e in chosen.training_examples)
    # The same number of steps an epoch: each sees the same share of the messages.
    steps = max(1, round(sum(len(e.input_ids) for e in once.training_examples) / 1024))
    settings = TrainingSettings(
        epochs=epochs, seed=SEED, step_tokens=max(1, tokens // steps), batch_tokens=1024,
        evaluations=1, patience=1000, precision=best_precision("cpu"),
    )  # fmt: skip
    losses, seconds = trained(base, form, chosen, settings)
    return {
        "examples": len(chosen.training_examples),
        "messages": sum(e.messages for e in chosen.training_examples),
        "epochs": epochs,
        "tokens_processed": losses.tokens_processed,
        "steps": losses.steps,
        "held_out_before": losses.validation_before,
        "held_out_after": losses.validation_best,
        "seconds": seconds,
    }


def passes(base, form, options):
    """One pass a session, for so many epochs and twice as many, against one example a message."""
    found = {
        "one pass a session": passed(base, form, options, per_turn=False, epochs=options.epochs),
        "twice": passed(base, form, options, per_turn=False, epochs=2 * options.epochs),
        "one example a message": passed(base, form, options, per_turn=True, epochs=options.epochs),
    }
    one, twice, each = found.values()
    once = one if one["held_out_after"] <= each["held_out_after"] else twice
    found["ratio"] = {
        "epochs_of_one_pass": once["epochs"],
        "tokens": each["tokens_processed"] / once["tokens_processed"],
        "seconds": each["seconds"] / once["seconds"],
        "held_out_difference": each["held_out_after"] - once["held_out_after"],
    }
    return found


def plain_rate(base, chosen):
    """Tokens a second of the usual loop."""
    import torch

    adapter = new_adapter(base, TrainingSettings(seed=SEED))
    model, shuffled = adapter.model, list(chosen.training_examples)
    optimiser = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-4)
    model.train()
    order = torch.randperm(len(shuffled), generator=torch.Generator().manual_seed(SEED)).tolist()
    tokens, began = 0, None
    for step in range(PLAIN_STEPS + 1):
        picked = [
            shuffled[order[(step * PLAIN_BATCH + n) % len(order)]] for n in range(PLAIN_BATCH)
        ]
        batch = rows(picked, pad=0, device=torch.device("cpu"))
        labels = torch.full_like(batch.input_ids, -100)
        for row, example in enumerate(picked):
            ids, mask = torch.tensor(example.input_ids), torch.tensor(example.supervised)
            labels[row, : len(ids)][mask] = ids[mask]
        output = model(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=labels
        )
        output.loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if step == 0:
            began = time.perf_counter()  # the first step warms up
        else:
            tokens += sum(len(e.input_ids) for e in picked)
    seconds = time.perf_counter() - began
    model.unload()
    return tokens / seconds


def our_rate(base, form, chosen):
    """Tokens a second of our loop over the same examples."""
    settings = TrainingSettings(
        epochs=1, seed=SEED, evaluations=1, precision=best_precision("cpu"), max_steps=PLAIN_STEPS
    )
    without = chosen._replace(learned=(*chosen.learned, *chosen.validation), validation=())
    losses, seconds = trained(base, form, without, settings)
    return losses.tokens_processed / seconds


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=5000, help="of whole sessions")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    base = load_base(BASE, device="cpu")
    form = ChatForm.of(base.tokenizer, source=BASE)
    found = {"passes": passes(base, form, options)}
    print(json.dumps(found, indent=1), flush=True)
    chosen = encoded(form, options.tokens, per_turn=False)
    plain, ours = plain_rate(base, chosen), our_rate(base, form, chosen)
    found["tokens_a_second"] = {"plain PEFT loop": plain, "ours": ours, "ratio": ours / plain}
    print(json.dumps(found["tokens_a_second"], indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
