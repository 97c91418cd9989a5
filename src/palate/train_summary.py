"""What a person is told of a training before its first step and after its last."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from palate.report.safe import terminal_safe
from palate.scenes import Scenes
from palate.simulators.chat_form import ChatForm
from palate.simulators.loss_curve import LossCurve
from palate.simulators.trained import LOSS_CURVE, RECORD, Losses, TrainedRecord
from palate.simulators.training_data import Chosen


def counted(user: str, chosen: Chosen, scenes: Scenes, form: ChatForm) -> str:
    """What there is to learn from, in a few lines, before anything is learned."""
    lines = [f"{terminal_safe(user)}: {chosen.counts.sentence()}"]
    if chosen.validation:
        held = sum(len(one.examples) for one in chosen.validation)
        lines.append(f"  {len(chosen.validation)} sessions more ({held} examples) say when to stop")
    else:
        lines.append("  too few sessions to hold any out: trained to the last epoch")
    # Every session was given a scene so as to be counted; a budget leaves many of them out.
    neutral = {one.item.session.session_id for one in chosen.learned}.intersection(scenes.neutral)
    if neutral:
        lines.append(
            f"  without a card here: {len(neutral)} sessions; the scene names the language and no "
            "character"
        )
    if not form.one_pass:
        lines.append(f"  one example a message, because {form.why}")
    return "\n".join(lines)


def result(user: str, folder: Path, record: TrainedRecord) -> str:
    """What came of a training, in a few lines."""
    losses = record.losses
    lines = [
        f"{terminal_safe(user)}: trained {losses.steps} steps, {losses.epochs:.1f} epochs, in "
        f"{record.seconds:.0f} s; {_progress(losses, folder)}"
    ]
    before, best = losses.validation_before, losses.validation_best
    if before is not None and best is not None and best >= before:
        lines.append("  warning: the adapter predicts the person no better than the base alone")
    if record.gguf:
        lines.append(f"  no llama.cpp adapter: {terminal_safe(record.gguf)}")
    lines.append(f"  {terminal_safe(str(folder))}/{RECORD} {record.sha256[:12]}")
    return "\n".join(lines)


def _progress(losses: Losses, folder: Path) -> str:
    """From which loss to which: held out where that was measured, for it is what was sought."""
    before, best = losses.validation_before, losses.validation_best
    if before is not None and best is not None:
        return f"held-out loss {before:.3f} -> {best:.3f} nats a token at step {losses.best_step}"
    steps = LossCurve(folder / LOSS_CURVE).losses()
    # Single steps are noisy: between two of them a training may seem to go the wrong way.
    tenth = max(1, len(steps) // 10)
    first, last = fmean(steps[:tenth]), fmean(steps[-tenth:])
    of = f"means of the first and the last {tenth} steps" if tenth > 1 else "first and last step"
    return f"training loss {first:.3f} -> {last:.3f} nats a token ({of})"
