"""The fast path for single samples."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream
from support.same_bits import assert_same_state

K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def frozen(row):
    row.flags.writeable = False
    return row


WAYS = {
    "array": lambda row: row.copy(),
    "list": lambda row: row.tolist(),
    "read only": lambda row: frozen(row.copy()),
    "strided": lambda row: np.repeat(row, 2)[::2],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_inputs_of_every_form_are_learned_alike(way, loss):
    X, y = stream(5, 60, 2, loss == "logistic")
    expected, bank = (kb.KernelBank(loss=loss, window=3) for _ in range(2))
    trace = expected.run(X, y)
    for n in range(60):
        assert bank.predict_one(WAYS[way](X[n])) == trace.predictions[n]
        bank.learn_one(WAYS[way](X[n]), y[n] if n % 2 else y[n].item())
    assert_same_state(expected, bank)


@pytest.mark.parametrize(
    ("learner", "kinds"),
    [
        (Norma(1.9, 20), {kb.errors.UnstableStep, kb.errors.SlotQuarantined}),
        (Norma(1e-4, 9), {kb.errors.TruncationMatters}),
    ],
    ids=["steep", "short"],
)
def test_single_samples_give_the_warnings_of_blocks(learner, kinds):
    x = np.arange(600.0) / 50
    y = np.where(x > 4, 1e3, 1.0)

    def heard(play):
        bank = kb.KernelBank([K.Gaussian(1.0), K.Linear()], learner, window=8)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            play(bank)
        return [(w.category, str(w.message)) for w in said]

    def one_by_one(bank):
        for n in range(600):
            bank.learn_one(float(x[n]), float(y[n]))

    blocks = heard(lambda bank: [bank.run(x[n : n + 1], y[n : n + 1]) for n in range(600)])
    assert heard(one_by_one) == blocks
    assert {kind for kind, _ in blocks} == kinds


FAILING = []


@dataclass(frozen=True)
class Failing(kb.learners.PythonLearner):
    """A learner that raises while `FAILING` says so."""

    def start(self, dimension, kernel):
        return {"last": np.zeros(())}

    def value(self, state, x, kernel):
        if FAILING:
            raise ZeroDivisionError
        return state["last"]

    def step(self, state, x, y, slope, kernel):
        state["last"][...] = y


@pytest.mark.parametrize("method", ["predict", "predict_slots", "predict_slots_one"])
def test_sample_whose_prediction_has_failed_is_learned_as_any_other(method, monkeypatch):
    slots = [kb.Slot(K.Gaussian(1.0), Failing()), kb.Slot(K.Gaussian(1.0), Norma())]
    X, y = stream(3, 40, 2)
    banks = [kb.KernelBank(slots=slots, combiner=kb.combiners.Uniform()) for _ in range(2)]
    for bank in banks:
        bank.run(X, y)
    monkeypatch.setitem(globals(), "FAILING", [True])
    with pytest.raises(ZeroDivisionError):
        getattr(banks[0], method)(X[7] if method.endswith("one") else X[7:8])
    monkeypatch.setitem(globals(), "FAILING", [])
    for bank in banks:
        bank.learn_one(X[7], y[7])
    assert_same_state(*banks)
