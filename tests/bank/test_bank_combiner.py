"""What a bank asks of a combiner."""

from dataclasses import dataclass

import numpy as np
import pytest

import kernelbank as kb
from support.same_bits import assert_same_state

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@pytest.mark.parametrize("first", [[1.0], np.ones((2, 3)), "abc"])
def test_combiner_with_first_weights_of_wrong_shape_is_refused(first):
    combiner = type("Odd", (Latest,), {"first_weights": lambda self, slots: first})()
    with pytest.raises(ValueError):  # noqa: PT011 - of NumPy or of ours
        kb.KernelBank(kb.gaussian_grid(0.1, 1, 3), combiner=combiner)


def test_first_weights_of_a_combiner_are_copied():
    shared = np.array([0.2, 0.8])
    combiner = type("Fixed", (Latest,), {"first_weights": lambda self, slots: shared})()
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 2), combiner=combiner)
    bank.run(np.arange(5.0), np.arange(5.0))
    assert shared.tolist() == [0.2, 0.8]


def test_combiner_with_weights_of_wrong_shape_is_refused():
    combine = lambda self, objective, evidence, state, weights: weights  # noqa: E731
    combiner = type("Flat", (Latest,), {"combine": combine})()
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 3), combiner=combiner)
    with pytest.raises(ValueError, match=r"'combiner' of Flat must return weights of shape"):
        bank.run(np.arange(5.0), np.arange(5.0))
    assert bank.samples == 0


def test_combiner_in_python_is_run_and_saved(tmp_path):
    x, y = np.arange(300.0), np.sin(np.arange(300.0))
    blocks, loop = (kb.KernelBank(kb.gaussian_grid(0.5, 5, 6), combiner=Latest()) for _ in range(2))
    trace = blocks.run(x, y)
    for n in range(300):
        loop.learn_one(x[n], y[n])
    assert_same_state(blocks, loop)
    assert (trace.weights[1:] == np.eye(6)[np.argmin(trace.slot_loss[:-1], axis=1)]).all()
    blocks.save(tmp_path / "bank.kb")
    again = kb.load(tmp_path / "bank.kb", components={"Latest": Latest})
    assert again.predict_one(300.0) == blocks.predict_one(300.0)


@dataclass(frozen=True)
class Latest(kb.combiners.Combiner):
    """All weight on the slot that was best on the last sample."""

    def combine(self, objective, evidence, state, weights):
        return np.eye(len(weights))[np.argmin(evidence.slot_loss, axis=1)]
