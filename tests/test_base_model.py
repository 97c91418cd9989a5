"""A base is what was asked for, whole and trainable; an adapter has an effect on it (case 28)."""

import json
import logging
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from palate.errors import InputError
from palate.simulators.adapters import adapted_layers, load_adapters, with_adapter
from palate.simulators.base_model import (
    BaseModelRecord,
    base_of,
    check_base,
    load_base,
    outline_of,
    tokenizer_of,
)
from palate.simulators.base_revision import folder_revision
from palate.simulators.devices import placement
from palate.simulators.file_modes import make_readable
from palate.simulators.quiet import quiet
from palate.simulators.trained import Trained
from tiny_folder import tiny_folder

pytestmark = [
    pytest.mark.train,
    # PEFT asks transformers by an older name.
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
]

LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("made"))


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "base")


def adapter(base, place, *, spread=0.5, seed=1, targets=LAYERS, **options):
    """A saved adapter with drawn B matrices; `base` is left as it was."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=2, lora_alpha=4, target_modules=targets, task_type="CAUSAL_LM", **options)
    model = get_peft_model(base.model, config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_().mul_(spread)
    model.save_pretrained(place, save_embedding_layers=False)
    model.unload()
    return place


def answers(model):
    import torch

    with torch.no_grad():
        return model(torch.tensor([[1, 4, 6, 2]])).logits


# --- the base


def test_a_folder_is_loaded_with_its_template_and_a_revision_of_its_content(folder):
    base = load_base(str(folder))
    assert base.record.name == str(folder)
    assert base.record.architecture == "LlamaForCausalLM"
    assert base.record.revision == folder_revision(folder)
    assert base.record.revision.startswith("sha256:")
    assert not base.model.training
    assert base.device.type == "cpu"
    assert "<|im_start|>" in base.tokenizer.chat_template
    assert tokenizer_of(str(folder)).encode("hi yo") == [6, 7]


def test_the_revision_changes_with_weights_and_template_and_with_nothing_else(folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "moved")
    before = folder_revision(folder)
    (moved / "README.md").write_text("Another readme.", "utf-8")
    assert folder_revision(moved) == before
    (moved / "chat_template.jinja").write_text("{{ messages }}", "utf-8")
    assert folder_revision(moved) != before
    other = tiny_folder(tmp_path / "other", seed=1)
    assert folder_revision(other) != before


def test_big_weights_are_sampled_and_the_revision_says_so(folder):
    before = folder_revision(folder, full_hash_bytes=0)
    assert before.startswith("sampled:")
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert folder_revision(folder, full_hash_bytes=0) != before


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["BertForMaskedLM"]}, "is BertForMaskedLM, no causal language model"),
        ({"architectures": ["LlamaModel"]}, "is LlamaModel, no causal language model"),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            "is quantised (gptq); give its unquantised weights",
        ),
        ({"num_hidden_layers": 3}, "lacks 9 of its weights (model.layers.2."),
        ({"hidden_size": 32}, "cannot be loaded: "),
        ({"model_type": "nobody-knows"}, "cannot be loaded: "),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(folder, config, message):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **config}), "utf-8")
    with pytest.raises(InputError) as refusal:
        load_base(str(folder))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_code_that_a_model_brings_along_is_never_run(folder, tmp_path):
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass C: pass\n", "utf-8")
    path = folder / "config.json"
    own = {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.C"},
    }
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **own}), "utf-8")
    with pytest.raises(InputError, match="cannot be loaded"):
        load_base(str(folder))
    assert not ran.exists()


def test_a_model_without_a_chat_template_is_refused(tmp_path):
    folder = tiny_folder(tmp_path / "plain", template=None)
    for load in (load_base, tokenizer_of):
        with pytest.raises(
            InputError, match=r"has no chat template, .*; give its instruct version"
        ):
            load(str(folder))


def test_weights_cut_short_are_refused(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"the base model .* cannot be loaded"):
        load_base(str(folder))


def test_a_name_that_is_no_base_is_refused_with_what_to_give(folder, tmp_path):
    adapter(load_base(str(folder)), tmp_path / "a")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "empty").mkdir()
    for name, message in {
        "local:nothing": "the embedded models are: local:smollm2-135m",
        "no-such-model": "is no folder; give local:smollm2-135m, a folder",
        str(tmp_path / "gone"): "is no folder; give local:smollm2-135m, a folder",
        str(tmp_path / "model.gguf"): "is a file; give the folder of a transformers model",
        str(tmp_path / "empty"): "holds no config.json",
        str(tmp_path / "a"): "is an adapter, not a model",
    }.items():
        with pytest.raises(InputError) as refusal:
            load_base(name)
        assert message in str(refusal.value)


def test_the_outline_of_a_base_has_its_layers_and_no_values(folder):
    outline = outline_of(str(folder))
    loaded = load_base(str(folder)).model
    assert [name for name, _ in outline.named_modules()] == [n for n, _ in loaded.named_modules()]
    assert {parameter.device.type for parameter in outline.parameters()} == {"meta"}


def test_every_part_of_the_weights_has_the_mode_of_the_config(tmp_path):
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        (tmp_path / name).write_bytes(b"weights")
        (tmp_path / name).chmod(0o600)
    (tmp_path / "config.json").write_text("{}", "utf-8")
    (tmp_path / "config.json").chmod(0o640)
    make_readable(tmp_path, like="config.json")
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o640}


def test_what_the_hub_client_says_of_its_tries_is_not_shown_and_its_errors_are():
    client = logging.getLogger("huggingface_hub.utils._http")
    before = client.isEnabledFor(logging.WARNING)
    with quiet():
        assert not client.isEnabledFor(logging.WARNING)
        assert client.isEnabledFor(logging.ERROR)
    assert client.isEnabledFor(logging.WARNING) == before


def test_a_device_that_is_not_there_is_refused():
    assert placement("cpu").arguments == {}
    with pytest.raises(InputError, match=r'"auto", "cpu", "cuda" or "cuda:1"'):
        placement("tpu")
    with pytest.raises(InputError, match="device cuda:63 is not on this machine"):
        placement("cuda:63")


OFFLINE = """
import sys
from palate.errors import InputError
from palate.simulators.base_model import base_of, load_base
base = load_base("people/tiny")
print(base.record.revision)
print(base_of(base.record).record.revision)
try:
    load_base("people/missing")
