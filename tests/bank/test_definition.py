"""A bank against its naive definition."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import COMBINERS, KERNELS, LOSSES, name_of, stream, targets_for
from support.marks import first_of_each, slow
from support.naive.combiners import RULES

EPS = np.finfo(float).eps
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def run_both(kernels, loss, X, y, *, window, budget, rate, ridge, step_size="constant"):
    fast, slow = zip(*kernels, strict=True)
    bank = kb.KernelBank(
        list(fast),
        Norma(rate, budget, step_size),
        None if step_size == "constant" else kb.combiners.Uniform(),
        loss=loss[0],
        window=window,
        regularization=ridge,
    )
    oracle = naive.run(
        X,
        y,
        list(slow),
        loss[1],
        window=window,
        budget=budget,
        learning_rate=rate,
        regularization=ridge,
        combiner="simplex" if step_size == "constant" else "uniform",
        step_size=step_size,
    )
    return bank, bank.run(X, y), oracle


def assert_equal_to(oracle, bank, trace, y, budget, window):
    """Compare with tolerances from the size of the terms.

    A value is a sum of at most budget + window terms of total size M, a few roundings each; a step
    of a stable learner does not amplify the errors of the steps before, so after n of them
    n (budget + window + 50) eps M is left. Losses and costs are at most quadratic in values of
    size M + |y| + 1; norm^2 is a sum of budget^2 products of total size `magnitude`, likewise.
    """
    n = len(y)
    unit = n * (budget + window + 50) * EPS
    size = 1 + np.abs(y).max() + oracle.value_magnitude.max(axis=0)
    values = unit * size
    costs = 4 * window * unit * size**2 + unit * oracle.magnitude.max(axis=0)
    close = {
        "slot_predictions": values,
        "slot_loss": costs,
        "slot_cost": costs,
        "window_loss": costs,
        "curvature": costs,
    }
    for name, allowed in close.items():
        difference = np.abs(getattr(trace, name) - getattr(oracle, name)).max(axis=0)
        assert (difference <= allowed).all(), name
    fixed = isinstance(bank.combiner, kb.combiners.Uniform)
    weights = np.zeros(n + 1) if fixed else weight_errors(oracle, costs.max())
    assert (np.abs(trace.weights - oracle.weights).max(axis=1) <= weights[:-1]).all()
    assert np.abs(bank.weights - oracle.next_weights).max() <= weights[-1]
    slots = trace.weights.shape[1]
    mixed = values.max() + slots * weights[:-1] * size.max()
    assert (np.abs(trace.predictions - oracle.predictions) <= mixed).all()
    charged = 4 * window * size.max() * mixed + slots * weights[:-1] * (1 + oracle.curvature.max())
    assert (np.abs(trace.cost - oracle.cost) <= charged).all()
    assert (np.abs(trace.loss - oracle.loss) <= charged).all()
    difference = np.abs(trace.cumulative_cost - oracle.cumulative_cost)
    assert (difference <= np.cumsum(charged) + n * unit * oracle.cumulative_cost[-1]).all()
    assert (np.abs(bank.ledger.dropped - oracle.dropped) <= n * costs).all()
    gap = oracle.bound - oracle.cost
    allowed = 2 * charged + slots * costs.max() + slots * weights[:-1] * oracle.bound.max()
    assert (np.abs(trace.bound_gap - gap) <= allowed).all()


def weight_errors(oracle, evidence):
    """How far weights may be off, row by row, if the evidence is off by so much.

    theta is piecewise linear in b / (2 a): it moves by at most the error over the least curvature
    of an active slot. (That weights are right for the evidence of their own bank is certified to
    rounding elsewhere.)
    """
    following = np.vstack([oracle.weights[1:], oracle.next_weights])
    least = np.where(following > 0, oracle.curvature, np.inf).min(axis=1)
    errors = np.append(0.0, np.minimum(1.0, evidence / np.maximum(least, 1e-300)))
    assert np.median(errors) < 1e-3  # or else this would not test weights
    return errors


# window, budget, dimension, spacing: every kernel and every loss is played in each of these. The
# fast tests take another one for every loss.
SETTINGS = [
    (window, window + more, dimension, spacing)
    for window, more, dimension, spacing in itertools.product(
        [1, 4], [0, 1, 7], [1, 3], ["irregular", "regular"]
    )
]
CASES = [
    pytest.param(
        loss,
        objective,
        id=f"{name_of(loss)}-{'-'.join(map(str, objective))}",
        marks=[] if (7 * number + place) % len(SETTINGS) == 0 else [pytest.mark.slow],
    )
    for number, loss in enumerate(LOSSES)
    for place, objective in enumerate(SETTINGS)
]


@pytest.mark.parametrize(("loss", "objective"), CASES)
def test_bank_with_any_kernel_loss_and_objective_equals_the_definition(loss, objective):
    window, budget, dimension, spacing = objective
    X, y = stream(window + budget, 22, dimension)
    y = targets_for(loss[0], y)
    if spacing == "regular":
        X = np.tile(np.arange(22.0)[:, None] / 16, (1, dimension))
    bank, trace, oracle = run_both(
        KERNELS, loss, X, y, window=window, budget=budget, rate=0.004, ridge=0.9
    )
    assert_equal_to(oracle, bank, trace, y, budget, window)


@pytest.mark.parametrize(("rate", "ridge"), [(0.3, 1.0), (0.1, 9.0)])
def test_bank_with_strong_decay_equals_the_definition_over_several_periods_of_the_scale(
    rate, ridge
):
    X, y = stream(9, 45, 1)
    bank, trace, oracle = run_both(
        KERNELS[:3], LOSSES[0], X, y, window=1, budget=12, rate=rate, ridge=ridge
    )
    assert_equal_to(oracle, bank, trace, y, 12, 1)


@pytest.mark.parametrize("step_size", ["inverse_sqrt", "adagrad"])
@pytest.mark.parametrize(("window", "budget", "ridge"), [(1, 12, 1.5), (4, 9, 0.3), (3, 6, 0.0)])
def test_bank_with_a_rate_that_varies_equals_the_definition(step_size, window, budget, ridge):
    # The decay varies too: tails, scale and norm^2 must follow, over several periods of the scale.
    X, y = stream(9, 45, 1)
    settings = {"window": window, "budget": budget, "rate": 0.4, "ridge": ridge}
    bank, trace, oracle = run_both(KERNELS[:5], LOSSES[0], X, y, **settings, step_size=step_size)
    assert_equal_to(oracle, bank, trace, y, budget, window)
    points = np.linspace(0, 1.5, 4)[:, None]
    for p, (_, kernel) in enumerate(KERNELS[:5]):
        expected = [oracle.value(oracle.estimates[p], kernel, x) for x in points]
        assert np.abs(bank.predict_slots(points)[:, p] - expected).max() <= 1e-11


@pytest.mark.parametrize(
    "combiner",
    first_of_each(lambda one: type(one[0][0]), [(one,) for one in COMBINERS]),
    ids=map(name_of, COMBINERS),
)
@pytest.mark.parametrize("ridge", [slow(0.0), 0.4])
def test_weights_of_any_combiner_are_defined_by_the_evidence_so_far(combiner, ridge):
    X, y = stream(3, 40, 1)
    rule, (name, settings) = combiner
    kernels = [kernel for kernel, _ in KERNELS[:4]]
    bank = kb.KernelBank(kernels, Norma(0.02, 20), rule, window=5, regularization=ridge)
    # A certificate of 1e-10 of a cost allows some 1e-5 in weights; others have rounding only.
    room = 1e-4 if hasattr(rule, "tolerance") else 1e-11
    parts, last = [], bank.weights
    for n in range(40):
        parts.append(bank.run(X[n : n + 1], y[n : n + 1]))
        assert np.array_equal(parts[n].weights[0], last)
        window = slice(max(0, n - 4), n + 1)
        seen = SimpleNamespace(
            y=y[: n + 1],
            predictions=np.vstack([part.slot_predictions for part in parts]),
            losses=np.vstack([part.slot_loss for part in parts]),
            costs=np.vstack([part.slot_cost for part in parts]),
            a=parts[n].curvature[0],
            b=parts[n].window_loss[0],
            values=bank.predict_slots(X[window]).T,
            targets=y[window],
            last=last,
            ridge=ridge,
            loss=naive.squared(),
        )
        expected = RULES[name](seen, **settings)
        assert np.abs(bank.weights - expected).max() <= room, n
        last = bank.weights
