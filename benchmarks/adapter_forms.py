"""One adapter in its two forms: PEFT in transformers, and llama.cpp's, on held-out contexts.

    python -m benchmarks.adapter_forms STUDY --user U [--contexts 50] [--json OUT.json]

At each context both are asked for the first token of the user's next message. Compared is the
log-probability of the token that the PEFT form finds likeliest, and which token each form finds
likeliest; the same without the adapter, which is the gap that llama.cpp's arithmetic makes by
itself (it rounds activations to eight bits where the weights are Q8_0). Exit code 1 where a bound
does not hold.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.llama_server import first_token, serving

MEAN, LARGEST, SAME_CHOICE = 0.1, 0.5, 0.95  # the bounds: nats, nats, share
MOST_TOKENS = 2048  # a longer context is left out: this is about the adapter, not about length
LIKELIEST = 2000  # tokens asked of the server; one outside them fails the comparison


class First(NamedTuple):
    """Log-probability of the first token, by token, with and without the adapter."""

    adapted: dict[int, float]
    alone: dict[int, float]


class Gap(NamedTuple):
    """How far apart two forms are: |Δ| in nats, and the share with the same likeliest token."""

    contexts: int
    mean: float
    largest: float
    same_choice: float

    @property
    def holds(self) -> bool:
        return self.mean <= MEAN and self.largest <= LARGEST and self.same_choice >= SAME_CHOICE


def gap(reference: Sequence[dict[int, float]], other: Sequence[dict[int, float]]) -> Gap:
    """Of the token that `reference` finds likeliest."""
    likeliest = [max(one, key=one.__getitem__) for one in reference]
    # A token outside what was asked of `other` is at least as far away as the last one inside.
    apart = [
        abs(one[token] - two.get(token, min(two.values())))
        for one, two, token in zip(reference, other, likeliest, strict=True)
    ]
    same = [
        max(two, key=two.__getitem__) == token for two, token in zip(other, likeliest, strict=True)
    ]
    return Gap(len(apart), fmean(apart), max(apart), fmean(same))


def in_transformers(base, folder: Path, prompts: Sequence[Sequence[int]]) -> list[First]:
    """The PEFT form on `base`, which is changed by it."""
    import torch

    from palate.simulators.adapters import with_adapter

    model = with_adapter(base, folder)

    def first(ids) -> dict[int, float]:
        logits = model(torch.tensor([list(ids)]), use_cache=False).logits[0, -1].float()
        top = torch.log_softmax(logits, -1).topk(min(LIKELIEST, len(logits)))
        return dict(zip(top.indices.tolist(), top.values.tolist(), strict=True))

    with torch.no_grad():
        adapted = [first(ids) for ids in prompts]
        model.base_model.disable_adapter_layers()
        alone = [first(ids) for ids in prompts]
        model.base_model.enable_adapter_layers()
    return [First(*both) for both in zip(adapted, alone, strict=True)]


def in_llama_cpp(gguf: Path, adapter: Path, prompts: Sequence[Sequence[int]]) -> list[First]:
    with serving(gguf, [adapter]) as address:
        return [
            First(*(first_token(address, ids, [scale], most=LIKELIEST) for scale in (1.0, 0.0)))
            for ids in prompts
        ]


def table(peft: Sequence[First], llama: Sequence[First]) -> dict[str, Gap]:
    """Gaps between the forms, and between each form and its base: what the adapter does."""
    return {
        "the two forms of the adapter": gap([p.adapted for p in peft], [q.adapted for q in llama]),
        "the base alone in both": gap([p.alone for p in peft], [q.alone for q in llama]),
        "the adapter's effect in PEFT": gap([p.adapted for p in peft], [p.alone for p in peft]),
        "the adapter's effect in llama.cpp": gap(
            [q.adapted for q in llama], [q.alone for q in llama]
        ),
    }


def prompts_of(study_path: Path, user: str, form, *, number: int, seed: int) -> list[list[int]]:
    """Held-out contexts of a user as the prompts that their simulator would see."""
    from palate.config import read_study
    from palate.models.client import ChatMessage
    from palate.prepare import split_of, user_section
    from palate.scenes import scenes_of
    from palate.simulators.lora_prompt import lora_system
    from palate.simulators.validation.contexts import contexts

    study = read_study(study_path)
    section = user_section(study, user)
    scenes = scenes_of(study, section)
    _, split = split_of(study, section)
    sessions = {held.session.session_id: held.session for held in split.held_out}
    found = []
    for context in contexts(list(sessions.values()), limit=4 * number, seed=seed):
        system = lora_system(scenes(sessions[context.session_id]))
        roles = {"user": "assistant", "character": "user"}
        said = [ChatMessage(roles[m.speaker], m.text) for m in context.history]
        ids = form.prompt_ids([ChatMessage("system", system), *said])
        if len(ids) <= MOST_TOKENS and said:
            found.append(ids)
    step = max(1, len(found) // number)
    return found[::step][:number]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--user", required=True)
    parser.add_argument("--contexts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()

    from palate.config import read_study
    from palate.models.weights import smollm2_135m
    from palate.prepare import simulator_folder, user_section
    from palate.simulators.base_model import base_of
    from palate.simulators.chat_form import ChatForm
    from palate.simulators.trained import read_trained

    study = read_study(given.study)
    trained = read_trained(
        simulator_folder(study, user_section(study, given.user)), user_id=given.user
    )
    base = base_of(trained.record.base, device="cpu")
    form = ChatForm.of(base.tokenizer, source=base.record.name)
    prompts = prompts_of(given.study, given.user, form, number=given.contexts, seed=given.seed)
    peft = in_transformers(base, trained.peft, prompts)
    found = table(peft, in_llama_cpp(smollm2_135m().path, trained.gguf, prompts))
    for name, one in found.items():
        print(
            f"{name:35} {one.contexts:3} contexts  mean |Δ| {one.mean:.4f}  "
            f"largest {one.largest:.4f}  same first choice {one.same_choice:.1%}"
        )
    holds = found["the two forms of the adapter"].holds
    if given.json:
        rows = {name: one._asdict() for name, one in found.items()}
        given.json.write_text(json.dumps({"holds": holds, "rows": rows}, indent=1) + "\n", "utf-8")
    print("the bounds hold" if holds else "a bound does not hold")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
