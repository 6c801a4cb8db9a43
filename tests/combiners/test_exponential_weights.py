"""Hedge and FixedShare on artificial losses: against definitions and bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.combining import one_by_one, run_combiner
from support.naive import combiners as naive_combiners

EPS = np.finfo(float).eps
C = kb.combiners

EXPONENTIAL = [
    C.Hedge(),
    C.Hedge(learning_rate=0.7),
    C.FixedShare(learning_rate=0.7, share=0.1),
]


def definition(combiner, losses):
    if isinstance(combiner, C.Hedge):
        return naive_combiners.hedge(losses, combiner.learning_rate)
    return naive_combiners.fixed_share(losses, combiner.learning_rate, combiner.share)


@pytest.mark.parametrize("combiner", EXPONENTIAL, ids=repr)
@pytest.mark.parametrize("size", [0.01, 30.0])
def test_exponential_weights_equal_their_definition(combiner, size):
    draw = np.random.default_rng(1)
    losses = size * draw.exponential(size=(60, 5)) * [1, 1.1, 0.9, 2, 1]
    weights = run_combiner(combiner, losses, cuts=(1, 7, 8, 40)).weights
    for n in range(60):
        expected = definition(combiner, losses[: n + 1])
        assert np.abs(weights[n] - expected).max() <= 1e-11, n


@settings(max_examples=25)
@given(
    st.sampled_from(EXPONENTIAL),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-300, 1e-8, 1.0, 1e8, 1e250, 1e307]),
    st.lists(st.integers(1, 59), unique=True, max_size=6).map(sorted),
)
def test_exponential_weights_for_losses_of_any_size_are_on_the_simplex_of_finite_slots(
    combiner, seed, size, cuts
):
    draw = np.random.default_rng(seed)
    slots = int(draw.integers(1, 7))
    with np.errstate(over="ignore"):
        losses = size * draw.exponential(size=(60, slots)) * 10 ** draw.uniform(-3, 1, slots)
    losses = np.minimum(losses, np.finfo(float).max)
    for p in range(slots):
        if draw.uniform() < 0.5:
            losses[int(draw.integers(0, 60)) :, p] = np.inf
    result = run_combiner(combiner, losses, cuts=cuts)
    finite = np.isfinite(losses)
    assert np.isfinite(result.weights).all()
    assert (result.weights >= 0).all()
    assert (result.weights[~finite] == 0).all()
    expected = finite.any(axis=1).astype(float)
    assert np.abs(result.weights.sum(axis=1) - expected).max() <= 16 * slots * EPS
    again = run_combiner(combiner, losses, cuts=one_by_one(60))
    assert (again.weights == result.weights).all()
    assert all(np.array_equal(result.state[name], again.state[name]) for name in result.state)


def hedge_bound(spread, samples, slots):
    return spread * np.sqrt(np.log(slots) * samples) + spread * (16 / 3 * np.log(slots) + 2)


def regret(weights, losses):
    """Loss of the weights before each sample minus that of the best slot."""
    before = np.vstack([np.full(losses.shape[1], 1 / losses.shape[1]), weights[:-1]])
    losses = losses - losses.min(axis=1, keepdims=True)  # which changes no regret
    return (before * losses).sum() - losses.sum(axis=0).min()


def adversaries(samples):
    draw = np.random.default_rng(0)
    alternating = np.zeros((samples, 2))
    alternating[0] = [0.5, 0.0]
    alternating[1::2, 1] = 1.0
    alternating[2::2, 0] = 1.0
    coins = draw.integers(0, 2, (samples, 5)).astype(float)
    walk = np.where(np.arange(samples)[:, None] // 97 % 4 == np.arange(4), 0.0, 1.0)
    shifted = coins * 1e-6 + 1e6
    return {"alternating": alternating, "coins": coins, "walk": walk, "shifted": shifted}


@pytest.mark.parametrize("name", adversaries(1))
def test_adahedge_for_losses_of_any_scale_keeps_its_bound(name):
    losses = adversaries(4000)[name] * 2.0**60
    weights = run_combiner(C.Hedge(), losses).weights
    spread = (losses.max(axis=1) - losses.min(axis=1)).max()
    allowed = hedge_bound(spread, *losses.shape)
    assert regret(weights, losses) <= allowed
    if name == "alternating":  # where following the leader loses on every sample
        following = np.eye(2)[np.argmin(np.cumsum(losses, axis=0), axis=1)]
        assert regret(following, losses) > 5 * allowed
    unscaled = run_combiner(C.Hedge(), adversaries(4000)[name]).weights
    assert (weights == unscaled).all()  # a power of two changes no bit


def test_hedge_when_the_best_slot_fails_moves_to_the_next_best():
    losses = np.tile([0.0, 5.0, 6.0], (2000, 1))
    losses[1500:, 0] = np.inf
    for combiner in (C.Hedge(), C.Hedge(learning_rate=3.0)):
        weights = run_combiner(combiner, losses).weights
        assert weights[1499, 0] == 1.0
        assert weights[-1, 0] == 0.0
        assert weights[-1, 1] == 1.0
        assert weights[-1, 2] < 1e-100


def test_fixed_share_keeps_every_weight_above_the_share():
    losses = np.tile([0.0, 50.0, 90.0, 1.0], (300, 1))
    losses[200:, 3] = np.inf
    weights = run_combiner(C.FixedShare(share=0.2), losses).weights
    assert weights[:200].min() >= 0.05
    assert weights[200:, :3].min() >= 0.2 / 3
    assert (weights[200:, 3] == 0).all()
