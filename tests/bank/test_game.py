"""The game against its definition, and the promises that a bank makes about itself."""

import _thread
import gc
import itertools
import signal
import threading
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.utils.interrupts import defer_sigint
from support import naive
from support.instances import COMBINERS, KERNELS, LOSSES, TREE, cauchy, name_of, stream
from support.second_order import PrototypeRLS

EPS = np.finfo(float).eps
K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def play_both(kernels, loss, combiner, X, y, *, window, budget, rate, ridge):
    fast, slow = zip(*kernels, strict=True)
    bank = kb.KernelBank(
        list(fast),
        Norma(rate, budget),
        combiner[0],
        loss=loss[0],
        window=window,
        regularization=ridge,
    )
    oracle = naive.run(
        X,
        y,
        list(slow),
        loss[1],
        window=window,
        budget=budget,
        learning_rate=rate,
        regularization=ridge,
        combiner=combiner[1],
    )
    return bank, bank.run(X, y), oracle


def assert_equal_to(oracle, bank, trace, y, budget, window):
    """Compare with tolerances from the size of the terms.

    A value is a sum of at most budget + window terms of total size M, a few roundings each; a step
    of a stable learner does not amplify the errors of the steps before, so after n of them
    n (budget + window + 50) eps M is left. Losses and costs are at most quadratic in values of
    size M + |y| + 1; norm^2 is a sum of budget^2 products of total size `magnitude`, likewise.
    """
    n = len(y)
    unit = n * (budget + window + 50) * EPS
    size = 1 + np.abs(y).max() + oracle.value_magnitude.max(axis=0)
    values = unit * size
    costs = 4 * window * unit * size**2 + unit * oracle.magnitude.max(axis=0)
    close = {
        "slot_predictions": values,
        "slot_loss": costs,
        "slot_cost": costs,
        "window_loss": costs,
        "curvature": costs,
    }
    for name, allowed in close.items():
        difference = np.abs(getattr(trace, name) - getattr(oracle, name)).max(axis=0)
        assert (difference <= allowed).all(), name
    weights = weight_errors(oracle, bank.combiner, costs.max())
    assert (np.abs(trace.weights - oracle.weights).max(axis=1) <= weights[:-1]).all()
    assert np.abs(bank.weights - oracle.next_weights).max() <= weights[-1]
    slots = trace.weights.shape[1]
    mixed = values.max() + slots * weights[:-1] * size.max()
    assert (np.abs(trace.predictions - oracle.predictions) <= mixed).all()
    charged = 4 * window * size.max() * mixed + slots * weights[:-1] * (1 + oracle.curvature.max())
    assert (np.abs(trace.cost - oracle.cost) <= charged).all()
    assert (np.abs(trace.loss - oracle.loss) <= charged).all()
    difference = np.abs(trace.cumulative_cost - oracle.cumulative_cost)
    assert (difference <= np.cumsum(charged) + n * unit * oracle.cumulative_cost[-1]).all()
    assert (np.abs(bank.ledger.dropped - oracle.dropped) <= n * costs).all()
    if bank.combiner.on_simplex:
        gap = oracle.bound - oracle.cost
        allowed = 2 * charged + slots * costs.max() + slots * weights[:-1] * oracle.bound.max()
        assert (np.abs(trace.bound_gap - gap) <= allowed).all()


def weight_errors(oracle, combiner, evidence):
    """How far weights may be off, row by row, if the evidence is off by so much.

    theta is piecewise linear in b / (2 a): it moves by at most the error over the least curvature
    of an active slot. (That weights are right for the evidence of their own bank is certified to
    rounding elsewhere.) The other rules are Lipschitz with a constant far below 50.
    """
    rows = len(oracle.curvature)
    errors = np.full(rows + 1, 50 * evidence)
    if isinstance(combiner, kb.combiners.Simplex):
        following = np.vstack([oracle.weights[1:], oracle.next_weights])
        least = np.where(following > 0, oracle.curvature, np.inf).min(axis=1)
        errors[1:] = np.minimum(1.0, evidence / np.maximum(least, 1e-300))
    elif isinstance(combiner, kb.combiners.Joint):
        # A cost with gap above its minimum is at least (a + ridge) |w - w*|^2 above it; and w*
        # moves by at most the gradient's error over twice that.
        least = oracle.curvature.min(axis=1) + combiner.ridge
        cost = combiner.horizon * oracle.slot_loss.max() + least.max()
        errors[1:] = np.sqrt(combiner.tolerance * cost / least) + 50 * evidence / least
    elif isinstance(combiner, kb.combiners.Stacking):  # likewise, with the ridge in units of loss
        powers = np.arange(rows)[:, None] - np.arange(rows)
        losses = np.tril(combiner.discount ** np.maximum(powers, 0)) @ oracle.slot_loss
        least = combiner.ridge * losses.min(axis=1)
        scale = 2 * losses.max(axis=1) + least
        errors[1:] = np.sqrt(combiner.tolerance * scale / least) + rows * evidence / least
    assert np.median(errors) < 1e-3  # or else this would not test weights
    return errors