except InputError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_hub_name_is_pinned_to_the_commit_that_it_was_loaded_from(folder, tmp_path):
    """From the hub client's own cache, as on a machine without a network."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    model = tmp_path / "hub/models--people--tiny"
    (model / "refs").mkdir(parents=True)
    (model / "refs/main").write_text(commit, "utf-8")
    (model / "snapshots").mkdir()
    shutil.copytree(folder, model / "snapshots" / commit)
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, again, refusal = done.stdout.splitlines()
    assert first == again == commit
    assert refusal.startswith("the base model people/missing cannot be loaded: ")


# --- the embedded base


@pytest.mark.local
@pytest.mark.slow
def test_the_embedded_base_has_the_weights_that_the_server_serves():
    import gguf

    from palate.models.weights import smollm2_135m
    from palate.simulators.gguf_adapter import neighbours

    served = smollm2_135m()
    base = load_base("local:smollm2-135m", device="cpu")
    assert base.record.revision == served.revision
    assert base.record.architecture == "LlamaForCausalLM"
    weights = {name: p.detach().numpy() for name, p in base.model.named_parameters()}
    known = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 30)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(served.path).tensors}
    assert len(weights) == len(stored) == 272  # the output layer is the embeddings
    for name, values in weights.items():
        tensor = stored[known.get_name(name, (".weight",))]
        turned = name.endswith(("q_proj.weight", "k_proj.weight"))
        ours = neighbours(values, 9 if "q_proj" in name else 3) if turned else values
        same = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
        assert np.array_equal(ours, same), name


# --- the adapter on it


def test_an_adapter_on_another_base_is_refused(folder, tmp_path):
    base = load_base(str(folder))
    other = tiny_folder(tmp_path / "other", seed=1)
    record = BaseModelRecord(
        name="people/tiny", revision="abc", architecture=base.record.architecture
    )
    with pytest.raises(InputError) as refusal:
        check_base(record, base)
    assert str(refusal.value) == (
        "the adapter belongs to people/tiny (LlamaForCausalLM, revision abc), but the base given "
        f"is {folder} (LlamaForCausalLM, revision {base.record.revision}); give the base that it "
        "was trained on, or train it again"
    )
    changed = base.record.model_copy(update={"name": str(other)})
    with pytest.raises(InputError, match="the adapter belongs to"):
        base_of(changed)


def test_a_base_that_moved_is_still_the_base(folder, tmp_path):
    record = load_base(str(folder)).record
    moved = shutil.move(folder, tmp_path / "moved")
    check_base(record, load_base(str(moved)))


def test_an_adapter_changes_what_the_base_says_in_every_layer(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    alone = answers(base.model)
    model = with_adapter(base, place)
    assert adapted_layers(model, "adapter") == 14  # two layers of seven projections
    assert (answers(model) - alone).abs().max() > 0.1
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_target_modules_that_match_nothing_are_named(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    config = place / "adapter_config.json"
    asked = {
        "peft_type": "LORA",
        "r": 8,
        "lora_alpha": 16,
        "target_modules": ["query_projection", "value_projection"],
        "base_model_name_or_path": "tiny-test/base",
    }
    config.write_text(json.dumps(asked), "utf-8")
    with pytest.raises(InputError) as refusal:
        with_adapter(base, place)
    assert "target modules query_projection, value_projection match no linear layer" in str(
        refusal.value
    )
    assert "down_proj, gate_proj, k_proj, lm_head, o_proj, q_proj" in str(refusal.value)


def test_one_target_module_that_matches_nothing_is_named_though_others_match(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    config = place / "adapter_config.json"
    said = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps({**said, "target_modules": [*LAYERS, "query"]}), "utf-8")
    with pytest.raises(InputError, match="target modules query match no linear layer"):
        with_adapter(base, place)


def test_an_adapter_whose_b_matrices_are_all_zero_is_reported(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a", spread=0.0)
    with pytest.raises(InputError, match="has no effect: all of its 14 B matrices are zero"):
        with_adapter(base, place)


def test_an_untrained_adapter_that_begins_with_zeros_in_a_is_reported_too(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a", init_lora_weights="mica")
    with pytest.raises(InputError, match="has no effect: all of its 14 A matrices are zero"):
        with_adapter(base, place)


def test_values_that_are_no_numbers_are_reported(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a", spread=float("nan"))
    with pytest.raises(InputError, match=r"no numbers, first in model\.layers\.0\.mlp\.down_proj"):
        with_adapter(base, place)


def test_an_adapter_that_lacks_layers_which_its_config_names_is_refused(folder, tmp_path):
    """PEFT would fill them with untrained pairs."""
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a", targets=["q_proj"])
    config = place / "adapter_config.json"
    said = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps({**said, "target_modules": ["q_proj", "v_proj"]}), "utf-8")
    with pytest.raises(InputError, match="holds 2 layers, but 4 of the base would be adapted"):
        with_adapter(base, place)


def test_an_adapter_of_a_deeper_or_a_wider_model_is_refused(folder, tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    base = load_base(str(folder))
    shape = LlamaConfig.from_pretrained(str(folder))
    shape.num_hidden_layers = 3
    deep = base._replace(model=LlamaForCausalLM(shape))
    place = adapter(deep, tmp_path / "deep")
    with pytest.raises(InputError, match=r"adapts 7 layers that .* does not have, first model"):
        with_adapter(base, place)
    shape.num_hidden_layers, shape.intermediate_size = 2, 48
    wide = base._replace(model=LlamaForCausalLM(shape))
    place = adapter(wide, tmp_path / "wide")
    with pytest.raises(InputError, match=r"down_proj is \(16, 32\), the update \(16, 48\)"):
        with_adapter(base, place)


@pytest.mark.parametrize("kept", [0, 7, 300, -50])
def test_an_adapter_file_cut_short_is_refused(folder, tmp_path, kept):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    weights = place / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(InputError, match="is no whole safetensors file"):
        with_adapter(base, place)


def test_an_adapter_saved_in_bfloat16_is_read(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    from palate.simulators.adapter_file import read_adapter

    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    single = {name: pair.b for name, pair in read_adapter(place).pairs.items()}
    tensors = load_file(place / WEIGHTS)
    save_file({n: t.bfloat16() for n, t in tensors.items()}, place / WEIGHTS)
    half = {name: pair.b for name, pair in read_adapter(place).pairs.items()}
    assert half.keys() == single.keys()
    for name, values in half.items():
        assert np.abs(values - single[name]).max() <= 2**-8 * np.abs(single[name]).max()


def test_an_adapter_that_is_not_lora_or_not_there_is_refused(folder, tmp_path):
    base = load_base(str(folder))
    with pytest.raises(InputError, match="cannot be read"):
        with_adapter(base, tmp_path / "nowhere")
    place = adapter(base, tmp_path / "a")
    config = place / "adapter_config.json"
    said = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps({**said, "peft_type": "IA3"}), "utf-8")
    with pytest.raises(InputError, match="of kind IA3 is not LoRA"):
        with_adapter(base, place)


@pytest.mark.parametrize("beginning", ["pissa", "pissa_niter_4", "olora"])
def test_an_adapter_that_was_trained_on_a_changed_base_is_refused(folder, tmp_path, beginning):
    """Saved by PEFT itself: its pairs alone are not what was trained, beside the whole weights."""
    place = adapter(load_base(str(folder)), tmp_path / "a", init_lora_weights=beginning)
    with pytest.raises(
        InputError, match=f"init_lora_weights '{beginning}' is trained on a changed"
    ):
        with_adapter(load_base(str(folder)), place)


@pytest.mark.parametrize("beginning", [True, False, "gaussian", "orthogonal"])
def test_beginnings_that_leave_the_base_alone_answer_as_they_did_when_saved(
    folder, tmp_path, beginning
):
    base = load_base(str(folder))
    alone = answers(base.model)
    place = adapter(base, tmp_path / "a", init_lora_weights=beginning)
    model = with_adapter(load_base(str(folder)), place)
    assert not answers(model).equal(alone)
    with model.disable_adapter():
        assert answers(model).equal(alone)


@pytest.mark.parametrize(
    "changes",
    [
        {"r": 9},
        {"task_type": "NO_SUCH_TASK"},
        {"target_modules": "(("},
        {"modules_to_save": ["lm_head"]},
        {"megatron_config": {"a": 1}, "megatron_core": "antigravity"},
    ],
)
def test_a_config_that_does_not_go_with_its_weights_is_a_sentence(folder, tmp_path, changes):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    config = place / "adapter_config.json"
    said = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps({**said, **changes}), "utf-8")
    with pytest.raises(InputError, match=r"cannot be put on .*; give the folder as training"):
        with_adapter(base, place)


def test_an_adapter_file_of_endless_brackets_or_of_a_pickle_is_refused(folder, tmp_path):
    base = load_base(str(folder))
    place = adapter(base, tmp_path / "a")
    for content in ((200_000).to_bytes(8, "little") + b"[" * 200_000, b"\x80\x04cos\nsystem\n."):
        (place / WEIGHTS).write_bytes(content)
        with pytest.raises(InputError, match="is no whole safetensors file"):
            with_adapter(base, place)


def trained(base, folder):
    """What `load_adapters` reads of a finished training: the base's record and the folder."""
    from types import SimpleNamespace

    adapter(base, folder / "adapter", seed=sum(map(ord, folder.name)))
    return Trained(folder, SimpleNamespace(base=base.record))


def test_several_adapters_on_one_base_each_answer_as_they_do_alone(folder, tmp_path):
    base = load_base(str(folder))
    people = {"u.1": trained(base, tmp_path / "one"), "u.2": trained(base, tmp_path / "two")}
    alone = answers(base.model)
    single = {
        user: answers(with_adapter(load_base(str(folder)), someone.peft))
        for user, someone in people.items()
    }
    adapted = load_adapters(base, people)
    assert adapted.layers == {"u.1": 14, "u.2": 14}
    assert answers(adapted.model).equal(single["u.1"])
    for user in ("u.2", "u.1", None, "u.2", None, "u.1"):
        adapted.use(user)
        assert answers(adapted.model).equal(single[user] if user else alone)
    assert not single["u.1"].equal(single["u.2"])
    with pytest.raises(KeyError):
        adapted.use("u.3")


def test_an_adapter_of_another_base_is_not_put_beside_the_others(folder, tmp_path):
    base = load_base(str(folder))
    other = base._replace(record=base.record.model_copy(update={"revision": "sha256:other"}))
    people = {"u1": trained(base, tmp_path / "one"), "u2": trained(other, tmp_path / "two")}
    with pytest.raises(InputError, match="the adapter belongs to"):
        load_adapters(base, people)
