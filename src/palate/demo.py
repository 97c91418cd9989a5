"""The sample studies, written out so that a newcomer has something to run and to change."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from palate.errors import InputError, StoreError

SAMPLES_FOLDER = Path(__file__).resolve().parent / "sample"


class Sample(NamedTuple):
    """A sample study: the folder of its name, completed by histories and library cards.

    `sessions` is how many of each user's sessions are taken, from the first; None takes all.
    `cards` are copied into the study's cards folder; a panel of the library needs no copy.
    """

    users: tuple[str, ...]
    sessions: int | None
    cards: tuple[str, ...] = ()


SAMPLES = {
    "demo": Sample(
        users=("synthetic-ines", "synthetic-oskar"),
        sessions=8,
        cards=("desmond-pike-en", "nkechi-sund-en", "teodora-visk-en"),
    ),
    "en": Sample(("synthetic-ines", "synthetic-oskar", "synthetic-tamsin"), sessions=None),
    "zh": Sample(("synthetic-doudou", "synthetic-zhenru"), sessions=None),
}


def write_sample(folder: Path, name: str = "demo") -> None:
    """Write the sample study `name` into `folder`, which must be new or empty.

    The key to the synthetic users' tastes stays behind: no induction may read it.

    Raises:
        InputError: something is there already; nothing of it is touched.
        StoreError: the folder cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty; name a new folder, so that nothing is lost")
    with _writing(folder) as beside:
        sample = SAMPLES[name]
        shutil.copytree(SAMPLES_FOLDER / name, beside)
        _write_histories(sample, beside / "histories")
        _write_cards(sample, beside / "cards")


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


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` that takes its place when all was written."""
    beside = folder.absolute().with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        yield beside
        if folder.exists():
            folder.rmdir()
        beside.rename(folder)
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write_histories(sample: Sample, folder: Path) -> None:
    folder.mkdir()
    for user in sample.users:
        lines = (SAMPLES_FOLDER / "histories" / f"{user}.jsonl").read_bytes().splitlines(True)
        (folder / f"{user}.jsonl").write_bytes(b"".join(lines[: sample.sessions]))


def _write_cards(sample: Sample, folder: Path) -> None:
    from palate.cards import library

    if sample.cards:
        folder.mkdir()
    for name in sample.cards:
        [path] = library.matching(name)
        shutil.copyfile(path, folder / path.name)