# window, budget, dimension, spacing: every kernel and every loss is played in each of these. The
# fast tests take every third of the cases, in turn, so that each loss and each objective occurs.
SETTINGS = [
    (window, window + more, dimension, spacing)
    for window, more, dimension, spacing in itertools.product(
        [1, 4], [0, 1, 7], [1, 3], ["irregular", "regular"]
    )
]
CASES = [
    pytest.param(
        loss,
        objective,
        id=f"{name_of(loss)}-{'-'.join(map(str, objective))}",
        marks=[] if (number + place) % 8 == 0 else [pytest.mark.slow],
    )
    for number, loss in enumerate(LOSSES)
    for place, objective in enumerate(SETTINGS)
]
"""An eighth of them, another one for every loss, is for every day; `make test-all` runs all."""


@pytest.mark.parametrize(("loss", "objective"), CASES)
def test_every_kernel_with_every_loss_and_setting(loss, objective):
    window, budget, dimension, spacing = objective
    X, y = stream(window + budget, 22, dimension, loss[0].labels)
    if spacing == "regular":
        X = np.tile(np.arange(22.0)[:, None] / 16, (1, dimension))
    bank, trace, oracle = play_both(
        KERNELS, loss, COMBINERS[0], X, y, window=window, budget=budget, rate=0.004, ridge=0.9
    )
    assert_equal_to(oracle, bank, trace, y, budget, window)


@pytest.mark.parametrize(("rate", "ridge"), [(0.3, 1.0), (0.1, 9.0)])
def test_strong_decay_over_several_periods_of_the_common_scale(rate, ridge):
    X, y = stream(9, 45, 1)
    bank, trace, oracle = play_both(
        KERNELS[:3], LOSSES[0], COMBINERS[0], X, y, window=1, budget=12, rate=rate, ridge=ridge
    )
    assert bank.slots[0].learner._period(bank._settings.objective) < 45
    assert_equal_to(oracle, bank, trace, y, 12, 1)


@pytest.mark.parametrize("combiner", COMBINERS, ids=map(name_of, COMBINERS))
@pytest.mark.parametrize("ridge", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_every_combiner(combiner, ridge):
    X, y = stream(3, 40, 1)
    bank, trace, oracle = play_both(
        KERNELS[:4], LOSSES[0], combiner, X, y, window=5, budget=20, rate=0.02, ridge=ridge
    )
    if ridge > 0 or not isinstance(combiner[0], kb.combiners.Simplex):
        assert_equal_to(oracle, bank, trace, y, 20, 5)
    else:  # without curvature all weight is on the least loss: a corner, exactly
        assert (trace.weights == oracle.weights).all()


# --- promises ---------------------------------------------------------------------------------------

CUSTOM = dict([pair for pair in KERNELS if isinstance(pair[0], K.Custom)])


@st.composite
def banks(draw, custom=True):
    """A recipe for a bank: the same call twice makes two equal banks."""
    kernels = [kernel for kernel, _ in KERNELS]
    chosen = draw(st.lists(st.sampled_from(kernels), min_size=1, max_size=9))
    window = draw(st.integers(1, 7))
    learners = [
        Norma(draw(st.sampled_from([0.001, 0.02])), window + draw(st.sampled_from([0, 1, 20, 150])))
        for _ in range(2)
    ]
    slots = [kb.Slot(kernel, draw(st.sampled_from(learners))) for kernel in chosen]
    if draw(st.booleans()):
        slots.insert(draw(st.integers(0, len(slots))), kb.Slot(K.Gaussian(1.0), PrototypeRLS(8)))
    loss = draw(st.sampled_from([loss for loss, _ in LOSSES]))
    if isinstance(loss, (kb.losses.Squared, kb.losses.Logistic)) and draw(st.booleans()):
        slots.insert(draw(st.integers(0, len(slots))), TREE)
    combiner = draw(st.sampled_from([combiner for combiner, _ in COMBINERS]))
    ridge = draw(st.sampled_from([0.0, 0.01, 0.5]))
    dtype = draw(st.sampled_from(["float64", "float32"]))

    def make(engine="serial"):
        return kb.KernelBank(
            slots=slots,
            combiner=combiner,
            loss=loss,
            window=window,
            regularization=ridge,
            engine=engine,
            dtype=dtype,
        )

    return make


ENGINES = [
    *map(kb.engines.Serial, (1, 2, 5)),
    *map(kb.engines.Threads, (1, 2, 3)),
    kb.engines.Serial(2, block=3),
    kb.engines.Threads(2, block=17),
    "threads",
]


def data(bank, seed, samples):
    X, y = stream(seed, samples, 2, bank.loss.labels)
    if seed % 3 == 0:
        X = np.tile(np.arange(float(samples))[:, None] / 8, (1, 2))  # a regular grid
    return X, y


def assert_same_bits(one, other):
    for name in one.fields:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def assert_same_state(one, other):
    first, second = one._state(), other._state()
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True), name


