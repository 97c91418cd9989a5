"""A recipe's numbers are those of the code that will run (parameters) or worked out by hand."""

import pytest
from click.testing import CliRunner

from palate.cli_simulator import simulator_group
from palate.errors import InputError
from palate.simulators import loss
from palate.simulators.base_shape import Kept, Shape, shape_of
from palate.simulators.lora_targets import Layer, Targets
from palate.simulators.paper_base import PAPER_BASE
from palate.simulators.recipes import TARGETS_AT_ONCE, Gpu, Plan, command, recipe, told

pytestmark = [
    pytest.mark.train,
    # PEFT asks transformers by an older name.
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
]

TARGETS = Targets(("q_proj",), (), {"attention": (Layer("q_proj", 10, 20),)}, {})
SHAPE = Shape(
    architecture="LlamaForCausalLM",
    parameters=1000,
    active=1000,
    body=800,
    head=100,
    vocabulary=10,
    attention=0,
    in_linear_layers=800,
    targets=TARGETS,
    kept=Kept(everything=5000, inputs=400, largest_layer=600),
    why_not="",
)
PLAN = Plan(rank=2, max_tokens=100, batch_tokens=200, tokens=1000, epochs=3, utilisation=0.5)


def test_memory_is_the_sum_of_its_parts():
    """Adapter: 2 * (10 + 20) = 60 numbers, 20 bytes each. Two sequences of 100 tokens."""
    memory = recipe("base", SHAPE, PLAN).memory
    assert memory.weights == 2000
    assert memory.weights_four_bit == 200 * 2 + 800 * 0.5625
    assert memory.states == 1200
    assert memory.scores == 10 * 200 * 12
    assert memory.kept == 10_000
    assert memory.kept_checkpointed == 2000
    assert memory.total(checkpointing=True) == 2000 + 1200 + 24_000 + 2000 + 1_500_000_000
    assert memory.total(checkpointing=False) == 2000 + 1200 + 24_000 + 10_000 + 1_500_000_000


def test_operations_are_two_forward_passes_and_a_backward_pass_without_weight_gradients():
    """Forward 2 * (800 + 60), backward 2 * (800 + 120), head 0.25 * 6 * 100, for 3000 tokens."""
    assert recipe("base", SHAPE, PLAN).operations == 3000 * (2 * 1720 + 1840 + 150)


def test_attentions_scores_grow_with_the_length():
    """Two products of width 8 over half of 100 positions: 1600 forward, 3200 backward a token."""
    longer = recipe("base", SHAPE._replace(attention=8), PLAN).operations
    assert longer - recipe("base", SHAPE, PLAN).operations == 3000 * (2 * 1600 + 3200)


def test_time_is_set_by_products_or_by_reading_the_weights():
    """15 batches read 2000 bytes three times; 16,290,000 operations; half of either is reached."""
    made = recipe("base", SHAPE, PLAN)
    assert made.traffic == 90_000
    slow_products = Gpu("g", 1, terabytes_s=1, teraflops=1e-6)  # a million a second
    assert made.hours(slow_products) == pytest.approx(16.29 * 2 / 3600)
    slow_memory = Gpu("g", 1, terabytes_s=1e-9, teraflops=1)  # a thousand bytes a second
    assert made.hours(slow_memory) == pytest.approx(90 * 2 / 3600)


def test_what_cannot_be_counted_is_not_a_number():
    made = recipe("base", SHAPE._replace(kept=None, why_not="a loop over the data"), PLAN)
    assert made.memory.total(checkpointing=True) is None
    page = told(made)
    assert "(not countable: a loop over the data)" in page
    assert "memory unknown" in page


def test_as_many_positions_are_scored_at_once_as_training_does():
    assert TARGETS_AT_ONCE == loss._TARGETS_AT_ONCE


