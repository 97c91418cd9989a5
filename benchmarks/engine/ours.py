"""palate's engine on the benchmark's work: plays, judges and journals everything.

python -m benchmarks.engine.ours URL TRAJECTORIES TURNS JUDGED IN_FLIGHT
"""

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from palate import manifest
from palate.models.pool import Models
from palate.prepare import Prepared, prepare
from palate.run import Progress, run
from palate.store import RunFolder

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from worlds import write_study

USERS, REPETITIONS, MOST_CARDS = 5, 2, 10


def study(folder: Path, url: str, trajectories: int, turns: int, judged: int) -> Prepared:
    per_candidate = USERS * REPETITIONS
    cards = min(trajectories // per_candidate, MOST_CARDS)
    candidates = trajectories // (per_candidate * cards)
    assert per_candidate * cards * candidates == trajectories, "5 users, 2 repetitions, ≤ 10 cards"
    model = f"openai:{{}}@{url}/v1"
    write_study(
        folder,
        users=[f"u{n}" for n in range(USERS)],
        cards=[f"k{n}" for n in range(cards)],
        candidates=[f"c{n}" for n in range(candidates)],
        repetitions=REPETITIONS,
        depth=turns,
        sampled=judged,
        model=model.format("player"),
        judge=model.format("judge"),
    )
    # The server always says the same, which a run would ask for again: plain does not.
    toml = folder / "study.toml"
    text = toml.read_text("utf-8").replace("[protocol]", "[protocol]\nresample = 0")
    toml.write_text(text, "utf-8")
    return prepare(folder)


async def measure(prepared: Prepared, folder: RunFolder, in_flight: int) -> dict[str, float]:
    content = prepared.study.content
    began: list[tuple[float, float]] = []

    def observe(_progress: Progress) -> None:
        if not began:  # told once before the first call: what came before it was start-up
            began.append((time.perf_counter(), time.process_time()))

    async with Models(
        content.endpoints, study_dir=prepared.study.folder, max_concurrency=in_flight
    ) as models:
        outcome = await run(prepared, folder, models, observe=observe)
        wall, cpu = time.perf_counter() - began[0][0], time.process_time() - began[0][1]
        assert outcome.done == outcome.planned, outcome
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"calls": models.ledger.calls, "wall_s": wall, "cpu_s": cpu, "peak_mb": peak}


def main(url: str, trajectories: int, turns: int, judged: int, in_flight: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        prepared = study(Path(temporary) / "study", url, trajectories, turns, judged)
        about = manifest.about(prepared, run_id="bench", created_at="")
        with RunFolder(Path(temporary) / "run", manifest.settings(prepared), about=about) as folder:
            print(json.dumps(asyncio.run(measure(prepared, folder, in_flight))))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
