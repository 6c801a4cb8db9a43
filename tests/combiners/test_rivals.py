"""Raker, AdaRaker, OMKL-GF and OMKL-SFG against forms written from the papers by somebody else."""

import numpy as np
import pytest

import kernelbank as kb
from support.combining import run_combiner
from support.naive import combiners as naive_combiners
from support.naive.rivals import adaraker as published_adaraker
from support.naive.rivals import omkl_gf as published_graphs
from support.naive.rivals import raker as published_raker

C = kb.combiners
EPS = np.finfo(float).eps
SAMPLES = 70
WIDTHS = kb.gaussian_grid(0.2, 5, 4)
RIDGE = 0.01  # the papers' penalty is RIDGE |theta|^2: regularization is 2 RIDGE


def stream(change=True):
    draw = np.random.default_rng(8)
    X = draw.uniform(0, 1, (SAMPLES, 2))
    y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.02 * draw.normal(size=SAMPLES)
    if change:
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


@pytest.mark.parametrize(("evidence", "weight_loss"), [("cost", "regularised"), ("loss", "plain")])
@pytest.mark.parametrize("step_size", ["constant", "inverse_sqrt"])
def test_raker_equals_the_published_equations(evidence, weight_loss, step_size):
    X, y = stream()
    settings = {"features": 12, "regularization": 2 * RIDGE, "step_size": step_size}
    bank = kb.presets.raker(WIDTHS, **settings, learning_rate=0.4, rate=0.7, evidence=evidence)
    trace = bank.run(X, y)
    eta = 0.4 / np.sqrt(np.arange(1, SAMPLES + 1)) if step_size == "inverse_sqrt" else 0.4
    expected = published_raker.raker(
        features_of(X, WIDTHS), y, eta, RIDGE, weight_loss, eta_weights=0.7
    )
    close(trace.slot_predictions, expected["kernel_predictions"])
    close(trace.weights, expected["weights"][:-1])
    close(trace.predictions, expected["prediction"])
    close(bank.weights, expected["weights"][-1])


def test_norm_in_the_loss_of_the_weights_matters():
    X, y = stream()
    weights = [
        kb.presets.raker(WIDTHS, features=12, rate=0.3, regularization=0.3, evidence=evidence)
        .run(X, y)
        .weights[-1]
        for evidence in ("loss", "cost")
    ]
    assert np.abs(weights[0] - weights[1]).max() > 1e-3


@pytest.mark.parametrize("level", [0, 1, 3, 5])
def test_slot_that_restarts_equals_an_instance_of_adaraker(level):
    X, y = stream()
    kernel, rate = WIDTHS[:1], min(0.5, 0.8 / 2 ** (level / 2))
    learner = kb.learners.FourierSGD(12, rate, restart=2**level)
    bank = kb.KernelBank(kernel, learner, window=1, regularization=2 * RIDGE)
    made = bank.run(X, y).slot_predictions[:, 0]
    expected = published_adaraker.adaraker(features_of(X, kernel), y, eta0=0.8, lam=RIDGE)
    active = np.arange(1, SAMPLES + 1) >= 2**level
    close(made[active], expected["kernel_predictions"][active, level, 0])


@pytest.mark.parametrize("cuts", [(), (1, 5, 31, 32, 33)])
def test_adaraker_weights_equal_the_published_ones(cuts):
    X, y = stream()
    expected = published_adaraker.adaraker(
        features_of(X, WIDTHS), y, eta0=0.8, lam=RIDGE, weight_loss="plain"
    )
    levels, kernels = expected["h"].shape[1], len(WIDTHS)
    predictions = np.nan_to_num(expected["kernel_predictions"]).reshape(SAMPLES, -1)
    losses = (predictions - y[:, None]) ** 2
    rule = C.AdaRaker(kernels, learning_rate=0.8, restart=True, normalize=False)
    made = run_combiner(rule, losses, values=predictions, targets=y, cuts=cuts).weights
    shares = expected["h"] / expected["h"].sum(axis=1, keepdims=True)
    wanted = shares[:, :, None] * np.nan_to_num(expected["kernel_weights"])
    close(made[:-1], wanted.reshape(SAMPLES, levels * kernels)[1:])
    close((made[:-1] * predictions[1:]).sum(axis=1), expected["prediction"][1:])


