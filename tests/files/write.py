"""Write the files that later versions must read: python tests/files/write.py, once per version.

From 0.1 on, every minor version of kernelbank reads the files of the one before. For each version
there is a folder with saved banks and the state of a run (compressed), and for each bank what it
must predict, at once and after it has learned more. `tests/auto/test_loading.py` reads them.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import kernelbank as kb  # noqa: E402
from support import forged_files  # noqa: E402
from support.forged_files import SavedRun  # noqa: E402

K, L = kb.kernels, kb.learners
LEARNED, LATER = 60, 20
"""Rows that a bank has learned when it is saved, and that it learns afterwards."""


def rows() -> tuple[Any, Any]:
    """Inputs and targets."""
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 1.5, (LEARNED + LATER, 2))
    return X, np.sin(3 * X).sum(axis=1) + 0.1 * draw.normal(size=len(X))


def named_rows() -> list[dict[str, Any]]:
    """Rows with a number, a category and a time."""
    X, _ = rows()
    start = np.datetime64("2026-01-01T00:00")
    return [
        {"a": float(x), "site": "xyz"[n % 3], "time": (start + np.timedelta64(n, "h")).item()}
        for n, x in enumerate(X[:, 0])
    ]


def streams() -> dict[str, tuple[Any, Any, list[Any]]]:
    """By the name of a file: a new bank, its rows and its targets."""
    X, y = rows()
    X, y = X.tolist(), y.tolist()
    slots = [
        kb.Slot(K.Linear(0.5), L.LinearRLS()),
        kb.Slot(K.Gaussian(0.5), L.Norma(0.05, 15)),
        kb.Slot(K.Gaussian(0.6), L.KRLS(budget=10), residual_of=0),
        kb.Slot(K.Matern(0.8), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5)),
        kb.Slot(K.Gaussian(0.6) + K.Periodic(2.0), L.KLMS(0.1, 10)),
        kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 15), loss="absolute"),
        kb.Slot(K.Gaussian(0.6), L.KLMS(0.1, 10), transform=kb.transforms.ShiftedLog(2.0)),
    ]
    labels = [("low", "middle", "high")[int(t > 0.8) + int(t > 1.4)] for t in y]
    some = [  # the default ones would make files of a megabyte
        kb.Slot(K.Gaussian(0.6), L.FourierRLS(features=8)),
        kb.Slot(K.Linear(1.0), L.LinearRLS(forgetting=0.99, forget="prior")),
        kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5), residual_of=1),
    ]
    small: dict[str, Any] = {"slots": some, "lags": 1}
    return {
        "bank": (kb.KernelBank(slots=slots, window=3), X, y),
        "regression": (kb.AutoBank(**small), X, y),
        "two-classes": (kb.AutoBank("classification", **small), X, [t > 1.1 for t in y]),
        "three-classes": (kb.AutoBank("classification", **small), X, labels),
        "columns": (kb.AutoBank(**small), named_rows(), y),
    }


def predictions(bank: Any, X: list[Any]) -> list[Any]:
    """What the bank predicts for rows: numbers, or the probabilities of the labels."""
    if getattr(bank, "task", "regression") == "classification":
        return [list(bank.predict_proba_one(x).values()) for x in X]
    return [float(bank.predict_one(x)) for x in X]


def write(folder: Path) -> None:
    """Write all files of the present version."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "bank.kb")
        for name, (bank, X, y) in streams().items():
            for x, target in zip(X[:LEARNED], y, strict=False):
                bank.learn_one(x, target)
            bank.save(path)
            _compress(path, folder / f"{name}.kb.gz")
            expected = {"now": predictions(bank, X[LEARNED:])}
            for x, target in zip(X[LEARNED:], y[LEARNED:], strict=True):
                bank.learn_one(x, target)
            expected["later"] = predictions(bank, X[:LATER])
            (folder / f"{name}.json").write_text(json.dumps(expected) + "\n")
        run = SavedRun(Path(temporary, "run"), preset="paper")
        header, body = forged_files.unpack(run.state)
        header["source"]["address"] = "few.csv"  # not a folder of this machine
        header["predictions"] = ["few-predictions.csv"]
        path.write_bytes(forged_files.pack(header, body))
        _compress(path, folder / "run.kb.gz")
        run.resume_to_end(run.root)
        lines = (run.root / "few-predictions.csv").read_text()
        (folder / "run.csv").write_text(lines)


def _compress(path: Path, target: Path) -> None:
    target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write(HERE / ".".join(kb.__version__.split(".")[:2]))
