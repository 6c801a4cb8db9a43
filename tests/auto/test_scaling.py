"""Scaled rows against their naive form, and the ranges of the inputs."""

import math

import numpy as np
import pytest

from kernelbank.auto.scaling import AGE, CENTER, COUNT, SCALE, SEEN, STREAK, Scaling
from support.column_pair import NAN, scaling_of
from support.core_state import put_entry
from support.naive import auto as naive


def test_input_ranges_are_those_of_the_last_values():
    """Of the last thousand: the median and the ends; those of all where these are one place."""
    draw = np.random.default_rng(4)
    X = np.column_stack([draw.normal(size=3000), np.arange(3000) < 500, np.full(3000, 7.0)])
    scaling = Scaling(3, 0, ("standard", "rank"), targets=0)
    scaling.fit(X[:32], None)
    for x in X[32:]:
        scaling.statistics.add_inputs(x)
    last = X[-scaling.statistics["rings"].shape[1] :]
    found = scaling.input_ranges()
    assert (found[:, 0] == np.median(last, axis=0)).all()
    assert (found[0, 1:] == [last[:, 0].min(), last[:, 0].max()]).all()
    base, unit = scaling.columns[1, [CENTER, SCALE]]
    assert unit > 0
    assert (found[1, 1:] == base + unit * np.array([-2.5, 2.5])).all()
    assert (found[2] == 7.0).all()


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("asinh",), ("rank",)])
def test_scaled_row_has_the_scalings_side_by_side(names):
    """Deviations, their asinh, ranks; lagged targets behind them in the target's own figures."""
    draw = np.random.default_rng(4)
    X, y = draw.normal(size=(80, 2)), draw.normal(size=80) * 3
    X[draw.random(X.shape) < 0.1] = NAN
    scaling = Scaling(2, 2, names)
    columns = [naive.Column(scaling.statistics["rings"].shape[1]) for _ in range(2)]
    target = naive.Target(scaling.statistics["target_rings"].shape[1])
    scaling.fit(X[:32], y[:32, None])
    for k in range(2):
        columns[k].begin(X[:32, k])
    target.begin(y[:32])
    lagged = np.array([y[31], NAN])
    for t in range(48):
        row = scaling.scale_rows(X[32 + t : 33 + t], lagged[None])[0]
        scaled, scale = scaling.scale_targets(y[32 + t : 33 + t])[0], scaling.target_scale()
        own = np.array([columns[k].forms(X[32 + t, k]) for k in range(2)])
        late = np.array([np.zeros(3) if math.isnan(v) else target.forms(v) for v in lagged])
        shrunk = late[:, 1] if names == ("asinh",) else []
        parts = {
            "standard": [*own[:, 0], *late[:, 0]],
            "asinh": np.arcsinh([*own[:, 1], *shrunk]),
            "rank": [*own[:, 2], *late[:, 2]],
        }
        expected = np.concatenate([parts[name] for name in names])
        assert np.allclose(row, expected, rtol=0, atol=1e-11)
        assert scale == pytest.approx([target.base, target.unit], rel=1e-12, abs=1e-12)
        assert scaled == pytest.approx(target.deviation(y[32 + t]), abs=1e-12)
        for k in range(2):
            columns[k].take(X[32 + t, k])
        target.take_target(y[32 + t], False)
        scaling.statistics.add_inputs(X[32 + t])
        scaling.statistics.add_target(y[32 + t])
        lagged = np.array([y[32 + t], lagged[0]])


def test_impossible_statistics_are_refused_and_nothing_leads_out_of_an_array():
    """Any number in any place: the state is refused, or rows are scaled and learned."""
    draw = np.random.default_rng(0)
    values = [NAN, math.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 5.0, 1e-320, 2.0**53, 2.0**63]
    refused = set()
    for _ in range(600):
        own = scaling_of(2, int(draw.choice([5, 9])))
        own.fit_inputs(draw.normal(size=(40, 2)))
        own.fit_target(draw.normal(size=40))
        name = str(draw.choice(["columns", "rings", "targets", "target_rings"]))
        array = own[name]
        index = tuple(int(draw.integers(n)) for n in array.shape)
        value = draw.choice(values)
        try:
            put_entry(own, name, index, value)
        except ValueError:
            refused.add((name, index[-1], float(value)))
            continue
        assert math.isfinite(value)
        X = draw.choice([0.0, 1.0, NAN, 1e150, -1e150, 30.0], size=(30, 2))
        own.scale_rows(X, np.ones((30, 1)))
        for x in X:
            own.add_inputs(x)
            own.add_target(1.0)
        assert any(own.hold_target(1e5 + t) for t in range(5))  # no streak lasts for ever
    for entry in (COUNT, SCALE, STREAK, SEEN, AGE):
        assert ("targets", entry, -1.0) in refused or ("columns", entry, -1.0) in refused
    assert not any("rings" in name for name, _, value in refused if math.isfinite(value))
