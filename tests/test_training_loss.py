"""The negative log-likelihood of the supervised tokens, against torch's own and by hand."""

import math

import pytest

from palate.simulators.loss import Nll, Scorer, nll, pooled
from palate.simulators.quiet import quiet
from tiny_base import example, tiny_base

pytestmark = pytest.mark.train

EXAMPLES = [
    example("a", [1, 5, 9], [4, 2], [7, 7], [3, 2]),
    example("b", [1, 8], [6, 2]),
    example("c", [1, 8, 3, 3, 9, 4, 4, 4, 6], [2]),
]


def by_hand(model, one):
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([one.input_ids])).logits[0].double()
    chances = logits.log_softmax(-1)
    places = [n for n, is_target in enumerate(one.supervised) if is_target]
    return -sum(float(chances[n - 1, one.input_ids[n]]) for n in places), len(places)


def test_each_example_has_the_sum_of_its_targets_and_their_number():
    """Padding beside a longer one, and the order of the batches, change nothing."""
    model = tiny_base().model
    for one, found in zip(EXAMPLES, nll(model, EXAMPLES, batch_tokens=40), strict=True):
        total, tokens = by_hand(model, one)
        assert found.tokens == tokens
        assert found.total == pytest.approx(total, abs=1e-4)


def test_a_model_that_knows_nothing_needs_the_logarithm_of_its_vocabulary():
    """With a head of zeros every one of the 64 tokens has the chance 1/64."""
    import torch

    base = tiny_base()
    torch.nn.init.zeros_(base.model.lm_head.weight)
    [found] = nll(base.model, EXAMPLES[:1])
    assert found == Nll(pytest.approx(4 * math.log(64), abs=1e-5), 4)
    assert pooled([found, Nll(2.0, 1)]) == pytest.approx((4 * math.log(64) + 2) / 5)


def test_nothing_supervised_is_no_number():
    assert nll(tiny_base().model, [example("s", [1, 2])]) == [Nll(0.0, 0)]
    with pytest.raises(ValueError, match="no token is supervised"):
        pooled([Nll(0.0, 0)])


def test_the_first_token_cannot_be_predicted():
    """It is left out even where it is marked: nothing stands before it."""
    [found] = nll(tiny_base().model, [example("s", [], [3, 4])])
    assert found.tokens == 1


def test_the_head_is_applied_to_the_targets_alone():
    import torch

    base = tiny_base()
    scored = []
    base.model.lm_head.register_forward_hook(lambda module, args, out: scored.append(len(args[0])))
    scorer = Scorer(base.model)
    assert scorer.is_short
    scored.clear()
    with torch.no_grad():
        losses, row = scorer.losses(EXAMPLES)
    assert scored == [4 + 2 + 1]
    assert row.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert len(losses) == 7


def test_a_model_that_changes_its_logits_after_the_head_is_asked_for_them():
    """Some architectures cap or scale: the short way would give another loss."""
    import torch

    base = tiny_base()
    plain = base.model.forward

    def scaled(*args, **kwargs):
        output = plain(*args, **kwargs)
        output.logits = 0.25 * output.logits * 10
        return output

    base.model.forward = scaled
    scorer = Scorer(base.model)
    assert not scorer.is_short
    with torch.no_grad():
        losses, _ = scorer.losses(EXAMPLES)
    total, _ = by_hand(base.model, EXAMPLES[0])
    assert float(losses[:4].sum()) == pytest.approx(total, abs=1e-4)


def test_many_targets_are_scored_in_parts_with_the_same_gradient(monkeypatch):
    import torch

    base = tiny_base()
    base.model.requires_grad_(True)

    def gradient():
        base.model.zero_grad()
        losses, _ = Scorer(base.model).losses(EXAMPLES)
        losses.sum().backward()
        return losses.detach(), base.model.model.embed_tokens.weight.grad.clone()

    whole = gradient()
    monkeypatch.setattr("palate.simulators.loss._TARGETS_AT_ONCE", 3)
    parts = gradient()
    assert torch.allclose(whole[0], parts[0], atol=1e-6)
    assert torch.allclose(whole[1], parts[1], rtol=1e-4, atol=1e-4)


def test_an_adapter_that_is_switched_off_leaves_the_base():
    import torch
    from peft import LoraConfig, get_peft_model

    alone = nll(tiny_base().model, EXAMPLES)
    with quiet():
        model = get_peft_model(
            tiny_base().model, LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
        )
    assert Scorer(model).is_short
    with model.disable_adapter():
        assert nll(model, EXAMPLES) == alone
    assert nll(model, EXAMPLES) != alone
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(("holds", "sizes"), [(2, [3, 1, 2]), (1, [3, 1, 2, 1, 1])])
def test_a_batch_that_the_memory_does_not_hold_is_scored_in_halves(holds, sizes):
    model = tiny_base().model
    scorer = Scorer(model)
    expected = nll(scorer, EXAMPLES, batch_tokens=1)
    tried = memory_for(model, holds)
    for one, found in zip(expected, nll(scorer, EXAMPLES, batch_tokens=40), strict=True):
        assert found.tokens == one.tokens
        assert found.total == pytest.approx(one.total, abs=1e-4)
    assert tried == sizes


def test_an_example_that_the_memory_does_not_hold_alone_is_an_error():
    model = tiny_base().model
    scorer = Scorer(model)
    tried = memory_for(model, 0)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        nll(scorer, EXAMPLES, batch_tokens=40)
    assert tried == [3, 1]


def memory_for(model, examples):
    """Let `model` run out of memory, as torch tells it, on more than so many at once."""
    tried = []

    def allocate(module, arguments, named):
        tried.append(len(named["input_ids"]))
        if tried[-1] > examples:
            raise RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
            )

    model.model.register_forward_pre_hook(allocate, with_kwargs=True)
    return tried


def test_measuring_leaves_training_as_it_was():
    model = tiny_base(attention_dropout=0.5).model
    model.train()
    assert nll(model, EXAMPLES) == nll(model, EXAMPLES)  # without dropout
    assert model.training
