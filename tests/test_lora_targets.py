"""What gets LoRA is decided by what it is in the model; never the router of a mixture."""

import pytest

from palate.errors import InputError
from palate.simulators.adapters import with_adapter
from palate.simulators.base_model import Base
from palate.simulators.lora_targets import Layer, check_parameters, check_targets, lora_targets
from palate.simulators.loss import nll, pooled
from palate.simulators.new_adapter import chosen_layers, new_adapter, save_adapter
from palate.simulators.trained import BaseModelRecord
from palate.simulators.training import Data, Training
from palate.simulators.training_settings import TrainingSettings
from tiny_base import example

pytestmark = [
    pytest.mark.train,
    # PEFT asks transformers by an older name.
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
    # The recurrent layers' own kernels are for GPUs.
    pytest.mark.filterwarnings("ignore:.*fast path is not available.*"),
]

MIXTURE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
}
PROJECTIONS = (
    "down_proj",
    "gate_proj",
    "in_proj_qkv",
    "in_proj_z",
    "k_proj",
    "o_proj",
    "out_proj",
    "q_proj",
    "up_proj",
    "v_proj",
)


def mixture(seed=0, **changes):
    """A random checkpoint of the paper's architecture: three linear-attention layers and a full."""
    import torch
    from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

    torch.manual_seed(seed)
    model = Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**{**MIXTURE, **changes})).eval()
    record = BaseModelRecord(name="tiny", revision="1", architecture="Qwen3_5MoeForCausalLM")
    return Base(model, None, record)


def on_meta(kind, **config):
    import torch
    import transformers

    with torch.device("meta"):
        made = getattr(transformers, f"{kind}Config")(**config)
        return getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")(made)


def last_parts(layers):
    return {layer.name.rpartition(".")[2] for layer in layers}


def test_in_the_papers_architecture_projections_are_adapted_and_routers_are_not():
    found = lora_targets(mixture().model)
    assert found.modules == PROJECTIONS
    assert found.parameters == ()
    assert {place: len(layers) for place, layers in found.adapted.items()} == {
        "linear attention": 9,  # in, gate in and out, of three layers
        "attention": 4,  # q, k, v, o of one
        "shared expert": 12,  # gate, up, down of four
    }
    assert {place: last_parts(layers) for place, layers in found.left_out.items()} == {
        "router or gate": {"in_proj_a", "in_proj_b", "shared_expert_gate"},
        "routed experts": {"gate_up_proj", "down_proj"},
        "outside the decoder layers": {"lm_head"},
    }


def test_lora_parameters_are_rank_times_inputs_and_outputs():
    """q: 32 -> 64 (doubled by its gate), at rank 3: 3 * (32 + 64) = 288."""
    layers = lora_targets(mixture().model).adapted["attention"]
    query = next(layer for layer in layers if layer.name.endswith("q_proj"))
    assert query == Layer("model.layers.3.self_attn.q_proj", 32, 64)
    assert query.lora_parameters(3) == 288
    assert Layer("experts", 32, 64, stacked=4).lora_parameters(3) == 1152


