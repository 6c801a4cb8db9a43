"""Which slots of an AutoBank run, by a rule of rows alone; the relevance of columns."""

import copy
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.auto import slots
from kernelbank.auto.model import REMEMBERED, Model, NumberModel
from kernelbank.auto.scaling import Scaling
from kernelbank.auto.slots import FIRST_REVISION, NEGLIGIBLE, SlotPool, revise
from kernelbank.bank.slot_history import Selection

K, L = kb.kernels, kb.learners
ROWS = FIRST_REVISION + 90


def data(rows=ROWS, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 4))
    y = 20 + 3 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * draw.normal(size=rows)
    return X, y


def small(*arguments, **options):
    return kb.AutoBank(*arguments, size="small", **options)


def test_slots_are_revised_after_a_fixed_number_of_rows_and_cost_less():
    X, y = data()
    bank = small()
    bank.run(X[: FIRST_REVISION - 1], y[: FIRST_REVISION - 1])
    pool, before = bank._model.pool, bank._model.selection.running
    assert not bank.ledger.slot_changes
    assert pool.price(before) > pool.limit  # else there is nothing to test
    bank.learn_one(X[FIRST_REVISION - 1], y[FIRST_REVISION - 1])
    assert {change.sample for change in bank.ledger.slot_changes} == {FIRST_REVISION}
    assert pool.price(bank._model.selection.running) <= pool.limit
    assert len(bank.bank.slots) == len(bank._model.members) < len(bank.names)
    assert np.isclose(bank.weights.sum(), 1.0)
    for change in bank.ledger.slot_changes:
        assert bank.names[change.index].startswith(change.name)
        assert (change.index in bank._model.members) == (change.kind == "added")
        assert ("try 1" if change.kind == "added" else "of the weight") in change.reason
    assert "retired" in {change.kind for change in bank.ledger.slot_changes}


def test_slots_that_do_not_run_have_no_weight_and_predict_the_mean():
    X, y = data()
    bank = small()
    trace = bank.run(X, y, record="all")
    idle = np.setdiff1d(np.arange(len(bank.names)), bank._model.members)
    last = slice(FIRST_REVISION, None)
    assert not trace.weights[last][:, idle].any()
    shown = trace.slot_predictions[last][:, idle]
    assert (shown == shown[:, :1]).all()
    assert np.abs(shown - y.mean()).max() < 0.2 * y.std()  # as the scaling knows it
    one = bank.predict_trace_one(X[0], record="all")
    assert (one.slot_predictions[0, idle] == bank._model.scaling.statistics.target_scale()[0]).all()
    assert trace.names == bank.names


# --- the rule -------------------------------------------------------------------------------------


def pool_of(groups, limit):
    """A pool of groups (base or None, price, initial), each with one slot."""
    pool = SlotPool(1)
    for number, (base, price, initial) in enumerate(groups):
        slot = kb.Slot(K.NoKernel(), L.LastValue(), residual_of=base)
        pool.add_group(f"group {number}", [(f"slot {number}", slot)], initial=initial)
        pool.groups[-1] = group_at(pool.groups[-1], price)
    pool.first_limit = limit
    return pool


def group_at(group, price):
    return replace(group, cost=slots.Cost(price))


def first(pool):
    return Selection.first(pool.initial_groups, len(pool.groups))


def revised(pool, before, rows, weights):
    """A revision where all slots have the same loss."""
    return revise(pool, before, rows, weights, np.ones(len(pool)))


def test_cheap_groups_stay_if_they_need_no_other():
    """A hundredth of the limit is the border; both heavy ones together leave no room for 0.09."""
    for price, kept in ((0.09, (0, 1)), (0.11, (0, 2))):
        pool = pool_of([(None, 9.0, True), (None, price, True), (None, 0.95, True)], 10.0)
        after, _ = revised(pool, first(pool), 100, np.array([0.6, 0.0, 0.4]))
        assert after.running == kept


def test_of_nearest_neighbors_the_group_of_least_loss_has_the_weight_of_all():
    """0.3 and 0.2 are 0.5 for the second, which is more than the 0.4 of the first group."""
    pool = pool_of([(None, 1, True)] * 3, 1.0)
    for index in (1, 2):
        pool.slots[index] = kb.Slot(K.Gaussian(1.0), L.NearestNeighborGP())
    weights = np.array([0.4, 0.3, 0.2])
    after, _ = revise(pool, first(pool), 100, weights, np.array([1.0, 3.0, 2.0]))
    assert after.running == (2,)
    assert revised(pool_of([(None, 1, True)] * 3, 1.0), first(pool), 100, weights)[0].running == (
        0,
    )


