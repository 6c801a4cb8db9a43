"""Figures that no AutoBank would write: no crash, nothing outside an array, answers or a refusal."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto import change_detection as hot_watch
from kernelbank.auto import running_stats as figure
from kernelbank.auto import scaling_steps as hot
from kernelbank.auto.scaling import QUANTILES
from kernelbank.io import checkpoint

NAN = math.nan
FORGED = [NAN, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 2.0**63, 1e19]


def guarded(shape):
    """An array inside a larger one, to see what is written beside it."""
    size = int(np.prod(shape))
    whole = np.full(size + 2000, 7.25)
    return whole, whole[1000 : 1000 + size].reshape(shape)


def untouched(whole):
    return (whole[:1000] == 7.25).all() and (whole[-1000:] == 7.25).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_figure_leads_out_of_an_array():
    draw = np.random.default_rng(0)
    for _ in range(400):
        beside, columns = guarded((2, figure.FIGURES))
        around, rings = guarded((2, int(draw.choice([5, 9]))))
        columns[:] = draw.choice(FORGED, size=columns.shape)
        rings[:] = draw.choice(FORGED, size=rings.shape)
        starts, changed, out = np.array([0, 3, 5, 8, -1]), np.zeros(2, np.bool_), np.zeros((3, 9))
        X = draw.choice([0.0, 1.0, NAN, 1e150, -1e150, 30.0], size=(3, 2))
        lagged = draw.normal(size=(3, 1))
        args = columns, rings, columns[0], rings[0], QUANTILES, starts
        hot.scale_rows(X, lagged, *args, out)
        for x in X:
            hot.take_row(x, columns, rings, QUANTILES, changed)
        news = np.zeros((3, 2), np.bool_)
        done = hot.scale_stream(
            X, np.ones(3), *args, lagged[0], out, np.zeros(3), np.zeros((3, 2)), news
        )
        assert 0 <= done <= 3
        assert hot.farness(columns[0], 3.0) in (0, hot.FAR, hot.WILD)
        assert untouched(beside)
        assert untouched(around)

        beside, figures = guarded((hot_watch.WATCH,))
        around, ring = guarded((60,))
        means = draw.choice(FORGED, size=(2, 3))
        figures[:], ring[:] = (
            draw.choice(FORGED, size=hot_watch.WATCH),
            draw.choice(FORGED, size=60),
        )
        sizes, weights = draw.choice([1.0, 0.0, 1e300], size=4), np.full((4, 3), 1 / 3)
        signals, moves = np.zeros(4, np.int64), np.zeros(4, np.bool_)
        hot_watch.watch_rows(sizes, weights, figures, ring, means, 100.0, signals, moves)
        assert set(signals) <= {-1, 0, 1}
        assert untouched(beside)
        assert untouched(around)


def test_a_forged_streak_does_not_hold_rows_back_for_ever():
    for streak in (NAN, -np.inf, -1e9, np.inf):
        target, ring = np.zeros((1, figure.FIGURES)), np.zeros((1, 5))
        hot.begin_columns(target, ring, QUANTILES, np.arange(1000.0)[:, None] % 7)
        target[0, figure.STREAK] = streak
        changed = [hot.take_target(1e5 + t, True, target[0], ring[0], QUANTILES) for t in range(5)]
        assert changed[4]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_forged_files_answer_or_are_refused(task, tmp_path):
    """Any figure in any array: the file is refused, or the bank it makes answers with numbers."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 2))
    y = X.sum(axis=1) if task == "regression" else (X[:, 0] > 0).astype(int)
    linear = kb.learners.LinearRLS()
    bank = kb.AutoBank(task, lags=1, slots=[kb.Slot(kb.kernels.Linear(), linear)])
    bank.run(X[:40], y[:40])
    bank.save(tmp_path / "bank")
    header, arrays = checkpoint.read(tmp_path / "bank")
    refused = 0
    for name in [name for name in arrays if name.startswith("desk/") and arrays[name].size]:
        for value in FORGED:
            forged = {other: array.copy() for other, array in arrays.items()}
            forged[name].flat[draw.integers(forged[name].size)] = value
            checkpoint.write(tmp_path / "forged", header, forged)
            try:
                other = kb.load(tmp_path / "forged")
            except kb.errors.FileRefused:
                assert not math.isfinite(value) or name.startswith("desk/scaling/")
                refused += 1
                continue
            other.learn_one(X[40], y[40])
            trace = other.run(X[41:], y[41:])
            found = trace.predictions if task == "regression" else trace.probabilities
            assert np.isfinite(found).all(), (name, value)
    assert refused >= 3 * 8
