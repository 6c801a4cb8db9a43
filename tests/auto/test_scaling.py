"""Scaled rows against their naive form, and the ranges of the inputs."""

import math

import numpy as np
import pytest

from kernelbank.auto.prediction import lagged_rows
from kernelbank.auto.scaling import running_stats
from kernelbank.auto.scaling.scaling import Scaling
from support.column_pair import NAN
from support.naive import auto as naive


def test_input_ranges_are_those_of_the_last_values():
    """Of the last thousand: the median and the ends; those of all where these are one place."""
    draw = np.random.default_rng(4)
    X = np.column_stack([draw.normal(size=3000), np.arange(3000) < 500, np.full(3000, 7.0)])
    scaling = Scaling(3, 0, ("standard", "rank"), target=False)
    scaling.fit(X[:32], None)
    for x in X[32:]:
        scaling.update_inputs(x)
    last = X[-scaling.rings.shape[1] :]
    found = scaling.input_ranges()
    assert (found[:, 0] == np.median(last, axis=0)).all()
    assert (found[0, 1:] == [last[:, 0].min(), last[:, 0].max()]).all()
    base, unit = scaling.columns[1, [running_stats.CENTER, running_stats.SCALE]]
    assert unit > 0
    assert (found[1, 1:] == base + unit * np.array([-2.5, 2.5])).all()
    assert (found[2] == 7.0).all()


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("asinh",), ("rank",)])
def test_scaled_row_has_the_scalings_side_by_side(names):
    """Deviations, their asinh, ranks; lagged targets behind them in the target's own figures."""
    draw = np.random.default_rng(4)
    X, y = draw.normal(size=(80, 2)), draw.normal(size=80) * 3
    X[draw.random(X.shape) < 0.1] = NAN
    scaling = Scaling(2, 2, names, target=True)
    columns = [naive.Column(scaling.rings.shape[1]) for _ in range(2)]
    target = naive.Target(len(scaling.ring))
    scaling.fit(X[:32], y[:32])
    for k in range(2):
        columns[k].begin(X[:32, k])
    target.begin(y[:32])
    lagged = np.array([y[31], NAN])
    before = lagged_rows(y[32:], lagged)
    rows, scaled, scale, _ = scaling.scale_and_update(X[32:], before, y[32:])
    assert len(rows) == 48
    for t in range(48):
        np.testing.assert_array_equal(before[t], lagged)
        own = np.array([columns[k].forms(X[32 + t, k]) for k in range(2)])
        late = np.array([np.zeros(3) if math.isnan(v) else target.forms(v) for v in lagged])
        shrunk = late[:, 1] if names == ("asinh",) else []
        parts = {
            "standard": [*own[:, 0], *late[:, 0]],
            "asinh": np.arcsinh([*own[:, 1], *shrunk]),
            "rank": [*own[:, 2], *late[:, 2]],
        }
        expected = np.concatenate([parts[name] for name in names])
        assert np.allclose(rows[t], expected, rtol=0, atol=1e-11)
        assert scale[t] == pytest.approx([target.base, target.unit], rel=1e-12, abs=1e-12)
        assert scaled[t] == pytest.approx(target.deviation(y[32 + t]), abs=1e-12)
        for k in range(2):
            columns[k].take(X[32 + t, k])
        target.take_target(y[32 + t], False)
        lagged = np.array([y[32 + t], lagged[0]])