def test_preset_adaraker_has_an_instance_per_length_and_follows_a_change():
    X, y = stream()
    bank = kb.presets.adaraker(WIDTHS, features=12, levels=4, restart=True)
    assert [slot.learner.restart for slot in bank.slots[::4]] == [1, 2, 4, 8]
    rates = [slot.learner.learning_rate for slot in bank.slots[::4]]
    assert np.allclose(rates, 0.35 / np.sqrt([1, 2, 4, 8]))
    kept = kb.presets.adaraker(WIDTHS, features=12)
    assert all(slot.learner.restart is None for slot in kept.slots)
    assert kept.combiner == C.AdaRaker(kernels=4)
    errors = [np.square(b.run(X, y).predictions - y).mean() for b in (bank, kept)]
    assert errors[1] < 0.5 * errors[0]  # restarted functions have no time to learn


def test_adaraker_predicts_as_well_as_the_authors_program():
    errors = []
    for seed in range(3):
        draw = np.random.default_rng(seed)
        X = draw.uniform(0, 1, (500, 3))
        y = np.where(np.arange(500) < 250, np.sin(4 * X[:, 0]) * X[:, 1], np.cos(4 * X[:, 2]))
        y = (y + 1) / 2 + 0.02 * draw.normal(size=500)
        frequencies = np.stack([s * draw.normal(size=(50, 3)) for s in (0.1, 1.0, 10.0)])
        z = published_raker.fourier_features(X, frequencies, normalise=False)
        program = published_adaraker.adaraker_matlab(z, y)["prediction"]
        kept, restarted = (
            kb.presets.adaraker(seed=seed, restart=restart).run(X, y).predictions
            for restart in (False, True)
        )
        errors.append([np.square(p - y)[1:].mean() for p in (program, kept, restarted)])
    program, kept, restarted = np.mean(errors, axis=0)
    assert kept < 1.1 * program
    assert restarted > 3 * program  # the program does not restart, whatever the paper says


def uniforms(seed, nodes, draws):
    """The numbers that OMKLGF draws: (T, J, M) for kernels, (T,) for nodes."""
    draw = naive_combiners.uniform_draw
    times = range(1, SAMPLES + 1)
    graph = [[[draw(seed, t, j, k) for k in range(draws)] for j in range(nodes)] for t in times]
    return np.array(graph), np.array([draw(seed, t, nodes, 0) for t in times])


@pytest.mark.parametrize(("draws", "nodes"), [(1, 1), (3, 1), (2, 4)])
@pytest.mark.parametrize("version", ["icml", "jmlr"])
def test_omkl_gf_weights_equal_those_of_the_authors_equations(draws, nodes, version):
    X, y = stream(change=False)
    kernels = kb.gaussian_grid(0.1, 10, 7)
    graph, node = uniforms(4, nodes, draws)
    rates = 0.3 / np.sqrt(np.arange(1, SAMPLES + 1))
    expected = published_graphs.omkl_gf(
        features_of(X, kernels), y, rates, RIDGE, draws, nodes, graph, node, version=version
    )
    # The published method gives losses of slots that were shown, divided by q; others are not used.
    floor = 0.05 if version == "jmlr" else 0.0
    losses = expected["losses"] * np.maximum(expected["q"], floor)
    losses = np.where(expected["shown"], losses, 123.0)
    factor = 1.0 if version == "icml" else 2.0 ** int(np.log2(nodes))  # there is none in 2023
    rule = C.OMKLGF(draws, nodes, 0.3 * factor, 0.3, least_probability=floor, seed=4)
    made = run_combiner(rule, losses, cuts=(1, 2, 40))
    wanted = np.where(expected["shown"], expected["weights"][:-1], 0.0)
    wanted /= wanted.sum(axis=1, keepdims=True)
    close(made.weights[:-1], wanted[1:])
    last = np.log(expected["weights"][-1])
    close(made.diagnostics["log_weights"], last - last.max(), 1e5)
    assert expected["shown"].sum(axis=1).max() <= draws


