"""Bad input: a ValueError with name, rule, value and remedy, and an untouched bank."""

from dataclasses import dataclass

import numpy as np
import pytest

import kernelbank as kb
from support.instances import TREE, stream
from support.marks import refuses

Norma, KRLS, Slot = kb.learners.Norma, kb.learners.KRLS, kb.Slot
K, C = kb.kernels, kb.combiners


LINE = Slot(K.Linear(), Norma())
REST = Slot(K.Gaussian(0.5), Norma(), residual_of=0)


def slots(*slots, **options):
    return kb.KernelBank(slots=slots, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kb.KernelBank(regularization=20), "'learning_rate' of Norma .* < 1 / regul"),
        (
            lambda: kb.KernelBank(learner=Norma(budget=5)),
            r"'budget' of Norma must be >= window \(10\); got 5. Raise budget or shorten window.",
        ),
        (
            lambda: kb.KernelBank(engine="warp"),
            r"'engine' must .*\['ray', 'serial', 'threads'\]; got 'warp'",
        ),
        (lambda: kb.KernelBank([K.Linear()], slots=[LINE]), "'slots' of"),
        (lambda: kb.KernelBank([LINE]), "'dictionary' .*Give slots as slots="),
        (lambda: kb.KernelBank(outputs=3, loss=["squared"] * 2), "'loss' .* a list of 3"),
        (lambda: slots(REST), "'residual_of' must be the index of an earlier slot"),
        (lambda: slots(LINE, REST, loss="hinge"), "'loss' must be one for all numbers where"),
        (lambda: slots(LINE, REST, loss="poisson"), "'loss' must be one for all numbers where"),
        (lambda: slots(Slot(K.Linear(), KRLS(), "absolute")), "'loss' must .* second-order"),
        (lambda: slots(TREE, loss="absolute"), "'loss' must have a bounded curvature for Part"),
        (lambda: K.TreeKernel(decay=1e-10, levels=20), "'decay' of TreeKernel must leave the last"),
        (
            lambda: kb.learners.NearestNeighborGP(neighbors=5, memory=5),
            "'memory' of NearestNeighborGP must be .* >= 6",
        ),
        (lambda: C.Joint("prequential", discount=1.1), "'discount' of Joint"),
        (lambda: C.Joint(discount=0.9), "'discount' of Joint must be 1 for the window"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    text = str(caught.value)
    assert "must" in text
    assert "got" in text
    assert text.endswith((".", "..."))


def learned(dimension=2, **options):
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 2, 5), window=3, **options)
    X, y = stream(0, 140, dimension)
    bank.run(X, y)
    return bank


BAD_SAMPLES = [
    (np.nan, 1.0, "'x' must"),
    ([1.0, np.inf], 1.0, "'x' must be finite"),
    ([1.0, 1e200], 1.0, r"'x' must be finite and at most 1e\+150"),
    ([1.0], 1.0, "'x' must have 2 columns"),
    ([1.0, 2.0, 3.0], 1.0, "'x' must have 2 columns"),
    ([[1.0, 2.0]], 1.0, "'x' must be a number or have the shape"),
    ([], 1.0, "'x' must"),
    ("12", 1.0, "'x' must hold numbers"),
    ([1.0, None], 1.0, "'x' must hold numbers"),
    ([1.0, [2.0]], 1.0, "'x' must be a rectangular"),
    (np.ma.array([1.0, 2.0], mask=[True, False]), 1.0, "'x' must have no masked"),
    ([1.0, 2.0], np.nan, "'y' must be finite .* leave the row out, predicting it needs no target"),
    ([1.0, 2.0], 1e151, "'y' must be finite and at most"),
    ([1.0, 2.0], "1", r"'y' must hold numbers; got '1'\. Turn text into .* float\('1'\)\. Use kb"),
    ([1.0, 2.0], "up", r"'y' must hold numbers; got 'up'\. Use kb.AutoBank"),
    ([1.0, 2.0], None, "'y' must hold numbers"),
    ([1.0, 2.0], [1.0, 2.0], "'y' must be one number"),
    ([1.0, 2.0], [], "'y' must be one number"),
]


