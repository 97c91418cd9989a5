"""The process that runs the embedded model; `palate.models.local` starts this file.

It reads one line of JSON settings (`LocalSettings`) from standard input, serves llama.cpp over
HTTP on a free loopback port, answers with one line of JSON ({"port": N} or {"error": "..."}) and
ends when its standard input closes. The system closes that pipe however the parent ends, so that
even `kill -9` leaves no server behind.

Imports nothing of palate but this module: it starts in a moment and knows nothing of a study.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How llama.cpp is loaded (measured: docs/adr/0002-embedded-model.md)."""

    path: str  # of the GGUF file
    revision: str  # what replies name as their model: never the path, which names a home folder
    slots: int  # requests worked on at once
    slot_context: int  # tokens, prompt and answer, of one request
    threads: int
    prompt_cache_mib: int  # host memory for prompts that lost their slot
    adapters: tuple[str, ...] = ()  # GGUF files, in the order of their ids; none is on by itself

    def line(self) -> str:
        """The settings as one line of JSON."""
        return json.dumps(asdict(self)) + "\n"


def main() -> None:
    """Serve until standard input closes; does not return."""
    settings = LocalSettings(**json.loads(sys.stdin.readline()))
    server, answer = _loaded(settings)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    while server is not None and sys.stdin.read(1 << 16):
        pass
    # Taking the server down in order waits for ever for a request that is still worked on.
    os._exit(0)


def _loaded(settings: LocalSettings) -> tuple[object | None, dict[str, object]]:
    """The server, which lives as long as it is referred to, and the line about it."""
    try:
        import xllamacpp
    except ImportError as error:
        return None, {"error": f"xllamacpp cannot be imported: {error}"}
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = settings.path, {settings.revision}
    params.hostnames, params.port, params.ui = ["127.0.0.1"], 0, False
    params.n_parallel, params.n_ctx = settings.slots, settings.slots * settings.slot_context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.n_gpu_layers = 0  # the same answers on every machine
    params.cache_ram_mib = settings.prompt_cache_mib
    params.lora_adapters = [
        xllamacpp.CommonAdapterLoraInfo(path, 1.0) for path in settings.adapters
    ]
    params.lora_init_without_apply = True
    params.verbosity = -1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        return None, {"error": str(error)}
    port = urlsplit(str(server.listening_address)).port
    _wait_until_healthy(port)
    return server, {"port": port}


def _wait_until_healthy(port: int | None) -> None:
    """Wait while the server says 503: the model is not loaded. The parent sets the bound."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass  # not listening yet
        finally:
            connection.close()
        time.sleep(_POLL_S)


if __name__ == "__main__":
    main()
