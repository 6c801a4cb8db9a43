"""Banks that continue with more inputs, as if these had been 0 so far."""

import copy

import numpy as np
import pytest
from river import linear_model

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from kernelbank.kernels import ActiveDims, Additive, Gaussian, Linear, NoKernel, TreeKernel
from kernelbank.learners import (
    KLMS,
    Adapter,
    Forgetron,
    FourierRLS,
    LinearRLS,
    Norma,
    PartitionTree,
    Projectron,
)
from support.instances import LEARNERS
from support.late_inputs import FADING, LATE, ROWS, rounding, stream
from support.learner_cases import kernel_of

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

GROWING = [
    (Linear(1.0), LinearRLS()),
    (Linear(1.0), LinearRLS(ridge=1.0, **FADING)),
    (TreeKernel(), PartitionTree(nodes=31)),
    (Gaussian(2.0), Norma()),
    (Gaussian(2.0) + Linear(1.0), Norma(learning_rate=0.01)),
    (NoKernel(), Adapter(linear_model.LinearRegression())),
    *(
        (Gaussian(2.0), learner)
        for learner in LEARNERS
        if learner.accepts_new_inputs and isinstance(kernel_of(learner), Gaussian)
    ),
]


@pytest.mark.parametrize(("kernel", "learner"), GROWING)
@pytest.mark.parametrize("engine", ["serial", kb.engines.Threads(2)], ids=["serial", "threads"])
def test_bank_with_more_inputs_continues_as_if_they_had_been_zero(kernel, learner, engine):
    X, y = stream(0.0)
    slots = [kb.Slot(kernel, learner)]
    labels = isinstance(learner, (Forgetron, Projectron))
    loss = "hinge" if labels else "squared"
    y = np.sign(y) if labels else y
    whole = kb.KernelBank(slots=slots, window=3, loss=loss)
    expected = whole.run(X, y)
    bank = kb.KernelBank(slots=slots, window=3, loss=loss, engine=engine)
    bank.run(X[:LATE, :3], y[:LATE])
    before = bank.state()
    wider = bank.with_inputs(4)
    found = wider.run(X[LATE:], y[LATE:])
    room = rounding(learner)
    for name in ("predictions", "slot_loss", "slot_cost"):
        assert np.abs(getattr(found, name) - getattr(expected, name)[LATE:]).max() <= room, name
    assert wider.samples == ROWS
    assert wider.ledger.loss == pytest.approx(whole.ledger.loss, rel=1e-9)
    # The column counts: without it, half of the target is unknown.
    assert np.abs(found.predictions - bank.run(X[LATE:, :3], y[LATE:]).predictions).max() > 0.1
    assert set(before) == set(bank.state())


def test_bank_and_its_wider_copy_are_independent():
    X, y = stream(0.0)
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 4))
    bank.run(X[:LATE, :3], y[:LATE])
    before = copy.deepcopy(bank)
    bank.with_inputs(4).run(X[LATE:], y[LATE:])
    for name, array in before.state().items():
        assert np.array_equal(array, bank.state()[name]), name


def test_bank_with_residual_and_mixed_slots_takes_more_inputs():
    X, y = stream(0.0)
    line = kb.Slot(Linear(1.0), LinearRLS())
    tree = kb.Slot(TreeKernel(), PartitionTree(nodes=31), residual_of=0)
    waves = kb.Slot(ActiveDims(Gaussian(1.0), (0, 1, 2)), FourierRLS(features=20))
    whole, part = (kb.KernelBank(slots=[line, tree, waves, waves], window=1) for _ in range(2))
    expected = whole.run(X, y)
    part.run(X[:LATE, :3], y[:LATE])
    found = part.with_inputs(4).run(X[LATE:], y[LATE:])
    assert np.abs(found.slot_predictions - expected.slot_predictions[LATE:]).max() <= rounding(
        LinearRLS()
    )


def test_bank_with_forgetting_keeps_what_it_has_learned_with_more_inputs():
    """Its dummies come round to the new weight only now: so nothing is promised but this."""
    X, y = stream(0.0)
    bank = kb.KernelBank(Linear(1.0), LinearRLS(forgetting=0.999))
    bank.run(X[:LATE, :3], y[:LATE])
    wider = bank.with_inputs(4)
    at = np.array([0.3, -0.2, 0.5, 0.0])
    assert wider.predict_one(at) == pytest.approx(bank.predict_one(at[:3]), abs=1e-12)
    found = wider.run(X[LATE:], y[LATE:])
    assert np.mean((found.predictions - y[LATE:])[60:] ** 2) < 0.3


def test_slots_that_cannot_use_new_columns_need_active_dims():
    X, y = stream(0.0)
    for slot in (
        kb.Slot(Gaussian(1.0), FourierRLS(features=20)),
        kb.Slot(Additive(Gaussian(1.0), 2), KLMS(budget=10)),
        kb.Slot(Additive(Gaussian(1.0), 2), Norma()),  # a mean over more subsets is another kernel
    ):
        bank = kb.KernelBank(slots=[slot])
        bank.run(X[:50, :3], y[:50])
        with pytest.raises(InvalidArgument, match="kernel on the columns that it knows"):
            bank.with_inputs(4)
        wider = bank.with_inputs(4, [kb.Slot(ActiveDims(slot.kernel, (0, 1, 2)), slot.learner)])
        assert wider.predict_one([1.0, 2.0, 3.0, 4.0]) == bank.predict_one([1.0, 2.0, 3.0])


def test_with_inputs_refuses_slots_that_do_not_continue():
    X, y = stream(0.0)
    slot = kb.Slot(Linear(1.0), LinearRLS())
    bank = kb.KernelBank(slots=[slot])
    bank.run(X[:50, :3], y[:50])
    wrong = [
        [slot, slot],
        [kb.Slot(Linear(1.0), LinearRLS(ridge=2.0))],
        [kb.Slot(ActiveDims(Linear(1.0), (1, 2, 3)), LinearRLS())],
        [kb.Slot(ActiveDims(Linear(2.0), (0, 1, 2)), LinearRLS())],
    ]
    for slots in wrong:
        with pytest.raises(InvalidArgument, match="'slots' of with_inputs"):
            bank.with_inputs(4, slots)
    with pytest.raises(InvalidArgument, match="'dimension' of with_inputs"):
        bank.with_inputs(2)


def test_new_bank_takes_any_number_of_inputs():
    assert kb.KernelBank().with_inputs(3).samples == 0
