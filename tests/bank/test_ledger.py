"""The ledger of an interval: what was charged after an earlier moment."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.naive import regret as naive

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")

X, Y = kb.datasets.ar1(seed=0, samples=120)


def test_ledger_since_a_copy_has_the_sums_of_the_trace():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5), kb.learners.Norma(0.05, 20), window=5)
    bank.run(X[:50], Y[:50])
    earlier = bank.ledger
    before = earlier.cumulative_cost, earlier.slot_loss, earlier.dropped
    trace = bank.run(X[50:], Y[50:])
    part = bank.ledger.since(earlier)
    assert part.samples == 70
    assert part.cumulative_cost == pytest.approx(trace.cost.sum(), rel=1e-9)
    assert part.loss == pytest.approx(trace.loss.sum(), rel=1e-9)
    assert part.mean_loss == pytest.approx(trace.loss.mean(), rel=1e-9)
    assert part.bound_gap == pytest.approx(trace.bound_gap.sum(), rel=1e-9)
    assert part.slot_cumulative_cost == pytest.approx(trace.slot_cost.sum(axis=0), rel=1e-9)
    assert part.slot_mean_loss == pytest.approx(trace.slot_loss.mean(axis=0), rel=1e-9)
    assert part.regret == pytest.approx(naive.best_slot(trace.cost, trace.slot_cost), rel=1e-9)
    assert part.best_slot == trace.slot_cost.sum(axis=0).argmin()
    assert part.dropped == pytest.approx(bank.ledger.dropped - before[2])
    assert (part.dropped > 0).all()
    # The copy has not moved, nor has the ledger.
    assert earlier.cumulative_cost == before[0]
    assert (earlier.slot_loss == before[1]).all()
    assert bank.ledger.samples == 120


def test_sum_of_the_regrets_of_intervals_is_the_dynamic_regret():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5))
    trace = bank.fresh().run(X, Y)
    total = 0.0
    for start in range(0, 120, 30):
        earlier = bank.ledger
        bank.run(X[start : start + 30], Y[start : start + 30], record=())
        total += bank.ledger.since(earlier).regret
    found = kb.regret.best_slot_per_interval(trace.cost, trace.slot_cost, 30)[-1]
    assert total == pytest.approx(found, rel=1e-9)


def test_a_slot_that_is_out_stays_out_of_intervals():
    nan_later = kb.kernels.Custom(
        lambda X, Z: (
            np.where((X.max() > 60) & (Z.max() > 60), np.nan, 1.0) * np.ones((len(X), len(Z)))
        )
    )
    bank = kb.KernelBank([kb.kernels.Gaussian(1.0), nan_later])
    with pytest.warns(kb.errors.KernelBankWarning):
        bank.run(X[:80], Y[:80])
    assert bank.quarantined == (1,)
    earlier = bank.ledger
    bank.run(X[80:], Y[80:])
    part = bank.ledger.since(earlier)
    assert part.quarantined == (1,)
    assert np.isfinite(part.slot_cumulative_cost[0])
    assert part.best_slot == 0


def test_only_an_earlier_ledger_of_the_same_size_is_taken():
    bank, other = (kb.KernelBank(kb.gaussian_grid(0.1, 10, p)) for p in (5, 4))
    bank.run(X[:9], Y[:9])
    later = bank.ledger
    for wrong in (other.ledger, None, 3):
        with pytest.raises(InvalidArgument, match="'earlier' must be an earlier ledger"):
            bank.ledger.since(wrong)
    with pytest.raises(InvalidArgument, match="earlier ledger"):
        bank.fresh().ledger.since(later)