@settings(max_examples=25)
@given(banks(), st.integers(0, 100), st.sampled_from(ENGINES), st.data())
def test_blocks_equal_loop_bit_for_bit(make, seed, engine, draw):
    whole, ragged, loop = make(), make(engine), make()
    X, y = data(whole, seed, 400)
    trace = whole.run(X, y)
    done = 0
    while done < len(X):
        step = draw.draw(st.integers(1, 200))
        part = ragged.run(X[done : done + step], y[done : done + step])
        for name in part.fields:
            expected = getattr(trace, name)[done : done + step]
            assert np.array_equal(getattr(part, name), expected, equal_nan=True), name
        done += step
    for n in range(len(X)):
        if n % 37 == 0 or n in (255, 256, 257):
            assert loop.predict_one(X[n]) == trace.predictions[n]
        loop.learn_one(X[n], y[n])
    assert_same_state(whole, ragged)
    assert_same_state(whole, loop)


@settings(max_examples=30)
@given(banks(), st.integers(0, 100), st.integers(0, 290))
def test_saving_at_any_moment_changes_no_bit(tmp_path_factory, make, seed, moment):
    undisturbed, interrupted = make(), make()
    X, y = data(undisturbed, seed, 300)
    trace = undisturbed.run(X, y)
    if moment > 0:
        interrupted.run(X[:moment], y[:moment])
    path = tmp_path_factory.mktemp("bank") / "bank.kb"
    interrupted.save(path)
    parts = {kernel.name: kernel for kernel in CUSTOM}
    own = {**parts, "fourth": LOSSES[-1][0], "PrototypeRLS": PrototypeRLS}
    resumed = kb.load(path, components=own, engine=kb.engines.Serial(2))
    rest = resumed.run(X[moment:], y[moment:])
    for name in rest.fields:
        assert np.array_equal(getattr(rest, name), getattr(trace, name)[moment:], equal_nan=True)
    assert_same_state(undisturbed, resumed)


@settings(max_examples=25)
@given(banks(), st.integers(0, 100), st.integers(0, 200))
def test_predicting_changes_nothing(make, seed, moment):
    bank = make()
    X, y = data(bank, seed, 201)
    assert (bank.predict(X) == 0).all()
    if moment > 0:
        bank.run(X[:moment], y[:moment])
    before = bank._state()
    together = bank.predict(X)
    assert [bank.predict_one(x) for x in X[:20]] == together[:20].tolist()
    assert (bank.predict(X[::-1]) == together[::-1]).all()
    bank.predict_slots(X)
    after = bank._state()
    assert all(np.array_equal(before[k], after[k], equal_nan=True) for k in before)


@settings(max_examples=25)
@given(banks(), st.integers(0, 100))
def test_weights_stay_on_the_simplex_and_the_cost_below_the_bound(make, seed):
    bank = make()
    X, y = data(bank, seed, 150)
    trace = bank.run(X, y)
    if not bank.combiner.on_simplex:
        assert np.isnan(trace.bound_gap).all()
        return
    slots = len(bank.slots)
    assert (trace.weights >= 0).all()
    assert np.abs(trace.weights.sum(axis=1) - 1).max() <= 8 * slots * EPS
    # Jensen's inequality holds exactly; the two sides are sums of window * P rounded terms.
    finite = np.where(np.isfinite(trace.slot_cost), trace.slot_cost, 0)
    rounding = 8 * (bank.window + slots) * EPS * (trace.weights * finite).sum(axis=1)
    assert (trace.bound_gap >= -rounding - 1e-300).all()
    if isinstance(bank.combiner, kb.combiners.Simplex) and bank.combiner.evidence == "window":
        live = np.isfinite(trace.window_loss).all(axis=0)
        residual = kb.kkt_residual(
            trace.weights[1:, live], trace.curvature[:-1, live], trace.window_loss[:-1, live]
        )
        assert residual.max() <= 8 * slots * EPS


