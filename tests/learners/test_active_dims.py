"""Slots on some columns of wide inputs equal slots of a bank on these columns alone."""

import numpy as np
import pytest

import kernelbank as kb
from support.instances import VIEWS, stream

K, L = kb.kernels, kb.learners
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

WIDTH = 6
VIEW = (4, 0, 3)  # not in order: the order of the columns is the view's
WINDOW = 4
OTHER = L.Norma(0.05, 20)


def wide_stream(learner, seed=1, samples=340, view=VIEW):
    """The other columns are of another scale, so that reading one of them would show."""
    X, y = stream(seed, samples, WIDTH, labels=loss_of(learner) == "logistic")
    X[:, [k for k in range(WIDTH) if k not in view]] *= 1e6
    return X, y


def loss_of(learner):
    return "logistic" if getattr(learner, "seed", 0) == 1 else "squared"


def bank_of(kernel, learner, column, residual=False, engine="serial"):
    """The slot at index 1 of a bank; the slot before it uses one column of the inputs only."""
    first = kb.Slot(K.ActiveDims(K.Gaussian(0.5), [column]), OTHER)
    own = kb.Slot(kernel, learner, residual_of=0 if residual else None)
    slots = [first, own, own]
    return kb.KernelBank(slots=slots, loss=loss_of(learner), window=WINDOW, engine=engine)


def both(kernel, learner, view=VIEW, residual=False, engine="serial"):
    """A bank on wide inputs, and one on the columns alone, with the same slot indices and seeds."""
    wide = bank_of(K.ActiveDims(kernel, view), learner, view[1], residual, engine)
    return wide, bank_of(kernel, learner, 1, residual)


COLUMNS = [VIEW, (2, 3, 4), (5, 3, 1)]
"""Adjacent columns, and evenly spaced columns, are read by different code."""
# With each learner two of the three, on a residual in turn where its loss allows that.
CASES = [
    (kernel, learner, COLUMNS[(n + i) % 3], (n + i) % 2 == 1 and loss_of(learner) == "squared")
    for n, (kernel, learner) in enumerate(VIEWS)
    for i in range(2)
]


@pytest.mark.parametrize(("kernel", "learner", "view", "residual"), CASES, ids=repr)
def test_active_dims_equal_a_bank_on_these_columns_bit_for_bit(kernel, learner, residual, view):
    X, y = wide_stream(learner, view=view)
    chosen = X[:, list(view)]
    wide, alone = both(kernel, learner, view, residual)
    cut, _ = both(kernel, learner, view, residual, kb.engines.Threads(2))
    trace, expected = wide.run(X, y), alone.run(chosen, y)
    for name in ("slot_predictions", "curvature", "window_loss", "weights", "predictions"):
        assert np.array_equal(getattr(trace, name), getattr(expected, name)), name
    assert np.isfinite(trace.slot_predictions).all()
    assert len(np.unique(trace.slot_predictions[:, 1])) > 9  # it does learn

    for start, end in ((0, 7), (7, 150), (150, 270)):
        cut.run(X[start:end], y[start:end])
    again = kb.from_bytes(cut.to_bytes())
    for n in range(270, len(X)):
        if n % 5 == 0:
            assert again.predict_one(X[n]) == expected.predictions[n]
        again.learn_one(X[n], y[n])

    grid, _ = wide_stream(learner, seed=2, samples=40, view=view)
    few = grid[:, list(view)]
    for bank in (wide, again):
        assert np.array_equal(bank.predict_slots(grid), alone.predict_slots(few))
        assert [bank.predict_one(x) for x in grid] == alone.predict(few).tolist()
        assert np.array_equal(
            bank.predict_variance_slots(grid), alone.predict_variance_slots(few), equal_nan=True
        )
    # The same arrays but for the inputs: no more memory than the columns need.
    one, other = wide.state(), alone.state()
    assert one.keys() == other.keys()
    for name in one.keys() - {"samples/inputs"}:
        assert np.array_equal(one[name], other[name], equal_nan=True), name
    assert all(np.array_equal(array, again.state()[name]) for name, array in one.items())


CELLS = K.ActiveDims(K.TreeKernel(), [1])


@pytest.mark.parametrize(
    ("kernel", "learner", "message"),
    [
        (CELLS, None, "'kernel' of Norma must be a function of two inputs"),
        (CELLS, L.KLMS(), "'kernel' of KLMS must be a function of two"),
        (CELLS, L.FourierRLS(), "'kernel' of FourierRLS"),
        (CELLS, L.LinearRLS(), "'kernel' of LinearRLS must be Linear"),
        (K.ActiveDims(K.Gaussian(1.0), [0]), L.LinearRLS(), "'kernel' of LinearRLS must be Linear"),
        (K.ActiveDims(K.Linear(), [0]), L.PartitionTree(), "PartitionTree must be TreeKernel"),
        (
            K.ActiveDims(K.Periodic(1.0), [0]),
            L.FourierSGD(),
            "'kernel' of FourierSGD must be made of",
        ),
        (K.ActiveDims(K.NoKernel(), [0]), L.LastValue(), "'kernel' of LastValue must be NoKernel"),
    ],
)
def test_kernels_that_a_learner_cannot_work_with_are_refused(kernel, learner, message):
    with pytest.raises(ValueError, match=message) as caught:
        kb.KernelBank([kernel], learner)
    assert "got" in str(caught.value)
