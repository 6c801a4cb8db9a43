"""Rows that are learned again after a restart, with targets that were delayed."""

from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.model import Model

SLOTS = [
    kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS()),
    kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierRLS(features=8)),
]


def new_bank():
    stacking = kb.combiners.Stacking(0.95, 0.1)
    return kb.KernelBank(slots=SLOTS, combiner=stacking, window=1, regularization=0.0)


def replay_naively(bank, rows, targets, first, predicted_at, chosen):
    """Moment n is when n rows have been learned: predictions first, then the target of row n."""
    past = {}
    index = {first + number: i for i, number in enumerate(chosen)}
    for moment in range(first + len(predicted_at)):
        for number, i in index.items():
            if predicted_at[number - first] == moment and number > moment:
                past[number] = bank.predict_slots_one(rows[i])[1]
        if moment in index:
            i = index[moment]
            bank.learn_one(rows[i], float(targets[i]), past.get(moment))


@pytest.mark.parametrize("kind", ["delay", "mixed", "none", "some rows"])
@pytest.mark.parametrize("first", [0, 278])
def test_replay_keeps_the_order_of_predictions_and_targets(kind, first):
    """All rows are kept, or the last of them, some predicted before the first of these."""
    draw = np.random.default_rng(1)
    count = 90
    X = draw.normal(size=(count, 2))
    y = 3 * X[:, 0] + 0.1 * draw.normal(size=count)
    delay = {"none": np.zeros(count), "delay": np.full(count, 6)}.get(kind)
    if delay is None:
        delay = draw.integers(0, 12, size=count) * (draw.random(count) < 0.6)
    numbers = first + np.arange(count)
    predicted_at = np.maximum(numbers - delay, 0).astype(int)
    chosen = np.arange(count)
    if kind == "some rows":
        chosen = np.flatnonzero(draw.random(count) < 0.8)
    replayed, naive = new_bank(), new_bank()
    rows, targets = X[chosen], y[chosen]
    model = SimpleNamespace(core=SimpleNamespace(latest=lambda: (X, 0, y, numbers, predicted_at)))
    Model.replay(model, replayed, rows, targets, None if kind == "delay" else chosen)
    replay_naively(naive, rows, targets, first, predicted_at, chosen.tolist())
    one, other = replayed.state(), naive.state()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    on_time = new_bank()
    on_time.run(rows, targets)
    losses = on_time.ledger.slot_loss, replayed.ledger.slot_loss
    assert (kind == "none") == np.array_equal(*losses)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize(("options", "kept"), [({}, 512), ({"slots": SLOTS}, 128)])
def test_newest_rows_are_kept_and_when_they_were_predicted(delay, options, kept):
    """For slots that are revised the last 512; else those up to the last restart."""
    X = np.random.default_rng(0).normal(size=(600, 2))
    y = X[:, 0] + X[:, 1]
    bank = kb.AutoBank(size="small", **options)
    bank.run(X[:60], y[:60], delay=delay)
    for rows in (X[:60], X):
        first = 0 if kept == 128 else max(len(rows) - 512, 0)
        expected = slice(first, min(first + kept, len(rows)))
        if len(rows) > 60:
            bank.run(X[60:], y[60:], delay=delay)
        if kept == 128 and len(rows) > 128:
            state = bank._model.core.state()
            np.testing.assert_array_equal(state["replay/inputs"], X[:128])
            continue
        inputs, _, targets, numbers, predicted_at = bank._model.core.latest()
        np.testing.assert_array_equal(inputs, X[expected])
        np.testing.assert_array_equal(targets[:, 0], y[expected])
        np.testing.assert_array_equal(numbers, np.arange(len(rows))[expected])
        # The last rows of a run were all predicted before the first of them was learned.
        since = np.where(numbers < 60, 0, 60)
        np.testing.assert_array_equal(predicted_at, np.maximum(numbers - delay, since))
