"""PythonLearner: what is written for one sample works in a bank, and mistakes are named."""

from dataclasses import dataclass

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream

K, L = kb.kernels, kb.learners
EPS = np.finfo(float).eps
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@dataclass(frozen=True)
class Gradient(L.PythonLearner):
    """KLMS, once more."""

    learning_rate: float = 0.1
    budget: int = 12

    def start(self, dimension, kernel):
        return {"centres": np.zeros((self.budget, dimension)), "terms": np.zeros(self.budget)}

    def value(self, state, x, kernel):
        return (kernel(x[None], state["centres"])[0] * state["terms"]).sum()

    def step(self, state, x, y, slope, kernel):
        state["centres"] = np.vstack([state["centres"][1:], x])
        state["terms"] = np.append(state["terms"][1:], -self.learning_rate * slope)

    def norm(self, state, kernel):
        gram = kernel(state["centres"], state["centres"])
        return (state["terms"][:, None] * gram * state["terms"]).sum()


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


def test_python_learner_in_threads_has_the_same_bits():
    X, y = stream(1, 60, 2)
    slots = [
        kb.Slot(K.Gaussian(0.6), Gradient()),
        kb.Slot(K.Gaussian(0.3), L.Norma()),
        kb.Slot(K.Gaussian(0.8), Gradient(), residual_of=0),
    ]
    serial = kb.KernelBank(slots=slots).run(X, y)
    other = kb.KernelBank(slots=slots, engine=kb.engines.Threads(2)).run(X, y)
    assert np.array_equal(serial.slot_predictions, other.slot_predictions)
    assert np.array_equal(serial.cost, other.cost)


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
    with pytest.raises(ValueError, match=message):
        bank.run(np.arange(5.0), np.arange(5.0))
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
    @dataclass(frozen=True)
    class Mean(kb.learners.PythonLearner):
        def start(self, dimension, kernel):
            return {"mean": np.zeros(()), "count": np.zeros(())}

        def value(self, state, x, kernel):
            return state["mean"]

        def step(self, state, x, y, slope, kernel):
            state["count"] += 1
            state["mean"] += (y - state["mean"]) / state["count"]

        def variance_at(self, state, x, kernel):
            return 1 / (1 + state["count"])

    bank = kb.KernelBank(kb.kernels.Linear(1.0), Mean(), window=2)
    bank.run(np.arange(4.0), np.ones(4))
    assert bank.predict_variance_slots([3.0])[0, 0] == 1 / 5
