"""The embedded model: llama.cpp's server on loopback, with weights that a package carries.

One server serves all roles of a process. It is started when a study first names a `local:` model,
and stops when the last user closes it or the process ends, however that happens.

The server is a process of its own (`local_process`). Inside ours it was tried and given up: it
holds the interpreter's lock while it loads and while it stops, stopping it with a request in
flight hangs the whole program, and the wait policy of its threads must be in the environment
before the library loads.

Adapters, one a user, are loaded at its start; which of them a request goes through is said in its
body (`LocalServer.body`), of every adapter and in every request. With adapters the server keeps no
prompts in host memory: it would give what one adapter computed to another (docs/adr/0009).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import NamedTuple

from palate.errors import InputError
from palate.models import local_process, weights
from palate.models.local_process import LocalSettings
from palate.models.spec import LOCAL_SLOTS, EndpointSettings

_START_LIMIT_S = 180.0
_STOP_LIMIT_S = 10.0

_WEIGHTS = {"smollm2-135m": weights.smollm2_135m}

# Measured, with the alternatives: docs/adr/0002-embedded-model.md.
SLOTS = LOCAL_SLOTS
# Without prompts in host memory a chat that lost its slot is computed from its beginning: 0009.
ADAPTER_SLOTS = 8
SLOT_CONTEXT = 4096
PROMPT_CACHE_MIB = 1024
_SETTINGS = EndpointSettings(
    max_concurrency=SLOTS,
    # A queue of judge prompts on a busy laptop is slow, not broken.
    timeout_s=900.0,
    deadline_s=1800.0,
    max_attempts=3,
    json_schema=True,
    digits="grammar",
)


class LocalServer:
    """A running embedded server, or one user's share in it; `close` gives the share back."""

    def __init__(self, running: _Running) -> None:
        """For `start` alone."""
        self.base_url = running.base_url
        self.adapters = running.adapters
        self.max_concurrency = _slots(running.adapters)
        self.settings = _SETTINGS.model_copy(update={"max_concurrency": self.max_concurrency})
        self._running: _Running | None = running

    @property
    def extra_body(self) -> dict[str, object]:
        """Merged into every request to the base: see `body`."""
        return self.body(None)

    def body(self, adapter: Path | None, scale: float = 1.0) -> dict[str, object]:
        """Merged into every request through `adapter`, or to the base alone (None).

        Every adapter is named: one that is not would keep the scale of whoever asked before.

        The prefix that a slot already holds is not computed again; it drops it by itself where
        the adapter changes.
        """
        body: dict[str, object] = {"cache_prompt": True}
        if self.adapters:
            body["lora"] = [
                {"id": number, "scale": scale if path == adapter else 0.0}
                for number, path in enumerate(self.adapters)
            ]
        return body

    async def close(self) -> None:
        """Give the share back; the last one stops the server. Closing twice is harmless."""
        running, self._running = self._running, None
        if running is not None:
            await asyncio.to_thread(_give_back, running)


class _Running(NamedTuple):
    model: str
    adapters: tuple[Path, ...]
    process: subprocess.Popen[str]
    base_url: str


_lock = threading.Lock()  # a thread lock: callers may live in different event loops
_shares: dict[_Running, int] = {}


async def start(model: str, adapters: Sequence[Path] = ()) -> LocalServer:
    """The server of the embedded `model` ("smollm2-135m"), started unless it runs already.

    `adapters` are llama.cpp LoRA files of that model. The first start on a machine fetches the
    weights, which takes as long as the network does.

    Raises:
        InputError: no such embedded model, the extra `local` is not installed, the weights or an
            adapter cannot be had, or the server does not come up.
    """
    if model not in _WEIGHTS:
        known = ", ".join(f"local:{name}" for name in _WEIGHTS)
        raise InputError(f"model local:{model} does not exist; the embedded models are: {known}")
    if util.find_spec("xllamacpp") is None:
        raise InputError(
            f"model local:{model} needs the extra that runs it: pip install 'palate[local]'"
        )
    return LocalServer(await asyncio.to_thread(_shared, model, tuple(adapters)))


def _shared(model: str, adapters: tuple[Path, ...]) -> _Running:
    with _lock:
        for running in list(_shares):
            if running.process.poll() is not None:
                del _shares[running]  # it crashed: whoever asks next gets a new one
            elif (running.model, running.adapters) == (model, adapters):
                _shares[running] += 1
                return running
        running = _launched(model, adapters)
        _shares[running] = 1
        return running


def _give_back(running: _Running) -> None:
    with _lock:
        left = _shares.get(running, 1) - 1
        if left:
            _shares[running] = left
            return
        _shares.pop(running, None)
        _stop(running.process)


def _launched(model: str, adapters: tuple[Path, ...]) -> _Running:
    served = _WEIGHTS[model]()
    settings = LocalSettings(
        path=str(served.path),
        revision=served.revision,
        slots=_slots(adapters),
        slot_context=SLOT_CONTEXT,
        threads=_cores(),
        # Measured: a prompt kept under one adapter is given back to another, and to the base.
        prompt_cache_mib=0 if adapters else PROMPT_CACHE_MIB,
        adapters=tuple(map(str, adapters)),
    )
    process = _process()
    # readline has no time limit of its own: ending the process ends the wait.
    limit = threading.Timer(_START_LIMIT_S, process.kill)
    limit.daemon = True
    limit.start()
    try:
        line = _exchange(process, settings.line())
    finally:
        limit.cancel()
    said = json.loads(line) if line else {}
    if "port" not in said:
        _stop(process)
        raise InputError(_why(model, adapters, said.get("error"), process.returncode))
    return _Running(model, adapters, process, f"http://127.0.0.1:{said['port']}/v1")


def _slots(adapters: Sequence[Path]) -> int:
    return ADAPTER_SLOTS if adapters else SLOTS


def _process() -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own file
        # -P and the file's path: nothing is imported from the folder in which a person works.
        [sys.executable, "-P", local_process.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Threads that spin while they wait generate 20 times slower on a machine with other work.
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        # Ctrl-C is for us: the calls in flight are finished first.
        start_new_session=True,
    )


def _exchange(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line)
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    return process.stdout.readline()


def _stop(process: subprocess.Popen[str]) -> None:
    """Close its standard input, which ends it; end it by force if it is stuck."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _why(model: str, adapters: Sequence[Path], error: str | None, code: int | None) -> str:
    reason = error or f"its process ended with code {code}"
    loaded = ", ".join(map(str, adapters))
    about = f" and that its adapters are of this model ({loaded})" if adapters else ""
    return (
        f"the embedded model local:{model} did not start ({reason}): see that about 1 GB of "
        f"memory is free{about}, or remove {weights.cache_folder() / 'weights'} to fetch it again"
    )


def _cores() -> int:
    """The cores this process may use, which in a container are fewer than the machine has."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
