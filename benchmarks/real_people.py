"""Are trained simulators nearer to real people than described ones? On public chats of real people.

    python -m benchmarks.real_people FOLDER

The `chitchat-dataset` package (two strangers chat about anything; installed into FOLDER, never
copied or printed) names the sender of each message. The four people with the most messages are
taken, whoever they are: the order is by count and then by id, and no figure exchanges one of them.
Of each, at most 75,000 tokens of whole training sessions are drawn by the seed; an adapter is
trained on the embedded base, a profile is written by the embedded model, and every condition is
measured on held-out sessions without a judge. Nothing of it rests on a rating or a chosen end:
the data have neither, so [QUIT] is not measured here.

FOLDER becomes an ordinary study: the commands are those of `palate`, run one after another, and
the same command takes up what was stopped. On two cores about 15 minutes a person, and as long
again for the measures. Needs the extras local and train.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

PACKAGE = "chitchat-dataset==0.9.0"
PEOPLE = 4
SEED = 7
TRAINING_TOKENS = 75_000
EPOCHS = 2
LIKELIHOOD_TOKENS = 6_000  # of held-out sessions, read under every condition and adapter
PROFILE_TOKENS = 6_000  # by estimate; the embedded model is a slow writer

STUDY = """\
[study]
name = "real-people"
panel = ["library:anselm-wurzinger-en"]  # nothing is played: their chats have no card

[protocol]
seed = {seed}

[judge]
model = "local:smollm2-135m"

[[candidates]]
name = "none"
model = "local:smollm2-135m"
"""
USER = """
[[users]]
id = "{id}"
history = "histories/{id}.jsonl"
rubric = "rubrics/{id}.json"    # none: nothing is scored here
simulator = {{ kind = "lora", path = "simulators/{id}", temperature = 1.0, max_tokens = 60 }}
"""


def installed(folder):
    """The data set's file, from the package installed into `folder`."""
    place = folder / "package"
    found = list(place.glob("chitchat_dataset/dataset.json"))
    if not found:
        words = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), PACKAGE]
        subprocess.run([sys.executable, *words], check=True)
        found = list(place.glob("chitchat_dataset/dataset.json"))
    return found[0]


def busiest(chats):
    """The ids of the people with the most messages, most first."""
    counts = Counter(m["sender"] for c in chats.values() for run in c["messages"] for m in run)
    return sorted(counts, key=lambda sender: (-counts[sender], sender))[:PEOPLE]


def session(chat_id, chat, person, user):
    """One chat from `person`'s side, or None where they said nothing in it."""
    turns = []
    for run in chat["messages"]:
        for message in run:
            if message["text"].strip():
                speaker = "user" if message["sender"] == person else "character"
                turns.append({"speaker": speaker, "text": message["text"]})
    if not any(turn["speaker"] == "user" for turn in turns):
        return None
    return {
        "session_id": chat_id,
        "user_id": user,
        "card_id": "chitchat",
        "language": "en",
        "ended_by": "unknown",
        "turns": turns,
    }


def write_study(folder):
    """The study folder, unless it is there; the users' ids."""
    users = [f"person-{number}" for number in range(1, PEOPLE + 1)]
    if (folder / "study.toml").exists():
        return users
    chats = json.loads(installed(folder).read_text("utf-8"))
    (folder / "histories").mkdir(parents=True, exist_ok=True)
    for user, person in zip(users, busiest(chats), strict=True):
        sessions = [session(key, chat, person, user) for key, chat in sorted(chats.items())]
        kept = [one for one in sessions if one is not None]
        lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in kept)
        (folder / "histories" / f"{user}.jsonl").write_text(lines, "utf-8")
        print(f"{user}: {len(kept)} sessions")
    text = STUDY.format(seed=SEED) + "".join(USER.format(id=user) for user in users)
    (folder / "study.toml").write_text(text, "utf-8")
    return users


def palate(*words):
    """Run a command of palate; the seconds it took."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "palate", *map(str, words)], check=True)
    return time.perf_counter() - began


def learn(folder, user):
    """The person's profile and adapter, unless they are there."""
    if not (folder / "simulators" / user / "profile.json").exists():
        read = ("--model", "local:smollm2-135m", "--max-tokens", PROFILE_TOKENS)
        seconds = palate("simulator", "profile", folder, "--user", user, *read)
        print(f"{user}: profile in {seconds:.0f} s", flush=True)
    train = ("--max-training-tokens", TRAINING_TOKENS, "--epochs", EPOCHS)
    seconds = palate("simulator", "train", folder, "--user", user, *train)
    print(f"{user}: training command {seconds:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--contexts", type=int, default=21, help="a person, to speak at")
    options = parser.parse_args()
    users = write_study(options.folder)
    for user in users:
        learn(options.folder, user)
    measured = ("--contexts", options.contexts, "--likelihood-tokens", LIKELIHOOD_TOKENS)
    seconds = palate("simulator", "validate", options.folder, "--no-judge", *measured)
    print(f"measures in {seconds:.0f} s")


if __name__ == "__main__":
    main()