def test_the_heaviest_stay_with_their_bases():
    pool = pool_of([(None, 1, True), (0, 1, True), (None, 1, True), (None, 1, True)], 3.0)
    after, reasons = revised(pool, first(pool), 100, np.array([0.0, 0.6, 0.1, 0.3]))
    assert after.running == (0, 1, 3)
    assert after.retired == (0, 0, 100, 0)
    assert reasons == {2: "10.00% of the weight"}


def test_what_is_new_stays_for_one_revision_and_the_least_tried_comes_first():
    pool = pool_of([(None, 1, True), (None, 1, False), (None, 1, False)], 2.0)
    selection, nothing = first(pool), np.array([1.0, 0.0, 0.0])
    actual = []
    for row in (1, 2, 3, 4, 5):  # a new one has no weight, but stays once
        selection, reasons = revised(pool, selection, row, nothing)
        actual.append(selection.running)
    assert actual == [(0, 1), (0, 1), (0, 2), (0, 2), (0, 1)]
    assert selection.tries == (1, 2, 1)
    assert reasons == {2: "0.00% of the weight", 1: "try 2"}


def test_groups_on_the_residual_of_the_heaviest_are_tried_first():
    pool = pool_of([(None, 1, True), (None, 1, True), (0, 1, False), (1, 1, False)], 3.0)
    after, _ = revised(pool, first(pool), 1, np.array([0.2, 0.8, 0.0, 0.0]))
    assert after.running == (0, 1, 3)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_the_weights_groups_fit_have_their_bases_and_depend_on_nothing_else(drawn):
    count = drawn.draw(st.integers(1, 8))
    described = [
        (
            drawn.draw(st.none() | st.integers(0, number - 1)) if number else None,
            drawn.draw(st.sampled_from([0.5, 1.0, 3.0])),
            number == 0 or drawn.draw(st.booleans()),
        )
        for number in range(count)
    ]
    initial = set()
    for number, (base, _, flag) in enumerate(described):
        if flag and (base is None or base in initial):
            initial.add(number)
    described = [(b, p, n in initial) for n, (b, p, _) in enumerate(described)]
    limit = drawn.draw(st.sampled_from([3.0, 5.0, 100.0]))
    pool = pool_of(described, limit)
    after = first(pool)
    for row in range(1, 6):
        weights = np.zeros(count)
        for group in after.running:
            weights[group] = drawn.draw(st.sampled_from([0.0, NEGLIGIBLE / 2, 0.1, 0.5]))
        before, heaviest = after, weights.max()
        after, reasons = revised(pool, before, row, weights)
        assert (after, reasons) == revised(pool_of(described, limit), before, row, weights)
        assert reasons.keys() == set(before.running) ^ set(after.running)
        assert pool.price(after.running) <= limit
        assert pool.can_run(after.running)
        alone = [group for group in before.running if weights[group] == heaviest > NEGLIGIBLE]
        if limit == 100.0:
            assert set(alone) <= set(after.running)


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


@pytest.mark.parametrize("targets", [1, 2])
def test_no_row_learns_more_than_its_share_again(monkeypatch, targets):
    """The last restart is spread over the 16 rows after it."""
    again = Counter()
    replay = NumberModel.replay

    def spied(model, bank, inputs, *others):
        again[model.rows] += len(inputs)
        replay(model, bank, inputs, *others)

    monkeypatch.setattr(NumberModel, "replay", spied)
    X, y = data_of_relevance(300)
    kb.AutoBank(size="small").run(X, y if targets == 1 else np.column_stack([y, -y]))
    assert again == {5: 5, 16: 16, 32: 32} | {128 + n: 9 for n in range(1, 17)}


