"""The command line of vLLM that serves the adapters of several people over one base (multi-LoRA).

Each adapter is a model of the server, under a name of its own; `/v1/models` tells its base as its
parent. The chat template is the one of training; its arguments come with every request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from palate.errors import InputError
from palate.simulators.trained import CHAT_TEMPLATE, PEFT_WEIGHTS, BaseModelRecord, Trained
from palate.types import digest

PROGRAM = "vllm"
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # what --max-lora-rank takes
AT_ONCE = 16  # adapters in one batch: each takes memory whether it is used or not
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OF_FILES = ("sha256:", "sampled:")  # revisions of folders, which no hub knows


def served_names(users: Sequence[str], base: str) -> dict[str, str]:
    """User -> name of their adapter at the server: the id, where it can stand in a model's name."""
    return {
        user: user if _PLAIN.fullmatch(user) and user != base else f"user-{digest(user)[:12]}"
        for user in users
    }


def served_base(base: BaseModelRecord) -> str:
    """The base as vLLM is given it, which is also its name at the server."""
    if base.revision.startswith(_OF_FILES):
        return str(Path(base.name).expanduser().absolute())
    return base.name.partition("@")[0]


def serve_command(
    adapters: Mapping[str, Trained], *, host: str, port: int, extra: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command that serves `adapters` (user -> trained simulator) of one base.

    `extra` are arguments of the caller's, which come last and so win.

    Raises:
        InputError: no adapter, or adapters that one server cannot hold together.
    """
    some, *others = _alike(adapters)
    base = served_base(some.record.base)
    if base.startswith("-") or some.record.base.revision.startswith("-"):
        # A record may come from anywhere; an option of vLLM's can load code.
        raise InputError(
            f"the base {_named(some.record.base)} of the adapters reads as an option; train them "
            "on a base with another name"
        )
    names = served_names(tuple(adapters), base)
    modules = [
        # As JSON: "name=path" breaks where a path holds an equals sign, and tells no parent.
        json.dumps(
            {
                "name": names[user],
                "path": str(trained.peft.absolute()),
                "base_model_name": base,
            },
            ensure_ascii=False,
        )
        for user, trained in adapters.items()
    ]
    revision = some.record.base.revision
    of_hub = () if revision.startswith(_OF_FILES) else ("--revision", revision)
    rank = _rank([one.record.rank for one in (some, *others)])
    at_once = min(len(adapters), AT_ONCE)
    return (
        *(PROGRAM, "serve", base, *of_hub, "--host", host, "--port", str(port)),
        *("--chat-template", str((some.folder / CHAT_TEMPLATE).absolute())),
        *("--enable-lora", "--max-lora-rank", str(rank), "--max-loras", str(at_once)),
        *("--max-cpu-loras", str(len(adapters)), "--lora-modules", *modules),
        *extra,
    )


def _alike(adapters: Mapping[str, Trained]) -> Sequence[Trained]:
    """The adapters, of one base and one chat template, each of its own weights."""
    found = list(adapters.items())
    if not found:
        raise InputError("there is no adapter to serve; train one with `palate simulator train`")
    first_user, first = found[0]
    weights: dict[str, str] = {}
    for user, trained in found:
        other = weights.setdefault(trained.record.files[PEFT_WEIGHTS], user)
        if other != user:
            raise InputError(
                f"users {other} and {user} have the same adapter (their {PEFT_WEIGHTS} are equal); "
                "train each from their own history"
            )
        if trained.record.base != first.record.base:
            raise InputError(
                f"the adapters of {first_user} and {user} belong to two bases "
                f"({_named(first.record.base)} and {_named(trained.record.base)}), and a server "
                "holds one; choose with --base"
            )
        template = trained.record.prompt_form.template_sha256
        if template != first.record.prompt_form.template_sha256:
            raise InputError(
                f"the adapters of {first_user} and {user} were trained with two chat templates, "
                "and a server has one; train both again"
            )
    return [trained for _, trained in found]


def _rank(ranks: Sequence[int]) -> int:
    needed = max(ranks)
    for rank in RANKS:
        if needed <= rank:
            return rank
    raise InputError(f"vLLM serves adapters of rank {RANKS[-1]} at most, and one has {needed}")


def _named(base: BaseModelRecord) -> str:
    return f"{base.name} at {base.revision}"
