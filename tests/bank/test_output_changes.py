"""Banks with several outputs: as banks of their own, with other slots, and with more outputs."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.config import AutoConfig
from kernelbank.auto.slots.default_pool import default_pool
from kernelbank.auto.slots.default_slots import SCALINGS, SIZES
from kernelbank.bank.output_changes import can_negate, has_room
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from kernelbank.losses import Squared

K, L = kb.kernels, kb.learners
ROWS, LATER = 300, 40


def default_slots(size="small"):
    """All slots that an AutoBank may run, as those of one bank."""
    config = AutoConfig(0, size, 0, SCALINGS[::2], None, None, "serial")
    pool = default_pool(config.make_scaling(3, target=False), SIZES[size], 0, Squared())
    return pool.bank_slots(range(len(pool)))


def some_slots():
    """Some that follow those of the first output and some that do not, one on a residual."""
    return [
        kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=31), residual_of=0),
        kb.Slot(K.Linear(1.0), L.LinearRLS(forgetting=0.99)),
        kb.Slot(K.Matern(1.0), L.NearestNeighborGP(8, 64)),
        kb.Slot(K.NoKernel(), L.LastValue()),
    ]


def bank_of(slots, outputs=1, **settings):
    combiner = kb.combiners.Stacking()
    options = {"slots": slots, "combiner": combiner, "window": 1, "regularization": 0.0}
    return kb.KernelBank(**options | settings, outputs=outputs)


def stream(rows=ROWS, outputs=3, width=9):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, width))
    return X, np.sign(np.sin(2 * X[:, :outputs]) + 0.5 * draw.normal(size=(rows, outputs)))


def assert_same(bank, others, X, y):
    """The outputs of a bank learn as banks of their own do."""
    trace = bank.run(X, y)
    for k, other in enumerate(others):
        own = other.run(X, y[:, k])
        for field in trace.fields:
            found = getattr(trace.of_output(k), field)
            np.testing.assert_array_equal(found, getattr(own, field), err_msg=f"{field}, {k}")
        np.testing.assert_array_equal(bank.predict(X[:9])[:, k], other.predict(X[:9]))
        np.testing.assert_array_equal(bank.weights[k], other.weights)


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_outputs_go_on_with_other_slots_like_banks_of_their_own(engine):
    X, y = stream()
    slots = some_slots()
    bank = bank_of(slots, 3, engine=engine)
    others = [bank_of(slots) for _ in range(3)]
    assert_same(bank, others, X, y)
    new = [
        kb.Slot(K.Gaussian(0.5), L.FourierRLS(features=6)),
        slots[0],
        replace(slots[1], residual_of=1),
        kb.Slot(K.Matern(2.0), L.NearestNeighborGP(4, 32)),
        kb.Slot(K.Linear(1.0), L.LinearRLS(), residual_of=2),
        slots[4],
    ]
    kept = [None, 0, 1, None, None, 4]
    bank, others = bank.with_slots(new, kept), [one.with_slots(new, kept) for one in others]
    assert_same(bank, others, *stream(LATER))


def test_negated_output_predicts_minus_the_other_with_all_default_slots():
    X, y = stream()
    slots = default_slots()
    assert {type(slot.learner) for slot in slots} == {
        L.FourierRLS, L.LinearRLS, L.PartitionTree, L.NearestNeighborGP, L.LastValue,
    }  # fmt: skip
    bank, plain, minus = (bank_of(slots) for _ in range(3))
    plain.run(X, y[:, 0])
    minus.run(X, -y[:, 0])
    bank.run(X, y[:, 0])
    assert can_negate(bank._settings)
    bank._add_first_output(None)
    assert bank.outputs == 2
    found, later = bank.predict_slots(X[:20]), stream(LATER)
    np.testing.assert_array_equal(found[:, 0], -found[:, 1])
    np.testing.assert_array_equal(found[:, 1], plain.predict_slots(X[:20]))
    targets = np.column_stack([-later[1][:, 0], later[1][:, 0]])
    assert_same(bank, [minus, plain], later[0], targets)


@pytest.mark.parametrize(
    "change",
    [
        {"slots": [kb.Slot(K.Gaussian(1.0), L.Norma())]},  # declares no odd arrays
        {"loss": "huber"},
        {"combiner": kb.combiners.Hedge()},
        {"slots": [kb.Slot(K.Linear(1.0), L.LinearRLS(), loss=kb.losses.Huber(1.0))]},
    ],
)
def test_what_is_not_known_to_be_odd_is_not_negated(change):
    slots = change.pop("slots", some_slots()[:1])
    assert not can_negate(bank_of(slots, **change)._settings)


@pytest.mark.parametrize("room", [True, False])  # without it all outputs get new arrays
def test_added_output_goes_on_like_a_bank_of_its_own(room, monkeypatch):
    X, y = stream()
    slots = some_slots()
    bank = bank_of(slots, 2)
    bank.run(X, y[:, :-1])
    others = [bank_of(slots) for _ in range(3)]
    for k, other in enumerate(others):
        other.run(X, y[:, k])
    added = bank._new_output(0, X[0], -1.0)
    added.run(X, y[:, -1])
    before = bank._runtime
    assert has_room(before)
    monkeypatch.setattr("kernelbank.bank.bank_changes.has_room", lambda _: room)
    bank._add_output(added)
    assert bank.outputs == 3
    assert (bank._runtime is before) == room
    assert_same(bank, others, *stream(LATER))


def test_blocks_are_at_most_twice_as_long_as_those_of_a_bank_with_as_many_outputs():
    X, y = stream(30)
    slots = [kb.Slot(K.Linear(1.0), L.LinearRLS())]
    bank = bank_of(slots, 2)
    bank.run(X, y[:, :2])
    rebuilt = 0
    while bank.outputs < 70:
        before = bank._runtime
        added = bank._new_output(0, X[0], -1.0)
        added.run(X, y[:, 0])
        bank._add_output(added)
        rebuilt += bank._runtime is not before
        size = bank._runtime.leader.workspace.size
        assert {one.workspace.size for one in bank._runtime.runtimes} == {size}
        assert size <= 2 * bank._runtime.leader.block_length(9, bank.outputs)
    assert 2 <= rebuilt <= 4


def test_added_output_leaves_the_others_as_they_are_and_counts_the_samples_before_it():
    X, y = stream()
    slots = some_slots()
    bank, same = bank_of(slots, 2), bank_of(slots, 2)
    for one in (bank, same):
        one.run(X, y[:, :2])
    added = bank._new_output(ROWS - 100, X[-100], -1.0)
    assert added.samples == ROWS - 100
    added.run(X[-100:], -np.ones(100))
    bank._add_output(added)
    assert bank.samples == ROWS
    assert bank.ledger.missing.tolist() == [0, 0, ROWS - 100]
    assert bank.ledger.mean_loss[2] < 0.1
    np.testing.assert_array_equal(bank.predict(X)[:, :2], same.predict(X))
    later, targets = stream(LATER)
    found = bank.run(later, targets).predictions[:, :2]
    np.testing.assert_array_equal(found, same.run(later, targets[:, :2]).predictions)


def test_new_output_of_slots_that_keep_targets_has_those_of_the_past():
    X, y = stream()
    bank = bank_of([kb.Slot(K.Matern(1.0), L.NearestNeighborGP(4, 200))], 2)
    bank.run(X, y[:, :2])
    added = bank._new_output(ROWS - 5, X[-5], -1.0)
    added.run(X[-5:], -np.ones(5))
    kept = added._state()["slots/group0/responses"]
    np.testing.assert_array_equal(kept, -1.0)


def test_file_that_claims_other_outputs_is_refused(tmp_path, monkeypatch):
    X, y = stream(20)
    bank = bank_of(some_slots(), 3)
    bank.run(X, y)
    header, arrays = bank._describe()
    made = Mock(side_effect=AssertionError("it is refused before anything is made of it"))
    monkeypatch.setattr("kernelbank.bank.outputs.Runtime", made)
    for outputs in (2, 4, 10**6, -1, 0, 2.5, "3", None):
        checkpoint.write(tmp_path / "x.kb", header | {"outputs": outputs}, arrays)
        with pytest.raises(FileRefused):
            kb.load(tmp_path / "x.kb")


def test_output_before_the_first_keeps_what_that_one_has_shared():
    """It comes from a bank that has learned less, and the present output goes on bit for bit."""
    X, y = stream()
    slots = some_slots()
    bank, same = bank_of(slots), bank_of(slots)
    for one in (bank, same):
        one.run(X, y[:, 0])
    other = bank._new_output(ROWS - 100, X[-100], -1.0)
    other.run(X[-100:], y[-100:, 1])
    bank._add_first_output(other)
    later, targets = stream(LATER)
    found = bank.run(later, targets[:, :2]).predictions
    np.testing.assert_array_equal(found[:, 1], same.run(later, targets[:, 1]).predictions)
    assert bank.ledger.missing.tolist() == [ROWS - 100, 0]
