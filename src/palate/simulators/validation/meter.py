"""One base model loaded once, with every adapter on it, to measure likelihoods with.

Needs the extra train; this module is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palate.simulators.adapters import load_adapters
from palate.simulators.base_model import Base
from palate.simulators.chat_form import ChatForm
from palate.simulators.examples import Example, session_examples
from palate.simulators.loss import Scorer, token_nlls
from palate.simulators.precision import Precision
from palate.simulators.trained import Trained
from palate.simulators.validation.likelihood import Meter
from palate.types import Session, digest

MAX_TOKENS = 4096  # of an example: room for a long profile and a long chat


def meter_of(
    base: Base,
    trained: Mapping[str, Trained],
    *,
    max_tokens: int = MAX_TOKENS,
    precision: Precision = "float32",
) -> Meter:
    """A meter on `base` with the adapters of these users; the base's own model is wrapped.

    Args:
        max_tokens: of an example; a longer session is cut from the front by whole turns.
        precision: of the products; bfloat16 is faster where the processor has it, and moves a
            mean by some thousandths of a nat, in all conditions alike.

    Raises:
        InputError: an adapter was trained on another base or does not fit it; the chat template
            cannot serve a simulated user.
    """
    form = ChatForm.of(base.tokenizer, source=base.record.name)
    adapted = load_adapters(base, trained) if trained else None
    scorer = Scorer(base.model if adapted is None else adapted.model, precision=precision)
    identity = digest(
        [base.record.model_dump(), form.record().model_dump(mode="json"), max_tokens, precision]
    )

    def encode(session: Session, system: str) -> Sequence[Example]:
        examples, _ = session_examples(session, form, system=system, max_tokens=max_tokens)
        return examples

    def score(user: str | None, examples: Sequence[Example]) -> list[tuple[float, ...]]:
        if adapted is not None:
            adapted.use(user)
        return token_nlls(scorer, examples)

    return Meter(
        identity=identity,
        encode=encode,
        score=score,
        adapters={user: simulator.record.sha256 for user, simulator in trained.items()},
    )
