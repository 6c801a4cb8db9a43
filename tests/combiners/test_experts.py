"""Hedge and FixedShare on artificial losses: against definitions and bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.combining import one_by_one, run_combiner
from support.every_bank import OWN
from support.instances import COMBINERS, stream

EPS = np.finfo(float).eps
C = kb.combiners

EXPONENTIAL = [
    C.Hedge(),
    C.Hedge(learning_rate=0.7),
    C.FixedShare(learning_rate=0.7, share=0.1),
]


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


pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@pytest.mark.parametrize("combiner", [pair[0] for pair in COMBINERS], ids=repr)
def test_bank_evidence_of_every_combiner_is_that_of_the_last_sample(combiner, tmp_path):
    X, y = stream(2, 120, 1)
    bank, loop = (kb.KernelBank(kb.gaussian_grid(0.1, 1, 4), combiner=combiner) for _ in range(2))
    shapes = {name: array.shape for name, array in bank.evidence().items()}
    trace = bank.run(X, y)
    evidence = bank.evidence()
    assert {name: array.shape for name, array in evidence.items()} == shapes
    for n in range(120):
        loop.learn_one(X[n], y[n])
    bank.save(tmp_path / "bank.kb")
    for other in (loop, kb.load(tmp_path / "bank.kb", components=OWN)):
        assert all(np.array_equal(evidence[k], other.evidence()[k]) for k in evidence)
    for array in evidence.values():
        array[...] = -1.0
    before, again = bank.evidence(), bank.evidence()
    assert all(np.array_equal(before[k], again[k]) for k in before)
    assert not any((array == -1.0).any() for array in before.values())
    check_evidence(combiner, bank, trace, before)


def check_evidence(combiner, bank, trace, evidence):
    """The numbers are those of the last sample."""
    losses = trace.slot_loss.sum(axis=0)
    if isinstance(combiner, C.Simplex):
        both = trace.curvature[-1] + trace.window_loss[-1]
        jensen = combiner.bound == "jensen"
        assert (evidence["curvature"] == (0.0 if jensen else trace.curvature[-1])).all()
        if jensen:
            assert (evidence["linear"] == both).all()
        elif combiner.evidence == "window":
            assert (evidence["linear"] == trace.window_loss[-1]).all()
        else:
            assert evidence["linear"] == pytest.approx(trace.slot_loss[-7:].sum(axis=0))
        assert (kb.simplex_qp(*evidence.values()) == bank.weights).all()
    elif isinstance(combiner, C.Hedge):
        if combiner.evidence == "cost":
            losses = trace.slot_cost.sum(axis=0)
        assert evidence["loss_above_best"] == pytest.approx(losses - losses.min(), rel=1e-9)
        powers = np.exp(-evidence["learning_rate"] * evidence["loss_above_best"])
        assert bank.weights == pytest.approx(powers / powers.sum(), rel=1e-9)
    elif isinstance(combiner, C.Best):
        assert evidence["cumulative_cost"] == pytest.approx(trace.slot_cost.sum(axis=0))
    elif isinstance(combiner, C.FixedShare):
        mixed = (1 - combiner.share) * evidence["posterior"] + combiner.share / 4
        assert bank.weights == pytest.approx(mixed)
    elif isinstance(combiner, kb.rivals.AdaRaker):
        assert evidence["shares"].sum() == pytest.approx(1)
        assert evidence["scale"] > 0
    elif isinstance(combiner, (C.Joint, C.Stacking, C.RobustStacking)):
        assert evidence["gap"] <= combiner.tolerance * evidence["scale"]
        if isinstance(combiner, C.RobustStacking):
            q, state = evidence["share"], bank.state()
            robust, plain = (
                state[f"output0/combiner/{part}_weights"] for part in ("robust", "plain")
            )
            assert bank.weights == pytest.approx(q * robust + (1 - q) * plain)
    elif isinstance(combiner, C.OMKR):
        assert evidence["rate"] == 8e-4 * 2.0**-2
    else:
        assert evidence["active"].tolist() == [1.0] * 4