def test_routed_experts_that_a_base_has_not_are_refused():
    settings = TrainingSettings(routed_experts=True)
    assert chosen_layers(mixture().model, settings).parameters == ("down_proj", "gate_up_proj")
    plain = on_meta(
        "Llama", hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    with pytest.raises(InputError) as refusal:
        chosen_layers(plain, settings)
    assert str(refusal.value) == (
        "LlamaForCausalLM has no routed experts to adapt; leave --routed-experts out"
    )


def test_the_count_is_that_of_the_adapter_that_peft_makes():
    base = mixture()
    expected = lora_targets(base.model).lora_parameters(3)
    made = new_adapter(base, TrainingSettings(rank=3, dropout=0.0, seed=1))
    assert made.parameters == expected
    assert made.layers == 25


def test_the_vision_tower_of_the_whole_model_is_left_out():
    import torch
    from transformers import Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

    with torch.device("meta"):
        model = Qwen3_5MoeForConditionalGeneration(Qwen3_5MoeConfig())
    found = lora_targets(model)
    adapted = [layer.name for layers in found.adapted.values() for layer in layers]
    assert len(adapted) == 250
    assert all(name.startswith("model.language_model.layers.") for name in adapted)
    outside = [layer.name for layer in found.left_out["outside the decoder layers"]]
    assert sum(name.startswith("model.visual.") for name in outside) > 100


@pytest.mark.parametrize(
    ("kind", "modules"),
    [
        ("Llama", ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")),
        ("Qwen3Moe", ("k_proj", "o_proj", "q_proj", "v_proj")),
        ("Mixtral", ("k_proj", "o_proj", "q_proj", "v_proj")),
        ("OPT", ("fc1", "fc2", "k_proj", "out_proj", "q_proj", "v_proj")),
    ],
)
def test_other_families_are_told_by_their_structure(kind, modules):
    assert lora_targets(on_meta(kind, num_hidden_layers=2)).modules == modules


def test_a_mixture_that_begins_with_plain_layers_adapts_both_kinds_of_block():
    found = lora_targets(on_meta("DeepseekV3", num_hidden_layers=5))  # three of them plain
    assert {place: len(layers) for place, layers in found.adapted.items()} == {
        "attention": 25,
        "feed-forward": 9,
        "shared expert": 6,
    }


def test_an_ending_that_would_also_select_something_else_is_made_longer():
    """The vision tower of this model has a down_proj too."""
    import torch
    from torch import nn

    model = on_meta("Llama", num_hidden_layers=2)
    with torch.device("meta"):
        model.tower = nn.ModuleDict({"down_proj": nn.Linear(4, 4)})
    modules = lora_targets(model).modules
    assert "mlp.down_proj" in modules
    assert "down_proj" not in modules


def test_targets_that_match_nothing_are_named_with_what_there_is():
    model = mixture().model
    check_targets(model, ("q_proj", "shared_expert.up_proj", "model.layers.3.self_attn.k_proj"))
    with pytest.raises(InputError) as refusal:
        check_targets(model, ("q_proj", "query", "xv_proj"))
    assert str(refusal.value).startswith(
        "the adapter's target modules query, xv_proj match no linear layer of "
        "Qwen3_5MoeForCausalLM, whose layers are down_proj, gate_proj, in_proj_a, "
    )
    check_parameters(model, ("experts.down_proj",))
    with pytest.raises(InputError, match=r"target parameters experts\.w1 match no weights"):
        check_parameters(model, ("experts.w1",))


SETTINGS = TrainingSettings(
    epochs=8,
    rank=4,
    learning_rate=0.02,
    batch_tokens=64,
    step_tokens=64,
    dropout=0.0,
    seed=7,
)
EXAMPLES = [example(f"s{n}", [1, n, 2], [n + 1, n + 2, 63], [2], [5, 63]) for n in range(10, 40)]


@pytest.mark.slow
@pytest.mark.parametrize("routed", [False, True])
def test_the_papers_architecture_trains_saves_and_loads_again(tmp_path, routed):
    from palate.simulators.checkpoints import Checkpoints

    base = mixture()
    before = {name: p.detach().clone() for name, p in base.model.named_parameters()}
    settings = SETTINGS.model_copy(update={"routed_experts": routed})
    made = new_adapter(base, settings)
    checkpoints = Checkpoints(tmp_path)
    training = Training(made.model, Data(EXAMPLES, EXAMPLES[:3], "f"), settings, checkpoints)
    with checkpoints.alone():
        losses = training.run()
    assert losses.last < losses.first / 2
    frozen = {
        name.replace(".base_layer", "").removeprefix("base_model.model."): p
        for name, p in made.model.named_parameters()
        if "lora_" not in name
    }
    assert frozen.keys() == before.keys()
    assert any(name.endswith("mlp.gate.weight") for name in frozen)  # the router
    assert all(frozen[name].equal(weight) for name, weight in before.items())

    save_adapter(made.model, tmp_path / "adapter", base=base)
    loaded = with_adapter(mixture(), tmp_path / "adapter")
    assert pooled(nll(loaded, EXAMPLES)) == pytest.approx(pooled(nll(made.model, EXAMPLES)))
