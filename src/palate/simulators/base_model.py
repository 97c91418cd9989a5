"""The base model that adapters are trained on and measured with, and the adapters put on it.

A base is named as the embedded model (`local:smollm2-135m`: the very weights that the embedded
server serves), as a folder, or as a hub name (`org/model`, `org/model@revision`), the only one that
may touch the network. What was loaded is recorded with its revision: an adapter on any other
weights is not the person (paper 3.1), and `check_base` refuses it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from palate.errors import InputError
from palate.simulators.base_revision import folder_revision
from palate.simulators.devices import Dtype, placement
from palate.simulators.embedded_base import embedded_base
from palate.simulators.quiet import quiet
from palate.simulators.trained import BaseModelRecord

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_LOCAL = "local:"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# A causal decoder under a vision wrapper is loaded as the causal model inside it.
_CAUSAL = re.compile(r".*(ForCausalLM|LMHeadModel|ForConditionalGeneration)")


class Base(NamedTuple):
    """A causal language model with its tokenizer; in evaluation mode."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    record: BaseModelRecord

    @property
    def device(self) -> torch.device:
        """Where its inputs go."""
        return self.model.get_input_embeddings().weight.device


class _Source(NamedTuple):
    """Where transformers finds a base."""

    name: str  # as the user gave it
    place: str
    revision: str | None  # of a hub name; None for the newest
    known: str  # revision of weights that are on this machine, "" for a hub name

    def arguments(self) -> dict[str, Any]:
        """For every `from_pretrained`; code that a model brings along is never run."""
        return {
            "pretrained_model_name_or_path": self.place,
            "revision": self.revision or "main",
            "local_files_only": bool(self.known),
            "trust_remote_code": False,
        }


def load_base(
    name: str, *, revision: str | None = None, device: str = "auto", dtype: Dtype = "auto"
) -> Base:
    """The base `name`, checked for being trainable.

    Args:
        revision: of a hub name: a commit, branch or tag.
        device: "cpu", "cuda", "cuda:1", or "auto": a GPU that the model fits into, else spread over
            all GPUs, else the CPU.
        dtype: of the weights; "auto" is bfloat16 on a GPU that has it, else float32.

    Raises:
        InputError: there is no such base, it cannot be read, is no causal language model, is
            quantised, has weights missing, or has no chat template.
    """
    source = _source(name, revision)
    with quiet(), _told(source):
        source = _pinned(source)
        _refuse_quantised(source, _config(source))
        tokenizer = _tokenizer(source)
        model = _model(source, device, dtype)
    model.eval()
    architecture = type(model).__name__
    revision = source.known or str(source.revision)
    record = BaseModelRecord(name=name, revision=revision, architecture=architecture)
    return Base(model, tokenizer, record)


def base_of(record: BaseModelRecord, *, device: str = "auto", dtype: Dtype = "auto") -> Base:
    """The base that an adapter was trained on, at its revision.

    Raises:
        InputError: as `load_base`, and as `check_base` where the weights are others by now.
    """
    hub = _is_hub_name(record.name)
    revision = record.revision if hub else None
    base = load_base(record.name, revision=revision, device=device, dtype=dtype)
    check_base(record, base)
    return base


