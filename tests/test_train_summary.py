"""What is told after a training: which loss went from where to where."""

import json

from palate.train_summary import result
from trained_folders import write_trained

LOSSES = {"first": 9.0, "last": 8.0, "validation_before": None, "validation_best": None}
LOSSES |= {"best_step": 20, "steps": 20, "epochs": 2.0, "tokens_processed": 9}
LOSSES |= {"stopped": "finished"}


def told(folder, losses, **changes):
    record = write_trained(folder, "u1", losses={**LOSSES, **changes})
    lines = [{"step": 0, "loss": None}]
    lines += [{"step": n, "loss": loss} for n, loss in enumerate(losses, 1)]
    (folder / "training.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return result("u1", folder, record)


def test_without_held_out_sessions_the_first_and_the_last_tenth_are_compared(tmp_path):
    """Of twenty steps two and two: (9 + 5) / 2 = 7 and (4 + 8) / 2 = 6."""
    said = told(tmp_path, [9.0, 5.0, *[6.5] * 16, 4.0, 8.0]).splitlines()
    assert said[0] == (
        "u1: trained 20 steps, 2.0 epochs, in 1 s; training loss 7.000 -> 6.000 nats a token "
        "(means of the first and the last 2 steps)"
    )


def test_of_few_steps_the_first_and_the_last_one_are_compared(tmp_path):
    said = told(tmp_path, [9.0, 7.0, 8.0])
    assert "training loss 9.000 -> 8.000 nats a token (first and last step)" in said


def test_where_sessions_were_held_out_their_loss_is_told_and_no_other(tmp_path):
    losses = {"validation_before": 3.0, "validation_best": 2.5, "best_step": 12}
    said = told(tmp_path, [9.0, 8.0], **losses)
    assert said.splitlines()[0] == (
        "u1: trained 20 steps, 2.0 epochs, in 1 s; held-out loss 3.000 -> 2.500 nats a token at "
        "step 12"
    )
    assert "training loss" not in said
    assert "warning" not in said


def test_an_adapter_no_better_than_its_base_is_warned_of(tmp_path):
    said = told(tmp_path, [9.0], validation_before=3.0, validation_best=3.0)
    assert "warning: the adapter predicts the person no better than the base alone" in said
