"""What seasons bring, and how often one is found in noise.

    python benchmarks/seasons.py FOLDER [--rows 4000] [--noise 200]

FOLDER has hourly and half-hourly streams as .csv.gz files, the target last. Each is run without
seasons, with named ones and with "auto": with its inputs, and on its targets alone, as if the
sensor were the only one. Scored from row 101 on: mean squared error / variance, or the share of
wrong labels. Then streams of noise are searched for periods after the rows at which AutoBank does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import kernelbank as kb
from kernelbank.auto.seasons import FIRST_LOOKS, NEXT_LOOKS, find_periods

SKIP = 100
DAY, HALF_HOURS = (24, 168), (48, 336)
STREAMS = {
    "bike_hour": DAY,
    "zurich_nox": DAY,
    "adaraker_air": DAY,
    "gas_turbine_nox": DAY,
    "air_quality_co": DAY,
    "elec2": HALF_HOURS,
}


def score(X: np.ndarray, y: np.ndarray, labels: bool, seasons: object) -> tuple[float, float, str]:
    """Error, microseconds per row, and the periods in use at the end."""
    bank = kb.AutoBank("classification" if labels else "regression", seasons=seasons)
    start = time.process_time()
    trace = bank.run(X, y, record=["predictions"])
    spent = 1e6 * (time.process_time() - start) / len(y)
    late, target = trace.predictions[SKIP:], y[SKIP:]
    wrong = np.mean(late != target) if labels else np.mean((late - target) ** 2) / target.var()
    return float(wrong), spent, " ".join(map(str, bank.periods))


def errors(folder: Path, rows: int) -> Table:
    """Errors and times of all streams."""
    table = Table(title=f"errors, first {rows} rows (microseconds per row; periods found)")
    for heading in ("stream", "inputs", "none", "named", "auto"):
        table.add_column(heading)
    for name, periods in STREAMS.items():
        X, y = kb.datasets.read_csv(folder / f"{name}.csv.gz", samples=rows)
        labels = bool(np.isin(y, (0.0, 1.0)).all())
        for inputs, rows_given in (("its own", X), ("none", np.zeros((len(y), 1)))):
            found = [score(rows_given, y, labels, given) for given in (None, periods, "auto")]
            cells = [f"{error:.4f} ({spent:.0f})" for error, spent, _ in found]
            table.add_row(name, inputs, *cells[:2], f"{cells[2]} {found[2][2] or '-'}")
    return table


def _autoregressive(draw: np.random.Generator, rows: int) -> np.ndarray:
    values = draw.normal(size=rows)
    for t in range(1, rows):
        values[t] += 0.9 * values[t - 1]
    return values


NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "white noise": lambda draw, rows: draw.normal(size=rows),
    "Student's t, 2 degrees of freedom": lambda draw, rows: draw.standard_t(2, rows),
    "random walk": lambda draw, rows: draw.normal(size=rows).cumsum(),
    "random walk and noise": lambda draw, rows: (
        0.1 * draw.normal(size=rows).cumsum() + 3 * draw.normal(size=rows)
    ),
    "autoregressive, 0.9": _autoregressive,
    "line and noise": lambda draw, rows: 0.01 * np.arange(rows) + draw.normal(size=rows),
}


def false_alarms(streams: int, rows: int = 4000) -> Table:
    """The share of streams of noise in which a period is found at all."""
    looks = [*FIRST_LOOKS, *range(NEXT_LOOKS, rows + 1, NEXT_LOOKS)]
    table = Table(title=f"false seasons in {streams} streams of {rows} rows")
    for heading in ("stream", "streams with a season"):
        table.add_column(heading)
    for name, make in NOISE.items():
        found = 0
        for seed in range(streams):
            values = make(np.random.default_rng(seed), rows)
            found += any(find_periods(values[:look]) for look in looks)
        table.add_row(name, f"{found}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--noise", type=int, default=200)
    chosen = parser.parse_args()
    console = Console(width=120)
    console.print(errors(chosen.folder, chosen.rows))
    console.print(false_alarms(chosen.noise))


if __name__ == "__main__":
    main()
