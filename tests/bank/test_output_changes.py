"""Banks with several outputs: as banks of their own, with other slots, and with more outputs."""

from dataclasses import replace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import FileRefused, InvalidArgument
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


def with_new_output(bank, output, X, y, past_target=np.nan):
    """The bank with an output that has learned the newest samples, (m, d) and (m,)."""
    alone = bank.new_output(bank.samples - len(X))
    alone.run(X, y)
    return bank.with_output(output, alone, past_target)


@pytest.mark.parametrize("engine", ["serial", "threads"])
@pytest.mark.parametrize("output", [0, 2])
def test_added_output_goes_on_like_a_bank_of_its_own(output, engine):
    X, y = stream()
    slots = [replace(slot, loss="squared") for slot in some_slots()]
    order = [0, 1]
    order.insert(output, 2)  # column 2 is that of the new output
    bank = bank_of(slots, 2, engine=engine, loss=["squared", kb.losses.Huber(0.5)])
    bank.run(X, y[:, :2])
    losses = ["squared", kb.losses.Huber(0.5), "squared"]
    others = [bank_of(slots, loss=losses[k]) for k in order]
    for k, other in zip(order, others, strict=True):
        other.run(X, y[:, k])
    wider = with_new_output(bank, output, X, y[:, 2], -1.0)
    assert (bank.outputs, wider.outputs) == (2, 3)
    later, targets = stream(LATER)
    assert_same(wider, others, later, targets[:, order])


def test_output_that_has_not_learned_the_samples_is_refused():
    X, y = stream(30)
    bank = bank_of(some_slots(), 2)
    with pytest.raises(InvalidArgument, match="'first' of new_output must"):
        bank.new_output(0)
    bank.run(X, y[:, :2])
    for first in (-1, 31, 2.5):
        with pytest.raises(InvalidArgument, match="'first' of new_output must"):
            bank.new_output(first)
    alone = bank.new_output(10)
    with pytest.raises(InvalidArgument, match="'alone' of with_output must"):
        bank.with_output(2, alone)
    alone.run(X[10:], y[10:, 2])
    for output in (-1, 3):
        with pytest.raises(InvalidArgument, match="'output' of with_output must"):
            bank.with_output(output, alone)


def test_added_output_leaves_the_others_as_they_are_and_counts_the_samples_before_it():
    X, y = stream()
    slots = some_slots()
    bank, same = bank_of(slots, 2), bank_of(slots, 2)
    for one in (bank, same):
        one.run(X, y[:, :2])
    bank = with_new_output(bank, 2, X[-100:], -np.ones(100), -1.0)
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
    bank = with_new_output(bank, number, X[-samples:], y[-samples:, 2])
    np.testing.assert_array_equal(bank.predict(X)[:, number], alone.predict(X))


def test_new_output_of_slots_that_keep_targets_has_those_of_the_past():
    X, y = stream()
    bank = bank_of([kb.Slot(K.Matern(1.0), L.NearestNeighborGP(4, 200))], 2)
    bank.run(X, y[:, :2])
    bank = with_new_output(bank, 2, X[-5:], np.ones(5), -1.0)
    targets = bank.slot_state(0)["output2/responses"]
    assert sorted(set(targets.ravel())) == [-1.0, 1.0]
    assert (targets == 1.0).sum() == 5


def test_file_that_claims_other_outputs_is_refused(tmp_path, monkeypatch):
    X, y = stream(20)
    bank = bank_of(some_slots(), 3)
    bank.run(X, y)
    header, arrays = bank.describe()

    def refuse(outputs):
        checkpoint.write(tmp_path / "x.kb", header | {"outputs": outputs}, arrays)
        with pytest.raises(FileRefused):
            kb.load(tmp_path / "x.kb")

    for outputs in (2, 4, -1, 0, 2.5, "3", None):
        refuse(outputs)
    monkeypatch.setattr("kernelbank._core.Bank", None)  # refused before any of it is made
    refuse(10**6)


def test_output_before_the_first_keeps_what_that_one_has_shared():
    """It comes from a bank that has learned less, and the present output goes on bit for bit."""
    X, y = stream()
    slots = some_slots()
    bank, same = bank_of(slots), bank_of(slots)
    for one in (bank, same):
        one.run(X, y[:, 0])
    bank = with_new_output(bank, 0, X[-100:], y[-100:, 1])
    later, targets = stream(LATER)
    found = bank.run(later, targets[:, :2]).predictions
    np.testing.assert_array_equal(found[:, 1], same.run(later, targets[:, 1]).predictions)
    assert bank.ledger.missing.tolist() == [ROWS - 100, 0]
