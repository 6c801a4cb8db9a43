"""Raker and AdaRaker against forms written from the paper by somebody else."""

import numpy as np
import pytest

import kernelbank as kb
from support.combining import run_combiner
from support.naive.rivals import adaraker as published_adaraker
from support.naive.rivals import raker as published_raker

EPS = np.finfo(float).eps
SAMPLES = 70
WIDTHS = kb.gaussian_grid(0.2, 5, 4)
RIDGE = 0.01  # the papers' penalty is RIDGE |theta|^2: regularization is 2 RIDGE


def stream():
    draw = np.random.default_rng(8)
    X = draw.uniform(0, 1, (SAMPLES, 2))
    y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.02 * draw.normal(size=SAMPLES)
    y[SAMPLES // 2 :] = np.cos(4 * X[SAMPLES // 2 :, 1])
    return X, y


def features_of(X, kernels, seed=0, count=12):
    """(T, P, M): the random features that the slots of a bank draw."""
    draws = [np.random.default_rng([seed, p]) for p in range(len(kernels))]
    maps = [
        kb.kernels.feature_map(k, count, X.shape[1], r) for k, r in zip(kernels, draws, strict=True)
    ]
    return np.stack([drawn(X) for drawn in maps], axis=1)


def close(one, other, size=1e3):
    """Equal up to the rounding of some hundred steps of numbers of size 1."""
    assert np.abs(np.asarray(one) - other).max() <= SAMPLES * size * EPS


@pytest.mark.parametrize(
    ("evidence", "weight_loss", "step_size"),
    [("cost", "regularised", "constant"), ("loss", "plain", "inverse_sqrt")],
)
def test_raker_equals_the_published_equations(evidence, weight_loss, step_size):
    X, y = stream()
    settings = {"features": 12, "regularization": 2 * RIDGE, "step_size": step_size}
    bank = kb.rivals.raker(WIDTHS, **settings, learning_rate=0.4, rate=0.7, evidence=evidence)
    trace = bank.run(X, y)
    eta = 0.4 / np.sqrt(np.arange(1, SAMPLES + 1)) if step_size == "inverse_sqrt" else 0.4
    expected = published_raker.raker(features_of(X, WIDTHS), y, eta, RIDGE, weight_loss, 0.7)
    close(trace.slot_predictions, expected["kernel_predictions"])
    close(trace.weights, expected["weights"][:-1])
    close(trace.predictions, expected["prediction"])
    close(bank.weights, expected["weights"][-1])


@pytest.mark.parametrize("level", [0, 3])
def test_slot_that_restarts_equals_an_instance_of_adaraker(level):
    X, y = stream()
    kernel, rate = WIDTHS[:1], min(0.5, 0.8 / 2 ** (level / 2))
    learner = kb.learners.FourierSGD(12, rate, restart=2**level)
    bank = kb.KernelBank(kernel, learner, window=1, regularization=2 * RIDGE)
    made = bank.run(X, y).slot_predictions[:, 0]
    expected = published_adaraker.adaraker(features_of(X, kernel), y, eta0=0.8, lam=RIDGE)
    active = np.arange(1, SAMPLES + 1) >= 2**level
    close(made[active], expected["kernel_predictions"][active, level, 0])


def test_adaraker_weights_equal_the_published_ones():
    X, y = stream()
    expected = published_adaraker.adaraker(
        features_of(X, WIDTHS), y, eta0=0.8, lam=RIDGE, weight_loss="plain"
    )
    levels, kernels = expected["h"].shape[1], len(WIDTHS)
    predictions = np.nan_to_num(expected["kernel_predictions"]).reshape(SAMPLES, -1)
    losses = (predictions - y[:, None]) ** 2
    rule = kb.rivals.AdaRaker(kernels, learning_rate=0.8, restart=True, normalize=False)
    made = run_combiner(
        rule, losses, values=predictions, targets=y, cuts=(1, 5, 31, 32, 33)
    ).weights
    shares = expected["h"] / expected["h"].sum(axis=1, keepdims=True)
    wanted = shares[:, :, None] * np.nan_to_num(expected["kernel_weights"])
    close(made[:-1], wanted.reshape(SAMPLES, levels * kernels)[1:])
    close((made[:-1] * predictions[1:]).sum(axis=1), expected["prediction"][1:])


def test_adaraker_has_an_instance_per_length_and_follows_a_change():
    X, y = stream()
    bank = kb.rivals.adaraker(WIDTHS, features=12, levels=4, restart=True)
    assert [slot.learner.restart for slot in bank.slots[::4]] == [1, 2, 4, 8]
    rates = [slot.learner.learning_rate for slot in bank.slots[::4]]
    assert np.allclose(rates, 0.35 / np.sqrt([1, 2, 4, 8]))
    kept = kb.rivals.adaraker(WIDTHS, features=12)
    assert all(slot.learner.restart is None for slot in kept.slots)
    assert kept.combiner == kb.rivals.AdaRaker(kernels=4)
    errors = [np.square(b.run(X, y).predictions - y).mean() for b in (bank, kept)]
    assert errors[1] < 0.5 * errors[0]  # restarted functions have no time to learn


def test_adaraker_predicts_as_well_as_the_authors_program():
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 1, (300, 3))
    y = np.where(np.arange(300) < 150, np.sin(4 * X[:, 0]) * X[:, 1], np.cos(4 * X[:, 2]))
    y = (y + 1) / 2 + 0.02 * draw.normal(size=300)
    frequencies = np.stack([s * draw.normal(size=(50, 3)) for s in (0.1, 1.0, 10.0)])
    z = published_raker.raw_features(X, frequencies)
    predictions = [published_adaraker.adaraker_matlab(z, y)]
    predictions += [kb.rivals.adaraker(restart=r).run(X, y).predictions for r in (False, True)]
    program, kept, restarted = (np.square(p - y)[1:].mean() for p in predictions)
    assert kept < 1.1 * program
    assert restarted > 3 * program  # the program does not restart, whatever the paper says


