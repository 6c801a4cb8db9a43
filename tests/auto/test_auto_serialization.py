"""Files of AutoBank: they continue exactly, and forged ones are refused or harmless."""

import json
import math
import struct

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from support.auto_streams import SMALL, troubled

NAN = math.nan


FORGED = [NAN, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 2.0**63, 1e19]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("auto") / "auto.kb"
    X, y = troubled(122)
    bank = kb.AutoBank(lags=1, **SMALL)
    bank.run(X, y)
    bank.predict_one(X[3])
    bank.save(path)
    return checkpoint.read(path)


def forged(saved, path, header=None, arrays=None):
    old_header, old_arrays = saved
    new = json.loads(json.dumps(old_header))
    for name, value in (header or {}).items():
        new[name] = new[name] | value if name == "model" and value else value
    checkpoint.write(path, new, {**old_arrays, **(arrays or {})})
    return path


def test_file_with_held_rows_and_pending_predictions_is_loaded(saved, tmp_path):
    header, arrays = saved
    assert header["model"]["held"] == 2
    assert len(arrays["pending/rows_before"]) == 1
    assert kb.load(forged(saved, tmp_path / "x.kb")).samples == 122


@pytest.mark.parametrize(
    "header",
    [
        {"task": "ranking"},
        {"lags": 2},
        {"lags": -1},
        {"size": "large"},
        {"seed": 1},
        {"scalings": ["standard"]},
        {"classes": [{}]},
        {"classes": None},
        {"dimension": None},
        {"dimension": 4},
        {"dimension": -1},
        {"dimension": 10**12},
        {"model": None},
        {"model": {"held": 1}},
        {"model": {"held": 9}},
        {"model": {"held": -1}},
        {"model": {"changes": [1]}},
        {"model": {"periods": [24]}},
        {"model": {"previous": 1}},
        {"model": {"first_inputs": 9}},
        {"model": {"selection": {}}},
        {"model": {"classes": 2}},
        {"model": {"banks": []}},
        {"combiner": {"type": "Path"}},
        {"slots": [[{"type": "Gaussian", "width": 1.0}, {"type": "KLMS"}]]},
    ],
)
def test_forged_headers_are_refused(saved, tmp_path, header):
    with pytest.raises(FileRefused):
        kb.load(forged(saved, tmp_path / "x.kb", header))


def test_truncated_and_changed_files_are_refused(saved, tmp_path):
    path = forged(saved, tmp_path / "x.kb")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileRefused, match="truncated"):
        kb.load(path)
    path.write_bytes(data[:-40] + struct.pack("<Q", 1) + data[-32:])
    with pytest.raises(FileRefused, match="checksum"):
        kb.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_forged_arrays_are_refused_or_give_finite_predictions(task, tmp_path):
    """Any number in any array: the file is refused, or the bank predicts finite numbers."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 2))
    y = X.sum(axis=1) if task == "regression" else (X[:, 0] > 0).astype(int)
    linear = kb.learners.LinearRLS()
    bank = kb.AutoBank(task, lags=1, slots=[kb.Slot(kb.kernels.Linear(), linear)])
    bank.run(X[:40], y[:40])
    bank.save(tmp_path / "bank")
    header, arrays = checkpoint.read(tmp_path / "bank")
    refused = 0
    for name in [n for n in arrays if n.startswith("model/core/") and arrays[n].size]:
        for value in FORGED:
            if arrays[name].dtype == np.int64 and not abs(value) < 2**62:
                continue
            forged = {other: array.copy() for other, array in arrays.items()}
            forged[name].flat[draw.integers(forged[name].size)] = value
            checkpoint.write(tmp_path / "forged", header, forged)
            try:
                other = kb.load(tmp_path / "forged")
            except kb.errors.FileRefused:
                counted = (
                    "scaling",
                    "changes",
                    "stats",
                    "rows",
                    "unscored",
                    "class",
                    "counts",
                    "wrong",
                )
                whole = name.endswith("targets") and task == "classification"
                assert not math.isfinite(value) or whole or any(word in name for word in counted)
                refused += 1
                continue
            other.learn_one(X[40], y[40])
            trace = other.run(X[41:], y[41:])
            found = trace.predictions if task == "regression" else trace.probabilities
            assert np.isfinite(found).all(), (name, value)
    assert refused >= 3 * 8
