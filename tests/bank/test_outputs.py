"""Banks with several outputs: what they return, refuse, undo, and do with missing targets."""

from dataclasses import replace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support import instances, naive
from support.marks import refuses
from support.naive import outputs as naive_outputs
from support.output_banks import OUTPUTS, assert_same_output, columns, same
from support.same_bits import assert_same_state, assert_same_trace

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

C, K, L = kb.combiners, kb.kernels, kb.learners
X, NUMBERS = instances.stream(5, 300, 2)
Y = columns(NUMBERS)
GRID = kb.gaussian_grid(0.3, 3, 4)


def mixed_slots():
    """Slots that follow and slots that do not, one on a residual."""
    return [
        kb.Slot(K.NoKernel(), L.LastValue()),
        kb.Slot(K.Gaussian(0.5), L.Norma(0.05, 30)),
        kb.Slot(K.Gaussian(0.7), L.Norma(0.05, 30)),
        kb.Slot(K.Gaussian(0.8), L.FourierRLS(features=12)),
        kb.Slot(K.Gaussian(0.5), L.NearestNeighborGP(neighbors=6, memory=40)),
        kb.Slot(K.Gaussian(1.5), L.NearestNeighborGP(neighbors=6, memory=40)),
        kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=31, split_after=5)),
        kb.Slot(K.Gaussian(0.6), L.KRLS(budget=15)),
        kb.Slot(K.Gaussian(0.6), L.NearestNeighborGP(neighbors=5, memory=30), residual_of=0),
        kb.Slot(K.Gaussian(0.6), L.FourierRLS(features=12, forgetting=0.99), residual_of=1),
        kb.Slot(
            K.Gaussian(0.8), L.FourierRLS(features=12), transform=kb.transforms.ShiftedLog(2.0)
        ),
    ]


def mixed_bank(**options):
    return kb.KernelBank(slots=mixed_slots(), **options)


@pytest.mark.parametrize("window", [1, 2, 4, 5, 10, 11, 23])
def test_values_on_a_window_of_any_length_are_those_of_banks_of_their_own(window):
    learners = [
        L.FourierRLS(features=14),
        L.FourierRLS(features=16, forgetting=0.99),
        L.FourierRLS(features=18, forgetting=0.99, forget="prior"),
        L.FourierRLS(features=14, forgetting=0.99, forget="random_walk"),
        L.FourierSGD(features=14),
    ]
    slots = [kb.Slot(K.Gaussian(0.8), learner) for learner in learners]
    bank = kb.KernelBank(slots=slots, window=window, outputs=OUTPUTS)
    for a, b in [(0, 3), (3, 10), (10, 11), (11, 300)]:
        bank.run(X[a:b], Y[a:b])
    for k in range(OUTPUTS):
        own = kb.KernelBank(slots=slots, window=window)
        own.run(X, Y[:, k])
        assert_same_output(bank, k, own)


@pytest.mark.parametrize("window", [1, 10])
def test_state_of_ten_outputs_on_random_features_is_at_most_twice_that_of_one(window):
    def state_bytes(outputs):
        bank = kb.KernelBank(GRID, L.FourierRLS(100), window=window, outputs=outputs)
        return bank.state_bytes(dimension=5)

    assert state_bytes(10) <= 2 * state_bytes(1)


# --- changes of a bank ------------------------------------------------------------------------


def alone(output, **options):
    return mixed_bank(**options), Y[:, output]


def test_other_slots_are_those_of_banks_of_their_own():
    bank = mixed_bank(outputs=OUTPUTS, window=2)
    bank.run(X[:200], Y[:200])
    new = [*bank.slots[:8], kb.Slot(K.Gaussian(0.9), L.FourierRLS(features=12))]
    new += [kb.Slot(K.Gaussian(0.4), L.NearestNeighborGP(neighbors=6, memory=40))]
    new += [kb.Slot(K.Gaussian(0.4), L.Norma(0.05, 30), residual_of=0)]
    kept, previous = [*range(8), None, None, None], [*range(8), 3, 4, 1]
    other = bank.with_slots(new, kept, previous)
    other.run(X[200:], Y[200:])
    for k in range(OUTPUTS):
        own, y = alone(k, window=2)
        own.run(X[:200], y[:200])
        own = own.with_slots(new, kept, previous)
        own.run(X[200:], y[200:])
        assert_same_output(other, k, own)


