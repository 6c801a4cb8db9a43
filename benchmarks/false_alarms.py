"""How often AutoBank signals a change on streams that do not change.

    python benchmarks/false_alarms.py [--seeds 4] [--rows 20000]

Four stationary streams: independent inputs with normal and with heavy-tailed errors, an
autoregressive stream with lags, and labels. The first 1,000 rows are not counted: there the error
falls because the bank learns.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import kernelbank as kb

LEARNING = 1000
SIGNALS = ("error grew", "error fell", "weights", "target level", "input level")


def _inputs(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.normal(size=(rows, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def normal(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, f = _inputs(draw, rows)
    return X, f + 0.3 * draw.normal(size=rows)


def heavy(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, f = _inputs(draw, rows)
    return X, f + 0.3 * draw.standard_t(3, rows)


def autoregressive(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, f = _inputs(draw, rows)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.8 * y[t - 1] + 0.5 * f[t] + 0.3 * draw.normal()
    return X, y


def labels(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, f = _inputs(draw, rows)
    return X, (draw.random(rows) < 1 / (1 + np.exp(-3 * f))).astype(int)


STREAMS: dict[str, tuple[Callable[..., tuple[np.ndarray, np.ndarray]], str, int]] = {
    "normal errors": (normal, "regression", 0),
    "Student's t, 3 degrees of freedom": (heavy, "regression", 0),
    "autoregressive, 3 lags": (autoregressive, "regression", 3),
    "two labels": (labels, "classification", 0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=20_000)
    chosen = parser.parse_args()
    found: dict[str, Counter[str]] = {name: Counter() for name in STREAMS}
    runs = [(name, seed) for name in STREAMS for seed in range(chosen.seeds)]
    for name, seed in track(runs, console=Console(stderr=True)):
        make, task, lags = STREAMS[name]
        X, y = make(np.random.default_rng(seed), LEARNING + chosen.rows)
        bank = kb.AutoBank(task, lags)
        bank.run(X, y, record=["predictions"])
        found[name].update(c.what for c in bank.ledger.changes if c.row > LEARNING)
    total = chosen.seeds * chosen.rows / 10_000
    table = Table(title=f"signals in 10,000 rows ({chosen.seeds} x {chosen.rows} rows each)")
    table.add_column("stream")
    for what in SIGNALS:
        table.add_column(what, justify="right")
    for name, counts in found.items():
        table.add_row(name, *(f"{counts[what] / total:.2f}" for what in SIGNALS))
    Console().print(table)


if __name__ == "__main__":
    main()
