"""Agreement on real labels: `python benchmarks/agreement_dbdc3.py DBDC3.zip`.

Real ratings of chatbot replies by crowd raters: the Dialogue Breakdown Detection Challenge 3 (MIT
licence), as a zip of its JSON files, named as the argument or in the environment variable
PALATE_DBDC3. Labels O, T, X count as 3, 2, 1; a session is a folder and a dialogue id. The score of
a reply for a rater is the mean of all other raters of it, so it differs from rater to rater and no
rater scores themself. Perfect, constant and random scores of the same replies show the ends of the
scale. The whole goes through the CSV files of `palate study agreement`, and is timed.

The figures of three raters, fixed before, are those of an independent computation.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from palate.studies.agreement_files import read_condition_scores, read_labels
from palate.studies.human_agreement import agreement

VALUE = {"O": 3, "T": 2, "X": 1}
CONDITIONS = ("others", "perfect", "constant", "random")
EXPECTED = {"en-a0014": (0.6686, 3950), "en-a0036": (0.7652, 3637), "en-a0024": (0.5632, 9151)}


class Rated(NamedTuple):
    """One rater's label of one reply, 1..3, and the mean of the reply's other raters."""

    rater: str
    session: str
    reply: int
    label: int
    others: float | None


def rated_replies(archive: Path) -> Iterator[Rated]:
    """All ratings of an archive, dialogue by dialogue."""
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            if name.endswith(".json"):
                dialogue = json.loads(files.read(name))
                session = f"{name.rpartition('/')[0]}/{dialogue['dialogue-id']}"
                for turn in dialogue["turns"]:
                    yield from _of_turn(session, turn)


def _of_turn(session, turn):
    labels = [(one["annotator-id"], VALUE[one["breakdown"]]) for one in turn["annotations"]]
    total, others = sum(label for _, label in labels), len(labels) - 1
    for rater, label in labels:
        mean = (total - label) / others if others else None
        yield Rated(rater, session, turn["turn-index"], label, mean)


def write_files(rated, folder: Path, seed: int) -> tuple[Path, Path]:
    """LABELS.csv and SCORES.csv of these ratings."""
    labels, scores = folder / "labels.csv", folder / "scores.csv"
    draw = random.Random(seed)
    with labels.open("w", newline="") as one, scores.open("w", newline="") as other:
        write_label, write_score = csv.writer(one).writerow, csv.writer(other).writerow
        write_label(("user", "session", "reply", "label"))
        write_score(("condition", "user", "session", "reply", "score"))
        for row in rated:
            key = (row.rater, row.session, row.reply)
            write_label((*key, row.label))
            given = (row.others, row.label, 2, draw.random())
            for condition, score in zip(CONDITIONS, given, strict=True):
                write_score((condition, *key, score))
    return labels, scores


def main() -> int:
    """Print the figures; 1 if one of the fixed raters' differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("archive", nargs="?", default=os.environ.get("PALATE_DBDC3"), type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.archive is None:
        parser.error("name the archive, or put its path into PALATE_DBDC3")
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(rated_replies(options.archive), Path(folder), options.seed)
        start = time.perf_counter()
        labels, scores = read_labels(files[0]), read_condition_scores(files[1])
        found = agreement(labels, scores, seed=options.seed)
        took = time.perf_counter() - start
    print(f"{found.labels:,} labels, {found.pairs:,} pairs, 4 conditions: {took:.1f} s")
    for name, one in found.conditions.items():
        ties = f"{one.judge_ties:,} ties"
        print(f"{name:9} {one.macro:.4f} ({one.low:.4f} to {one.high:.4f}), {ties}, all raters")
    differs = 0
    for rater, expected in EXPECTED.items():
        own = found.conditions["others"].users[rater]
        same = (round(own.agreement, 4), own.pairs) == expected
        differs += not same
        where = f"{own.low:.4f} to {own.high:.4f}"
        print(f"{rater}  {own.agreement:.4f} ({where}), {own.pairs:,} pairs", "" if same else "!")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
