"""What spikes in the target, jumps of its level and late targets do to AutoBank (`make robust`).

Every regression stream is run as it is, and with spikes: in one row of a hundred, chosen at random
after the first 200, the target is moved by a number of its standard deviations up or down. The
errors of the other rows are compared with those on the clean stream. Then lone spikes and jumps are
planted into one series whose answer is known. A series with two seasons is run with seasons="auto"
and with both named. With --first, the first rows are compared with those of a ridge regression that
is fitted anew; with --late, targets and labels come late.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from accuracy_streams import REGRESSION, RowRange, from_folder
from rich.console import Console
from rich.table import Table

import kernelbank as kb

SPIKES = (20.0, 200.0)
"""In standard deviations of the target."""

SHARE, FIRST = 0.01, 200
"""How many targets are spikes, and the first row that may be one."""

DELAY = 50


def spiked(y: np.ndarray, size: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Targets with spikes, and which of them are."""
    draw = np.random.default_rng(seed)
    hit = (draw.random(len(y)) < SHARE) & (np.arange(len(y)) >= FIRST)
    sign = np.where(draw.random(len(y)) < 0.5, -1.0, 1.0)
    return np.where(hit, y + size * sign * y.std(), y), hit


def squared_errors(X: np.ndarray, y: np.ndarray, lags: int, answers: np.ndarray) -> np.ndarray:
    """(n,): of the predictions of a stream (X, y), compared with the answers."""
    trace = kb.AutoBank(lags=lags).run(X, y)
    return (trace.predictions - answers) ** 2


def spikes(streams: dict, console: Console) -> None:
    """Errors on the rows without spikes, beside those of the clean stream."""
    table = Table("stream", "nmse", *(f"spikes of {size:g} sd" for size in SPIKES))
    ratios = []
    for name, stream in streams.items():
        X, y = stream.X, stream.y
        clean = squared_errors(X, y, stream.lags, y)
        row, growth = [], []
        for size in SPIKES:
            moved, hit = spiked(y, size)
            scored = ~hit & (np.arange(len(y)) >= FIRST)
            error = squared_errors(X, moved, stream.lags, y)[scored].mean()
            growth.append(error / clean[scored].mean())
            row.append(f"{growth[-1]:.2f}")
        ratios.append(growth)
        table.add_row(name, f"{clean[FIRST:].mean() / y.var():.4f}", *row)
    means = np.exp(np.log(ratios).mean(axis=0))
    table.add_row("geometric mean", "", *(f"{mean:.2f}" for mean in means))
    console.print(table)


