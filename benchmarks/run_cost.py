"""What `kernelbank run` costs beside the bank: reading, writing, and never losing a row.

Four ways over the same CSV file, in turn, several times: reading it, the bank alone on its numbers,
the run without a state, and the run with one at the default interval. Best of each, and the range;
and, since whole runs differ by more than that, the time that is spent in checkpoints.
"""

import argparse
import csv
import math
import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import kernelbank as kb
from kernelbank.cli.run import run
from kernelbank.io.sources import open_source
from kernelbank.run.runner import Runner

COLUMNS = ["wind", "rain", "sun", "hour"]


def written(path: Path, rows: int) -> None:
    """A stream of four sensors."""
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*COLUMNS, "load"])
        for n in range(rows):
            x = [round(draw.gauss(0, 1), 4) for _ in range(3)] + [n % 24]
            y = 10 + 3 * math.sin(x[0]) + x[1] * x[2] + math.sin(2 * math.pi * n / 24)
            table.writerow([*x, round(y + 0.1 * draw.gauss(0, 1), 4)])


def options(path: Path, **given: object) -> dict[str, object]:
    """The options of a quiet run."""
    return {"source": str(path), "target": "load", "quiet": True, **given}


def read(path: Path) -> np.ndarray:
    tables = [b.parse(numeric=[*COLUMNS, "load"]).numbers for b in open_source(path).blocks()]
    return np.concatenate(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--size", default="default")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "stream.csv"
        written(path, given.rows)
        numbers = read(path)
        kb.AutoBank(size=given.size).run(numbers[:300, :-1], numbers[:300, -1])

        def with_state(name: str, **more: object) -> None:
            for file in ("out.csv", name):
                shutil.rmtree(folder / file, ignore_errors=True)
                (folder / file).unlink(missing_ok=True)
            run(options(path, size=given.size, predictions=str(folder / "out.csv"), **more))

        ways = {
            "reading the file": lambda: read(path),
            "the model alone": lambda: kb.AutoBank(size=given.size).run(
                numbers[:, :-1], numbers[:, -1]
            ),
            "kernelbank run": lambda: with_state("none"),
            "the same with --state": lambda: with_state("state", state=folder / "state"),
        }
        committing: list[float] = []
        commit = Runner.commit

        def timed_commit(runner: Runner, **options: bool) -> None:
            start = time.perf_counter()
            commit(runner, **options)
            committing[-1] += time.perf_counter() - start

        Runner.commit = timed_commit  # type: ignore[method-assign]
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(given.repeats):
            for name, way in ways.items():
                committing.append(0.0)
                start = time.perf_counter()
                way()
                times[name].append(time.perf_counter() - start)
        print(f"{given.rows:,} rows, 4 inputs, size={given.size}; best of {given.repeats}\n")
        print("| what | rows/s | µs per row | least to most |\n|---|---|---|---|")
        for name, seconds in times.items():
            best, worst = (1e6 * one / given.rows for one in (min(seconds), max(seconds)))
            print(f"| {name} | {1e6 / best:,.0f} | {best:.1f} | {best:.1f} to {worst:.1f} |")
        plain, kept = times["kernelbank run"], times["the same with --state"]
        shares = [spent / whole for spent, whole in zip(committing[3::4], kept, strict=True)]
        gain = min(kept) / min(plain) - 1
        print(f"\nDurability at the default interval: {gain:+.1%} by the best runs.")
        print(f"Spent in checkpoints: {min(shares):.1%} to {max(shares):.1%} of the time.")
        size = (folder / "state" / "state.kb").stat().st_size
        print(f"The checkpoint is one file of {size / 2**20:.1f} MB.")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
