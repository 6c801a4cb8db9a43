"""NearestNeighborGP beyond what every learner is tested for, and LastValue."""

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream
from support.naive import matern
from support.naive.learners import NearestNeighborGP as Naive

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps

KERNELS = [scale * K.Matern(width) for scale, width in ((1, 0.3), (10, 1), (1, 1), (10, 3))]


def naive_of(scale, width, **settings):
    base = matern(width, 1.5)
    return Naive(lambda x, t: scale * base(x, t), (None, None), 0.0, **settings)


@pytest.mark.parametrize("grid", [None, 4])
def test_four_kernels_share_the_search_and_equal_the_definition_each(grid):
    X, y = stream(5, 60, 3)
    if grid:  # many inputs are equally near, and some are equal
        X = np.round(X * grid) / grid
    settings = {"neighbors": 9, "memory": 40, "noise": 0.1}
    bank = kb.KernelBank(KERNELS, L.NearestNeighborGP(**settings))
    trace = bank.run(X, y)
    oracles = [naive_of(s, w, **settings) for s, w in ((1, 0.3), (10, 1), (1, 1), (10, 3))]
    # The largest eigenvalue is at most 9 * (10 + 1), the smallest at least the noise.
    tolerance = EPS * 9 * (9 * 11 / 0.1) * 10
    for n in range(len(y)):
        for p, oracle in enumerate(oracles):
            assert abs(trace.slot_predictions[n, p] - oracle.predict(X[n])) < tolerance, (n, p)
            oracle.learn(X[n], y[n])


def test_variance_is_that_of_the_local_gaussian_process():
    X, y = stream(6, 60, 2)
    X = np.float32(X).astype(float)
    bank = kb.KernelBank([K.Matern(0.8)], L.NearestNeighborGP(neighbors=60, memory=61, noise=0.2))
    bank.run(X, y)
    points = np.float32(X[:4] + 0.01).astype(float)
    gram = bank.slots[0].kernel(X, X) + 1.0
    cross = bank.slots[0].kernel(points, X) + 1.0
    solved = np.linalg.solve(gram + 0.2 * np.eye(60), cross.T)
    expected = (2.0 - np.sum(cross.T * solved, axis=0)) / 0.2
    found = bank.predict_variance_slots(points)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=EPS * 60 * 120 / 0.2 * 10 / 0.2)


def test_capacity_grows_with_the_memory():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (1200, 2))
    y = np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1])
    errors = []
    for memory in (50, 600):
        learner = L.NearestNeighborGP(neighbors=8, memory=memory, noise=0.01)
        trace = kb.KernelBank([K.Matern(1.5)], learner).run(X, y)
        errors.append(np.mean((trace.predictions - y)[800:] ** 2))
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"neighbors": 0}, "'neighbors' of NearestNeighborGP"),
        ({"neighbors": 5, "memory": 5}, "'memory' of NearestNeighborGP must be .* >= 6"),
        ({"noise": 0.0}, "'noise' of NearestNeighborGP"),
        ({"constant": -1.0}, "'constant' of NearestNeighborGP"),
    ],
)
def test_settings_are_checked(settings, words):
    with pytest.raises(ValueError, match=words):
        L.NearestNeighborGP(**settings)


def test_other_losses_are_refused_unless_the_slot_has_its_own():
    with pytest.raises(ValueError, match='loss="squared"'):
        kb.KernelBank([K.Matern(1.0)], L.NearestNeighborGP(), loss="absolute")
    slot = kb.Slot(K.Matern(1.0), L.NearestNeighborGP(), loss="squared")
    bank = kb.KernelBank(slots=[slot], loss="absolute")
    bank.learn_one(1.0, 2.0)
    assert 1.5 < bank.predict_one(1.0) < 2.0


def test_slots_of_a_pack_go_on_with_what_they_share_when_others_are_retired():
    X, y = stream(8, 400, 2)
    bank = kb.KernelBank(KERNELS, L.NearestNeighborGP(neighbors=5, memory=60))
    bank.run(X[:300], y[:300])
    fewer = bank.with_slots([bank.slots[i] for i in (1, 3)], kept=[1, 3])
    trace, other = bank.run(X[300:], y[300:]), fewer.run(X[300:], y[300:])
    assert np.array_equal(trace.slot_predictions[:, [1, 3]], other.slot_predictions)


def test_a_new_slot_in_a_pack_shares_what_the_others_have_stored():
    X, y = stream(8, 400, 2)
    learner = L.NearestNeighborGP(neighbors=5, memory=390)
    bank = kb.KernelBank(KERNELS[:2], learner)
    bank.run(X, y)
    slots = [*bank.slots, kb.Slot(KERNELS[2], learner)]
    more = bank.with_slots(slots, kept=[0, 1, None])
    whole = kb.KernelBank(KERNELS[:3], learner)
    whole.run(X, y)
    points = X[:20] + 0.003
    assert np.array_equal(more.predict_slots(points), whole.predict_slots(points))


def test_last_value_needs_no_kernel_and_is_a_base_for_the_change_of_the_target():
    with pytest.raises(ValueError, match="'kernel' of LastValue must be NoKernel"):
        kb.KernelBank([K.Gaussian(1.0)], L.LastValue())
    t = np.arange(300.0)
    walk = np.cumsum(np.where(t % 2 == 0, 1.0, 3.0))
    slots = [
        kb.Slot(K.NoKernel(), L.LastValue()),
        kb.Slot(K.Linear(1.0), L.LinearRLS(), residual_of=0),
    ]
    trace = kb.KernelBank(slots=slots).run((t % 2)[:, None], walk)
    assert np.array_equal(trace.slot_predictions[1:, 0], walk[:-1])
    np.testing.assert_allclose(trace.slot_predictions[100:, 1], walk[100:], atol=0.01)


def test_last_value_may_be_an_input():
    X = np.column_stack([np.arange(5.0), 10 * np.arange(5.0)])
    slots = [kb.Slot(K.NoKernel(), L.LastValue(column=1))]
    trace = kb.KernelBank(slots=slots).run(X, np.ones(5))
    assert trace.slot_predictions[:, 0].tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]
    bank = kb.KernelBank(slots=[kb.Slot(K.NoKernel(), L.LastValue(column=2))])
    with pytest.raises(ValueError, match="'column' of LastValue must be the index of one of 2"):
        bank.run(X, np.ones(5))
    assert bank.samples == 0
    with pytest.raises(ValueError, match="'column' of LastValue"):
        L.LastValue(column=-1)