def test_cumulative_figures_go_on_across_calls():
    X, y = stream(1, 50, 1)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 2, 5))
    first, second = bank.run(X[:20], y[:20]), bank.run(X[20:], y[20:])
    costs = np.concatenate([first.cost, second.cost])
    running = np.concatenate([first.cumulative_cost, second.cumulative_cost])
    assert (running == np.cumsum(costs)).all()
    ledger = bank.ledger
    assert ledger.cumulative_cost == running[-1]
    assert ledger.samples == bank.samples == 50
    slot_costs = np.concatenate([first.slot_cost, second.slot_cost])
    assert (ledger.slot_cumulative_cost == np.cumsum(slot_costs, axis=0)[-1]).all()
    assert ledger.regret == running[-1] - ledger.slot_cumulative_cost.min()
    assert second.regret[-1] == ledger.regret
    assert ledger.best_slot == np.argmin(ledger.slot_cumulative_cost)
    losses = np.concatenate([first.loss, second.loss])
    assert ledger.loss == np.cumsum(losses)[-1]
    predictions = np.concatenate([first.predictions, second.predictions])
    assert (losses == (predictions - y) ** 2).all()
    assert ledger.mean_loss == ledger.loss / 50
    gaps = np.concatenate([first.bound_gap, second.bound_gap])
    assert ledger.bound_gap == np.cumsum(gaps)[-1]
    assert "50 samples" in repr(ledger)


def test_a_new_bank():
    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4))
    assert bank.weights.tolist() == [0.25] * 4
    assert bank.predict_one([1.0, 2.0]) == 0.0
    assert bank.predict(np.ones((3, 5))).tolist() == [0.0] * 3
    assert np.isnan(bank.ledger.mean_loss)
    assert bank.ledger.dropped.tolist() == [0.0] * 4
    assert bank.dictionary == kb.gaussian_grid(1, 2, 4)
    bank.learn_one(3.0, 1.0)  # predictions have not fixed the width of the inputs
    assert bank.samples == 1


def test_inputs_and_results_are_not_aliased():
    X, y = stream(1, 30, 2)
    bank, untouched = (kb.KernelBank(kb.gaussian_grid(0.1, 2, 5)) for _ in range(2))
    own_X, own_y = X.copy(), y.copy()
    bank.run(own_X[:15], own_y[:15])
    own_X[:], own_y[:] = 9.0, 9.0
    bank.weights[:] = 9.0
    bank.ledger.slot_cumulative_cost[:] = 9.0
    bank.ledger.dropped[:] = 9.0
    bank.run(X[15:], y[15:])
    untouched.run(X, y)
    assert_same_state(bank, untouched)
    X.flags.writeable = False
    assert (bank.predict(X) == untouched.predict(X.copy())).all()


# --- what the ledger and the warnings say -----------------------------------------------------------


def test_a_slot_that_turns_non_finite_is_out_and_touches_nobody():
    X, y = stream(5, 400, 1)
    good = [K.Gaussian(0.3), K.Gaussian(1.0), K.Laplacian(0.5)]
    wild = kb.Slot(K.Linear(1.0), Norma(5.0, 20))
    calm = [kb.Slot(kernel, Norma(0.05, 20)) for kernel in good]
    bank = kb.KernelBank(slots=[calm[0], wild, *calm[1:]], window=5)
    with pytest.warns(kb.errors.SlotQuarantined, match=r"1 of 4 slots.*Linear"):
        trace = bank.run(X, y)
    assert bank.quarantined == (1,)
    assert bank.weights[1] == 0.0
    assert bank.ledger.slot_cumulative_cost[1] == np.inf
    assert np.isfinite(trace.predictions).all()
    assert np.isfinite(trace.cost).all()
    out = int(np.argmax(np.isinf(trace.slot_cost[:, 1])))
    assert (trace.weights[out + 1 :, 1] == 0).all()
    assert np.isinf(trace.slot_cost[out:, 1]).all()
    without = kb.KernelBank(slots=calm, window=5).run(X, y)
    assert (np.delete(trace.slot_cost, 1, axis=1) == without.slot_cost).all()
    assert np.abs(trace.weights[out + 1 :, [0, 2, 3]] - without.weights[out + 1 :]).max() <= 8 * EPS


@pytest.mark.parametrize("combiner", COMBINERS, ids=map(name_of, COMBINERS))
def test_a_bank_of_wild_slots_never_says_nan(combiner):
    X, y = stream(5, 300, 1)
    kernels = [K.Linear(1.0), K.Polynomial(3, 1.0, 1.0), K.Gaussian(1.0)]
    blocks, loop = (
        kb.KernelBank(kernels, Norma(20.0, 20), combiner[0], window=5) for _ in range(2)
    )
    trace = blocks.run(X, y)
    for n in range(len(X)):
        loop.learn_one(X[n], y[n])
    assert_same_state(blocks, loop)
    assert len(blocks.quarantined) == 3
    assert blocks.weights.tolist() == [0.0] * 3 or not blocks.combiner.on_simplex
    if blocks.combiner.on_simplex:
        assert np.isfinite(trace.predictions).all()
    assert blocks.predict_one(0.5) == 0.0 or not blocks.combiner.on_simplex


