"""The states of torch's random numbers: a resumed training draws what it would have drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def random_states() -> dict[str, Tensor]:
    """By device: "cpu", "cuda:0", …"""
    import torch

    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda:{n}": state for n, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def restore_random(states: Mapping[str, Tensor]) -> None:
    """Go on from these states; those of devices that are not here are left out."""
    import torch

    torch.set_rng_state(states["cpu"])
    for number in range(torch.cuda.device_count()):
        if f"cuda:{number}" in states:
            torch.cuda.set_rng_state(states[f"cuda:{number}"], number)
