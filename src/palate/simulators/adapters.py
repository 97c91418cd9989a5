"""Adapters put on a base model, one or several at once, never silently without effect.

PEFT ignores a target that matches nothing while another one matches, fills what an adapter's file
lacks with an untrained pair, and only warns. Each of these would make the base model answer in a
person's place, so each is refused by name (paper 3.1).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from palate.errors import InputError
from palate.simulators.adapter_file import AdapterFile, read_adapter
from palate.simulators.base_model import Base, check_base
from palate.simulators.lora_targets import check_parameters, check_targets
from palate.simulators.memory import is_out_of_memory
from palate.simulators.quiet import quiet
from palate.simulators.trained import Trained

if TYPE_CHECKING:
    from peft import PeftModel


class Adapted:
    """A base with several adapters on it, of which one at a time is in use, or none.

    The base's own model is changed: its layers are wrapped.
    """

    def __init__(
        self, model: PeftModel, names: Mapping[str, str], layers: Mapping[str, int]
    ) -> None:
        """For `load_adapters` alone. `names`: user to PEFT's name, which takes no dot."""
        self.model = model
        self.layers = dict(layers)  # user -> adapted layers, over 0
        self._names = dict(names)

    def use(self, user: str | None) -> None:
        """Answer as `user` from now on; None: as the base model alone.

        Raises:
            KeyError: no adapter of this user was loaded.
        """
        if user is None:
            self.model.base_model.disable_adapter_layers()
            return
        self.model.base_model.enable_adapter_layers()
        self.model.set_adapter(self._names[user])
        self.model.requires_grad_(False)  # choosing an adapter makes it trainable again


def with_adapter(base: Base, folder: Path) -> PeftModel:
    """The base with the PEFT adapter in `folder`, for inference.

    Raises:
        InputError: as `read_adapter`; its targets or its matrices do not fit the base (by name).
    """
    return _with(base, {"adapter": folder}).eval()


def load_adapters(base: Base, trained: Mapping[str, Trained]) -> Adapted:
    """The base with the adapters of several users; as the first one, until `use` says another.

    Raises:
        InputError: an adapter was trained on another base, and as `with_adapter`.
        ValueError: there are none.
    """
    if not trained:
        raise ValueError("no adapters to load")
    for simulator in trained.values():
        check_base(simulator.record.base, base)
    names = {user: f"user{number}" for number, user in enumerate(trained)}
    model = _with(base, {names[user]: simulator.peft for user, simulator in trained.items()})
    layers = {user: adapted_layers(model, name) for user, name in names.items()}
    adapted = Adapted(model.eval(), names, layers)
    adapted.use(next(iter(trained)))
    return adapted


def adapted_layers(model: PeftModel, name: str = "default") -> int:
    """Layers of `model` that carry the adapter called `name`."""
    from peft.tuners.lora import LoraLayer

    return sum(
        isinstance(module, LoraLayer) and name in module.lora_A for module in model.modules()
    )


def _with(base: Base, folders: Mapping[str, Path]) -> PeftModel:
    from peft import PeftModel

    files = {name: read_adapter(folder) for name, folder in folders.items()}
    for file in files.values():
        _check_fits(base, file)
    model: PeftModel | None = None
    for name, file in files.items():
        where = {"adapter_name": name, "torch_device": str(base.device)}
        with quiet(), warnings.catch_warnings(), _told(base, file):
            # Missing keys: counted below, and refused.
            warnings.filterwarnings("ignore", message="Found missing adapter keys")
            if model is None:
                model = PeftModel.from_pretrained(base.model, str(file.folder), **where)
            else:
                model.load_adapter(str(file.folder), **where)
        _check_loaded(model, name, file)
    assert model is not None  # there is at least one folder
    return model.requires_grad_(False)


@contextlib.contextmanager
def _told(base: Base, file: AdapterFile) -> Iterator[None]:
    """What PEFT or torch say of a config that does not go with its weights, as one sentence."""
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(
            f"the adapter {file.folder} cannot be put on {base.record.name}: {said}; give the "
            "folder as training wrote it"
        ) from error


def _check_fits(base: Base, file: AdapterFile) -> None:
    """Targets and matrices fit the base: what PEFT would skip or fill in."""
    config = file.config
    if isinstance(config.target_modules, tuple):
        check_targets(base.model, config.target_modules)
    check_parameters(base.model, config.target_parameters or ())
    modules = dict(base.model.named_modules())
    unknown = [name for name in file.pairs if name not in modules]
    if unknown and not config.target_parameters:
        raise InputError(
            f"the adapter {file.folder} adapts {len(unknown)} layers that {base.record.name} does "
            f"not have, first {unknown[0]}; give the base that it was trained on"
        )
    for name, pair in file.pairs.items():
        weight = getattr(modules.get(name), "weight", None)
        update = (pair.b.shape[0], pair.a.shape[1])
        if weight is not None and sorted(weight.shape) != sorted(update):
            raise InputError(
                f"the adapter {file.folder} does not fit {base.record.name}: {name} is "
                f"{tuple(weight.shape)}, the update {update}; give the base it was trained on"
            )


def _check_loaded(model: PeftModel, name: str, file: AdapterFile) -> None:
    found = adapted_layers(model, name)
    if found != len(file.pairs):
        raise InputError(
            f"the adapter {file.folder} holds {len(file.pairs)} layers, but {found} of the base "
            "would be adapted, so a part would be the base model's; train it again"
        )