def test_a_kernel_that_overflows_at_one_point_is_left_out_there():
    bank = kb.KernelBank([K.Polynomial(64, 1.0, 1.0), K.Gaussian(1.0)], Norma(1e-3), window=2)
    bank.run([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert bank.weights[0] > 0
    alone = bank.predict_slots([1e150])[0]
    assert not np.isfinite(alone[0])
    assert bank.predict_one(1e150) == alone[1] == 0.0


def test_a_slot_that_dies_in_the_first_block_leaves_its_neighbours_alone():
    kernels = [K.Polynomial(degree) for degree in (60, 1, 1, 1, 1, 1, 1, 1)]
    x = 1 + np.arange(100) / 50
    blocks, loop = (kb.KernelBank(kernels, Norma(0.001)) for _ in range(2))
    blocks.run(x, np.sin(x))
    for n in range(100):
        loop.learn_one(x[n], np.sin(x[n]))
    assert blocks.quarantined == loop.quarantined == (0,)
    assert_same_state(blocks, loop)


def test_a_slot_without_a_finite_prediction_takes_no_part_in_that_proposal():
    bank = kb.KernelBank([K.Polynomial(64, 1.0, 1.0), K.Gaussian(1.0)], Norma(1e-3), window=2)
    bank.run([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert bank.weights[0] > 0
    expected = bank.predict_one(1e150)
    trace = bank.run([1e150], [0.0])
    assert trace.predictions[0] == expected == 0.0
    assert trace.weights[0].tolist() == [0.0, 1.0]
    assert bank.quarantined == (0,)


def test_a_slot_that_is_out_stays_out_for_omkr():
    def nan_once(X, Z):
        return np.where(X.sum() == 30.0, np.nan, np.exp(-((X - Z.T) ** 2)))

    bank = kb.KernelBank([K.Custom(nan_once), K.Gaussian(1.0)], combiner=kb.combiners.OMKR())
    trace = bank.run(np.arange(60.0), np.sin(np.arange(60.0)))
    assert bank.quarantined == (0,)
    assert (trace.weights[31:, 0] == 0).all()
    assert bank.weights[0] == 0
    assert (trace.weights[31:, 1] != 0).all()


# --- interruptions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [kb.engines.Serial(1), kb.engines.Threads(2)], ids=repr)
@pytest.mark.parametrize("custom", [False, True])
def test_an_interrupt_never_leaves_a_block_half_learned(engine, custom):
    draw = np.random.default_rng(0)
    x, y = np.arange(40_000.0), draw.normal(size=40_000)
    kernels = [*kb.gaussian_grid(0.1, 10, 13)] + ([K.Custom(cauchy)] if custom else [])

    def make():
        return kb.KernelBank(kernels, Norma(0.05, 20), window=4, engine=engine)

    samples = 2_000 if custom else 40_000
    make().run(x[:300], y[:300])
    gc.collect()  # of what compiling has left behind: LLVM's objects do not like interrupts
    bank, interrupts = make(), 0
    while bank.samples < samples:
        timer = threading.Timer(draw.uniform(0.0, 0.01), _thread.interrupt_main)
        try:
            timer.start()
            bank.run(x[bank.samples : samples], y[bank.samples : samples], record=())
            timer.join()
        except KeyboardInterrupt:
            interrupts += 1
    undisturbed = make()
    undisturbed.run(x[:samples], y[:samples], record=())
    assert_same_state(bank, undisturbed)
    assert interrupts > 0


def test_a_bank_may_be_used_from_several_threads():
    x, y = np.arange(3000.0), np.sin(np.arange(3000.0))
    bank, alone = (kb.KernelBank(kb.gaussian_grid(0.1, 10, 9)) for _ in range(2))
    bank.learn_one(x[0], y[0])
    wrong = []

    def look():
        for n in range(300):
            value = bank.predict_one(float(n))
            wrong.extend([value] if not np.isfinite(value) else [])

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(1, 1500):
        bank.learn_one(x[n], y[n])
    bank.run(x[1500:], y[1500:])
    for thread in threads:
        thread.join()
    alone.run(x, y)
    assert not wrong
    assert_same_state(bank, alone)


def test_predicting_and_then_learning_evaluates_a_kernel_once():
    calls = []

    def counted(X, Z):
        calls.append(1)
        return cauchy(X, Z)

    X, y = stream(0, 12, 2)
    bank, other = (kb.KernelBank([K.Custom(counted), K.Gaussian(1.0)]) for _ in range(2))
    for n in range(10):
        bank.predict_one(X[n])
        bank.learn_one(X[n], y[n])
    assert len(calls) == 10  # the bank's first prediction needs no kernel
    bank.predict_one(X[10])
    bank.predict_one(X[11])
    bank.learn_one(X[10], y[10])  # not what was looked at last: the memo must not be used
    bank.learn_one(X[11], y[11])  # looked at before the sample in between was learned
    other.run(X, y)
    assert_same_state(bank, other)


def test_a_look_that_fails_leaves_no_memo_behind():
    fail = []

    def shaky(X, Z):
        if fail and fail.pop():
            raise RuntimeError("for once")
        return cauchy(X, Z)

    X, y = stream(0, 30, 2)
    bank, clean = (kb.KernelBank([K.Custom(shaky), K.Gaussian(1.0)]) for _ in range(2))
    for n in range(30):
        bank.predict_one(X[n])
        fail.append(n % 3 == 1)
        if n % 3 == 1:
            with pytest.raises(RuntimeError, match="for once"):
                bank.predict_one(X[(n + 1) % 30])
        fail.clear()
        bank.learn_one(X[n], y[n])
        clean.learn_one(X[n], y[n])
    assert_same_state(bank, clean)


def test_two_banks_with_one_function_keep_their_errors_apart():
    def broken(f, y):
        raise RuntimeError("always")

    loss = kb.losses.Custom(lambda f, y: (f - y) ** 2, broken, name="loss")
    one, other = kb.KernelBank(loss=loss), kb.KernelBank(loss=loss)
    assert one.loss == other.loss == loss
    assert one.loss.callbacks[0] is not other.loss.callbacks[0]
    both = kb.losses.Custom(broken, broken, name="both")
    bank = kb.KernelBank(loss=both)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="always"):
            bank.learn_one(0.0, 1.0)
    assert not [callback for callback in bank.loss.callbacks if callback.take_error()]


@pytest.mark.parametrize("engine", ["serial", kb.engines.Threads(2)], ids=repr)
def test_a_function_must_not_call_the_bank_that_calls_it(engine):
    def meddling(f, y):
        bank.predict_one(0.5)
        return (f - y) ** 2

    loss = kb.losses.Custom(meddling, lambda f, y: 2 * (f - y))
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 40), loss=loss, engine=engine)
    with pytest.raises(kb.errors.KernelBankError, match="has called the same bank"):
        bank.run(np.arange(100.0), np.arange(100.0))
    assert bank.samples == 0


@pytest.mark.parametrize("first", [[1.0], np.ones((2, 3)), "abc"])
def test_a_combiner_with_odd_first_weights_is_refused(first):
    combiner = type("Odd", (Latest,), {"first_weights": lambda self, slots: first})()
    with pytest.raises(ValueError):  # noqa: PT011 - of NumPy or of ours
        kb.KernelBank(kb.gaussian_grid(0.1, 1, 3), combiner=combiner)


def test_first_weights_are_copied():
    shared = np.array([0.2, 0.8])
    combiner = type("Fixed", (Latest,), {"first_weights": lambda self, slots: shared})()
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 2), combiner=combiner)
    bank.run(np.arange(5.0), np.arange(5.0))
    assert shared.tolist() == [0.2, 0.8]


