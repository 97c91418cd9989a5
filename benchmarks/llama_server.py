"""llama.cpp's server with adapters, in a process of its own that ends with its standard input.

    python -m benchmarks.llama_server MODEL.gguf [ADAPTER.gguf ...]

Prints one line, the port, when it is loaded.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

CONTEXT_TOKENS = 4096
THREADS = 2
START_LIMIT_S = 120.0


def main() -> None:
    import xllamacpp

    model, *adapters = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames, params.port, params.ui = ["127.0.0.1"], 0, False
    params.n_parallel, params.n_ctx = 1, CONTEXT_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.n_gpu_layers, params.verbosity = 0, -1
    params.lora_adapters = [_adapter(path) for path in adapters]
    params.lora_init_without_apply = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


def _adapter(path: str):
    import xllamacpp

    adapter = xllamacpp.CommonAdapterLoraInfo()
    adapter.path, adapter.scale = path, 1.0
    return adapter


@contextlib.contextmanager
def serving(model: Path, adapters: Sequence[Path] = ()) -> Iterator[str]:
    """The address of a running server, which stops at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.llama_server", str(model), *map(str, adapters)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the server did not start with {model} and {list(adapters)}")
        _wait(address)
        yield address
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _wait(address: str) -> None:
    end = time.monotonic() + START_LIMIT_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=30):
                return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def asked(address: str, path: str, body: dict) -> dict:
    """What the server answers to a POST."""
    request = urllib.request.Request(
        f"{address}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.loads(answer.read())


def first_token(
    address: str, ids: Sequence[int], scales: Sequence[float], *, most: int
) -> dict[int, float]:
    """Log-probability of the `most` likeliest first tokens after a prompt, by token.

    `scales`: of every adapter in its order; 0 leaves it out.
    """
    answer = asked(
        address,
        "/completion",
        {
            "prompt": list(ids),
            "n_predict": 1,
            "n_probs": most,
            "temperature": 0,
            "cache_prompt": False,
            "lora": [{"id": n, "scale": scale} for n, scale in enumerate(scales)],
        },
    )
    return {t["id"]: t["logprob"] for t in answer["completion_probabilities"][0]["top_logprobs"]}


if __name__ == "__main__":
    main()