def tokenizer_of(name: str, *, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a base, without its weights.

    Raises:
        InputError: there is none, or it has no chat template.
    """
    source = _source(name, revision)
    with quiet(), _told(source):
        return _tokenizer(_pinned(source))


def config_of(name: str) -> PretrainedConfig:
    """The config of a base, without its weights or its tokenizer.

    Raises:
        InputError: there is none, or it is of no causal language model.
    """
    source = _source(name, None)
    with quiet(), _told(source):
        return _config(_pinned(source))


def outline_of(name: str) -> PreTrainedModel:
    """The modules of a base with their shapes and without values, from its config alone.

    Raises:
        InputError: there is no config, or it is of no causal language model, or of a quantised one.
    """
    import torch
    from transformers import AutoModelForCausalLM

    source = _source(name, None)
    with quiet(), _told(source), torch.device("meta"):
        config = _config(_pinned(source))
        _refuse_quantised(source, config)
        return AutoModelForCausalLM.from_config(config, trust_remote_code=False)


def check_base(record: BaseModelRecord, base: Base) -> None:
    """Refuse a base other than the one in `record`: on it the adapter means nothing.

    The name may differ (a folder moved, a hub name against its local copy is another revision).

    Raises:
        InputError: another architecture or revision.
    """
    if (record.architecture, record.revision) != (base.record.architecture, base.record.revision):
        raise InputError(
            f"the adapter belongs to {_described(record)}, but the base given is "
            f"{_described(base.record)}; give the base that it was trained on, or train it again"
        )


def _described(record: BaseModelRecord) -> str:
    return f"{record.name} ({record.architecture}, revision {record.revision})"


@contextlib.contextmanager
def _told(source: _Source) -> Iterator[None]:
    """What transformers, the hub client or torch raise, as one sentence; `MemoryError` passes."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(f"the base model {source.name} cannot be loaded: {said}") from error


def _is_hub_name(name: str) -> bool:
    plain = name.partition("@")[0]
    return (
        not name.startswith(_LOCAL) and not Path(name).exists() and bool(_HUB_NAME.fullmatch(plain))
    )


def _source(name: str, revision: str | None) -> _Source:
    if name.startswith(_LOCAL):
        embedded = embedded_base(name.removeprefix(_LOCAL))
        return _Source(name, str(embedded.folder), None, embedded.revision)
    if _is_hub_name(name):
        place, _, written = name.partition("@")
        return _Source(name, place, revision or written or None, "")
    folder = Path(name).expanduser()
    _check_folder(name, folder)
    try:
        return _Source(name, str(folder), None, folder_revision(folder))
    except OSError as error:
        raise InputError(f"the base model {name} cannot be read: {error.strerror}") from None


def _check_folder(name: str, folder: Path) -> None:
    if folder.is_file():
        raise InputError(
            f"the base model {name} is a file; give the folder of a transformers model (a GGUF "
            "file is for serving, not for training)"
        )
    if not folder.is_dir():
        raise InputError(
            f"the base model {name} is no folder; give local:smollm2-135m, a folder with "
            "config.json, or a hub name such as org/model"
        )
    if not (folder / "config.json").is_file():
        adapter = (folder / "adapter_config.json").is_file()
        why = "is an adapter, not a model" if adapter else "holds no config.json"
        raise InputError(f"the base model {name} {why}; give the folder of a transformers model")


def _config(source: _Source) -> PretrainedConfig:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(**source.arguments())
    for architecture in config.architectures or ():
        if config.is_encoder_decoder or not _CAUSAL.fullmatch(architecture):
            raise InputError(
                f"the base model {source.name} is {architecture}, no causal language model; give "
                "one that generates text from left to right"
            )
    return config


def _refuse_quantised(source: _Source, config: PretrainedConfig) -> None:
    """LoRA needs gradients through weights that palate can name, save and serve."""
    for part in (config, config.get_text_config()):
        quantised = getattr(part, "quantization_config", None)
        if quantised:
            plain = quantised if isinstance(quantised, dict) else quantised.to_dict()
            raise InputError(
                f"the base model {source.name} is quantised ({plain.get('quant_method', '?')}); "
                "give its unquantised weights"
            )


def _pinned(source: _Source) -> _Source:
    """A hub name at the commit that it stands for now, so that all files are of one commit."""
    if source.known:
        return source
    from huggingface_hub import hf_hub_download

    config = Path(hf_hub_download(source.place, "config.json", revision=source.revision))
    return source._replace(revision=config.parent.name)  # the cache has a folder for each commit


def _tokenizer(source: _Source) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(**source.arguments())
    if not tokenizer.chat_template:
        raise InputError(
            f"the base model {source.name} has no chat template, so it cannot be told who speaks; "
            "give its instruct version"
        )
    return tokenizer


def _model(source: _Source, device: str, dtype: Dtype) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM

    where = placement(device, dtype)
    model, info = AutoModelForCausalLM.from_pretrained(
        **source.arguments(), dtype=where.dtype, output_loading_info=True, **where.arguments
    )
    # transformers fills what a checkpoint lacks with random numbers and only warns.
    missing = sorted(info["missing_keys"])
    if missing:
        raise InputError(
            f"the base model {source.name} lacks {len(missing)} of its weights "
            f"({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}); fetch it again"
        )
    return model