def test_a_combiner_with_weights_of_the_wrong_shape_is_refused():
    combine = lambda self, objective, evidence, state, weights: weights  # noqa: E731
    combiner = type("Flat", (Latest,), {"combine": combine})()
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 3), combiner=combiner)
    with pytest.raises(ValueError, match=r"'combiner' of Flat must return weights of shape"):
        bank.run(np.arange(5.0), np.arange(5.0))
    assert bank.samples == 0


def test_held_interrupts_give_back_what_they_held():
    seen = []
    old = signal.signal(signal.SIGINT, lambda *_: seen.append("own"))
    try:
        with defer_sigint():
            signal.raise_signal(signal.SIGINT)
            assert not seen
        assert seen == ["own"]
    finally:
        signal.signal(signal.SIGINT, old)
    with pytest.raises(KeyboardInterrupt), defer_sigint():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is old


@pytest.mark.parametrize("moment", [0, 7])
def test_a_block_undone_by_a_failing_function_can_be_tried_again(moment, tmp_path):
    fail = []

    def value(f, y):
        if fail and fail.pop():
            raise RuntimeError("for once")
        return (f - y) ** 2

    loss = kb.losses.Custom(value, lambda f, y: 2 * (f - y), curvature=2.0)
    bank, undisturbed = (kb.KernelBank(kb.gaussian_grid(0.5, 5, 5), loss=loss) for _ in range(2))
    x, y = np.arange(30.0), np.sin(np.arange(30.0))
    if moment:
        bank.run(x[:moment], y[:moment])
    fail.append(True)
    with pytest.raises(RuntimeError, match="for once"):
        bank.run(x[moment:], y[moment:])
    bank.save(tmp_path / "bank.kb")
    assert kb.load(tmp_path / "bank.kb", components={"value": loss}).samples == moment
    if moment == 0:
        assert bank.predict_one([1.0, 2.0]) == 0.0  # not even the width is known
    bank.run(x[moment:], y[moment:])
    undisturbed.run(x, y)
    assert_same_state(bank, undisturbed)


