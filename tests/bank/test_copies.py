"""Banks go through copy and pickle and go on bit for bit; what is theirs alone is not shared."""

import copy
import pickle

import numpy as np
import pytest
from river import linear_model

import kernelbank as kb
from support.instances import COMBINERS, KERNELS, LEARNERS, LOSSES, name_of, stream
from support.learner_cases import kernel_of, losses_of

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

ROWS = 60


def pickled(bank):
    return pickle.loads(pickle.dumps(bank))


def agree(bank, copies, X, y):
    """Everything that comes after is the same, for the bank and for its copies."""
    expected = bank.run(X, y)
    for other in copies:
        found = other.run(X, y)
        for name in expected.fields:
            same = np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
            assert same, name
        after = bank._state() if isinstance(bank, kb.KernelBank) else {}
        for name, array in after.items():
            assert np.array_equal(array, other._state()[name], equal_nan=True), name


def played(bank, labels=False, dimension=2):
    X, y = stream(5, 2 * ROWS, dimension, labels)
    bank.run(X[:ROWS], y[:ROWS])
    agree(bank, [pickled(bank), copy.deepcopy(bank), copy.copy(bank)], X[ROWS:], y[ROWS:])


@pytest.mark.parametrize("engine", ["serial", kb.engines.Threads(2)], ids=repr)
def test_copy_with_any_learner_continues_with_the_same_bits(engine):
    slots = [
        kb.Slot(kernel_of(learner), learner)
        for learner in LEARNERS
        if "squared" in losses_of(learner)
        for _ in range(2)
    ]
    base = kb.Slot(kb.kernels.Linear(0.5), kb.learners.LinearRLS())
    tree = kb.learners.PartitionTree(nodes=15, split_after=5)
    rest = kb.Slot(kb.kernels.TreeKernel(), tree, residual_of=0)
    played(kb.KernelBank(slots=[base, rest, *slots], engine=engine))


def test_copy_with_any_learner_of_labels_continues_with_the_same_bits():
    slots = [
        kb.Slot(kernel_of(learner), learner)
        for learner in LEARNERS
        if "hinge" in losses_of(learner)
    ]
    played(kb.KernelBank(slots=slots, loss="hinge"), labels=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_copy_with_any_kernel_continues_with_the_same_bits(dtype):
    played(kb.KernelBank([kernel for kernel, _ in KERNELS], window=3, dtype=dtype))


@pytest.mark.parametrize("combiner", [combiner for combiner, _ in COMBINERS], ids=name_of)
def test_copy_with_any_combiner_continues_with_the_same_bits(combiner):
    played(kb.KernelBank(kb.gaussian_grid(0.5, 2, 5), combiner=combiner))


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES[:-1]], ids=name_of)
def test_copy_with_any_loss_continues_with_the_same_bits(loss):
    played(kb.KernelBank(kb.gaussian_grid(0.5, 2, 5), loss=loss), labels=loss.labels)


def test_custom_loss_is_copied_with_errors_of_its_own():
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3), loss=LOSSES[-1][0])
    bank.learn_one(0.0, 1.0)
    other = copy.deepcopy(bank)
    other.learn_one(1.0, 1.0)
    assert (bank.samples, other.samples) == (1, 2)
    with pytest.raises((AttributeError, pickle.PicklingError)):  # lambdas have no address
        pickle.dumps(bank)


def test_models_behind_adapters_are_copied():
    slots = [
        kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(linear_model.LinearRegression())),
        kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma()),
    ]
    played(kb.KernelBank(slots=slots))
    bank = kb.KernelBank(slots=slots, engine=kb.engines.Threads(2))
    X, y = stream(5, 2 * ROWS, 2)
    bank.run(X, y)
    other = copy.deepcopy(bank)
    other.run(X, 10 + y)
    assert abs(other.predict_one(X[0]) - bank.predict_one(X[0])) > 1


def test_new_bank_and_given_warnings_are_copied():
    for bank in (kb.KernelBank(), kb.AutoBank(), kb.AutoBank("classification", classes=["a", "b"])):
        other = pickled(bank)
        assert repr(other) == repr(bank)
        assert other.samples == 0
    bank = kb.KernelBank(
        kb.gaussian_grid(0.5, 2, 3), kb.learners.Norma(budget=10, learning_rate=0.5)
    )
    X, y = stream(5, ROWS, 1)
    bank.run(X, y)
    assert bank._runtime.diagnostics.warned
    assert pickled(bank)._runtime.diagnostics.warned == bank._runtime.diagnostics.warned
    assert pickled(bank).quarantined == bank.quarantined


def test_copies_do_not_share_locks():
    bank = kb.KernelBank()
    with bank._turn:
        assert pickled(bank)._turn is not bank._turn


@pytest.mark.parametrize("rows", [0, 3, 40, ROWS])
@pytest.mark.parametrize("labels", [False, True])
def test_copy_of_an_auto_bank_continues_with_the_same_bits(rows, labels):
    X, y = stream(5, 2 * ROWS, 2, labels)
    X[7, 0] = np.nan
    bank = kb.AutoBank("classification" if labels else "regression", size="small", lags=1)
    if rows:
        bank.run(X[:rows], y[:rows])
    for t in range(rows, rows + 3):  # questions that stay open
        bank.predict_one(X[t])
    copies = [pickled(bank), copy.deepcopy(bank)]
    agree(bank, copies, X[rows:], y[rows:])
    for other in copies:
        assert other.ledger.mean_loss == bank.ledger.mean_loss
        assert other.ledger.changes == bank.ledger.changes
        other.learn_one(X[0], y[0])
        assert other.samples == bank.samples + 1
