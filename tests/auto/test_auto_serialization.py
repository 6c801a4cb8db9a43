"""Files of AutoBank: they continue exactly, and forged ones are refused or harmless."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.auto import change_detection
from kernelbank.auto.scaling import running_stats, scaling_steps
from kernelbank.auto.scaling.scaling_batch import fit_columns
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from support.auto_streams import SMALL, numbers, troubled
from support.column_pair import ColumnPair, batch_of
from support.marks import slow

NAN = math.nan


FORGED = [NAN, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 2.0**63, 1e19]


def guarded(shape):
    """An array inside a larger one, to see what is written beside it."""
    size = int(np.prod(shape))
    whole = np.full(size + 2000, 7.25)
    return whole, whole[1000 : 1000 + size].reshape(shape)


def untouched(whole):
    return (whole[:1000] == 7.25).all() and (whole[-1000:] == 7.25).all()


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
    new = json.loads(json.dumps(old_header)) | (header or {})
    checkpoint.write(path, new, {**old_arrays, **(arrays or {})})
    return path


def test_file_with_held_rows_and_pending_predictions_is_loaded(saved, tmp_path):
    header, arrays = saved
    assert header["counters"]["held"] == 2
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
        {"counters": None},
        {"counters": {"rows": -5, "held": 0, "changes": []}},
        {"counters": {"rows": 1.5, "held": 0, "changes": []}},
        {"counters": {"rows": 122, "held": 9, "changes": []}},
        {"counters": {"rows": 122, "held": -1, "changes": []}},
        {"counters": {"rows": 122, "held": 0, "changes": [1]}},
        {"counters": {"rows": 3, "held": 0, "changes": []}},
        {"banks": []},
        {"combiner": {"type": "Path"}},
        {"slots": [[{"type": "Gaussian", "width": 1.0}, {"type": "KLMS"}]]},
    ],
)
def test_forged_headers_are_refused(saved, tmp_path, header):
    with pytest.raises(FileRefused):
        kb.load(forged(saved, tmp_path / "x.kb", header))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_forged_numbers_are_refused_or_give_finite_predictions(saved, tmp_path_factory, data):
    _header, arrays = saved
    name = data.draw(st.sampled_from(sorted(n for n in arrays if not n.startswith("bank"))))
    value = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 1e300, 2.0**60, 0.0]))
    array = arrays[name].copy()
    if array.size:
        array.flat[data.draw(st.integers(0, array.size - 1))] = value
    path = tmp_path_factory.mktemp("forged") / "x.kb"
    try:
        bank = kb.load(forged(saved, path, arrays={name: array}))
    except FileRefused:
        return
    X, y = numbers(40)
    with np.errstate(all="ignore"):
        trace = bank.run(X, y)
    assert np.isfinite(trace.predictions).all() or not np.isfinite(value) or abs(value) > 1e100


def test_truncated_and_changed_files_are_refused(saved, tmp_path):
    path = forged(saved, tmp_path / "x.kb")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileRefused, match="truncated"):
        kb.load(path)
    path.write_bytes(data[:-40] + struct.pack("<Q", 1) + data[-32:])
    with pytest.raises(FileRefused, match="checksum"):
        kb.load(path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forged_statistics_never_lead_out_of_an_array():
    draw = np.random.default_rng(0)
    for _ in range(400):
        beside, columns = guarded((2, running_stats.STATS))
        around, rings = guarded((2, int(draw.choice([5, 9]))))
        columns[:] = draw.choice(FORGED, size=columns.shape)
        rings[:] = draw.choice(FORGED, size=rings.shape)
        batch = batch_of(columns, rings, [[0, 1, 2], [3, 4, 8], [5, 6, 7], [-1, -1, -1]])
        X = draw.choice([0.0, 1.0, NAN, 1e150, -1e150, 30.0], size=(3, 2))
        batch.X[:3] = X
        batch.lagged[:3] = draw.normal(size=(3, 1))
        batch.y[:3] = 1.0
        batch.run(scaling_steps.scale_rows, 3)
        batch.run(scaling_steps.update_inputs, 3)
        batch.run(scaling_steps.scale_and_update, 3)
        assert 0 <= batch.result[0] <= 3
        batch.y[0] = 3.0
        batch.run(scaling_steps.outlier_levels)
        assert batch.levels[0] in (0, scaling_steps.FAR, scaling_steps.EXTREME)
        assert untouched(beside)
        assert untouched(around)

        beside, stats = guarded((change_detection.STATS,))
        around, ring = guarded((60,))
        mean_weights = draw.choice(FORGED, size=(2, 3))
        stats[:], ring[:] = (
            draw.choice(FORGED, size=change_detection.STATS),
            draw.choice(FORGED, size=60),
        )
        sizes, weights = draw.choice([1.0, 0.0, 1e300], size=4), np.full((4, 3), 1 / 3)
        signals = np.zeros(4, np.int64)
        change_detection.detect_rows(
            4,
            slots=3,
            limit=100.0,
            stats=stats,
            ring=ring,
            mean_weights=mean_weights,
            errors=sizes,
            weights=weights,
            error_signals=signals,
            weight_signals=np.zeros(4, np.int64),
        )
        assert set(signals) <= {-1, 0, 1}
        assert untouched(beside)
        assert untouched(around)


def test_forged_streak_does_not_hold_rows_back_for_ever():
    for streak in (NAN, -np.inf, -1e9, np.inf):
        pair = ColumnPair(5)
        fit_columns(pair.columns, pair.rings, np.arange(1000.0)[:, None] % 7)
        pair.columns[0, running_stats.STREAK] = streak
        changed = [pair.add_target(1e5 + t, hold=True) for t in range(5)]
        assert changed[4]


@pytest.mark.parametrize("task", [slow("regression"), "classification"])
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
    for name in [name for name in arrays if name.startswith("model/") and arrays[name].size]:
        for value in FORGED:
            forged = {other: array.copy() for other, array in arrays.items()}
            forged[name].flat[draw.integers(forged[name].size)] = value
            checkpoint.write(tmp_path / "forged", header, forged)
            try:
                other = kb.load(tmp_path / "forged")
            except kb.errors.FileRefused:
                assert not math.isfinite(value) or name.startswith("model/scaling/")
                refused += 1
                continue
            other.learn_one(X[40], y[40])
            trace = other.run(X[41:], y[41:])
            found = trace.predictions if task == "regression" else trace.probabilities
            assert np.isfinite(found).all(), (name, value)
    assert refused >= 3 * 8
