"""A large dictionary, a small part of it, and an adaptive dictionary of the same small size.

    python benchmarks/adaptive_dictionary.py [--seeds 20] [--samples 5000] [--data DIR]

The paper's scheme (NORMA, budget 100, window 10, the simplex rule) on its AR(1) signal, and on
public streams whose files are at hand (streams.toml); inputs and targets of these are
standardised. The pool has 200 Gaussian kernels with widths from 0.01 to 100 in equal ratios.
Cost and loss are those of the ledger; time is that of `run`, without the first 100 samples.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from accuracy_streams import load
from rich.console import Console
from rich.progress import track
from rich.table import Table

import kernelbank as kb

POOL, SIZE = kb.gaussian_grid(0.01, 100, 200), 20
FIRST = 100
"""Samples that are not timed: with them a bank makes its arrays."""

BANKS: dict[str, Callable[[], object]] = {
    "all 200": lambda: POOL,
    "adaptive, 20 of 200": lambda: kb.AdaptiveDictionary(POOL, SIZE),
    "adaptive, every 256": lambda: kb.AdaptiveDictionary(POOL, SIZE, every=256),
    "fixed 20": lambda: kb.gaussian_grid(0.01, 100, SIZE),
    "adaptive, 5 of 200": lambda: kb.AdaptiveDictionary(POOL, 5),
    "fixed 5": lambda: kb.gaussian_grid(0.01, 100, 5),
}
PUBLIC = ("elnino_sst", "ccpp", "gas_turbine_nox", "air_quality_co", "zurich_nox", "kin40k")
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Outcome:
    """Of one bank on one stream: means per sample, microseconds, kernels exchanged."""

    cost: float
    loss: float
    time: float
    exchanged: int


def run(dictionary: object, X: np.ndarray, y: np.ndarray) -> Outcome:
    """Learn a stream."""
    bank = kb.KernelBank(dictionary)
    bank.run(X[:FIRST], y[:FIRST], record=())
    start = time.perf_counter()
    bank.run(X[FIRST:], y[FIRST:], record=())
    seconds = time.perf_counter() - start
    ledger = bank.ledger
    cost = ledger.cumulative_cost / len(X)
    micro = 1e6 * seconds / (len(X) - FIRST)
    return Outcome(cost, ledger.mean_loss, micro, ledger.slot_change_count // 2)


def standardised(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray] | None:
    """A public stream, inputs and target with mean 0 and standard deviation 1, if it is there."""
    stream = load(name, folder)
    if stream is None:
        return None
    X, y = stream.X[:MOST_ROWS], stream.y[:MOST_ROWS]
    deviation = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return scaled, (y - y.mean()) / y.std()


def show(console: Console, title: str, rows: dict[str, list[Outcome]]) -> None:
    """One table: means over the streams, and in how many the cost is below that of fixed 20."""
    table = Table(
        "dictionary", "cost", "loss", "us per sample", "exchanged", "below fixed 20", title=title
    )
    fixed = rows["fixed 20"]
    for name, outcomes in rows.items():
        cost, loss, micro = (
            np.mean([getattr(o, field) for o in outcomes]) for field in ("cost", "loss", "time")
        )
        below = sum(o.cost < k.cost for o, k in zip(outcomes, fixed))
        exchanged = np.mean([o.exchanged for o in outcomes])
        table.add_row(
            name,
            f"{cost:.4f}",
            f"{loss:.4f}",
            f"{micro:.1f}",
            f"{exchanged:.0f}",
            f"{below} of {len(outcomes)}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="AR(1) signals")
    parser.add_argument("--samples", type=int, default=5000, help="of each")
    parser.add_argument("--data", type=Path, help="folder with files of public streams")
    options = parser.parse_args()
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    console = Console(width=100)
    signals = [kb.datasets.ar1(seed, options.samples) for seed in range(options.seeds)]
    rows: dict[str, list[Outcome]] = {name: [] for name in BANKS}
    for x, y in track(signals, console=console, transient=True):
        for name, make in BANKS.items():
            rows[name].append(run(make(), x, y))
    show(console, f"AR(1), {options.seeds} seeds of {options.samples:,} samples", rows)
    for stream in PUBLIC:
        samples = standardised(stream, options.data)
        if samples is None:
            console.print(f"{stream}: left out, there is no {stream}.csv.gz in --data")
            continue
        X, y = samples
        show(
            console,
            f"{stream}, {len(X):,} samples of {X.shape[1]} inputs",
            {name: [run(make(), X, y)] for name, make in BANKS.items()},
        )


if __name__ == "__main__":
    main()
