"""AutoBank with more than two classes beside River's models: error, calibration and time.

    python benchmarks/many_classes.py --letters letters.csv --rivals rivals.json

Every row is predicted, then learned. The first 100 rows are not scored. The streams are the digits
of scikit-learn (shuffled), River's ImageSegments, and a file with one label and numbers per row,
for instance the letters of the UCI repository (not part of this project).

- *Calibration error*: rows are put into 15 bins by the probability of the predicted class; the mean
  distance between this probability and the share of right predictions, over bins, weighted by rows.
- *Two classes*: the same rows, where the label is whether a class is in the first half of them.
"""

from __future__ import annotations

import argparse
import csv
import gc
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_streams import load

import kernelbank as kb
from kernelbank import _core

SKIP = 100
"""The first rows, which are learned but not scored."""

BINS = 15
LEAST = 1e-6
"""A smaller probability counts as this one in the log loss: some models say 0."""

_SEED = 42


@dataclass(frozen=True)
class LabelledRows:
    """A stream of numbers (n, d) with class numbers (n,), from 0 on without gaps."""

    name: str
    X: np.ndarray
    labels: np.ndarray

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    def halved(self) -> LabelledRows:
        """The same rows with two classes."""
        return LabelledRows(self.name, self.X, (self.labels >= self.classes / 2).astype(int))


@dataclass(frozen=True)
class Scores:
    """Errors and calibration error as shares, log loss in nats, seconds per row."""

    error: float
    log_loss: float
    calibration_error: float
    seconds: float


# --- scoring --------------------------------------------------------------------------------------


def expected_calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """sum_b (rows in bin b / rows) |mean top probability - share of right predictions|."""
    top = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    distances = np.bincount(bins, top - right, BINS)
    return float(np.abs(distances).sum() / len(labels))


def score(probabilities: np.ndarray, labels: np.ndarray, seconds: float) -> Scores:
    """The scores of probabilities (n, K) for class numbers (n,), after the first rows."""
    p, own = probabilities[SKIP:], labels[SKIP:]
    given = np.maximum(p[np.arange(len(own)), own], LEAST)
    return Scores(
        float(np.mean(p.argmax(axis=1) != own)),
        float(-np.log(given).mean()),
        expected_calibration_error(p, own),
        seconds / len(labels),
    )


# --- streams --------------------------------------------------------------------------------------


def _benchmark(name: str) -> LabelledRows:
    stream = load(name, None)
    return _numbered(name, stream.X, stream.y.tolist())


def read_labelled(path: Path) -> LabelledRows:
    """A CSV file of numbers with the label in the column `y`, or else in the first column."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    header = [] if any(map(_is_number, rows[0][1:])) else rows.pop(0)
    column = header.index("y") if "y" in header else 0
    labels = [row.pop(column) for row in rows]
    return _numbered(path.stem, np.array(rows, dtype=float), labels)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbered(name: str, X: np.ndarray, labels: list[Any]) -> LabelledRows:
    return LabelledRows(name, X, np.unique(np.array(labels), return_inverse=True)[1])


# --- AutoBank -------------------------------------------------------------------------------------


def run_auto_bank(stream: LabelledRows) -> Scores:
    """AutoBank with its default settings, which finds the classes in the stream."""
    bank = kb.AutoBank("classification", max_classes=max(stream.classes, 2))
    labels = stream.labels.tolist()
    gc.collect()
    start = time.perf_counter()
    trace = bank.run(stream.X, labels, record=["probabilities"])
    seconds = time.perf_counter() - start
    probabilities = np.zeros((len(labels), stream.classes))
    probabilities[:, list(trace.classes)] = np.nan_to_num(trace.probabilities)
    return score(probabilities, stream.labels, seconds)


def calibration_seconds(classes: int, rows: int = 2000) -> float:
    """Seconds per row to turn the scores of so many classes into probabilities, and to fit them."""
    draw = np.random.default_rng(0)
    probabilities = _core.Probabilities(scores=classes)
    scores = draw.uniform(-1.2, 0.0, size=(rows, classes))
    labels = draw.integers(classes, size=rows).tolist()
    start = time.perf_counter()
    for row, label in zip(scores, labels, strict=True):
        probabilities.predict(row)
        probabilities.update(row, label)
    return (time.perf_counter() - start) / rows


# --- rivals ---------------------------------------------------------------------------------------


def river_models() -> dict[str, Callable[[], Any]]:
    """Constructors of River's models with their default settings, by name."""
    from river import forest, linear_model, neighbors, tree, utils
    from river.preprocessing import StandardScaler

    def nearest() -> Any:  # the default engine, with a seed
        distance = utils.math._euclidean_distance
        return neighbors.KNNClassifier(engine=neighbors.SWINN(dist_func=distance, seed=_SEED))

    return {
        "River ARFClassifier": lambda: forest.ARFClassifier(seed=_SEED),
        "River AMFClassifier": lambda: forest.AMFClassifier(seed=_SEED),
        "River SoftmaxRegression": lambda: StandardScaler() | linear_model.SoftmaxRegression(),
        "River KNNClassifier": lambda: StandardScaler() | nearest(),
        "River HoeffdingAdaptiveTree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=_SEED),
    }