def test_a_single_sample_undone_can_be_tried_again():
    fail = []

    def value(f, y):
        if fail and fail.pop():
            raise RuntimeError("for once")
        return (f - y) ** 2

    loss = kb.losses.Custom(value, lambda f, y: 2 * (f - y), curvature=2.0)
    bank, undisturbed = (kb.KernelBank(kb.gaussian_grid(0.5, 5, 5), loss=loss) for _ in range(2))
    X, y = stream(3, 20, 1)
    for n in range(20):
        fail.append(True)
        with pytest.raises(RuntimeError, match="for once"):
            bank.learn_one(X[n], y[n])
        bank.learn_one(X[n], y[n])  # its row equals that of the undone try: no memo may be left
        undisturbed.learn_one(X[n], y[n])
    assert_same_state(bank, undisturbed)


def test_a_combiner_of_ones_own_may_be_python(tmp_path):
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


def test_unstable_steps_are_told_with_their_bound():
    x = np.linspace(0, 1, 60)
    with pytest.warns(kb.errors.UnstableStep, match="the bound .* at most") as record:
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20), window=10).run(x, np.sin(9 * x))
    assert len(record) == 1  # said once
    message = str(record[0].message)
    bound = float(message.split("at most ")[1].split(". Lower", maxsplit=1)[0])
    gram = K.Gaussian(5.0)(x[:10], x[:10])
    true_bound = 2 / (2 * np.linalg.eigvalsh(gram).max() + 0.01)
    # g'Kg / g'g never exceeds the largest eigenvalue, so what is named is above the true bound.
    assert true_bound * (1 - 1e-9) <= bound < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.05, 60), window=10).run(x, np.sin(9 * x))
        # no curvature, no bound
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 60), loss="absolute").run(x, np.sin(9 * x))


def test_truncation_is_told_when_it_matters():
    x, y = naive.ar1(0, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the paper's objective: what is dropped is far away
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20, spacing="linear"))
        bank.run(x, y)
    assert (bank.ledger.dropped > 0).all()
    with pytest.warns(kb.errors.TruncationMatters, match="Raise budget") as record:
        kb.KernelBank([K.Gaussian(30.0)], Norma(0.01, 12), window=5).run(x, y)
    assert len(record) == 1


def test_warnings_point_at_the_caller():
    x = np.linspace(0, 1, 60)
    with pytest.warns(kb.errors.UnstableStep) as record:
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20), window=10).run(x, x)
    assert record[0].filename == __file__


# --- single precision ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_single_precision_costs_only_its_rounding(loss, tmp_path):
    X, y = stream(4, 600, 2, loss == "logistic")
    kernels = [kernel for kernel, _ in KERNELS]
    double, single = (
        kb.KernelBank(kernels, Norma(0.01, 50), loss=loss, window=4, dtype=dtype)
        for dtype in ("float64", "float32")
    )
    exact, rounded = double.run(X, y), single.run(X, y)
    # Every kernel value and coefficient is rounded once, by 2^-24 of its size; a prediction is a
    # sum of 50 products of both, a coefficient the sum of 4 gradients of such predictions.
    size = 1 + np.abs(exact.slot_predictions).max(axis=0)
    allowed = 2.0**-24 * 2 * 50 * 4 * size
    error = np.abs(rounded.slot_predictions - exact.slot_predictions).max(axis=0)
    assert (error <= allowed).all()
    assert error.max() > 0  # it is another precision
    double.save(tmp_path / "double.kb")
    single.save(tmp_path / "single.kb")
    sizes = [(tmp_path / f"{name}.kb").stat().st_size for name in ("single", "double")]
    assert sizes[0] < 0.6 * sizes[1]


# --- drift ------------------------------------------------------------------------------------------