RULES = [
    kb.rivals.AdaRaker(kernels=2),
    kb.rivals.AdaRaker(kernels=2, restart=True, normalize=False, learning_rate=30.0),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("size", [1e-300, 1e150])
def test_weights_for_losses_of_any_size_are_on_the_simplex_of_finite_slots(rule, size):
    draw = np.random.default_rng(3)
    for slots in (1, 5, 6):
        predictions = size * draw.normal(size=(30, slots)) * 10 ** draw.uniform(-3, 1, slots)
        losses = np.minimum(np.square(predictions), np.finfo(float).max)
        for p in range(1, slots):
            losses[int(draw.integers(0, 30)) :, p] = np.inf
        if slots == 6:
            losses[25:] = np.inf  # none is left
        predictions = np.where(np.isfinite(losses), predictions, np.nan)
        given = {"values": predictions, "targets": np.zeros(30)}
        made = run_combiner(rule, losses, **given)
        finite = np.isfinite(losses)
        assert np.isfinite(made.weights).all()
        assert (made.weights >= 0).all()
        assert (made.weights[~finite] == 0).all()
        assert np.abs(made.weights.sum(axis=1) - finite.any(axis=1)).max() <= 64 * EPS
        again = run_combiner(rule, losses, **given, cuts=range(1, 30))
        assert (again.weights == made.weights).all()
        assert all(np.array_equal(made.state[name], again.state[name]) for name in made.state)


def test_file_of_an_adaraker_needs_its_class(tmp_path):
    X, y = stream()
    bank = kb.rivals.adaraker(WIDTHS, features=12, levels=4)
    bank.run(X[:40], y[:40])
    bank.save(tmp_path / "bank.kb")
    with pytest.raises(ValueError, match="AdaRaker"):
        kb.load(tmp_path / "bank.kb")
    again = kb.load(tmp_path / "bank.kb", components={"AdaRaker": kb.rivals.AdaRaker})
    assert np.array_equal(again.run(X[40:], y[40:]).weights, bank.run(X[40:], y[40:]).weights)
