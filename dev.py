#!/usr/bin/env python3
"""Sets the project up and runs it; needs Python 3.11 or newer with pip, and nothing else.

    python3 dev.py demo [ARGS]   run the sample study and write its report
    python3 dev.py test [ARGS]   run the default tests; ARGS go to pytest
    python3 dev.py test-train [ARGS]   the tests of training and validation, which need torch
    python3 dev.py check         lint, format, types and layers
    python3 dev.py lock          write the pins in requirements/ anew

Everything is installed into .venv beside this file, from pins with hashes, as wheels alone:
nothing is compiled, and nothing outside .venv is touched. A stamp in .venv holds the digest of
what was installed, so that a later run starts at once. Why so: docs/adr/0003-set-up-and-pins.md.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PINS = ROOT / "requirements"
OLDEST = (3, 11)
TORCH = "torch==2.13.0"  # no hash: which build fits (CPU, CUDA) is the machine's own choice
COOLDOWN = "P7D"  # a release younger than this is not pinned: most bad ones are found by then

PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input"]
COMPILE = [
    "-m", "piptools", "compile", "--quiet", "--upgrade", "--generate-hashes",
    "--strip-extras", "--no-emit-index-url", "--no-emit-trusted-host", "--no-emit-find-links",
    "--no-emit-options", "--no-header", "--uploaded-prior-to", COOLDOWN,
]  # fmt: skip
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as run; run()"


def main(words: list[str]) -> int:
    """Do what `words` ask; the exit code of what was run."""
    if sys.version_info < OLDEST:
        return failed(
            f"palate needs Python 3.11 or newer, this is {sys.version.split()[0]}: run dev.py with "
            "a newer one, for example `python3.12 dev.py demo`"
        )
    command, args = (words[0] if words else ""), words[1:]
    if command == "demo":
        return set_up("demo") or become(["-m", "palate", "demo", *args])
    if command == "test":
        os.chdir(ROOT)
        return set_up("test") or become(["-m", "pytest", *args])
    if command == "test-train":
        os.chdir(ROOT)
        tested = ["-m", "pytest", "-m", "train", *args]
        return set_up("test") or set_up("train") or become(tested)
    if command in ("check", "lock") and not args:
        os.chdir(ROOT)
        return check() if command == "check" else lock()
    sys.stderr.write((__doc__ or "") + "\n")
    return 0 if command in ("-h", "--help") else 2


def set_up(pins: str) -> int:
    """Bring .venv to what requirements/PINS.txt says; 0 when it is there."""
    stamp = VENV / f".installed-{pins}"
    wanted = fingerprint(pins)
    if stamp.is_file() and stamp.read_text("utf-8") == wanted and PYTHON.exists():
        return 0
    stamp.unlink(missing_ok=True)
    if problem := make_venv():
        return failed(problem)
    print(f"Installing requirements/{pins}.txt into {VENV} (once) …", flush=True)
    for step in steps_of(pins):
        if run([*PIP, "install", "-qq", *step]):
            return failed(
                f"pip could not install requirements/{pins}.txt: its message stands above; the "
                "first run needs the package index, then run the same command again"
            )
    stamp.write_text(wanted, "utf-8")
    return 0


def steps_of(pins: str) -> list[list[str]]:
    """What pip is told to install, in order."""
    pinned = ["--require-hashes", "--only-binary", ":all:", "-r", str(PINS / f"{pins}.txt")]
    if pins == "train":  # beside the tests' pins
        return [["--only-binary", ":all:", TORCH], pinned]
    # setuptools is among the pins: isolation would fetch another one, without a hash.
    palate = ["--no-deps", "--no-build-isolation", "--no-index", "-e", str(ROOT)]
    return [pinned] if pins == "lock" else [pinned, palate]


def fingerprint(pins: str) -> str:
    """Digest of all that decides what set_up installs, and where."""
    digest = hashlib.sha256(f"{ROOT}\n{sys.version_info[:2]}\n{TORCH}\n".encode())
    for path in (PINS / f"{pins}.txt", ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make_venv() -> str | None:
    """Make .venv unless a working one is there; what is wrong, if anything."""
    if PYTHON.exists() and not run([*PIP, "--version"], quiet=True):
        return None
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError:
        return (
            "this Python cannot make a virtual environment: install its venv module (Debian and "
            "Ubuntu: `apt install python3-venv`) and run the same command again"
        )
    try:
        venv.create(VENV, clear=True, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{VENV} could not be made ({error}): see that the folder can be written"
    return None


def check() -> int:
    """Run every check even if one fails; 1 if any did."""
    if code := set_up("test"):
        return code
    checks = (
        ["-m", "ruff", "check"],
        ["-m", "ruff", "format", "--check"],
        ["-m", "mypy"],
        ["-c", LINT_IMPORTS],
    )
    return 1 if [one for one in checks if run(one)] else 0


def lock() -> int:
    """Resolve all pins anew, the tests' within the demo's."""
    if sys.version_info[:2] != OLDEST:
        return failed(
            "pins are resolved with Python 3.11, the oldest supported one, because a newer one "
            "leaves out what only 3.11 needs: run `python3.11 dev.py lock`"
        )
    if code := set_up("lock"):
        return code
    project = ["pyproject.toml", "--extra", "local"]
    sources = {
        "demo": [*project, "requirements/build.in"],
        "test": [*project, "--extra", "annotate", "requirements/build.in", "requirements/test.in"],
        "train": [*project, "--extra", "annotate", "--extra", "train"],
        "lock": ["requirements/lock.in"],
    }
    constraints = {
        "demo": [],
        "train": ["--constraint", "requirements/test.txt", "--constraint", "requirements/train.in"],
    }
    for pins, source in sources.items():
        within = constraints.get(pins, ["--constraint", "requirements/demo.txt"])
        # torch, which is installed first, stays out of the training's pins.
        within += ["--unsafe-package", "torch"] if pins == "train" else ["--allow-unsafe"]
        if run([*COMPILE, *within, "--output-file", f"requirements/{pins}.txt", *source]):
            return failed(f"requirements/{pins}.txt could not be resolved: see the message above")
    return 0


def run(words: list[str], *, quiet: bool = False) -> int:
    """Exit code of .venv's Python with these arguments."""
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(
        [str(PYTHON), *words], env=environment(), stdout=output, stderr=output, check=False
    ).returncode


def become(words: list[str]) -> int:
    """Replace this process, so that signals and the exit code are the program's own."""
    sys.stdout.flush()
    os.execve(PYTHON, [str(PYTHON), *words], environment())


def environment() -> dict[str, str]:
    """Ours without what would mix another installation into .venv."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "PYTHONPATH")}
    return {**kept, "PIP_USER": "0"}


def failed(sentence: str) -> int:
    """Say what is wrong; 2, as palate does for what only the user can mend."""
    sys.stderr.write(f"dev.py: {sentence}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
