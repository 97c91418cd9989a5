"""The sample study, written out so that a newcomer has something to run and to change."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import click

from palate.errors import InputError, StoreError

# Read by a person, never by an induction: it says what the synthetic users like.
_NOT_COPIED = {"__init__.py", "__pycache__", "tastes.md"}


def write_sample(folder: Path) -> None:
    """Copy the sample study into `folder`, which must be new or empty.

    Raises:
        InputError: something is there already; nothing of it is touched.
        StoreError: the folder cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty; name a new folder, so that nothing is lost")
    beside = folder.absolute().with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        with resources.as_file(resources.files("palate") / "sample") as sample:
            shutil.copytree(sample, beside, ignore=lambda _, names: _NOT_COPIED & set(names))
        if folder.exists():
            folder.rmdir()
        beside.rename(folder)
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def run_demo(folder: Path) -> int:
    """Run the sample study in `folder`, writing it first where it is not there; an exit code."""
    from palate.commands import run_study
    from palate.config import load_study

    if not (folder / "study.toml").is_file():
        write_sample(folder)
    study = load_study(folder)
    content, cards = study.content, len(study.panel_files())
    cells = len(content.users) * cards * len(content.candidates) * content.protocol.repetitions
    click.echo(
        f"Sample study in {folder}: {len(content.users)} synthetic users, {cards} cards, "
        f"{len(content.candidates)} candidates, {content.protocol.repetitions} repetitions, "
        f"{cells} cells.\nEvery role is played by one embedded model of 135 million parameters, "
        "the judge too: what follows shows that the machinery works, not who is better."
    )
    return run_study(folder, out=None, limit=None, max_concurrency=None)
