"""AutoBank: rows, blocks and threads, memory, and beside River's aggregated Mondrian forest."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from accuracy_streams import RowRange, bundled, from_folder
from measuring import Measurement, interleaved, noise, timed

import kernelbank as kb
from kernelbank.research.datasets import CLASSIFICATION

WARM = 600
PIECE = 256
FOREST_ROWS = 4000
DATA = os.environ.get("DATA")
"""A folder of streams, as for `make accuracy`; by default those of River and scikit-learn."""


FIRST_ROWS = 700
LONG = 8500
"""Rows with all restarts and the first three revisions."""

START = """import time
start = time.perf_counter()
import kernelbank as kb
bank = kb.AutoBank()
for n in range(3):
    bank.learn_one([n, 2.0], n)
bank.predict_one([1.0, 2.0])
print(time.perf_counter() - start)"""

RESIDENT = """import gc, sys
import numpy as np
import kernelbank as kb
inputs, banks, targets, size = *map(int, sys.argv[1:4]), sys.argv[4]
draw = np.random.default_rng(0)
X = draw.normal(size=(2000, inputs))
Y = np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:3] + 0.1 * draw.normal(size=(2000, targets))
Y = Y[:, 0] if targets == 1 else Y
def learned():
    bank = kb.AutoBank(size=size)
    bank.run(X, Y)
    return bank
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
learned()
before = resident()
held = [learned() for _ in range(banks)]
print((resident() - before) / banks)"""


def _stream(rows: int, inputs: int = 5) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, inputs))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draw.normal(size=rows)


def auto_bank(repeats: int) -> Iterator[Measurement]:
    """Blocks, single rows and threads, in pieces of one long stream, in turn."""
    pieces = 4 * repeats
    X, y = _stream(WARM + PIECE * pieces)
    rows, targets = list(X), y.tolist()
    serial, single = kb.AutoBank(), kb.AutoBank()
    threads = kb.AutoBank(engine=kb.engines.Threads(2))
    for bank in (serial, single, threads):
        bank.run(X[:WARM], y[:WARM])
    starts = iter(range(WARM, len(y), PIECE))
    current = [0]

    def in_blocks(bank) -> float:
        part = slice(current[0], current[0] + PIECE)
        return timed(lambda: bank.run(X[part], y[part]), PIECE)

    def one_by_one() -> float:
        def work() -> None:
            for n in range(current[0], current[0] + PIECE):
                single.predict_one(rows[n])
                single.learn_one(rows[n], targets[n])

        return timed(work, PIECE)

    def blocks() -> float:
        current[0] = next(starts)
        return in_blocks(serial)

    runs = {"blocks": blocks, "one": one_by_one, "threads": lambda: in_blocks(threads)}
    times = interleaved(runs, pieces)
    yield Measurement(
        "AutoBank one row at a time against blocks",
        times["one"] / times["blocks"],
        "ratio",
        1.25,
        detail=f"{times['one'].best * 1e6:.0f} us against {times['blocks'].best * 1e6:.0f} us; "
        "5 inputs, after 600 rows",
        noise=noise(times),
    )
    yield Measurement(
        "AutoBank, two threads against one, blocks",
        times["blocks"] / times["threads"],
        "times faster",
        1.7,
        larger_is_better=True,
        detail=f"{times['threads'].best * 1e6:.0f} us per row",
        noise=noise(times),
    )
    yield from _rows(repeats)
    yield from _sizes()
    yield from _against_forest()


def _rows(repeats: int) -> Iterator[Measurement]:
    """Blocks, first rows and the longest row, for several numbers of inputs."""
    for inputs, goal in ((5, 70), (20, 100), (60, 150)):
        X, y = _stream(WARM + PIECE * repeats, inputs)
        bank = kb.AutoBank()
        bank.run(X[:WARM], y[:WARM])
        times = []
        for start in range(WARM, len(y), PIECE):
            part = slice(start, start + PIECE)
            times.append(timed(partial(bank.run, X[part], y[part]), PIECE) * 1e6)
        name = f"AutoBank in blocks, {inputs} inputs"
        yield Measurement(name, min(times), "us/row", goal, noise=max(times) / min(times))
    for inputs, goal in ((5, 200), (20, 280), (60, 600)):
        X, y = _stream(FIRST_ROWS, inputs)
        medians = [np.median(_single_rows(X, y)) * 1e6 for _ in range(3)]
        name = f"AutoBank, first {FIRST_ROWS} rows one by one, median, {inputs} inputs"
        spread = max(medians) / min(medians)
        yield Measurement(name, min(medians), "us/row", goal, noise=spread)
    for inputs, goal in ((5, 8), (20, 10), (120, 60)):
        X, y = _stream(LONG, inputs)
        runs = np.array([_single_rows(X, y) for _ in range(2)])
        longest = runs.min(axis=0) * 1e3  # a row that was slow once had to wait for the machine
        row = int(longest.argmax())
        name = f"AutoBank, longest single row, {inputs} inputs"
        spread = runs[:, row].max() / runs[:, row].min()
        detail = f"row {row + 1} of {LONG}"
        yield Measurement(name, longest[row], "ms", goal, detail=detail, noise=spread)
    X, y = _stream(800)
    bank = kb.AutoBank(horizons=24)
    bank.run(X[:WARM], y[:WARM])
    per_row = timed(partial(bank.run, X[WARM:], y[WARM:]), len(y) - WARM) * 1e3
    yield Measurement("AutoBank with 24 horizons, in blocks", per_row, "ms/row", 2)


def _single_rows(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Seconds of each row, predicted and learned."""
    bank, seconds = kb.AutoBank(), []
    for x, target in zip(list(X), y.tolist()):
        start = time.perf_counter()
        bank.predict_one(x)
        bank.learn_one(x, target)
        seconds.append(time.perf_counter() - start)
    return seconds


