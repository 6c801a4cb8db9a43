"""Relevant columns: what rows know of the past, and the metric that slots learn."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto import slots
from kernelbank.auto.model import REMEMBERED
from kernelbank.auto.scaling import Scaling
from kernelbank.auto.slots import FIRST_REVISION

K, L = kb.kernels, kb.learners


def data(rows, inputs=4, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, inputs))
    return X, np.sin(2 * X[:, 0]) + 0.1 * draw.normal(size=rows)


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("rank",), ("none",)])
@pytest.mark.parametrize("lags", [0, 2, 5])
def test_relevant_columns_are_the_first_scaling_and_the_past_times_their_relevance(names, lags):
    X, y = data(60)
    scaling = Scaling(4, lags, names, remembered=3, previous=4, relevant=True)
    scaling.fit(X, y[:, None])
    scaling.relevance = np.linspace(0.1, 2.0, len(scaling.relevance))
    known = max(lags, 3)
    lagged = np.hstack([np.tile(y[:known], (10, 1)), X[:10]])
    rows = scaling.scale_rows(X[10:20], lagged)
    first = scaling.columns_of[names[0]]
    assert len(first) == 4 + lags
    assert len(scaling.past_columns) == known - lags + 4
    sources = rows[:, [*first, *scaling.past_columns]]
    assert np.array_equal(rows[:, list(scaling.relevant_columns)], sources * scaling.relevance)
    # The inputs of the row before have the center and scale of the inputs.
    if names[0] == "standard":
        standard = scaling.scale_rows(X[:10], lagged)[:, list(first[:4])]
        assert np.array_equal(rows[:, list(scaling.past_columns[-4:])], standard)


def test_missing_past_is_zero():
    X, y = data(60)
    scaling = Scaling(4, 0, ("standard",), remembered=3, previous=4, relevant=True)
    scaling.fit(X, y[:, None])
    row = scaling.scale_rows(X[:1], np.full((1, 7), np.nan))[0]
    assert not row[list(scaling.past_columns)].any()


def test_rows_know_the_last_targets_and_the_inputs_of_the_row_before():
    X, y = data(40)
    bank = kb.AutoBank()
    bank.run(X[:30], y[:30])
    model = bank._model
    expected = np.concatenate([y[29:26:-1], X[29]])
    assert np.array_equal(model.past_row(), expected)
    bank.run(X[30:33], y[30:33])
    rows = model.core.latest()[1][-3:]
    assert np.array_equal(rows[0], expected)
    assert np.array_equal(rows[2], np.concatenate([y[31:28:-1], X[31]]))
    assert model.remembered_targets() == REMEMBERED


def test_forecast_with_lags_goes_on_from_the_rows_that_are_given():
    X, y = data(300)
    y = np.concatenate([[0.0], X[:-1, 1]])  # the input of the row before
    bank = kb.AutoBank(lags=1)
    bank.run(X[:290], y[:290])
    assert np.abs(bank.predict(X[290:]) - y[290:]).max() < 0.5


# --- the relevance --------------------------------------------------------------------------------


def test_relevance_is_the_root_of_the_mean_squared_derivative():
    X, y = data(200)
    kernel = K.ActiveDims(K.Gaussian(2.0), (1, 3, 2))
    bank_slots = [kb.Slot(K.Gaussian(1.0), L.KLMS()), kb.Slot(kernel, L.FourierRLS(40, ridge=0.1))]
    bank = kb.KernelBank(slots=bank_slots, window=1)
    bank.run(X, y + X[:, 1] ** 2)
    before = np.array([0.5, 1.0, 2.0])
    actual = slots.new_relevance(bank, 1, X[:50], before)
    step, squares = 1e-4, []
    for column, factor in zip((1, 3, 2), before, strict=True):
        move = np.zeros(4)
        move[column] = step
        # Rounding of a central difference: 1e-16 / 1e-4; its own error: 1e-8 f''' / 6.
        slope = bank.predict_slots(X[:50] + move)[:, 1] - bank.predict_slots(X[:50] - move)[:, 1]
        squares.append(np.mean((factor * slope / (2 * step)) ** 2))
    squares = np.maximum(squares / np.mean(squares), slots.LEAST_RELEVANCE)
    assert np.allclose(actual, np.sqrt(squares / squares.mean()), rtol=1e-5, atol=0)


def test_function_without_slope_leaves_the_relevance():
    X, _ = data(40)
    bank = kb.KernelBank(K.Gaussian(1.0), L.FourierRLS(20), window=1)
    bank.run(X, np.zeros(40))
    before = np.array([0.5, 1.0, 2.0, 1.0])
    assert np.array_equal(slots.new_relevance(bank, 0, X, before), before)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_inputs_that_matter_become_relevant(task):
    X, y = data(FIRST_REVISION + 8)
    bank = kb.AutoBank(task)
    bank.run(X, y if task == "regression" else (y > 0).astype(int))
    actual = bank._model.scaling.relevance
    assert actual.argmax() == 0
    assert actual[0] > 3 * np.sort(actual)[-2]
    assert np.isclose(np.mean(actual**2), 1.0)


def test_without_revision_there_are_no_relevant_columns():
    X, y = data(200)
    for options in ({"combiner": kb.combiners.Hedge()}, {"loss": "absolute"}):
        bank = kb.AutoBank(**options)
        bank.run(X, y)
        assert not bank._model.scaling.relevant_columns
        assert bank._model.core.past == 0


def test_forged_relevance_is_refused(tmp_path):
    from kernelbank.io import checkpoint

    X, y = data(200)
    bank = kb.AutoBank(size="small")
    bank.run(X, y)
    path = tmp_path / "bank.kb"
    bank.save(path)
    header, arrays = checkpoint.read(path)
    for value in (0.0, -1.0, np.nan, 1e9):
        forged = {name: array.copy() for name, array in arrays.items()}
        forged["model/core/scaling/relevance"][0] = value
        checkpoint.write(path, header, forged)
        with pytest.raises(kb.errors.FileRefused):
            kb.load(path)
