"""Classes as outputs of one bank: late ones, many of them, and what runs for how many."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.config import AutoConfig
from kernelbank.auto.model import REPLAY, ClassModel
from kernelbank.auto.slots import LARGEST_STATE, SCALINGS, SIZES, START, default_pool, revise
from kernelbank.bank.slot_history import Selection
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from kernelbank.losses import Squared
from support.auto_streams import SMALL, assert_same_state, predict_and_learn
from support.marks import slow

K, L = kb.kernels, kb.learners
THIRD, FOURTH = 150, 560
"""Rows at which classes appear, after the last restart and after the first revision."""


def late_classes(rows=620):
    """Two classes, from THIRD on three, from FOURTH on four."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, 3))
    y = np.where(X[:, 0] > 0, "right", "left")
    y = np.where((np.arange(rows) >= THIRD) & (X[:, 1] > 0.8), "top", y)
    return X, np.where((np.arange(rows) >= FOURTH) & (X[:, 2] > 0.8), "front", y)


def own_slots():
    return [
        kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=31), residual_of=0),
        kb.Slot(K.Matern(1.0), L.NearestNeighborGP(8, 64)),
    ]


# --- the same bits --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole():
    X, y = late_classes()
    bank = kb.AutoBank("classification", **SMALL)
    return bank, bank.run(X, y, record="all")


@pytest.mark.parametrize("way", [slow("pieces"), slow("threads"), slow("one by one"), "files"])
def test_late_classes_have_the_same_bits_in_every_way(way, whole, tmp_path):
    X, y = late_classes()
    expected, trace = whole
    assert expected.bank.outputs == 4
    engine = "threads" if way == "threads" else "serial"
    bank = kb.AutoBank("classification", **SMALL, engine=engine)
    if way in ("pieces", "threads"):
        parts = [bank.run(X[a:b], y[a:b], record="all") for a, b in [(0, 155), (155, 620)]]
        found = np.concatenate([part.predictions for part in parts])
        last = parts[1]
        np.testing.assert_array_equal(last.probabilities, trace.probabilities[155:])
        np.testing.assert_array_equal(last.slot_classes, trace.slot_classes[155:])
    else:
        files = (140, 155, 520, 570) if way == "files" else ()
        found, bank = predict_and_learn(bank, X, y, 0, files, tmp_path / "bank.kb")
    np.testing.assert_array_equal(found[1:], trace.predictions[1:])
    assert_same_state(bank, expected)


@pytest.mark.parametrize(
    ("slots", "delay"),
    [slow(None, 0), (own_slots(), 5), slow(None, 5), slow(own_slots(), 0)],
    ids=["default-0", "own-5", "default-5", "own-0"],
)
def test_outputs_of_one_bank_are_like_one_bank_per_class(slots, delay, monkeypatch):
    X, y = late_classes(400)
    y = np.where(X[:, 1] > 0.8, "top", y)
    monkeypatch.setattr("kernelbank.auto.slots.SEVERAL_OUTPUTS", 100.0)  # all slots run
    # A bank per class has no relevant columns, since these are the same for all classes.
    monkeypatch.setattr(ClassModel, "knows_previous", False)
    options = {"slots": slots, "classes": ["left", "right", "top"], "size": "small"}
    one = kb.AutoBank("classification", **options)
    trace = one.run(X, y, delay=delay, record="all")
    assert [bank.outputs for bank in one.banks] == [3]
    monkeypatch.setattr(ClassModel, "_one_bank", False)
    each = kb.AutoBank("classification", **options)
    other = each.run(X, y, delay=delay, record="all")
    assert [bank.outputs for bank in each.banks] == [1, 1, 1]
    for field in trace.fields:
        np.testing.assert_array_equal(getattr(trace, field), getattr(other, field), err_msg=field)
    for k, bank in enumerate(each.banks):
        np.testing.assert_array_equal(one.bank.weights[k], bank.weights)
    np.testing.assert_array_equal(one.weights, each.weights)
    np.testing.assert_array_equal(one.predict_proba(X), each.predict_proba(X))


