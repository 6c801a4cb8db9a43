"""Rows that are learned again after a restart, with targets that were delayed."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.model_parts.replay_buffer import ReplayBuffer


def new_bank():
    slots = [
        kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS()),
        kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierRLS(features=8)),
    ]
    stacking = kb.combiners.Stacking(0.95, 0.1)
    return kb.KernelBank(slots=slots, combiner=stacking, window=1, regularization=0.0)


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
@pytest.mark.parametrize("before", [0, 700])
def test_replay_keeps_the_order_of_predictions_and_targets(kind, before):
    """All rows are kept, or the last 512 of them, some predicted before the first of these."""
    draw = np.random.default_rng(1)
    buffer = ReplayBuffer(512, 2, 0)
    count = before + 90
    X = draw.normal(size=(count, 2))
    y = 3 * X[:, 0] + 0.1 * draw.normal(size=count)
    delay = {"none": np.zeros(count), "delay": np.full(count, 6)}.get(kind)
    if delay is None:
        delay = draw.integers(0, 12, size=count) * (draw.random(count) < 0.6)
    predicted_at = np.maximum(np.arange(count) - delay, 0).astype(int)
    for t in range(count):
        buffer.append(t + 1, X[t : t + 1], np.zeros((1, 0)), y[t : t + 1], [predicted_at[t]])
    kept_X, _, kept_y = buffer.latest(count)
    first = count - len(kept_y)
    np.testing.assert_array_equal(kept_y, y[first:])
    chosen = np.arange(len(kept_y))
    if kind == "some rows":
        chosen = np.flatnonzero(draw.random(len(kept_y)) < 0.8)
    replayed, naive = new_bank(), new_bank()
    rows, targets = kept_X[chosen], kept_y[chosen]
    buffer.replay(count, replayed, rows, targets, None if kind == "delay" else chosen)
    replay_naively(naive, rows, targets, first, predicted_at[first:], chosen.tolist())
    one, other = replayed.state(), naive.state()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    on_time = new_bank()
    on_time.run(rows, targets)
    losses = on_time.ledger.slot_loss, replayed.ledger.slot_loss
    assert (kind == "none") == np.array_equal(*losses)


def test_replay_of_no_rows_learns_nothing():
    bank = new_bank()
    ReplayBuffer(128, 2, 0).replay(0, bank, np.zeros((0, 2)), np.zeros(0))
    assert bank.samples == 0


def test_rows_beyond_the_last_restart_are_not_kept():
    buffer = ReplayBuffer(4, 1, 0, until=4)
    for t in range(6):
        buffer.append(t + 1, np.array([[t]]), np.zeros((1, 0)), np.array([t]), [t])
    np.testing.assert_array_equal(buffer.targets, [0, 1, 2, 3])