def _sizes() -> Iterator[Measurement]:
    """The start of a process, and resident memory of many banks in one process."""
    starts = [_printed(START) for _ in range(7)]
    name = "first AutoBank of a process: import, three rows, a prediction"
    yield Measurement(name, min(starts), "s", 0.2, noise=max(starts) / min(starts))
    goals = {(5, "default"): 6, (20, "default"): 9, (60, "default"): 30, (5, "small"): 1}
    cases = [(inputs, 100, 1, size) for inputs, size in goals]
    cases += [(5, 30, targets, "default") for targets in (1, 3)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # sizes do not depend on what runs beside them
        *values, one, three = pool.map(lambda case: _printed(RESIDENT, *case), cases)
    for ((inputs, size), goal), value in zip(goals.items(), values):
        name = f"resident memory of one of 100 AutoBanks, {size}, {inputs} inputs"
        yield Measurement(name, value, "MB", goal)
    detail = f"{three:.1f} MB against {one:.1f} MB"
    yield Measurement("memory for 3 targets against 1", three / one, "ratio", 3.5, detail=detail)


def _printed(program: str, *arguments: object) -> float:
    """The number that a process of its own prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _against_forest() -> Iterator[Measurement]:
    """Whole streams, each row predicted and then learned by both."""
    from river import forest

    used = RowRange(rows=FOREST_ROWS)
    streams = from_folder(Path(DATA), used, []) if DATA else bundled(used, [])
    ratios, details = [], []
    for name, stream in streams.items():
        if stream.lags or len(stream.y) < 1000:
            continue
        classes = stream.task == CLASSIFICATION
        targets = stream.y.astype(int).tolist() if classes else stream.y.tolist()
        times = []
        for _ in range(3):
            bank = kb.AutoBank("classification" if classes else "regression")
            times.append(timed(partial(bank.run, stream.X, targets), len(targets)))
        model = (forest.AMFClassifier if classes else forest.AMFRegressor)(seed=0)
        points = [dict(enumerate(row)) for row in stream.X.tolist()]
        theirs = timed(partial(_learn, model, points, targets), len(targets))
        ratios.append(min(times) / theirs)
        details.append(f"{name} {min(times) * 1e6:.0f} / {theirs * 1e6:.0f}")
    yield Measurement(
        "AutoBank in blocks against River's aggregated Mondrian forest, median of streams",
        float(np.median(ratios)),
        "ratio",
        0.09,
        0.06,
        detail="us per row: " + ", ".join(details),
        noise=max(ratios) / min(ratios),
    )


def _learn(model, points, targets) -> None:
    for x, target in zip(points, targets):
        model.predict_one(x)
        model.learn_one(x, target)
