"""AutoBank: one row at a time, in threads, and beside River's aggregated Mondrian forest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from accuracy_streams import RowRange, bundled, from_folder
from measuring import Measurement, interleaved, noise, timed

import kernelbank as kb
from kernelbank.research.datasets.stream import CLASSIFICATION

WARM = 600
PIECE = 256
FOREST_ROWS = 4000
DATA = os.environ.get("DATA")
"""A folder of streams, as for `make accuracy`; by default those of River and scikit-learn."""


def _stream(rows: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, 5))
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
        1.4,
        1.2,
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
    yield from _against_forest()


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
