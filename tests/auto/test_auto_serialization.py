"""Files of AutoBank: they continue exactly, also those of earlier versions; forged ones."""

import gzip
import json
import math
import struct

import numpy as np
import pytest

import kernelbank as kb
from files import write as kept
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from kernelbank.run.status import RunStatus
from support import forged_files
from support.auto_streams import SMALL, troubled
from support.saved_kinds import SavedRun

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
            actual = trace.predictions if task == "regression" else trace.probabilities
            assert np.isfinite(actual).all(), (name, value)
    assert refused >= 3 * 8


# --- files of earlier versions are read -----------------------------------------------------------


VERSIONS = sorted(path for path in kept.HERE.iterdir() if (path / "run.csv").exists())


def same(predictions):
    return pytest.approx(predictions, rel=1e-9, abs=1e-12)


def extract(packed, path):
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def test_there_are_files_of_this_version():
    """After a new minor version: python tests/files/write.py, and keep the folder before it."""
    major, minor = map(int, kb.__version__.split(".")[:2])
    needed = {f"{major}.{minor}", f"{major}.{max(minor - 1, 1)}"}
    assert needed <= {path.name for path in VERSIONS}
    for folder in VERSIONS:
        names = {path.name.partition(".")[0] for path in folder.glob("*.gz")}
        assert names == {*kept.streams(), "run"}
        assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000


@pytest.mark.parametrize("name", kept.streams())
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_kept_bank_predicts_and_learns_as_it_did(folder, name, tmp_path):
    expected = json.loads((folder / f"{name}.json").read_text())
    bank = kb.load(extract(folder / f"{name}.kb.gz", tmp_path / "bank.kb"))
    _, X, y = kept.streams()[name]
    first, later = X[kept.LEARNED :], X[: kept.LATER]
    actual = kept.predictions(bank, first)
    assert [actual] == [[same(one) for one in expected["now"]]]
    for x, target in zip(first, y[kept.LEARNED :], strict=True):
        bank.learn_one(x, target)
    actual = kept.predictions(bank, later)
    assert [actual] == [[same(one) for one in expected["later"]]]


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_kept_run_is_resumed_and_predicts_as_it_did(folder, tmp_path):
    run = SavedRun(tmp_path / "run", preset="paper")
    header, body = forged_files.unpack(gzip.decompress((folder / "run.kb.gz").read_bytes()))
    now, _ = forged_files.unpack(run.state)
    # The run was in another folder: only the addresses change.
    header["source"]["address"] = now["source"]["address"]
    header["predictions"] = now["predictions"]
    (run.root / "state/state.kb").write_bytes(forged_files.pack(header, body))
    assert RunStatus.of_state(run.root / "state").rows == header["rows"]
    # The rows so far are those that this run wrote then.
    written = (folder / "run.csv").read_bytes()[: header["sinks"][0]["bytes"]]
    (run.root / "few-predictions.csv").write_bytes(written)
    run.resume_to_end(run.root)
    actual = (run.root / "few-predictions.csv").read_text().splitlines()
    expected = (folder / "run.csv").read_text().splitlines()
    assert len(actual) == len(expected) > header["rows"] + 10
    for line, other in zip(actual[1:], expected[1:], strict=True):
        assert _numbers(line) == same(_numbers(other))


def _numbers(line):
    return [float(cell or "nan") if cell else 0.0 for cell in line.split(",")]


def test_older_version_is_converted_step_by_step(tmp_path, monkeypatch):
    """A reader of a later version turns a file of this one into its own by `CONVERTERS`."""
    bank = kb.KernelBank(kb.kernels.Gaussian(1.0), window=3)
    bank.save(tmp_path / "bank.kb")
    version = kb.io.checkpoint.VERSION
    monkeypatch.setattr(kb.io.checkpoint, "VERSION", version + 2)
    with pytest.raises(kb.errors.FileRefused, match=f"from version {version + 2} on"):
        kb.load(tmp_path / "bank.kb")
    steps = []

    def convert(header, arrays):
        steps.append(header["window"])
        return {**header, "window": header["window"] + 1}, arrays

    converters = {version: convert, version + 1: convert}
    monkeypatch.setattr(kb.io.checkpoint, "CONVERTERS", converters)
    assert kb.load(tmp_path / "bank.kb").window == 5
    assert steps == [3, 4]
