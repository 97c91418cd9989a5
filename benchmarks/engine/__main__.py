"""The engine beside a plain aiohttp loop on the same work, in the same run.

    python -m benchmarks.engine [--rounds 5]

Prints medians: calls a second, CPU a call after start-up, peak memory, the limit that latency and
calls in flight set, and whether the bounds hold; exit code 1 where one does not.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

SYSTEM_BYTES = 700  # of the players' system prompts, about that of the cards used


class Load(NamedTuple):
    trajectories: int
    turns: int
    judged: int
    in_flight: int
    latency_ms: int

    @property
    def calls(self) -> int:
        return self.trajectories * (2 * self.turns + 2 * self.judged + 1)

    @property
    def limit_s(self) -> float:
        return self.calls * self.latency_ms / 1000 / self.in_flight


LOADS = {
    "30 trajectories x (40 + 9 calls), 50 ms, 30 in flight": Load(30, 20, 4, 30, 50),
    "200 trajectories x (20 + 3 calls), 200 ms, 200 in flight": Load(200, 10, 1, 200, 200),
}
GROWTH = (Load(100, 10, 1, 30, 5), Load(200, 10, 1, 30, 5), Load(1000, 10, 1, 30, 5))


@contextlib.contextmanager
def server(latency_ms: int) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.engine.server", "--latency-ms", str(latency_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def measured(module: str, url: str, load: Load, *more: str) -> dict[str, float]:
    numbers = (load.trajectories, load.turns, load.judged, load.in_flight)
    command = [sys.executable, "-m", f"benchmarks.engine.{module}", url, *map(str, numbers), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def stats(url: str) -> dict[str, dict[str, int]]:
    with urllib.request.urlopen(f"{url}/stats") as response:
        return json.load(response)


def compare(name: str, load: Load, rounds: int) -> bool:
    ours, plain = [], []
    with server(load.latency_ms) as url:
        measured("ours", url, load._replace(trajectories=10))  # warms the disk's caches
        stats(url)
        for _ in range(rounds):
            ours.append(measured("ours", url, load))
            seen = stats(url)
            sizes = {
                kind: seen["bytes"][kind] // seen["calls"][kind]
                for kind in ("personal", "generic", "session")
            }
            plain.append(
                measured("plain", url, load, json.dumps({"system": SYSTEM_BYTES, **sizes}))
            )
            assert seen["most_in_flight"] <= load.in_flight, seen
            assert stats(url)["calls"] == seen["calls"], "not the same work"
    return report(name, load, ours, plain)


def report(
    name: str, load: Load, ours: list[dict[str, float]], plain: list[dict[str, float]]
) -> bool:
    wall = {
        "palate": median(r["wall_s"] for r in ours),
        "plain": median(r["wall_s"] for r in plain),
    }
    cpu = {"palate": median(r["cpu_s"] for r in ours), "plain": median(r["cpu_s"] for r in plain)}
    print(f"\n{name}: {load.calls} calls, limit {load.limit_s:.2f} s")
    for who in ("plain", "palate"):
        print(
            f"  {who:7} {wall[who]:6.2f} s  {load.calls / wall[who]:6.0f} calls/s "
            f"({load.limit_s / wall[who]:.0%} of the limit)  "
            f"{1000 * cpu[who] / load.calls:.2f} ms CPU a call"
        )
    peak = max(r["peak_mb"] for r in ours)
    throughput = wall["plain"] / wall["palate"]
    cpu_ratio = cpu["palate"] / cpu["plain"]
    return all(
        [
            holds("throughput against plain", throughput, throughput >= 0.85, "at least 0.85"),
            holds("CPU a call against plain", cpu_ratio, cpu_ratio <= 1.8, "at most 1.8"),
            holds("peak memory, MB", peak, peak <= 150, "at most 150"),
        ]
    )


def growth(rounds: int) -> bool:
    print("\nTwice and ten times the work, 30 in flight")
    results = {}
    with server(GROWTH[0].latency_ms) as url:
        for load in GROWTH:
            runs = [measured("ours", url, load) for _ in range(rounds)]
            results[load.trajectories] = (
                median(r["cpu_s"] for r in runs),
                median(r["peak_mb"] for r in runs),
            )
    for trajectories, (cpu, peak) in results.items():
        print(f"  {trajectories:4} trajectories  {cpu:6.2f} s CPU  {peak:6.1f} MB peak")
    twice = results[200][0] / results[100][0]
    memory = results[1000][1] - results[100][1]
    return all(
        [
            holds("CPU of twice the work", twice, twice <= 2.1, "at most 2.1"),
            holds("MB more for ten times the work", memory, memory <= 10, "at most 10"),
        ]
    )


def holds(what: str, value: float, ok: bool, bound: str) -> bool:
    print(f"  {'ok  ' if ok else 'FAIL'} {what}: {value:.2f} ({bound})")
    return ok


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=5)
    rounds = arguments.parse_args().rounds
    checks = [compare(name, load, rounds) for name, load in LOADS.items()]
    checks.append(growth(rounds))
    sys.exit(0 if all(checks) else 1)
