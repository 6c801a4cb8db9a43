"""What Stacking and RobustStacking promise, as checks: planted faults must fail them."""

import numpy as np

import kernelbank as kb

from .combining import one_by_one, problem, run_combiner
from .naive import combiners as naive_combiners

EPS = np.finfo(float).eps
C = kb.combiners


def moments(predictions, targets, discount):
    """sum_i d^(n-i) e_i e_i', from the whole history."""
    errors = predictions - targets[:, None]
    return (errors.T * discount ** np.arange(len(errors))[::-1]) @ errors


def certificate(weights, matrix, ridge):
    """The Frank-Wolfe gap by its definition, the cost, and the curvature ridge * L."""
    penalty = ridge * matrix.diagonal().min()
    gradient = 2 * matrix @ weights + 2 * penalty * weights
    cost = weights @ matrix @ weights + penalty * weights @ weights
    return float(weights @ gradient - gradient.min()), float(cost), float(penalty)


def on_simplex(weights):
    return (
        np.isfinite(weights).all()
        and weights.min() >= 0
        and np.abs(weights.sum(axis=1) - 1).max() <= 8 * weights.shape[1] * EPS
    )


def check_definition(discount, ridge, *, alike=0.0, spread=1.0):
    """The weights are those of the naive form: |w - w*|^2 <= gap / (ridge L)."""
    combiner = C.Stacking(discount, ridge, tolerance=1e-9, steps=10_000)
    for seed, slots in enumerate([1, 2, 5]):
        predictions, targets = problem(seed, slots, 40, False, alike=alike, spread=spread)
        result = run_combiner(combiner, values=predictions, targets=targets, cuts=one_by_one(40))
        for n in range(40):
            seen = predictions[: n + 1], targets[: n + 1]
            matrix = moments(*seen, discount)
            gap, _, penalty = certificate(result.weights[n], matrix, ridge)
            rounding = 100 * EPS * matrix.diagonal().max()
            assert gap <= 1e-9 * 1.01 * result.history[n]["scale"] + rounding, n
            expected = naive_combiners.stacking(*seen, discount, ridge)
            # the naive solver works with squares of the predictions, and is off by their rounding
            size = (seen[0] ** 2).sum() + (seen[1] ** 2).sum()
            allowed = np.sqrt((gap + rounding) / penalty) + 100 * EPS * size / penalty
            assert allowed < 1e-3
            assert np.linalg.norm(result.weights[n] - expected) <= allowed, n


def check_scale(factor, ridge=0.1):
    predictions, targets = problem(5, 7, 60, False, alike=0.5)
    plain = run_combiner(C.Stacking(0.9, ridge), values=predictions, targets=targets)
    scaled = run_combiner(
        C.Stacking(0.9, ridge), values=factor * predictions, targets=factor * targets
    )
    assert (plain.weights == scaled.weights).all()
    assert (plain.state["moments"] * factor**2 == scaled.state["moments"]).all()
    for name in ("gap", "cost", "scale"):
        assert plain.diagnostics[name] * factor**2 == scaled.diagnostics[name]
    assert plain.diagnostics["steps"] == scaled.diagnostics["steps"]


def check_sizes(size):
    predictions, targets = problem(1, 6, 60, False)
    predictions[:, 3] *= 1e3
    with np.errstate(over="ignore"):
        predictions *= size
    options = {"values": predictions, "targets": size * targets}
    for ridge in (0.0, 0.1, 1e9):
        for discount in (1.0, 0.9):
            result = run_combiner(C.Stacking(discount, ridge), **options)
            assert on_simplex(result.weights)
            assert all(np.isfinite(x) for x in result.diagnostics.values())
            assert np.isfinite(result.state["moments"]).all()


def check_extreme_prediction():
    """An extreme prediction costs its slot the weight for a time, and the others nothing."""
    predictions, targets = problem(2, 4, 1200, False)
    predictions[10, 2] = 1e200
    combiner = C.Stacking(0.5, 0.1, 1e-9)
    result = run_combiner(combiner, values=predictions, targets=targets)
    others = run_combiner(combiner, values=predictions[:, [0, 1, 3]], targets=targets)
    assert (result.weights[10:500, 2] == 0).all()
    assert np.abs(result.weights[10:500][:, [0, 1, 3]] - others.weights[10:500]).max() <= 1e-3
    late = naive_combiners.stacking(predictions[-60:], targets[-60:], 0.5, 0.1)
    assert late[2] > 0.01
    assert np.abs(result.weights[-1] - late).max() <= 1e-3


ROBUST_SETTINGS = {"discount": 0.95, "ridge": 0.1, "degrees_of_freedom": 3.0}
EXACT_ROBUST = C.RobustStacking(**ROBUST_SETTINGS, tolerance=1e-10, steps=10_000)


def check_robust_definition(settings=ROBUST_SETTINGS):
    for seed, slots in enumerate([1, 2, 5]):
        predictions, targets = problem(seed, slots, 40, False)
        found = run_combiner(EXACT_ROBUST, values=predictions, targets=targets, cuts=one_by_one(40))
        expected = naive_combiners.robust_stacking_path(predictions, targets, **settings)
        # gap <= 1e-10 cost, cost = w'Mw + ridge L |w|^2 <= (1 + ridge) L if w is the best slot:
        # |w - w*|^2 <= gap / (ridge L) <= 1.1e-9
        assert np.abs(found.weights - expected).max() < 1e-4
