"""The partition tree against its definition, and within its memory."""

import copy
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.instances import stream
from support.marks import refuses
from support.naive import matern
from support.naive.learners import NearestNeighborGP as Naive
from support.naive.tree import NaiveTree

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")
EPS = np.finfo(float).eps
Cells, Tree = kb.kernels.TreeKernel, kb.learners.PartitionTree


def moving_stream(seed, samples, dimension, *, drift=0.0, grid=None, labels=False):
    """Inputs that move away by `drift` every 30 samples, if asked on a grid, so that some repeat."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1, (samples, dimension)) + drift * (np.arange(samples) // 30)[:, None]
    if grid is not None:
        X = np.round(X * grid) / grid
    y = np.where(X[:, 0] % 1 < 0.4, -2.0, 2.0) + 0.3 * draw.normal(size=samples)
    return X, np.where(y > 0, 1.0, -1.0) if labels else y


# Hypothesis draws a seed, and the seed the rest: its own mutations would try the same few trees.
seeds = st.integers(0, 10**9).map(np.random.default_rng)


@st.composite
def trees(draw):
    random = draw(seeds)
    kernel = Cells(random.choice([0.3, 0.7, 1.0]), int(random.choice([1, 3, 9, 9])))
    learner = Tree(
        nodes=int(random.choice([1, 2, 5, 8, 11, 11, 15, 31])),
        split_after=int(random.choice([2, 3, 7])),
        noise=random.choice([0.01, 0.3]),
        seed=int(random.integers(0, 2**63 - 1)),
    )
    return kernel, learner


@st.composite
def streams(draw, samples, labels=False):
    random = draw(seeds)
    return moving_stream(
        int(random.integers(10**9)),
        samples,
        int(random.integers(1, 4)),
        drift=random.choice([0.0, 0.1, 3.0, 3.0]),
        grid=random.choice([None, 1, 4]),
        labels=labels,
    )


def naive_of(kernel, learner, column=0, loss="squared"):
    return NaiveTree(
        kernel.variances(),
        nodes=learner.nodes,
        split_after=learner.split_after,
        noise=learner.noise,
        seed=learner.seed,
        column=column,
        loss=loss,
    )


def arrays(bank, slot=0):
    """The state of a slot, which has a pack of its own; values and norm^2 in lane 0."""
    start = f"pack{slot}/"
    state = {name[len(start) :]: a for name, a in bank.state().items() if name.startswith(start)}
    return {name.removeprefix("learner/").removeprefix("output0/"): a for name, a in state.items()}


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_posterior_norm_and_values_equal_the_dense_solution_after_every_sample(loss):
    """Both sides solve the same problem of condition kappa = 1 + n sum(v) / least error.

    A solution of n equations is off by some n kappa eps of the size of the targets; the messages
    are convex combinations along at most `levels` cells, off by a few eps each. With the logistic
    loss each working response takes the errors of the values before it along, times |1 - 1 / c|
    times their weight, which does not let them grow. norm^2 is at most sum_i z_i^2 / error_i.
    """
    seen = {"splits": 0, "merges": 0}

    @settings(max_examples=10)
    @given(trees(), streams(50, loss == "logistic"), st.integers(1, 4))
    def compare(slot, data, window):
        kernel, learner = slot
        X, y = data
        bank = kb.KernelBank([kernel], learner, loss=loss, window=window)
        naive = naive_of(kernel, learner, loss=loss)
        for n in range(len(X)):
            expected = naive.learn(X[n], y[n])
            trace = bank.run(X[n : n + 1], y[n : n + 1])
            state = arrays(bank)
            errors = learner.noise / np.array(naive.weights)
            condition = 1 + (n + 1) * sum(kernel.variances()) / errors.min()
            targets = np.array(naive.targets)
            unit = 20 * (n + 1 + kernel.levels) * condition * EPS
            allowed = unit * np.abs(targets).max()
            assert abs(trace.slot_predictions[0, 0] - expected) <= allowed
            recent = range(max(0, n + 1 - window), n + 1)
            values = [naive.value(X[i]) for i in recent]
            assert np.abs(state["values"][window - len(values) :, 0] - values).max() <= allowed
            assert not state["values"][: window - len(values), 0].any()
            norm = state["norm"][0]
            assert abs(norm - naive.squared_norm()) <= unit * (targets**2 / errors).sum()
            assert abs(bank.predict_slots(X[n : n + 1] + 0.1)[0, 0] - naive.value(X[n] + 0.1)) <= (
                allowed
            )
        seen["splits"] += naive.splits
        seen["merges"] += naive.merges

    compare()
    assert seen["splits"] > 0  # the examples reach both
    assert seen["merges"] > 0


def test_impossible_trees_are_refused():
    """Of 11 cells in 5 pairs, with at most 2 entries each."""
    bank = kb.KernelBank([Cells(0.7, 6)], Tree(nodes=11, split_after=3))
    bank.run(*moving_stream(0, 180, 2, drift=0.5))
    state = bank.state()
    counts, used = (state[f"pack0/learner/{name}"] for name in ("entry_counts", "entries_used"))
    leaf, other = np.flatnonzero(counts)[:2]
    firsts = state["pack0/learner/first_entries"]
    at = {"parents": 1, "first_entries": leaf}  # else the first number
    for name, values in {
        "children": [-1, 2, 11, 0],
        "axes": [-1, 2],
        "parents": [-1, 1, 11],
        "entry_counts": [-1, 1, 3],
        "first_entries": [-1, used, firsts[other]],
        "entries": [-2, used, firsts[leaf], np.nan],
        "entries_used": [-1, used - 1, used + 1, 19],
        "first_free": [-2, used, firsts[leaf]],
        "pairs": [-1, 4, 6],
        "splits": [-1, 2**53],
    }.items():
        for value in values:
            array = state[f"pack0/learner/{name}"].copy()
            array.flat[at.get(name, 0)] = value
            forged = state | {f"pack0/learner/{name}": array}
            refuses(r"\w", bank._bank.restore, forged)
    bank._bank.restore(state)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells it so")
@pytest.mark.skipif("KERNELBANK_SANITIZED" in os.environ, reason="all memory is watched there")
@pytest.mark.parametrize(
    ("kernel", "learner"),
    [
        (Cells(), Tree(nodes=400_001)),
        (kb.kernels.NoKernel(), kb.learners.BoostedTrees(memory=4_000_000)),
        (kb.kernels.Gaussian(1.0), kb.learners.NearestNeighborGP(memory=10_000_000)),
    ],
)
def test_memory_is_taken_as_samples_come(kernel, learner):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    X, y = stream(0, 40, 1)
    before = resident()
    bank = kb.KernelBank([kernel], learner, window=1)
    bank.run(X[:20], y[:20])
    other = copy.copy(bank)
    assert np.array_equal(
        other.run(X[20:], y[20:]).predictions, bank.run(X[20:], y[20:]).predictions
    )
    assert resident() - before < 0.2 * bank.state_bytes(1)


def test_equal_slots_draw_different_cells():
    X, y = moving_stream(0, 300, 3)
    last = [
        kb.KernelBank([Cells(), Cells()], Tree(split_after=5, seed=seed)).run(X, y)
        for seed in (0, 1)
    ]
    assert len(np.unique([trace.slot_predictions[-1] for trace in last])) == 4


# --- nearest neighbors ----------------------------------------------------------------------------

K, L = kb.kernels, kb.learners

KERNELS = [scale * K.Matern(width) for scale, width in ((1, 0.3), (10, 1), (1, 1), (10, 3))]


def naive_neighbors(scale, width, **settings):
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
    oracles = [naive_neighbors(s, w, **settings) for s, w in ((1, 0.3), (10, 1), (1, 1), (10, 3))]
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
    refuses("'column' of LastValue must be the index of one of 2", lambda: bank.run(X, np.ones(5)))
    assert bank.samples == 0
    refuses("'column' of LastValue", L.LastValue, column=-1)
