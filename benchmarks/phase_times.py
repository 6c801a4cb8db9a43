"""Where the time of a block goes: every phase timed alone, in the order in which they run.

python benchmarks/phase_times.py [--slots 20] [--budget 100]
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

from measuring import ar1, paper_bank
from rich.console import Console
from rich.table import Table

from kernelbank.native.phases import ParallelPhases, Phases

WARM_UP = 512


def phase_seconds(x, y, slots: int, budget: int) -> dict[str, float]:
    """Seconds per sample of every phase, and of the Python code around them."""
    bank = paper_bank(slots=slots, budget=budget)
    bank.run(x[:WARM_UP], y[:WARM_UP], record=())
    names = bank._runtime.executor._phases.names
    return timed_phases(bank, names, lambda: bank.run(x[WARM_UP:], y[WARM_UP:], record=()), len(x))


def timed_phases(bank, names, work, rows: int) -> dict[str, float]:
    phases = bank._runtime.executor._phases
    seconds: dict[str, float] = defaultdict(float)
    each = [
        Phases([phase])
        for member in phases._members
        for phase in (member.phases if isinstance(member, ParallelPhases) else [member])
    ]

    def timed_run(first: int, count: int) -> None:
        for name, phase in zip(names, each):
            start = time.perf_counter()
            phase.run(first, count)
            seconds[name] += time.perf_counter() - start

    phases.run = timed_run
    start = time.perf_counter()
    work()
    total = time.perf_counter() - start
    seconds["Python around them"] = total - sum(seconds.values())
    return {name: value / (rows - WARM_UP) for name, value in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=20)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    regular, irregular, y = ar1(20_480 if chosen.slots <= 100 else 2048)
    table = Table(title=f"{chosen.slots} kernels, budget {chosen.budget}: us per sample")
    table.add_column("phase")
    columns = []
    for name, x in (("irregular x", irregular), ("regular x", regular)):
        table.add_column(name, justify="right")
        runs = [phase_seconds(x, y, chosen.slots, chosen.budget) for _ in range(chosen.repeats)]
        columns.append(min(runs, key=lambda run: sum(run.values())))
    for phase in columns[0]:
        table.add_row(phase, *(f"{column[phase] * 1e6:.2f}" for column in columns))
    Console().print(table)


if __name__ == "__main__":
    main()