# --- classes that are added -----------------------------------------------------------------------


@pytest.mark.parametrize("slots", [None, own_slots()], ids=["default", "own"])
def test_third_class_leaves_the_output_of_two_as_it_is_and_replays_the_others(slots, monkeypatch):
    monkeypatch.setattr("kernelbank.auto.slots.SEVERAL_OUTPUTS", 100.0)  # no slot is retired
    X, y = late_classes(700)
    y = np.where(X[:, 0] > 0, "right", "left")
    bank = kb.AutoBank("classification", slots=slots, **SMALL)
    bank.run(X, y)
    rows = bank._model.scaling.scale_rows(X[:50], np.zeros((50, bank._model.core.past)))
    before = bank.bank.predict(rows)
    first = bank.classes[0]
    bank.add_classes(["top"])
    assert bank.bank.outputs == 3
    after = bank.bank.predict(rows)
    np.testing.assert_array_equal(after[:, 1], before)
    assert np.mean((after[:, 0] > 0) == (y[:50] == first)) > 0.85
    assert (after[:, 2] < -0.5).all()
    assert (bank.predict_proba(X[:50])[:, 2] < 0.3).all()
    assert bank.bank.samples == 700
    assert bank.bank.ledger.missing.tolist() == [700 - REPLAY, 0, 700 - REPLAY]


def test_class_of_the_first_rows_is_as_if_it_had_been_named():
    """Up to the last restart, all rows are learned again with all classes."""
    X, y = late_classes(120)
    y[60:] = np.where(X[60:, 1] > 0.5, "top", y[60:])
    y[90:] = np.where(X[90:, 1] < -0.5, "bottom", y[90:])
    names = list(dict.fromkeys(y))
    found, named = (
        kb.AutoBank("classification", classes=classes, slots=own_slots(), scalings=["none"])
        for classes in (None, names)
    )
    found.run(X, y)
    named.run(X, y)
    assert found.bank.outputs == 4
    np.testing.assert_array_equal(found.bank.weights, named.bank.weights)
    np.testing.assert_array_equal(found.bank.predict(X), named.bank.predict(X))


@pytest.mark.parametrize("rows", [slow(0), 3, slow(20), slow(140)])
def test_classes_can_be_added_all_at_once_at_any_time(rows):
    X, y = late_classes(300)
    bank = kb.AutoBank("classification", **SMALL)
    if rows:
        bank.run(X[:rows], y[:rows])
    bank.add_classes([*"abcdefgh", "left", "right"])
    bank.run(X[rows:], y[rows:])
    assert len(bank.classes) == 11
    assert bank.bank.outputs == 11
    assert bank.predict_proba(X).shape == (300, 11)
    later = y[200:] != "top"
    assert np.mean(bank.predict(X[200:])[later] == y[200:][later]) > 0.8


# --- many classes ---------------------------------------------------------------------------------


def many(classes, rows, late, seed=0):
    """Clusters: all classes from the start, or one after the other."""
    draw = np.random.default_rng(seed)
    centres = 2 * draw.normal(size=(classes, 5))
    first = (np.arange(classes) * 0.9 * rows / classes).astype(int) if late else np.zeros(classes)
    known = np.searchsorted(first, np.arange(rows), side="right")
    labels = (draw.random(rows) * known).astype(int)
    if late:
        labels[first] = np.arange(classes)
    return centres[labels] + 0.2 * draw.normal(size=(rows, 5)), labels