def test_every_output_may_have_a_loss_of_its_own():
    losses = ["squared", "absolute", kb.losses.Huber(0.3)]
    slots = [
        kb.Slot(K.Gaussian(0.5), L.Norma(0.05, 30)),
        kb.Slot(K.Gaussian(0.5), L.FourierSGD(features=12)),
        kb.Slot(K.Gaussian(0.5), L.FourierRLS(features=12), loss="squared"),
    ]
    bank = kb.KernelBank(slots=slots, loss=losses, outputs=OUTPUTS)
    bank.run(X, Y)
    for k, loss in enumerate(losses):
        own = kb.KernelBank(slots=slots, loss=loss)
        own.run(X, Y[:, k])
        assert_same_output(bank, k, own)


def test_delayed_targets_are_those_of_banks_of_their_own():
    bank = mixed_bank(outputs=OUTPUTS, combiner=C.Hedge())
    owns = [mixed_bank(combiner=C.Hedge()) for _ in range(OUTPUTS)]
    past = []
    for t in range(150):
        past.append(bank.predict_slots_one(X[t])[1])
        before = [own.predict_slots_one(X[t])[1] for own in owns]
        assert same(past[-1], before)
        if t >= 3:
            bank.learn_one(X[t - 3], Y[t - 3], past[t - 3])
            for k, own in enumerate(owns):
                own.learn_one(X[t - 3], Y[t - 3, k], past[t - 3][k])
    for k, own in enumerate(owns):
        assert_same_output(bank, k, own)


# --- missing targets --------------------------------------------------------------------------


def gaps(share=0.4):
    """Y with missing targets, in every output, some in all at once."""
    y = Y.copy()
    y[np.random.default_rng(1).random(y.shape) < share] = np.nan
    y[50:53] = np.nan
    return y


GAUSSIAN = naive.gaussian(0.6)
CONSTANT = np.column_stack([X, np.ones(len(X))])
DEFINITIONS = {
    "neighbors": (
        kb.Slot(K.Gaussian(0.6), L.NearestNeighborGP(6, 50, 0.1, 1.0)),
        lambda y: naive_outputs.nearest_neighbors(GAUSSIAN, X, y, 6, 50, 0.1, 1.0),
    ),
    "norma": (
        kb.Slot(K.Gaussian(0.6), L.Norma(0.1, 30)),
        lambda y: naive_outputs.norma(GAUSSIAN, X, y, 0.1, 0.01, 30),
    ),
    "least squares": (
        kb.Slot(K.Linear(1.0), L.LinearRLS(ridge=0.1)),
        lambda y: naive_outputs.least_squares(CONSTANT, y, 0.1),
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_missing_targets_have_the_naive_meaning(name):
    slot, naively = DEFINITIONS[name]
    y = gaps()
    options = {"combiner": C.Uniform(), "window": 1, "regularization": 0.01}
    bank = kb.KernelBank(slots=[slot], outputs=OUTPUTS, **options)
    found = bank.run(X, y).slot_predictions[:, :, 0]
    for k in range(OUTPUTS):
        assert np.allclose(found[:, k], naively(y[:, k]), atol=1e-8)


class Mean:
    """A model of one number."""

    total = count = 0.0

    def predict_one(self, x):
        return self.total / max(self.count, 1.0)

    def learn_one(self, x, y):
        self.total, self.count = self.total + y, self.count + 1.0


@pytest.mark.parametrize(
    "combiner", [C.Hedge(), C.Stacking(), C.FixedShare(), C.Uniform()], ids=repr
)
def test_slots_of_targets_alone_are_as_if_the_sample_had_not_come(combiner):
    slots = [
        kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=511, split_after=5)),
        kb.Slot(K.NoKernel(), L.LastValue()),
        kb.Slot(K.NoKernel(), L.Adapter(Mean())),
        kb.Slot(K.TreeKernel(0.7, 5), L.PartitionTree(nodes=511, split_after=5), residual_of=1),
    ]
    options = {"slots": slots, "combiner": combiner, "window": 1}
    bank, y = kb.KernelBank(**options, outputs=OUTPUTS), gaps()
    trace = bank.run(X, y)
    for k in range(OUTPUTS):
        known = ~np.isnan(y[:, k])
        own = kb.KernelBank(**options)
        expected = own.run(X[known], y[known, k])
        for name in ("predictions", "weights", "loss", "slot_loss", "cumulative_cost"):
            assert same(getattr(trace, name)[known, k], getattr(expected, name)), name
        assert same(bank.weights[k], own.weights)
        assert same(bank.predict(X[:30])[:, k], own.predict(X[:30]))
        assert bank.ledger.missing[k] == (~known).sum()
        assert np.isnan(trace.loss[~known, k]).all()
        assert np.isfinite(trace.predictions[~known, k]).all()