def recomputed(bank):
    """norm^2 and the window's values of a one-slot bank, from its coefficients alone."""
    state = bank._state()
    seen, budget = bank.samples, bank.slots[0].learner.budget
    start = (seen - 1) % 256 + 1
    learner = bank.slots[0].learner
    scale = learner._decays(bank._settings.objective)[
        seen % learner._period(bank._settings.objective)
    ]
    alpha = scale * state["slots/group0/coefficients"][0, start : start + budget, 0]
    terms = state["slots/inputs"][:, start : start + budget].T
    gram = bank.slots[0].kernel(terms, terms)
    values = gram @ alpha
    magnitude = np.abs(alpha) @ np.abs(gram) @ np.abs(alpha)
    return alpha @ values, values[-bank.window :], magnitude


def check_drift(samples, ridge):
    draw = np.random.default_rng(0)
    x = np.cumsum(draw.uniform(0, 0.5, samples))
    y = 100 * np.sin(x) + draw.normal(size=samples)
    bank = kb.KernelBank([K.Gaussian(0.2)], Norma(0.2, 12), window=8, regularization=ridge)
    block = 10_000
    for start in range(0, samples, block):
        bank.run(x[start : start + block], y[start : start + block], record=())
    norm, values, magnitude = recomputed(bank)
    state = bank._state()
    # norm^2 is refreshed every 32 samples: at most 31 steps of four roundings each lie between it
    # and a sum over 12 terms. A value is at most 8 steps old. Without the refresh, 2e5 steps leave
    # thirty times as much.
    unit = EPS * magnitude
    assert abs(state["slots/group0/norms"][0, 0] - norm) <= (31 * 4 + 12) * unit
    size = np.sqrt(magnitude)  # |f(x)| <= norm for a kernel with k(x, x) = 1
    assert np.abs(state["slots/group0/values"][0, :, 0] - values).max() <= 100 * EPS * size


@pytest.mark.parametrize("ridge", [0.0, 1e-9, 0.01])
def test_norm_and_values_do_not_drift(ridge):
    check_drift(200_011, ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_norm_and_values_do_not_drift_in_a_million_steps(ridge):
    check_drift(1_000_011, ridge)


# --- the short way in for single samples ----------------------------------------------------------


def frozen(row):
    row.flags.writeable = False
    return row


WAYS = {
    "array": lambda row: row.copy(),
    "list": lambda row: row.tolist(),
    "read only": lambda row: frozen(row.copy()),
    "strided": lambda row: np.repeat(row, 2)[::2],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_every_form_of_an_input_is_learned_alike(way, loss):
    X, y = stream(5, 60, 2, loss == "logistic")
    expected, bank = (kb.KernelBank(loss=loss, window=3) for _ in range(2))
    trace = expected.run(X, y)
    for n in range(60):
        assert bank.predict_one(WAYS[way](X[n])) == trace.predictions[n]
        bank.learn_one(WAYS[way](X[n]), y[n] if n % 2 else y[n].item())
    assert_same_state(expected, bank)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_the_short_way_turns_away_what_the_long_way_refuses(bad):
    bank = kb.KernelBank(window=3)
    bank.run(np.arange(5.0), np.ones(5))
    before = bank._state()
    for call in (
        lambda: bank.predict_one(bad),
        lambda: bank.learn_one(bad, 1.0),
        lambda: bank.learn_one(1.0, bad),
        lambda: bank.learn_one(np.array([bad]), 1.0),
        lambda: bank.learn_one(np.array([1.0, 2.0]), 1.0),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
    assert all(np.array_equal(array, bank._state()[name]) for name, array in before.items())
    labelled = kb.KernelBank(loss="logistic")
    labelled.learn_one(1.0, 1.0)
    with pytest.raises(ValueError, match=r"labels|-1"):
        labelled.learn_one(1.0, 0.5)


@pytest.mark.parametrize(
    ("learner", "kinds"),
    [
        (Norma(1.9, 20), {kb.errors.UnstableStep, kb.errors.SlotQuarantined}),
        (Norma(1e-4, 9), {kb.errors.TruncationMatters}),
    ],
    ids=["steep", "short"],
)
def test_single_samples_give_the_same_warnings_as_blocks(learner, kinds):
    x = np.arange(600.0) / 50
    y = np.where(x > 4, 1e3, 1.0)

    def heard(play):
        bank = kb.KernelBank([K.Gaussian(1.0), K.Linear()], learner, window=8)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            play(bank)
        return [(w.category, str(w.message)) for w in said]

    def one_by_one(bank):
        for n in range(600):
            bank.learn_one(float(x[n]), float(y[n]))

    blocks = heard(lambda bank: [bank.run(x[n : n + 1], y[n : n + 1]) for n in range(600)])
    assert heard(one_by_one) == blocks
    assert {kind for kind, _ in blocks} == kinds