@pytest.mark.parametrize(
    ("classes", "rows"), [(15, 200), pytest.param(200, 2000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("late", [slow(False), True])
def test_many_classes_are_learned(classes, rows, late):
    X, y = many(classes, rows, late)
    options = {"max_classes": classes} if late else {"classes": range(classes)}
    bank = kb.AutoBank("classification", **options, **SMALL)
    bank.run(X[: rows // 2], y[: rows // 2])
    trace = bank.run(X[rows // 2 :], y[rows // 2 :])
    assert bank.bank.outputs == classes
    assert np.mean(trace.predictions == y[rows // 2 :]) > (0.7 if late else 0.6)
    pool = bank._model.pool
    assert pool.outputs == classes
    assert pool.fits(bank._model.selection.running, START)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_thousand_classes_fit_into_memory(late, tmp_path):
    X, y = many(1000, 1500, late)
    options = {"max_classes": 1000} if late else {"classes": range(1000)}
    bank = kb.AutoBank("classification", **options)
    bank.run(X, y)
    assert bank.bank.outputs == 1000
    _, arrays = bank.describe()
    assert sum(array.nbytes for array in arrays.values()) < 1e9


# --- what runs for how many classes ---------------------------------------------------------------


def pool_for(outputs, size="default", dimension=20):
    config = AutoConfig(0, size, 0, SCALINGS, None, None, "serial")
    scaling = config.make_scaling(dimension, targets=0)
    return default_pool(scaling, SIZES[size], 0, Squared(), outputs)


def trees(pool, groups):
    slots = [pool.slots[index] for index in pool.members(groups)]
    return sum(isinstance(slot.learner, L.PartitionTree) for slot in slots)


@pytest.mark.parametrize("outputs", [2, 3, 5, 10])
def test_slots_that_are_not_shared_have_at_most_four_times_the_bytes_of_one_output(outputs):
    pool = pool_for(outputs, size="small")
    one_output = sum(group.size for group in pool.groups if group.initial)
    selection = Selection.first(pool.initial_groups, len(pool.groups))
    for rows in (0, 512, 4096, 8192, 16384):
        if rows:
            on_trees = [isinstance(slot.learner, L.PartitionTree) for slot in pool.slots]
            running = np.isin(range(len(pool)), pool.members(selection.running))
            selection, _ = revise(pool, selection, rows, np.where(running, on_trees, 0))
        own = [pool.groups[n].size for n in selection.running if not pool.groups[n].is_shared]
        assert outputs * sum(own) <= 4 * one_output


@pytest.mark.parametrize("dimension", [2, 20, 100])
def test_more_classes_have_fewer_trees_and_the_same_slots_to_choose_from(dimension):
    one = pool_for(1, dimension=dimension)
    assert one.initial_groups == tuple(n for n, group in enumerate(one.groups) if group.initial)
    counts = [trees(one, one.initial_groups)]
    for outputs in (3, 10, 100, 1000):
        pool = pool_for(outputs, dimension=dimension)
        assert pool.names == one.names
        assert pool.slots == one.slots
        groups = pool.initial_groups
        assert groups
        assert {pool.groups[n].base for n in groups} - {None} <= set(groups)
        assert pool.fits(groups, START)
        assert pool.price(groups) <= START * pool.limit
        size = (outputs - 1) * sum(pool.groups[n].size for n in groups)
        assert size <= LARGEST_STATE
        counts.append(trees(pool, groups))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 0


# --- files ----------------------------------------------------------------------------------------


def test_file_with_other_outputs_than_classes_is_refused(tmp_path):
    X, y = late_classes(200)
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(X, y)
    header, arrays = bank.describe()
    path = tmp_path / "x.kb"
    checkpoint.write(path, header, arrays)
    assert kb.load(path).bank.outputs == 3
    model = header["model"]
    (inner,) = model["banks"]
    for outputs in (1, 2, 4, 10**9, 0, -1, 1.5, "3", None, True):
        forged = model | {"banks": [inner | {"outputs": outputs}]}
        checkpoint.write(path, header | {"model": forged}, arrays)
        with pytest.raises(FileRefused):
            kb.load(path)
    for banks in ([], [inner, inner], [{**inner, "outputs": 1}] * 3):
        checkpoint.write(path, header | {"model": model | {"banks": banks}}, arrays)
        with pytest.raises(FileRefused):
            kb.load(path)
