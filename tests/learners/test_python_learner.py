"""PythonLearner: what is written for one sample works in a bank, and mistakes are named."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream
from support.marks import refuses
from support.python_learner import Gradient

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


class Counter:
    """Predicts how much it has learned."""

    def __init__(self, fail_at=None):
        self.count, self.fail_at = 0, fail_at

    def predict_one(self, x):
        assert x.shape == (2,)
        return float(self.count)

    def learn_one(self, x, y):
        if self.count == self.fail_at:
            raise RuntimeError("enough")
        self.count += 1


def adapted_slot(model):
    return kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(model))


@pytest.mark.parametrize("loss", ["absolute", "logistic"])
def test_python_learner_equals_the_compiled_learner(loss):
    X, y = stream(0, 90, 2, loss == "logistic")
    kernels = [K.Gaussian(0.6), K.Gaussian(1.2), K.Linear(1.0)]
    plain = kb.KernelBank(kernels, Gradient(), loss=loss, window=4)
    compiled = kb.KernelBank(kernels, L.KLMS(0.1, 12), loss=loss, window=4)
    one, other = plain.run(X, y), compiled.run(X, y)
    for name in ("slot_predictions", "window_loss", "curvature"):
        # 90 steps of sums of at most 12 terms of size one and, for the line, of ten
        assert np.abs(getattr(one, name) - getattr(other, name)).max() <= 90 * 12 * 100 * EPS, name


def spoiled(**methods):
    return type("Spoiled", (Gradient,), methods)()


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (spoiled(start=lambda s, d, k: {1: 0.0}), "'start' of Spoiled must return arrays by name"),
        (spoiled(start=lambda s, d, k: {"words": "no"}), "'words' must hold numbers"),
        (spoiled(value=lambda s, *_: np.zeros(2)), "'value' of Spoiled must return one number"),
        (spoiled(norm=lambda s, *_: "1"), "'norm' of Spoiled must return one number"),
        (
            spoiled(step=lambda s, state, *_: state.update(more=1.0)),
            "'step' of Spoiled must keep to the names",
        ),
        (
            spoiled(step=lambda s, state, *_: state.update(terms=np.zeros(13))),
            r"'step' of Spoiled must leave state\['terms'\] in the shape \(12,\)",
        ),
        (spoiled(value=lambda s, state, *_: state["terms"].fill(1.0)), "read-only"),
    ],
)
def test_python_learner_with_a_mistake_raises_and_changes_nothing(learner, message):
    bank = kb.KernelBank([K.Gaussian(1.0)], learner)
    refuses(message, lambda: bank.run(np.arange(5.0), np.arange(5.0)))
    assert bank.samples == 0


def test_kernels_of_one_structure_may_have_states_of_different_shapes():
    @dataclass(frozen=True)
    class Sized(Gradient):
        def start(self, dimension, kernel):
            size = 12 if kernel.width == 1.0 else 5
            return {"centres": np.zeros((size, dimension)), "terms": np.zeros(size)}

    X, y = stream(0, 40, 2)
    bank = kb.KernelBank([K.Gaussian(1.0), K.Gaussian(2.0)], Sized())
    expected = kb.KernelBank([K.Gaussian(1.0)], Gradient()).run(X, y).slot_predictions[:, 0]
    assert np.array_equal(bank.run(X, y).slot_predictions[:, 0], expected)
    assert [bank.slot_state(p)["terms"].shape for p in (0, 1)] == [(12,), (5,)]


def test_learner_in_python_may_state_variances():
    learner = spoiled(variance_at=lambda s, state, x, kernel: 1 / (1 + x[0]))
    bank = kb.KernelBank(K.Linear(1.0), learner)
    bank.learn_one(0.0, 1.0)
    assert bank.predict_variance_slots([3.0])[0, 0] == 1 / 4


# --- adapter --------------------------------------------------------------------------------------


def test_adapted_model_predicts_and_learns_as_a_slot():
    X, y = stream(3, 300, 2)
    model = Counter()
    slots = [adapted_slot(model), kb.Slot(K.Gaussian(0.5), L.Norma())]
    bank, loop = (kb.KernelBank(slots=slots, window=4) for _ in range(2))
    trace = bank.run(X, y)
    for x, target in zip(X, y, strict=True):
        loop.predict_one(x)
        loop.learn_one(x, target)
    assert np.array_equal(bank.weights, loop.weights)
    assert trace.slot_predictions[:, 0].tolist() == list(range(300))
    assert model.count == 0  # the bank's is a copy
    assert not trace.curvature[:, 0].any()
    assert np.allclose(trace.window_loss[9, 0], ((10 - y[6:10]) ** 2).sum())


def test_adapted_model_that_raises_is_quarantined_and_the_bank_continues():
    X, y = stream(3, 100, 2)
    bank = kb.KernelBank(slots=[adapted_slot(Counter(50)), kb.Slot(K.Gaussian(0.5), L.Norma())])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = bank.run(X, y)
    assert bank.quarantined == (0,)
    assert sum("RuntimeError('enough')" in str(w.message) for w in caught) == 1
    assert np.isfinite(trace.predictions).all()
    assert bank.weights.tolist() == [0.0, 1.0]


def test_bank_with_an_adapted_model_is_not_saved(tmp_path):
    bank = kb.KernelBank(slots=[adapted_slot(Counter())])
    with pytest.raises(kb.errors.KernelBankError, match=r"slot 0 is Adapter.*not arrays"):
        bank.save(tmp_path / "bank.kb")
    assert not list(tmp_path.iterdir())
    refuses("'model' of Adapter must have predict_one", L.Adapter, 3.0)
    with pytest.raises(ValueError, match="'kernel' of Adapter must be NoKernel"):
        kb.KernelBank(K.Gaussian(1.0), L.Adapter(Counter()))
    refuses("kernel", lambda: kb.KernelBank(K.NoKernel(), L.KLMS()))


def test_undone_block_is_undone_in_adapted_models_too():
    X, y = stream(3, 40, 2)

    def fails_later(A, B):
        if (A > 90).any():
            raise ValueError("no")
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    slots = [adapted_slot(Counter()), kb.Slot(K.Custom(fails_later), L.Norma())]
    bank = kb.KernelBank(slots=slots, window=3)
    bank.run(X[:20], y[:20])
    spoiled = X[20:30].copy()
    spoiled[7] = 99.0
    refuses("no", bank.run, spoiled, y[20:30])
    assert bank.predict_slots(X[:1])[0, 0] == 20.0
    trace = bank.run(X[20:], y[20:])
    assert trace.slot_predictions[:, 0].tolist() == list(range(20, 40))
