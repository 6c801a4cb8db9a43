"""Simplex: the sums of its prequential evidence, and the rule of the looser bound."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.combining import run_combiner

EPS = np.finfo(float).eps


def test_sliding_sums_after_a_huge_loss_has_left_the_horizon_have_no_rounding():
    draw = np.random.default_rng(0)
    losses = draw.uniform(0, 1, (500, 3))
    losses[50], losses[260, 1] = 1e300, 1e30
    horizon = 17
    rule = kb.combiners.Simplex("prequential", horizon)
    for cuts in ((1, 3, 60, 61, 200, 437), range(1, 500)):
        history = run_combiner(rule, losses, cuts=cuts).history
        for n, shown in zip([*cuts, 500], history, strict=True):
            for p in range(3):
                exact = math.fsum(losses[max(0, n - horizon) : n, p])
                assert abs(shown["linear"][p] - exact) <= horizon * EPS * exact


@pytest.mark.parametrize("evidence", ["window", "prequential"])
def test_weights_of_jensens_bound_minimise_it(evidence):
    """All weight is on the least a_p + b_p; no point of the simplex has a lower bound."""
    x, y = kb.datasets.ar1(seed=0, samples=60)
    combiner = kb.combiners.Simplex(evidence, horizon=7, bound="jensen")
    trace = kb.KernelBank(kb.gaussian_grid(0.1, 10, 6), combiner=combiner).run(x, y)
    for n in range(1, 59):  # after the first sample all slots are equal
        linear = trace.window_loss[n]
        if evidence == "prequential":
            linear = trace.slot_loss[max(0, n - 6) : n + 1].sum(axis=0)
        costs = trace.curvature[n] + linear
        assert trace.weights[n + 1] @ costs == pytest.approx(costs.min(), rel=1e-12)
        assert trace.weights[n + 1].max() == 1.0
        assert kb.kkt_residual(trace.weights[n + 1], np.zeros(6), costs) < 1e-12


def test_equal_slots_share_the_weight_of_jensens_bound():
    bank = kb.KernelBank(
        [kb.kernels.Gaussian(1.0)] * 3, combiner=kb.combiners.Simplex(bound="jensen")
    )
    bank.run([0.0, 1.0], [1.0, 2.0])
    assert bank.weights == pytest.approx([1 / 3] * 3)


def test_the_rules_of_both_bounds_differ_and_an_unknown_one_is_refused():
    x, y = kb.datasets.ar1(seed=0, samples=60)
    kernels = kb.gaussian_grid(0.1, 10, 6)
    weights = [
        kb.KernelBank(kernels, combiner=kb.combiners.Simplex(bound=bound)).run(x, y).weights
        for bound in ("direct sum", "jensen")
    ]
    assert (weights[0] != weights[1]).any()
    with pytest.raises(InvalidArgument, match="'bound' of Simplex"):
        kb.combiners.Simplex(bound="jensens")
