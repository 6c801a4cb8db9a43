"""Inputs that are added while an AutoBank learns count as missing so far."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.kernels import ActiveDims, Gaussian, Linear, TreeKernel
from kernelbank.learners import (
    FourierRLS,
    LinearRLS,
    Norma,
    PartitionTree,
)
from support.late_inputs import FADING, LATE, ROWS, rounding, stream
from support.marks import refuses

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

GROWING = [
    (Linear(1.0), LinearRLS()),
    (Linear(1.0), LinearRLS(ridge=1.0, **FADING)),
    (TreeKernel(), PartitionTree(nodes=31)),
    (Gaussian(2.0), Norma()),
]
OWN = [kb.Slot(kernel, learner) for kernel, learner in GROWING]


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("scalings", ["rank", "none"])
def test_added_inputs_count_as_missing_so_far(task, scalings):
    X, y = stream(np.nan)
    targets = y if task == "regression" else y > 0
    whole, part = (kb.AutoBank(task, slots=OWN, scalings=scalings) for _ in range(2))
    expected = whole.run(X, targets, record="all")
    part.run(X[:LATE, :3], targets[:LATE])
    part.add_inputs()
    actual = part.run(X[LATE:], targets[LATE:], record="all")
    room = rounding(LinearRLS()) * np.abs(expected.slot_predictions[1:]).max()
    assert np.abs(actual.slot_predictions - expected.slot_predictions[LATE:]).max() <= room


@pytest.mark.parametrize("at", [3, 100])
def test_inputs_can_be_added_at_any_time(at):
    """Before the first start, between starts, and after the last one."""
    X, y = stream(np.nan)
    bank = kb.AutoBank(size="small", lags=2)
    bank.run(X[:at, :2], y[:at])
    asked = bank.predict_one(X[at, :2])
    bank.add_inputs(2)
    again = np.array([*X[at, :2], np.nan, np.nan])
    assert bank.predict_one(again) == pytest.approx(asked, abs=1e-9)
    trace = bank.run(X[at:], y[at:])
    assert np.mean((trace.predictions - y[at:])[-60:] ** 2) < 0.5 * np.var(y[-60:])
    assert bank.samples == ROWS


def test_predictions_stay_pending_while_inputs_are_added():
    X, y = stream(np.nan)
    banks = [kb.AutoBank(size="small") for _ in range(2)]
    for bank in banks:
        bank.run(X[:LATE, :3], y[:LATE])
    wide = [np.array([*x, np.nan]) for x in X[:5, :3]]
    for bank, first in zip(banks, (True, False), strict=True):
        if first:
            bank.add_inputs()
        for t in range(5):
            bank.predict_one(wide[t] if first else X[t, :3])
        if not first:
            bank.add_inputs()
        for t in range(5):
            bank.learn_one(wide[t], y[t])
    assert banks[0].predict_one(wide[0]) == banks[1].predict_one(wide[0])


def test_wrong_number_of_added_inputs_is_refused():
    bank = kb.AutoBank()
    for wrong in (0, -1, 1.5, "two"):
        refuses("'count' of add_inputs", bank.add_inputs, wrong)


def test_own_slots_see_added_inputs_only_if_they_can_use_them():
    X, y = stream(np.nan)
    own = [
        kb.Slot(Gaussian(1.0), FourierRLS(features=20)),
        kb.Slot(Linear(1.0), LinearRLS()),
    ]
    bank = kb.AutoBank(slots=own, scalings=["standard", "rank"])
    bank.run(X[:LATE, :3], y[:LATE])
    bank.add_inputs()
    first, second = bank.bank.slots
    assert first.kernel == ActiveDims(Gaussian(1.0), tuple(range(6)))
    assert second == own[1]
    bank.run(X[LATE:], y[LATE:])
