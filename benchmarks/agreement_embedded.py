"""The agreement study with the embedded judge: `python benchmarks/agreement_embedded.py DBDC3.zip`.

Two raters of the Dialogue Breakdown Detection Challenge 3 (MIT licence; its zip is the argument or
in the environment variable PALATE_DBDC3) become users of a study through `palate history import`
with a mapping file; O, T, X count as 5, 3, 1. Their held-out replies are judged by the embedded
model under the conditions generic (without reaction) and examples. A 135M judge is not expected to
pass; the raters did not take part in the dialogues, so this shows that the path works and how long
it takes, and says nothing about the method.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

RATERS = ("en-a0014", "en-a0036")
MAPPING = """[fields]
session = "session_id"
user = "user_id"
language = "language"
turns = "turns"
speaker = "role"
text = "text"
rating = "rating"

[scale]
O = 5
T = 3
X = 1
"""
STUDY = """[study]
name = "dbdc3-embedded"
panel = ["library:panel-en"]

[protocol]
seed = 7

[judge]
model = "local:smollm2-135m"

[[candidates]]
name = "nobody"
model = "local:smollm2-135m"
"""
USER = """
[[users]]
id = "{rater}"
history = "histories/{rater}.jsonl"
rubric = "rubrics/{rater}.json"
simulator = {{ kind = "raw", model = "local:smollm2-135m" }}
"""


def sessions(archive: Path, rater: str) -> Iterator[dict[str, object]]:
    """The dialogues that the rater rated, with that rater's ratings alone."""
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            if not name.endswith(".json"):
                continue
            dialogue = json.loads(files.read(name))
            turns = [_turn(turn, rater) for turn in dialogue["turns"]]
            if any("rating" in turn for turn in turns):
                yield {
                    "session_id": f"{name.rpartition('/')[0]}/{dialogue['dialogue-id']}",
                    "user_id": rater,
                    "language": "en",
                    "turns": turns,
                }


def _turn(turn, rater: str) -> dict[str, str]:
    role = "character" if turn["speaker"] == "S" else "user"
    own = [one["breakdown"] for one in turn["annotations"] if one["annotator-id"] == rater]
    return {"role": role, "text": turn["utterance"], **({"rating": own[0]} if own else {})}


def write_study(archive: Path, folder: Path) -> None:
    """A study of the two raters, their histories imported."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(
        STUDY + "".join(USER.format(rater=rater) for rater in RATERS), "utf-8"
    )
    (folder / "mapping.toml").write_text(MAPPING, "utf-8")
    for rater in RATERS:
        lines = "".join(json.dumps(one) + "\n" for one in sessions(archive, rater))
        (folder / f"{rater}.jsonl").write_text(lines, "utf-8")
        _palate(
            "history",
            "import",
            str(folder / f"{rater}.jsonl"),
            "--into",
            str(folder),
            "--user",
            rater,
            "--map",
            str(folder / "mapping.toml"),
        )


def _palate(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "palate", *arguments], check=False).returncode


def main() -> int:
    """Write the study unless it is there, judge, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, nargs="?", default=os.environ.get("PALATE_DBDC3"))
    parser.add_argument("--out", type=Path, default=Path("dbdc3-embedded"))
    parser.add_argument("--limit", type=int, default=100)
    options = parser.parse_args()
    if options.archive is None:
        parser.error("name the zip of DBDC3, or set PALATE_DBDC3")
    if not options.out.exists():
        write_study(Path(options.archive), options.out)
    began = time.monotonic()
    code = _palate(
        "study",
        "agreement",
        str(options.out),
        "--conditions",
        "generic,examples",
        "--limit",
        str(options.limit),
    )
    print(f"{time.monotonic() - began:.0f} s, exit code {code}")
    return code


if __name__ == "__main__":
    sys.exit(main())