@pytest.mark.parametrize(("x", "y", "message"), BAD_SAMPLES)
def test_wrong_sample_is_refused_and_changes_nothing(x, y, message):
    bank = learned()
    bank.predict_one(np.array([0.5, 0.5]))  # the quick way in is compiled
    before = bank.state()
    refuses(message, bank.learn_one, x, y)
    if message.startswith("'x'"):
        refuses(message, bank.predict_one, x)
    assert_untouched(bank, before, 140)


BAD_RUNS = [
    ([[1.0, 2.0], [3.0, np.inf]], [1.0, 2.0], r"'X' must be finite .* at index \(1, 1\)"),
    (np.ones((1000, 2)), np.append(np.ones(999), np.nan), "'y' must be finite .* at index 999"),
    (np.ones((3, 1)), np.ones(3), "'X' must have 2 columns"),
    (np.ones((3, 2, 1)), np.ones(3), "'X' must have the shape"),
    (np.ones((3, 0)), np.ones(3), "'X' must have at least one row and one column"),
    (np.ones((0, 2)), [], "'X' must have at least one row"),
    (np.ma.masked_equal([[1.0, 2.0]], 2.0), [1.0], "'X' must have no masked"),
    (5.0, 5.0, "'X' must have the shape"),
    (np.ones((3, 2)), np.ones(2), r"'y' must have as many rows as X \(3\)"),
    (np.ones((3, 2)), np.ones((3, 2)), "'y' must have the shape"),
    (np.ones((3, 2)), "abc", "'y' must hold numbers"),
    ([[1.0, 2.0], [3.0]], [1.0, 2.0], "'X' must be a rectangular"),
    (np.array([[1, object()]], dtype=object), [1.0], "'X' must hold numbers"),
]


@pytest.mark.parametrize(("X", "y", "message"), BAD_RUNS)
def test_wrong_arrays_are_refused_and_change_nothing(X, y, message):
    bank = learned()
    before = bank.state()
    refuses(message, bank.run, X, y)
    if message.startswith("'X'"):
        for predict in (bank.predict, bank.predict_slots):
            refuses(message, predict, X)
    assert_untouched(bank, before, 140)


def test_wrong_record_is_refused():
    bank = learned()
    for record in ("everything", 3, np.array(["cost", "lost"]), ["weights", "wieghts"], None):
        refuses("'record' must", bank.run, np.ones((3, 2)), np.ones(3), record=record)
    assert bank.samples == 140


def assert_untouched(bank, before, samples):
    after = bank.state()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert bank.samples == samples


def test_numbers_of_every_type_are_accepted():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 2, 2), window=3)
    bank.learn_one(1, 2)
    bank.learn_one(np.float32(1.5), np.int8(2))
    bank.learn_one([True], [2.5])
    bank.learn_one(np.array(3), np.array([2]))
    bank.run(np.arange(4, dtype=np.int32), np.arange(4, dtype=np.float16).reshape(-1, 1))
    assert bank.samples == 8
    assert isinstance(bank.predict_one(2), float)


pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@pytest.mark.parametrize("first", [[1.0], np.ones((2, 3)), "abc"])
def test_combiner_with_first_weights_of_wrong_shape_is_refused(first):
    combiner = type("Odd", (Latest,), {"first_weights": lambda self, slots: first})()
    with pytest.raises(ValueError):  # noqa: PT011 - of NumPy or of ours
        kb.KernelBank(kb.gaussian_grid(0.1, 1, 3), combiner=combiner)


def test_combiner_with_weights_of_wrong_shape_is_refused():
    combine = lambda self, objective, evidence, state, weights: weights  # noqa: E731
    combiner = type("Flat", (Latest,), {"combine": combine})()
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 3), combiner=combiner)
    with pytest.raises(ValueError, match=r"'combiner' of Flat must return weights of shape"):
        bank.run(np.arange(5.0), np.arange(5.0))
    assert bank.samples == 0


@dataclass(frozen=True)
class Latest(kb.combiners.Combiner):
    """All weight on the slot that was best on the last sample."""

    def combine(self, objective, evidence, state, weights):
        return np.eye(len(weights))[np.argmin(evidence.slot_loss, axis=1)]
