"""Banks with several outputs: as banks of their own, with other slots, and with more outputs."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from kernelbank.bank.output_changes import has_room

import kernelbank as kb
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint

K, L = kb.kernels, kb.learners
ROWS, LATER = 300, 40


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


@pytest.mark.parametrize("room", [True, False])  # without it all outputs get new arrays
def test_added_output_goes_on_like_a_bank_of_its_own(room, monkeypatch):
    X, y = stream()
    slots = some_slots()
    bank = bank_of(slots, 2)
    bank.run(X, y[:, :-1])
    others = [bank_of(slots) for _ in range(3)]
    for k, other in enumerate(others):
        other.run(X, y[:, k])
    added = bank._new_output(0, X[0])
    added.run(X, y[:, -1])
    before = bank._runtime
    assert has_room(before)
    monkeypatch.setattr("kernelbank.bank.bank_changes.has_room", lambda _: room)
    bank._add_output(added, 2, -1.0)
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
        added = bank._new_output(0, X[0])
        added.run(X, y[:, 0])
        bank._add_output(added, bank.outputs, -1.0)
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
    added = bank._new_output(ROWS - 100, X[-100])
    assert added.samples == ROWS - 100
    added.run(X[-100:], -np.ones(100))
    bank._add_output(added, 2, -1.0)
    assert bank.samples == ROWS
    assert bank.ledger.missing.tolist() == [0, 0, ROWS - 100]
    assert bank.ledger.mean_loss[2] < 0.1
    np.testing.assert_array_equal(bank.predict(X)[:, :2], same.predict(X))
    later, targets = stream(LATER)
    found = bank.run(later, targets).predictions[:, :2]
    np.testing.assert_array_equal(found, same.run(later, targets[:, :2]).predictions)


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("samples", [100, 300])  # of 300, with a memory of 64
def test_new_output_finds_its_targets_at_the_shared_neighbors(samples, number):
    """It predicts from the samples that it has learned, like a bank that has learned no others."""
    X, y = stream()
    slots = [kb.Slot(K.Matern(1.0), L.NearestNeighborGP(8, 64))]
    bank, alone = bank_of(slots, 2), bank_of(slots)
    bank.run(X, y[:, :2])
    alone.run(X[-samples:], y[-samples:, 2])
    added = bank._new_output(ROWS - samples, X[-samples])
    added.run(X[-samples:], y[-samples:, 2])
    bank._add_output(added, number, np.nan)
    np.testing.assert_array_equal(bank.predict(X)[:, number], alone.predict(X))


def test_new_output_of_slots_that_keep_targets_has_those_of_the_past():
    X, y = stream()
    bank = bank_of([kb.Slot(K.Matern(1.0), L.NearestNeighborGP(4, 200))], 2)
    bank.run(X, y[:, :2])
    added = bank._new_output(ROWS - 5, X[-5])
    added.run(X[-5:], np.ones(5))
    bank._add_output(added, 2, -1.0)
    targets = bank.state()["output2/slots/group0/responses"][0]
    places = np.arange(ROWS - 5, ROWS) % 200
    np.testing.assert_array_equal(targets[places], 1.0)
    np.testing.assert_array_equal(np.delete(targets, places), -1.0)


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
    other = bank._new_output(ROWS - 100, X[-100])
    other.run(X[-100:], y[-100:, 1])
    bank._add_output(other, 0, np.nan)
    later, targets = stream(LATER)
    found = bank.run(later, targets[:, :2]).predictions
    np.testing.assert_array_equal(found[:, 1], same.run(later, targets[:, 1]).predictions)
    assert bank.ledger.missing.tolist() == [ROWS - 100, 0]