@pytest.mark.parametrize("rows", [128, 129, 137, 143, 144])
@pytest.mark.parametrize("way", ["saved", "copied", "cut", "wider"])
def test_a_restart_that_is_spread_goes_on_bit_for_bit(rows, way):
    X, y = data_of_relevance(220)
    y[[131, 140]] += 1e3  # held back, or never learned
    whole, parts = kb.AutoBank(size="small"), kb.AutoBank(size="small")
    for bank in (whole, parts):
        bank.run(X[:rows], y[:rows])
    if way == "saved":
        parts = kb.from_bytes(parts.to_bytes())
    elif way == "copied":
        parts = copy.deepcopy(parts)
    elif way == "wider":  # the inputs were missing so far
        for bank in (whole, parts):
            bank.add_inputs()
        parts = kb.from_bytes(parts.to_bytes())
        X = np.column_stack([X, np.sin(y)])
    expected = whole.run(X[rows:], y[rows:]).predictions
    got = [parts.run(X[n : n + 3], y[n : n + 3]).predictions for n in range(rows, len(y), 3)]
    np.testing.assert_array_equal(np.concatenate(got), expected)


# --- relevant columns: what rows know of the past, and the metric that slots learn -----------------


def data_of_relevance(rows, inputs=4, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, inputs))
    return X, np.sin(2 * X[:, 0]) + 0.1 * draw.normal(size=rows)


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("rank",), ("none",)])
@pytest.mark.parametrize("lags", [0, 2, 5])
def test_relevant_columns_are_the_first_scaling_and_the_past_times_their_relevance(names, lags):
    X, y = data_of_relevance(60)
    scaling = Scaling(4, lags, names, remembered=3, previous=4)
    scaling.fit(X, y[:, None])
    scaling.relevance = np.linspace(0.1, 2.0, len(scaling.relevance))
    known = max(lags, 3)
    lagged = np.hstack([np.tile(y[:known], (10, 1)), X[:10]])
    rows = scaling.statistics.scale_rows(X[10:20], lagged)
    first = scaling.columns_of[names[0]]
    assert len(first) == 4 + lags
    assert len(scaling.past_columns) == known - lags + 4
    sources = rows[:, [*first, *scaling.past_columns]]
    assert np.array_equal(rows[:, list(scaling.relevant_columns)], sources * scaling.relevance)
    # The inputs of the row before have the center and scale of the inputs.
    if names[0] == "standard":
        standard = scaling.statistics.scale_rows(X[:10], lagged)[:, list(first[:4])]
        assert np.array_equal(rows[:, list(scaling.past_columns[-4:])], standard)


def test_rows_know_the_last_targets_and_the_inputs_of_the_row_before():
    X, y = data_of_relevance(40)
    bank = kb.AutoBank()
    bank.run(X[:30], y[:30])
    model = bank._model
    expected = np.concatenate([y[29:26:-1], X[29]])
    assert np.array_equal(model.core.past_row(), expected)
    bank.run(X[30:33], y[30:33])
    rows = model.core.latest()[1][-3:]
    assert np.array_equal(rows[0], expected)
    assert np.array_equal(rows[2], np.concatenate([y[31:28:-1], X[31]]))
    assert model.remembered_targets() == REMEMBERED


def test_relevance_is_the_root_of_the_mean_squared_derivative():
    X, y = data_of_relevance(200)
    kernel = K.ActiveDims(K.Gaussian(2.0), (1, 3, 2))
    bank_slots = [kb.Slot(K.Gaussian(1.0), L.KLMS()), kb.Slot(kernel, L.FourierRLS(40, ridge=0.1))]
    bank = kb.KernelBank(slots=bank_slots, window=1)
    bank.run(X, y + X[:, 1] ** 2)
    before = np.array([0.5, 1.0, 2.0])
    actual = slots.new_relevance(bank, 1, X[:50], before)
    step, squares = 1e-4, []
    for column, factor in zip((1, 3, 2), before, strict=True):
        move = np.zeros(4)
        move[column] = step
        # Rounding of a central difference: 1e-16 / 1e-4; its own error: 1e-8 f''' / 6.
        slope = bank.predict_slots(X[:50] + move)[:, 1] - bank.predict_slots(X[:50] - move)[:, 1]
        squares.append(np.mean((factor * slope / (2 * step)) ** 2))
    squares = np.maximum(squares / np.mean(squares), slots.LEAST_RELEVANCE)
    assert np.allclose(actual, np.sqrt(squares / squares.mean()), rtol=1e-5, atol=0)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_inputs_that_matter_become_relevant(task):
    X, y = data_of_relevance(FIRST_REVISION + 8)
    bank = kb.AutoBank(task)
    bank.run(X, y if task == "regression" else (y > 0).astype(int))
    actual = bank._model.scaling.relevance
    assert actual.argmax() == 0
    assert actual[0] > 3 * np.sort(actual)[-2]
    assert np.isclose(np.mean(actual**2), 1.0)