@pytest.mark.slow
def test_the_papers_base_counts_as_it_is_described():
    """35 billion parameters, 3 of them active, from the widths on its card by hand."""
    linear = 2048 * (2 * 2048 + 4096) + 2048 * 4096 + 2 * 2048 * 32 + 4096 * 2048  # in, z, b a, out
    linear += 4 * 8192 + 2 * 32 + 128  # convolution, decay, norm
    full = 2048 * 8192 + 2 * 2048 * 512 + 4096 * 2048 + 2 * 256  # q with its gate, k v, o, norms
    expert = 3 * 2048 * 512
    mixture = 256 * expert + expert + 256 * 2048 + 2048  # experts, shared, router, shared gate
    table = 248320 * 2048
    total = 30 * linear + 10 * full + 40 * (mixture + 2 * 2048) + 2 * table + 2048
    assert total == 34_660_610_688
    shape = shape_of(PAPER_BASE, rank=8, tokens=256)
    assert shape.parameters == total
    assert shape.active == total - 40 * 248 * expert == 3_454_988_928
    assert shape.body == shape.active - 2 * table
    assert shape.head == table
    assert shape.attention == 10 * 16 * 256
    assert shape.targets.lora_parameters(8) == 8 * (
        30 * ((2048 + 8192) + (2048 + 4096) + (4096 + 2048))
        + 10 * ((2048 + 8192) + 2 * (2048 + 512) + (4096 + 2048))
        + 40 * 3 * (2048 + 512)
    )
    assert shape.why_not == ""
    assert shape.kept.inputs == 40 * 256 * 2048 * 2


def small(folder):
    from transformers import LlamaConfig

    LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    ).save_pretrained(folder)
    return str(folder)


def test_a_small_base_counts_by_hand_from_its_config_alone(tmp_path):
    """q and o 32 * 32, k and v 32 * 16, three of 32 * 64, two norms; a table for both ends."""
    layer = 2 * 1024 + 2 * 512 + 3 * 2048
    shape = shape_of(small(tmp_path), rank=4, tokens=16)
    assert shape.in_linear_layers == 2 * layer
    assert shape.body == 2 * (layer + 64) + 32
    assert shape.parameters == shape.active == shape.body + 50 * 32
    assert shape.attention == 2 * 32
    assert shape.targets.lora_parameters(4) == 2 * 4 * (2 * 64 + 2 * 48 + 3 * 96)


def test_operations_are_those_that_torch_counts(tmp_path):
    """Forward and backward of a real model with an adapter, without checkpointing."""
    import torch
    from peft import LoraConfig, get_peft_model
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import AutoConfig, AutoModelForCausalLM

    name = small(tmp_path)
    shape = shape_of(name, rank=4, tokens=64)
    model = AutoModelForCausalLM.from_config(
        AutoConfig.from_pretrained(name), attn_implementation="eager"
    )
    modules = list(shape.targets.modules)
    wrapped = get_peft_model(model, LoraConfig(r=4, target_modules=modules))
    wrapped.enable_input_require_grads()
    ids = torch.zeros(1, 64, dtype=torch.long)
    with FlopCounterMode(display=False) as counted:
        model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state.sum().backward()
    adapter = shape.targets.lora_parameters(4)
    scores = 2 * shape.attention * 64  # eager attention computes what the mask hides too
    forward = 64 * (2 * (shape.body + adapter) + 2 * scores)
    backward = 64 * (2 * (shape.body + 2 * adapter) + 4 * scores)
    assert counted.get_total_flops() == pytest.approx(forward + backward, rel=0.03)


def test_what_the_forward_pass_keeps_is_counted_layer_by_layer(tmp_path):
    """Twice the tokens keep about twice as much; a layer keeps less than everything."""
    name = small(tmp_path)
    one = shape_of(name, rank=4, tokens=64).kept
    two = shape_of(name, rank=4, tokens=128).kept
    assert two.everything == pytest.approx(2 * one.everything, rel=0.05)
    assert one.inputs == 2 * 64 * 32 * 2
    assert one.everything / 3 < one.largest_layer < one.everything


def test_the_command_prints_the_recipe_and_a_command_line_that_runs_it(tmp_path):
    name = small(tmp_path)
    done = CliRunner().invoke(simulator_group, ["recipe", "--base", name, "--rank", "4"])
    assert done.exit_code == 0, done.output
    assert f"{name} (LlamaForCausalLM)" in done.output
    assert "LoRA of rank 4: 4,096 parameters" in done.output
    assert done.output.splitlines()[-1] == (
        f"palate simulator train STUDY --all-users --base {name} --rank 4 --epochs 3 "
        "--max-tokens 2048 --batch-tokens 2048 --gradient-checkpointing"
    )


def test_routed_experts_are_in_the_command_line_where_they_are_adapted():
    targets = TARGETS._replace(parameters=("experts.down_proj",))
    made = recipe("a b", SHAPE._replace(targets=targets), PLAN)
    assert command(made).endswith("--gradient-checkpointing --routed-experts")
    assert "--base 'a b'" in command(made)


def test_a_base_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no config\.json"):
        shape_of(str(tmp_path), rank=4, tokens=16)
