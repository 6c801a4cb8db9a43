"""The presets: methods of the literature as banks."""

from inspect import signature

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream


def test_raker_equals_hedge_over_random_features():
    X, y = stream(4, 200, 2)
    bank = kb.presets.raker(kb.gaussian_grid(0.3, 3, 3), features=10, rate=0.5, seed=3)
    trace = bank.run(X, y)
    slots = kb.learners.FourierSGD(10, 0.1, seed=3)
    alone = kb.KernelBank(
        kb.gaussian_grid(0.3, 3, 3), slots, kb.combiners.Uniform(), window=1, regularization=0.001
    ).run(X, y)
    assert np.array_equal(trace.slot_predictions, alone.slot_predictions)
    totals = np.cumsum(alone.slot_loss, axis=0)[:-1]
    expected = np.exp(-0.5 * (totals - totals.min(axis=1, keepdims=True)))
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(trace.weights[1:], expected, rtol=1e-12)


@pytest.mark.parametrize("preset", kb.presets.BANKS, ids=lambda preset: preset.__name__)
def test_every_preset_learns_a_plain_function(preset):
    X, y = stream(4, 600, 2)
    seed = {"seed": 1} if "seed" in signature(preset).parameters else {}
    bank = preset(features=40, loss="squared", **seed)
    predictions = bank.run(X, y).predictions
    assert np.square(predictions - y)[300:].mean() < 0.8 * y.var()
    assert preset.__name__ in kb.presets.__all__