@pytest.mark.parametrize("neighbours", [1, 3, 7])
def test_omkl_sfg_weights_equal_those_of_the_authors_equations(neighbours):
    X, y = stream(change=False)
    kernels = kb.gaussian_grid(0.1, 10, 7)
    distances = published_graphs.gaussian_distance([kernel.width for kernel in kernels])
    adjacency = published_graphs.similarity_graph(distances, neighbours)
    graph = kb.presets.similarity_graph(kernels, neighbours)
    assert [tuple(np.flatnonzero(row)) for row in adjacency] == list(graph)
    node = [naive_combiners.uniform_draw(2, t, 0, 0) for t in range(1, SAMPLES + 1)]
    rates = 0.5 / np.sqrt(np.arange(1, SAMPLES + 1))
    z = features_of(X, kernels)
    expected = published_graphs.omkl_sfg(z, y, rates, RIDGE, adjacency, distances, np.array(node))
    predictions = (expected["thetas"][:-1] * z).sum(axis=2)
    losses = np.where(expected["shown"], expected["losses"] * np.maximum(expected["q"], 0.1), 123.0)
    rule = C.OMKLSFG(graph, 0.5, 0.5, seed=2)
    made = run_combiner(rule, losses, values=predictions, targets=y, cuts=(1, 2, 40))
    wanted = np.where(expected["shown"], expected["weights"][:-1], 0.0)
    wanted /= wanted.sum(axis=1, keepdims=True)
    close(made.weights[:-1], wanted[1:])
    for name, theirs in (("log_weights", "weights"), ("log_node_weights", "node_weights")):
        last = np.log(expected[theirs][-1])
        close(made.diagnostics[name], last - last.max(), 1e4)


def test_whole_number_beyond_64_bits_is_refused():
    with pytest.raises(ValueError, match=r"'seed' of OMKLSFG must be .* <= 9223372036854775807"):
        kb.combiners.OMKLSFG(seed=2**63)
    assert kb.combiners.OMKLSFG(seed=2**63 - 1).seed == 2**63 - 1


def test_graph_that_does_not_fit_the_slots_is_refused():
    with pytest.raises(ValueError, match="'graph' of OMKLSFG must list, for each of the 3 slots"):
        kb.KernelBank(kb.gaussian_grid(1, 2, 3), combiner=C.OMKLSFG(((0,), (1, 0))))
    with pytest.raises(ValueError, match="must let the node of slot 1 show slot 1"):
        C.OMKLSFG(((0,), (0,)))
    with pytest.raises(ValueError, match="'kernels' of similarity_graph must be Gaussian"):
        kb.presets.similarity_graph([kb.kernels.Linear(1.0)], 1)


RULES = [
    C.AdaRaker(kernels=2),
    C.AdaRaker(kernels=2, restart=True, normalize=False, learning_rate=30.0),
    C.OMKLGF(draws=3, nodes=2),
    C.OMKLSFG(graph=2),
    C.OMKLSFG(graph=1, exploration=0.0),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e150])
def test_weights_for_losses_of_any_size_are_on_the_simplex_of_finite_slots(rule, size):
    draw = np.random.default_rng(3)
    for slots in (1, 2, 5, 6):
        predictions = size * draw.normal(size=(60, slots)) * 10 ** draw.uniform(-3, 1, slots)
        losses = np.minimum(np.square(predictions), np.finfo(float).max)
        for p in range(1, slots):
            losses[int(draw.integers(0, 60)) :, p] = np.inf
        if slots == 6:
            losses[50:] = np.inf  # none is left
        predictions = np.where(np.isfinite(losses), predictions, np.nan)
        given = {"values": predictions, "targets": np.zeros(60)}
        made = run_combiner(rule, losses, **given)
        finite = np.isfinite(losses)
        assert np.isfinite(made.weights).all()
        assert (made.weights >= 0).all()
        assert (made.weights[~finite] == 0).all()
        assert np.abs(made.weights.sum(axis=1) - finite.any(axis=1)).max() <= 64 * EPS
        again = run_combiner(rule, losses, **given, cuts=range(1, 60))
        assert (again.weights == made.weights).all()
        assert all(np.array_equal(made.state[name], again.state[name]) for name in made.state)
