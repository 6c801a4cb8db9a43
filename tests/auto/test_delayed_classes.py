"""Classes that appear while predictions are pending, and changes in the error rate."""

import numpy as np
import pytest

import kernelbank as kb

K, L = kb.kernels, kb.learners


def slots():
    return [
        kb.Slot(K.Linear(), L.LinearRLS()),
        kb.Slot(K.Gaussian(0.5), L.Norma()),
        kb.Slot(K.Gaussian(2.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=15)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=15), residual_of=0),
    ]


def stream(rows, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * draw.normal(size=rows)


@pytest.mark.parametrize("late", [False, True])
def test_class_that_appears_between_prediction_and_target_gets_its_own_output(late, tmp_path):
    """The one output of two classes is the second's; with a third class it has another place."""
    X, y = stream(102)
    labels = np.where(y > 0, "b", "a")
    labels[:2] = "a", "b"
    bank = kb.AutoBank("classification", slots=slots()[:3:2])
    bank.run(X[:100], labels[:100])
    model = bank._model
    row = [3.0, 0.3]
    _, own = model.banks[0].predict_slots_one(
        model.scaling.scale_rows(np.array([row]), np.zeros((1, model.core.past)))[0]
    )
    bank.predict_one(row)
    if late:  # the third class is that of another row
        bank.learn_one(X[100], "c")
        assert bank.bank.outputs == 3
        bank.save(tmp_path / "bank")
        bank = kb.load(tmp_path / "bank")
        model = bank._model
        losses = bank.bank.ledger.slot_loss
        shown = model.scaling.scale_rows(np.array([row]), np.zeros((1, model.core.past)))
        now = bank.bank.predict_slots(shown)[0]
        bank.learn_one(row, "b")
        for head, (past, sign) in enumerate([(now[0], -1), (own, 1), (now[2], -1)]):
            added = bank.bank.ledger.slot_loss[head] - losses[head]
            assert added == pytest.approx((past - sign) ** 2, rel=1e-6, abs=1e-9)
    else:  # it is its own
        bank.learn_one(row, "c")
    # Rows that were predicted without the scores of all classes do not change the softmax.
    start, late = [0.0, 0.0, 10.0, 0.0, 30.0], [0.0, 1.0, 10.0, 0.0, 30.0]
    state = model.core.state()
    assert state["probabilities/curves"].tolist() == [start, start, late]
    assert state["probabilities/common"].tolist() == [2.0, 1.0, 1.0, 0.0, 1.0]


def test_changes_of_a_classifier_are_detected_in_its_error_rate():
    """One error of size 0 or 1 a row, from the first bank on."""
    X, _ = stream(600)
    labels = (X[:, 0] > 0).astype(int)
    labels[400:] = 1 - labels[400:]
    bank = kb.AutoBank("classification", slots=slots()[::2])
    found = bank.run(X, labels).predictions
    wrong = (found != labels).astype(float)
    ring = bank._model.core.state()["changes/errors"]
    signals = [c.row for c in bank.ledger.changes if c.what.startswith("error")]
    start = signals[-1] - 1 if signals else 5
    assert np.array_equal(ring[: 600 - start], wrong[start:])
    assert [c.what for c in bank.ledger.changes if 400 < c.row < 450] == ["error grew"]