def all_missing_slots():
    """Every learner that accepts missing targets, and residual slots on some."""
    slots = [kb.Slot(K.Gaussian(0.5), L.Norma(0.05, 30))]
    for learner in instances.LEARNERS:
        try:
            kb.KernelBank(slots=[kb.Slot(adapted_kernel(learner), learner)], window=1)
        except InvalidArgument:
            continue
        slots.append(kb.Slot(adapted_kernel(learner), learner))
    return [*slots, kb.Slot(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=0)]


def adapted_kernel(learner):
    from support.learner_cases import kernel_of

    return kernel_of(learner)


def test_every_learner_takes_missing_targets_in_any_output_and_any_way():
    y = gaps(0.3)
    bank, other, turned = (
        kb.KernelBank(
            slots=all_missing_slots(), combiner=C.Hedge(), window=1, outputs=OUTPUTS, engine=engine
        )
        for engine in ("serial", kb.engines.Serial(33), kb.engines.Threads(2))
    )
    bank.run(X, y)
    other.run(X[:100], y[:100])
    for n in range(100, 300):
        if n % 2:
            other.predict_one(X[n])
        other.learn_one(X[n], y[n])
    assert_same_state(bank, other)
    assert np.isfinite(bank.predict_slots(X)).all()
    # Whoever leads: the outputs in another order.
    turned.run(X, y[:, ::-1])
    found, expected = turned.predict_slots(X)[:, ::-1], bank.predict_slots(X)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-8)


# --- what is refused and undone -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (Y[:, 0], ["'y'", "shape (300, 3)", "(300,)", "Give 3 numbers"]),
        (Y[:, :2], ["'y'", "shape (300, 3)", "(300, 2)", "Give 3 numbers"]),
        (Y[:200], ["'y'", "shape (300, 3)", "(200, 3)", "Give 3 numbers"]),
        (gaps(), ["'y'", "unless window is 1 (it is 10)", "bank for each output"]),
        (np.where(Y > 1, np.inf, Y) + np.inf, ["'y'"]),
        ("text", ["'y'", "hold numbers", "'text'"]),
    ],
)
def test_wrong_targets_are_refused(y, words):
    bank = kb.KernelBank(GRID, outputs=OUTPUTS)
    with pytest.raises(InvalidArgument) as error:
        bank.run(X, y)
    for word in words:
        assert word in str(error.value)
    assert bank.samples == 0


def test_wrong_single_targets_and_past_predictions_are_refused():
    bank = kb.KernelBank(GRID, outputs=OUTPUTS)
    bank.run(X[:20], Y[:20])
    refuses(r"'y'.*shape \(3,\).*Give 3 numbers", bank.learn_one, X[0], 1.0)
    with pytest.raises(InvalidArgument, match=r"past_predictions.*shape \(3, 4\).*\(4,\)"):
        bank.learn_one(X[0], Y[0], np.zeros(4))
    assert bank.samples == 20


def test_a_combiner_or_learner_that_needs_all_targets_refuses_missing_ones():
    bank = kb.KernelBank(GRID, window=1, combiner=C.Simplex(), outputs=OUTPUTS)
    refuses("with the combiner Simplex; Stacking and Hedge", lambda: bank.run(X, gaps()))


