"""Where the time of a block goes: every phase timed alone, in the order of the game.

.venv/bin/python benchmarks/phases.py [--slots 20] [--budget 100]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import ar1, bank
from rich.console import Console
from rich.table import Table

from kernelbank.native.phases import run_phases

NAMES = (
    "take",
    "learn",
    "score",
    "hear",
    "recall",
    "note",
    "simplex",
    "propose",
    "mix",
    "tally",
    "charge",
)


def profile(x, y, slots: int, budget: int) -> tuple[dict[str, float], float]:
    """Seconds per sample of every phase, and of all that is around them."""
    own = bank(slots=slots, budget=budget)
    own.run(x[:512], y[:512], record=())
    phases = own._work.executor._phases
    addresses = [phases.address + 16 * k for k in range(len(NAMES))]  # function and table
    assert phases.number == len(NAMES)
    seconds = np.zeros(len(NAMES))

    def timed_run(first: int, count: int) -> None:
        for k, address in enumerate(addresses):
            start = time.perf_counter()
            run_phases(address, 1, first, count)
            seconds[k] += time.perf_counter() - start

    phases.run = timed_run
    start = time.perf_counter()
    own.run(x[512:], y[512:], record=())
    total = time.perf_counter() - start
    samples = len(x) - 512
    shares = dict(zip(NAMES, seconds / samples))
    return shares, total / samples - seconds.sum() / samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=20)
    parser.add_argument("--budget", type=int, default=100)
    chosen = parser.parse_args()
    regular, irregular, y = ar1(20_480 if chosen.slots <= 100 else 2048)
    table = Table(title=f"{chosen.slots} kernels, budget {chosen.budget}: us a sample")
    table.add_column("phase")
    columns = {}
    for name, x in (("irregular x", irregular), ("regular x", regular)):
        table.add_column(name, justify="right")
        runs = [profile(x, y, chosen.slots, chosen.budget) for _ in range(5)]
        columns[name] = min(runs, key=lambda run: sum(run[0].values()) + run[1])
    for phase in NAMES:
        table.add_row(phase, *(f"{shares[phase] * 1e6:.2f}" for shares, _ in columns.values()))
    table.add_row("Python around them", *(f"{rest * 1e6:.2f}" for _, rest in columns.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