def run_river(model: Any, stream: LabelledRows) -> Scores:
    """Predict and learn row by row. A model that says nothing gives all classes the same."""
    probabilities = np.zeros((len(stream.labels), stream.classes))
    points = [dict(enumerate(row)) for row in stream.X.tolist()]
    start = time.perf_counter()
    for x, label, out in zip(points, stream.labels.tolist(), probabilities):
        for known, p in model.predict_proba_one(x).items():
            out[known] = p
        model.learn_one(x, label)
    seconds = time.perf_counter() - start
    probabilities = np.nan_to_num(probabilities)
    probabilities[probabilities.sum(axis=1) <= 0.0] = 1.0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return score(probabilities, stream.labels, seconds)


class RivalScores:
    """Scores of rivals in a JSON file, by model, version of River and contents of the stream."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        known = path is not None and path.exists()
        self._kept: dict[str, dict[str, float]] = json.loads(path.read_text()) if known else {}

    def get(self, name: str, make: Callable[[], Any], stream: LabelledRows) -> Scores:
        """What the file has; else the model runs, and the file is written."""
        from river import __version__

        parts = np.ascontiguousarray(stream.X).tobytes() + stream.labels.astype("<i8").tobytes()
        key = f"{name} {__version__} {stream.name} {hashlib.sha256(parts).hexdigest()[:16]}"
        if key not in self._kept:
            self._kept[key] = asdict(run_river(make(), stream))
            if self._path is not None:
                self._path.write_text(json.dumps(self._kept, indent=1) + "\n")
        return Scores(**self._kept[key])


# --- the table ------------------------------------------------------------------------------------


def table_line(name: str, scores: Scores) -> str:
    """A line of a Markdown table."""
    return (
        f"| {name} | {100 * scores.error:.2f} % | {scores.log_loss:.4f} "
        f"| {100 * scores.calibration_error:.2f} % | {1e6 * scores.seconds:,.0f} us |"
    )


def report(stream: LabelledRows, rivals: RivalScores) -> Iterator[str]:
    """The lines of one stream's table, each when it is known."""
    size = f"{len(stream.labels):,} rows, {stream.X.shape[1]} inputs, {stream.classes} classes"
    yield f"\n{stream.name}: {size}\n"
    yield "| model | error | log loss | calibration error | time per row |"
    yield "|---|---|---|---|---|"
    yield table_line("AutoBank", run_auto_bank(stream))
    yield table_line("AutoBank, two classes", run_auto_bank(stream.halved()))
    for name, make in river_models().items():
        yield table_line(name, rivals.get(name, make, stream))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--letters", type=Path, help="a CSV file: a label and numbers in each row")
    parser.add_argument("--rows", type=int, default=6000, help="of each stream, at most")
    parser.add_argument("--rivals", type=Path, help="a JSON file that keeps the rivals' scores")
    chosen = parser.parse_args()
    if chosen.rows <= SKIP:
        parser.error(f"--rows must be more than {SKIP}, which are not scored.")
    streams = [_benchmark("digits"), _benchmark("ImageSegments")]
    if chosen.letters is not None:
        streams.append(read_labelled(chosen.letters))
    rivals = RivalScores(chosen.rivals)
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    kb.AutoBank("classification").run(np.eye(8), [0, 1, 2, 3] * 2)  # loads compiled code
    for stream in streams:
        rows = slice(chosen.rows)
        used = _numbered(stream.name, stream.X[rows], stream.labels[rows].tolist())
        for line in report(used, rivals):
            print(line, flush=True)
    print("\nThe calibration alone, time per row:")
    for classes in (10, 100, 1000):
        seconds = min(calibration_seconds(classes) for _ in range(5))
        print(f"- {classes:,} classes: {1e6 * seconds:.1f} us")


if __name__ == "__main__":
    main()