def series(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth series around 42, and inputs that tell little of it."""
    draw = np.random.default_rng(1)
    t = np.arange(rows)
    y = 42.0 + 2.0 * np.sin(t / 40.0) + 0.3 * draw.normal(size=rows)
    return draw.normal(size=(rows, 2)), y


def lone_spikes(console: Console) -> None:
    """The share of the way to a spike that the next prediction goes; does its interval hold?"""
    X, y = series(1500)
    table = Table("lone spikes", *(f"{number}." for number in range(1, 7)))
    for lags in (0, 3):
        moved, at = y.copy(), list(range(300, 1500, 200))
        moved[at] = 600.0
        trace = kb.AutoBank(lags=lags).run(X, moved)
        shares = []
        for row in at:
            share = (trace.predictions[row + 1] - y[row + 1]) / (600.0 - y[row + 1])
            covered = trace.lower[row + 1] <= y[row + 1] <= trace.upper[row + 1]
            shares.append(f"{share:.3f}{'' if covered else ' missed'}")
        table.add_row(f"share of the way, lags={lags}", *shares)
    console.print(table)


def settling(moved: Callable[[np.ndarray], np.ndarray], at: int, lags: int) -> int:
    """How many rows after a change the error of three rows is within twice that of before."""
    X, y = series(2000)
    y = moved(y)
    errors = np.abs(kb.AutoBank(lags=lags).run(X, y).predictions - y)
    usual = 2.0 * np.sqrt((errors[at - 200 : at] ** 2).mean())
    for row in range(at, len(y) - 3):
        if (errors[row : row + 3] <= usual).all():
            return row - at
    return len(y) - at


def jumps(console: Console) -> None:
    """Rows until the error is as before, after jumps of the level in five different rows."""
    title = "rows until the error is within twice that of before, mean of five"
    table = Table(title, "lags=0", "lags=3")
    rows = np.arange(2000)
    cases = {  # the moved targets, if the last change is in row `at`
        "a jump by 10 sd": lambda y, at: y + 10 * y.std() * (rows >= at),
        "a jump by 40 sd": lambda y, at: y + 40 * y.std() * (rows >= at),
        "third stair of 20 sd": lambda y, at: (
            y + 20 * y.std() * np.clip((rows - at) // 400 + 3, 0, 3)
        ),
    }
    for name, moved in cases.items():
        cells = []
        for lags in (0, 3):
            counts = [settling(partial(moved, at=at), at, lags) for at in range(1200, 1450, 50)]
            cells.append(f"{np.mean(counts):.1f}")
        table.add_row(name, *cells)
    console.print(table)


REFIT = 250
"""Rows after which the trees beside AutoBank are grown anew."""


def refitted_trees(X: np.ndarray, y: np.ndarray, delay: int) -> np.ndarray:
    """(n,): predictions of extremely randomized trees, grown where targets have come."""
    from sklearn.ensemble import ExtraTreesRegressor

    out = np.full(len(y), np.nan)
    for start in range(REFIT, len(y), REFIT):
        known, rows = slice(0, start - delay), slice(start, start + REFIT)
        trees = ExtraTreesRegressor(100, random_state=0).fit(X[known], y[known])
        out[rows] = trees.predict(X[rows])
    return out


def late_targets(streams: dict, console: Console) -> None:
    """Errors and coverage where each target comes 50 rows after its prediction.

    Targets that are like those before them are much harder to predict so late. So there are also
    the errors of trees that get the targets as late.
    """
    header = (
        f"error, delay {DELAY} / none",
        "root",
        f"error / trees, delay {DELAY}",
        "coverage of 90 %",
    )
    table, ratios = Table("stream", *header), []
    for name, stream in streams.items():
        X, y = stream.X, stream.y
        prompt = squared_errors(X, y, stream.lags, y)[FIRST:].mean()
        trace = kb.AutoBank(lags=stream.lags).run(X, y, delay=DELAY)
        errors, trees = (trace.predictions - y) ** 2, (refitted_trees(X, y, DELAY) - y) ** 2
        covered = ((trace.lower <= y) & (y <= trace.upper))[FIRST:].mean()
        growth = errors[FIRST:].mean() / prompt
        ratios.append([growth, np.sqrt(growth), errors[REFIT:].mean() / trees[REFIT:].mean()])
        table.add_row(name, *(f"{ratio:.2f}" for ratio in ratios[-1]), f"{covered:.3f}")
    means = np.exp(np.log(ratios).mean(axis=0))
    table.add_row("geometric mean", *(f"{mean:.2f}" for mean in means), "")
    console.print(table)


LATE, LATE_DELAYS = 100, (18, 50, 200)
"""Rows by which labels are late, and by which targets are where coverage is printed."""


def bursts(seed: int, rows: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Six inputs that wander, of which three shift in rare bursts, and whether there is one."""
    draw = np.random.default_rng(seed)
    steps, slow = draw.normal(size=(rows, 6)), np.zeros((rows, 6))
    for t in range(1, rows):
        slow[t] = 0.9 * slow[t - 1] + np.sqrt(1 - 0.9**2) * steps[t]
    X = 0.7 * slow + 0.7 * draw.normal(size=(rows, 6))
    y, start = np.zeros(rows, dtype=int), int(draw.integers(200, 800))
    while start < rows:
        length = int(draw.integers(20, 61))
        y[start : start + length] = 1
        start += length + int(draw.exponential(1900)) + 100
    return X + 1.5 * np.outer(y, np.array([1, -1, 1, 0, 0, 0]) / np.sqrt(3)), y


def late_labels(console: Console) -> None:
    """The area under the ROC curve of the second half, with labels of rare bursts that come late.

    Beside a model that has learned the first half at once, and then nothing.
    """
    from sklearn.metrics import log_loss, roc_auc_score

    header = (
        "labels of bursts: seed",
        f"area, {LATE} rows late",
        "log loss",
        "area, learned no more",
    )
    table, means = Table(*header), []
    for seed in range(14):
        X, y = bursts(seed)
        half = len(y) // 2
        if min(y[:half].sum(), y[half:].sum()) < 40:
            continue
        late = kb.AutoBank("classification", classes=[0, 1])
        p = late.run(X, y, delay=LATE).probabilities[half:, 1]
        static = kb.AutoBank("classification", classes=[0, 1])
        static.run(X[:half], y[:half])
        area = roc_auc_score(y[half:], static.predict_proba(X[half:])[:, 1])
        means.append([roc_auc_score(y[half:], p), log_loss(y[half:], p), area])
        table.add_row(str(seed), *(f"{figure:.3f}" for figure in means[-1]))
    table.add_row("mean", *(f"{figure:.3f}" for figure in np.mean(means, axis=0)))
    console.print(table)


def late_coverage(streams: dict, console: Console) -> None:
    """Coverage of 90 % intervals for several delays, from the first row with errors of its own."""
    table = Table("coverage of 90 %", *(f"delay {delay}" for delay in LATE_DELAYS))
    for name, stream in streams.items():
        row = []
        for delay in LATE_DELAYS:
            trace = kb.AutoBank(lags=stream.lags).run(stream.X, stream.y, delay=delay)
            covered = (trace.lower <= stream.y) & (stream.y <= trace.upper)
            row.append(f"{covered[2 * delay + FIRST :].mean():.3f}")
        table.add_row(name, *row)
    console.print(table)


def two_seasons(console: Console) -> None:
    """Errors of a series with days and weeks, with seasons that are found and that are named."""
    draw, t = np.random.default_rng(3), np.arange(4000)
    day = np.sin(2 * np.pi * t / 48) + 0.5 * np.sin(4 * np.pi * t / 48 + 1)
    y = day - 0.6 * (t // 48 % 7 >= 5) + 0.1 * draw.normal(size=len(t))
    table = Table("seasons", "found", "rows 101-4000", "rows 2101-4000")
    for seasons in (None, (48, 336), "auto"):
        bank = kb.AutoBank(seasons=seasons)
        errors = (bank.run(np.zeros((len(t), 1)), y).predictions - y) ** 2
        means = (f"{errors[start:].mean():.5f}" for start in (100, 2100))
        table.add_row(str(seasons), " ".join(map(str, bank.periods)), *means)
    console.print(table)


def first_rows(streams: dict, console: Console) -> None:
    """Errors divided by those of RidgeCV, fitted on all rows before each."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ends = (25, 50, 100, 200)
    spans = [f"rows {low + 1}-{high}" for low, high in pairwise(ends)]
    table = Table("stream", *spans, "coverage of 90 %, rows 11-50")
    ratios, shares = [], []
    for name, stream in streams.items():
        X, y = stream.X[: ends[-1]], stream.y[: ends[-1]]
        trace = kb.AutoBank(lags=stream.lags).run(X, y)
        ours = (trace.predictions - y) ** 2
        shares.append(((trace.lower <= y) & (y <= trace.upper))[10:50].mean())
        lagged = [np.r_[np.full(lag, y[0]), y[:-lag]] for lag in range(1, stream.lags + 1)]
        inputs = np.column_stack([X, *lagged])
        ridge = np.zeros(len(y))
        for n in range(ends[0], len(y)):
            line = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 4, 17)))
            ridge[n] = (line.fit(inputs[:n], y[:n]).predict(inputs[n : n + 1])[0] - y[n]) ** 2
        ratios.append([ours[a:b].mean() / ridge[a:b].mean() for a, b in pairwise(ends)])
        table.add_row(name, *(f"{ratio:.2f}" for ratio in ratios[-1]), f"{shares[-1]:.3f}")
    means = np.exp(np.log(ratios).mean(axis=0))
    table.add_row("mean", *(f"{mean:.2f}" for mean in means), f"{np.mean(shares):.3f}")
    console.print(table)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of streams")
    parser.add_argument("--only", nargs="*", default=[], help="names of streams")
    parser.add_argument("--rows", type=int, default=4000, help="of each stream")
    parser.add_argument("--first", action="store_true", help="the first rows beside a ridge")
    parser.add_argument("--late", action="store_true", help="with targets that come late")
    options = parser.parse_args()
    console = Console()
    lone_spikes(console)
    jumps(console)
    two_seasons(console)
    loaded = from_folder(options.data, RowRange(rows=options.rows), options.only)
    streams = {name: stream for name, stream in loaded.items() if stream.task == REGRESSION}
    spikes(streams, console)
    if options.first:
        first_rows(streams, console)
    if options.late:
        late_targets(streams, console)
        late_coverage(streams, console)
        late_labels(console)


if __name__ == "__main__":
    main()
