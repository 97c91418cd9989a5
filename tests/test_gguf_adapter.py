"""An adapter in llama.cpp's form answers as it does in PEFT's (cases 28)."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.adapter_forms import gap, in_llama_cpp, in_transformers, table

from palate.errors import InputError
from palate.simulators.base_model import Base, load_base
from palate.simulators.gguf_adapter import neighbours, write_gguf_adapter
from palate.simulators.trained import BaseModelRecord
from tiny_gguf import tiny_model, write_gguf

pytestmark = [
    pytest.mark.train,
    # PEFT asks transformers by an older name.
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
]

LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def base_around(model, tokenizer=None):
    record = BaseModelRecord(name="tiny", revision="1", architecture=type(model).__name__)
    return Base(model, tokenizer, record)


def saved_adapter(model, folder, *, spread, rank=4, targets=LAYERS, **options):
    """An adapter whose B matrices are drawn, as a trained one has them; alpha is twice the rank."""
    import torch
    from peft import LoraConfig, get_peft_model

    settings = {"r": rank, "lora_alpha": 2 * rank, "target_modules": targets, **options}
    torch.manual_seed(1)
    wrapped = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings))
    drawn = torch.Generator().manual_seed(1)
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(0, spread, generator=drawn)
    wrapped.save_pretrained(folder, save_embedding_layers=False)
    wrapped.unload()
    return folder


def test_the_rows_of_a_head_alternate_between_its_halves():
    """Two heads of four rows: 0 1 2 3 | 4 5 6 7 becomes 0 2 1 3 | 4 6 5 7."""
    rows = np.arange(8, dtype=np.float32)[:, None]
    assert neighbours(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_the_file_holds_every_layer_under_llama_cpps_name_in_half_precision(tmp_path):
    import gguf

    model = tiny_model("Llama")
    folder = saved_adapter(model, tmp_path / "a", spread=0.1)
    target = tmp_path / "adapter.gguf"
    assert write_gguf_adapter(folder, base_around(model), target) is None
    read = gguf.GGUFReader(target)
    assert read.fields["general.type"].contents() == "adapter"
    assert read.fields["general.architecture"].contents() == "llama"
    assert read.fields["adapter.lora.alpha"].contents() == 8.0
    tensors = {tensor.name: tensor for tensor in read.tensors}
    assert len(tensors) == 2 * 2 * 7  # A and B, two layers of seven projections
    assert tensors["blk.1.ffn_down.weight.lora_a"].data.shape == (4, 96)
    assert tensors["blk.1.ffn_down.weight.lora_b"].data.shape == (64, 4)
    assert tensors["blk.0.attn_k.weight.lora_b"].data.dtype == np.float16
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "adapter.gguf"]


def test_matrices_too_small_for_half_precision_stay_in_single(tmp_path):
    import gguf

    model = tiny_model("Llama")
    folder = saved_adapter(model, tmp_path / "a", spread=1e-7)
    write_gguf_adapter(folder, base_around(model), tmp_path / "adapter.gguf")
    read = gguf.GGUFReader(tmp_path / "adapter.gguf")
    assert {tensor.data.dtype.name for tensor in read.tensors} == {"float32"}


def test_a_rank_stabilised_scale_is_written_as_the_alpha_that_gives_it(tmp_path):
    """8 / sqrt(4) = 4, which llama.cpp gets as 16 / 4."""
    import gguf

    model = tiny_model("Llama")
    folder = saved_adapter(model, tmp_path / "a", spread=0.1, use_rslora=True)
    write_gguf_adapter(folder, base_around(model), tmp_path / "adapter.gguf")
    read = gguf.GGUFReader(tmp_path / "adapter.gguf")
    assert read.fields["adapter.lora.alpha"].contents() == 16.0


def test_an_architecture_that_llama_cpp_stores_otherwise_is_refused_with_the_reason(tmp_path):
    model = SimpleNamespace(config=None)
    record = BaseModelRecord(name="big", revision="1", architecture="Qwen3_5MoeForCausalLM")
    why = write_gguf_adapter(tmp_path, Base(model, None, record), tmp_path / "adapter.gguf")
    assert why == (
        "palate does not know llama.cpp's form of Qwen3_5MoeForCausalLM; serve the PEFT adapter "
        "(palate simulator serve)"
    )
    assert list(tmp_path.iterdir()) == []


def test_matrices_beside_lora_are_refused_with_the_reason(tmp_path):
    model = tiny_model("Llama")
    folder = saved_adapter(model, tmp_path / "a", spread=0.1, modules_to_save=["lm_head"])
    why = write_gguf_adapter(folder, base_around(model), tmp_path / "adapter.gguf")
    assert "has others" in why
    assert not (tmp_path / "adapter.gguf").exists()


def test_an_untrained_adapter_has_no_llama_cpp_form(tmp_path):
    model = tiny_model("Llama")
    folder = saved_adapter(model, tmp_path / "a", spread=0.0)
    with pytest.raises(InputError, match="has no effect: all of its 14 B matrices are zero"):
        write_gguf_adapter(folder, base_around(model), tmp_path / "adapter.gguf")


def test_the_gap_of_two_forms_is_measured_at_the_first_ones_choice():
    """|−0.5 − −0.6| and |−0.2 − −1.0|; the second form would choose otherwise there."""
    found = gap([{1: -0.5, 2: -1.5}, {1: -0.2, 2: -3.0}], [{1: -0.6, 2: -1.4}, {1: -1.0, 2: -0.7}])
    assert found.contexts == 2
    assert found.mean == pytest.approx(0.45)
    assert found.largest == pytest.approx(0.8)
    assert found.same_choice == 0.5
    assert not found.holds


@pytest.mark.local
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "arch"),
    [("Llama", "llama"), ("Mistral", "llama"), ("Qwen2", "qwen2"), ("Qwen3", "qwen3")],
)
def test_on_unquantised_weights_both_forms_answer_alike(tmp_path, kind, arch):
    """Fine enough to see a wrong order of rows, which the rounding of Q8_0 would half hide."""
    model = tiny_model(kind)
    write_gguf(model, arch, tmp_path / "base.gguf")
    folder = saved_adapter(model, tmp_path / "a", spread=0.5)
    assert write_gguf_adapter(folder, base_around(model), tmp_path / "adapter.gguf") is None
    prompts = [[1, *(3 + (n * step) % 256 for n in range(24))] for step in (7, 31, 77, 101)]
    peft = in_transformers(base_around(model), folder, prompts)
    found = table(peft, in_llama_cpp(tmp_path / "base.gguf", tmp_path / "adapter.gguf", prompts))
    assert found["the base alone in both"].largest < 0.01
    assert found["the two forms of the adapter"].largest < 0.02
    assert found["the two forms of the adapter"].same_choice == 1
    assert found["the adapter's effect in PEFT"].mean > 0.5


@pytest.mark.local
@pytest.mark.slow
def test_on_the_embedded_weights_both_forms_agree_within_the_bounds(tmp_path):
    """An adapter that changes what is said first, on ten openings of chats."""
    from palate.models.weights import smollm2_135m

    base = load_base("local:smollm2-135m", device="cpu")
    folder = saved_adapter(base.model, tmp_path / "a", spread=0.15, rank=8)
    assert write_gguf_adapter(folder, base, tmp_path / "adapter.gguf") is None
    prompts = [_prompt(base.tokenizer, text) for text in SAID]
    peft = in_transformers(base, folder, prompts)
    found = table(peft, in_llama_cpp(smollm2_135m().path, tmp_path / "adapter.gguf", prompts))
    assert found["the two forms of the adapter"].mean <= 0.1
    assert found["the two forms of the adapter"].largest <= 0.5
    assert found["the adapter's effect in PEFT"].same_choice <= 0.8
    assert found["the adapter's effect in llama.cpp"].same_choice <= 0.8


SAID = (
    "The harbour bell rings twice. You came back, then.",
    "Well?",
    "*She puts the lamp on the table.* Sit. Nobody is out in this weather for fun.",
    "Rule one: no boots in the bath. Rule two: no questions about the stairs.",
    "What now?",
    "Eighty-eight! I was there, in person, so if the book says no, the book is wrong.",
    "Tell me about the house you grew up in.",
    "We don't cross tomorrow. Wind's north-west and rising.",
    "Hello! How was your day?",
    "I kept your letter. I never opened it.",
)


def _prompt(tokenizer, text):
    chat = [
        {"role": "system", "content": "You are a person who chats with a character."},
        {"role": "user", "content": text},
    ]
    return tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