class Fails:
    """A loss of squares that fails on demand."""

    armed = False

    def value(self, f, y):
        if self.armed:
            raise RuntimeError("on demand")
        return (f - y) ** 2

    def derivative(self, f, y):
        return 2 * (f - y)


def test_a_function_that_fails_for_the_last_output_undoes_all():
    fails = Fails()
    own = kb.losses.Custom(fails.value, fails.derivative, name="fails")
    slots = [kb.Slot(K.Gaussian(0.5), L.Norma(0.05, 30))]
    slots += [kb.Slot(K.Gaussian(w), L.NearestNeighborGP(5, 30), loss="squared") for w in (0.5, 1)]
    slots += [kb.Slot(K.Gaussian(0.8), L.FourierRLS(features=12), loss="squared")]
    losses = ["squared", "squared", own]
    bank, other = (kb.KernelBank(slots=slots, loss=losses, outputs=OUTPUTS) for _ in range(2))
    for one in (bank, other):
        one.run(X[:100], Y[:100])
    fails.armed = True
    with pytest.raises(RuntimeError, match="on demand"):
        bank.run(X[100:140], Y[100:140])
    with pytest.raises(RuntimeError, match="on demand"):
        bank.learn_one(X[100], Y[100])
    fails.armed = False
    assert bank.samples == 100
    assert_same_state(bank, other)
    assert_same_trace(bank.run(X[100:], Y[100:]), other.run(X[100:], Y[100:]))
    assert_same_state(bank, other)


# --- output changes -------------------------------------------------------------------------------


def with_new_output(bank, output, X, y, past_target=np.nan):
    """The bank with an output that has learned the newest samples, (m, d) and (m,)."""
    alone = bank.new_output(bank.samples - len(X))
    alone.run(X, y)
    return bank.with_output(output, alone, past_target)


@pytest.mark.parametrize("engine", ["serial", "threads"])
@pytest.mark.parametrize("output", [0, 2])
def test_added_output_goes_on_like_a_bank_of_its_own(output, engine):
    order = [0, 1]
    order.insert(output, 2)  # column 2 is that of the new output
    losses = ["squared", kb.losses.Huber(0.5), "squared"]
    options = {"slots": [replace(slot, loss="squared") for slot in mixed_slots()], "window": 1}
    bank = kb.KernelBank(**options, engine=engine, loss=losses[:2], outputs=2)
    bank.run(X, Y[:, :2])
    wider = with_new_output(bank, output, X, Y[:, 2], Y[0, 2])
    assert (bank.outputs, wider.outputs) == (2, 3)
    wider.run(X, Y[:, order])
    for place, column in enumerate(order):
        own = kb.KernelBank(**options, loss=losses[column])
        own.run(X, Y[:, column])
        own.run(X, Y[:, column])
        assert_same_output(wider, place, own)


def test_output_that_has_not_learned_the_samples_is_refused():
    bank = mixed_bank(outputs=2, window=1)
    refuses("'first' of new_output must", bank.new_output, 0)
    bank.run(X, Y[:, :2])
    for first in (-1, 301, 2.5):
        refuses("'first' of new_output must", bank.new_output, first)
    alone = bank.new_output(10)
    refuses("'alone' of with_output must", bank.with_output, 2, alone)
    alone.run(X[10:], Y[10:, 2])
    for output in (-1, 3):
        refuses("'output' of with_output must", bank.with_output, output, alone)


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("samples", [100, 300])  # of 300, with a memory of 40
def test_new_output_predicts_from_the_samples_that_it_has_learned(samples, number):
    """At the neighbors that all outputs share, like a bank that has learned no others."""
    slots = mixed_slots()[4:6]
    bank, alone = kb.KernelBank(slots=slots, outputs=2), kb.KernelBank(slots=slots)
    bank.run(X, Y[:, :2])
    alone.run(X[-samples:], Y[-samples:, 2])
    wider = with_new_output(bank, number, X[-samples:], Y[-samples:, 2])
    assert np.array_equal(wider.predict_slots(X)[:, number], alone.predict_slots(X))
    assert sorted(wider.ledger.missing.tolist()) == [0, 0, 300 - samples]
