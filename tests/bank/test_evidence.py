"""What combiners get: predictive variances and inputs; and weights that depend on them."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from support.every_bank import mixed_slots
from support.instances import LEARNERS, stream
from support.learner_cases import kernel_of

K, L, C = kb.kernels, kb.learners, kb.combiners
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

SEEN = SimpleNamespace(inputs=[], variances=[])


@dataclass(frozen=True)
class Recorder(C.Combiner):
    """Equal weights; it keeps copies of what it was given."""

    needs = frozenset(["variances"])

    def combine(self, objective, evidence, state, weights):
        SEEN.inputs.append(evidence.inputs.copy())
        SEEN.variances.append(evidence.variances.copy())
        assert evidence.values.size == 0  # not asked for
        finite = np.isfinite(evidence.window_loss)
        return finite / np.maximum(finite.sum(axis=1, keepdims=True), 1)


def recorded(run):
    """The inputs and variances that the combiner saw in a run."""
    SEEN.inputs, SEEN.variances = [], []
    run()
    return np.vstack(SEEN.inputs), np.vstack(SEEN.variances)


def slots_with_variances():
    own = [kb.Slot(kernel_of(learner), learner) for learner in LEARNERS]
    kept = [slot for slot in own if slot.learner.__class__.__name__.endswith(("RLS", "VAW"))]
    tracker = kb.Slot(K.Gaussian(0.6), L.KRLSTracker(budget=15, forgetting=0.99, noise=0.02))
    first = kb.Slot(K.Gaussian(0.6), L.KRLSTracker(15, 0.99, 0.02, forget_when="before"))
    return [*kept, tracker, first]


def test_variances_equal_those_of_the_learner_before_each_sample():
    X, y = stream(3, 60, 2)
    slots = [*slots_with_variances(), kb.Slot(K.Gaussian(0.6), L.KRLSTracker(), residual_of=0)]
    bank = kb.KernelBank(slots=slots, combiner=Recorder(), window=3)
    inputs, found = recorded(lambda: bank.run(X, y))
    assert np.array_equal(inputs, X)
    ahead = kb.KernelBank(slots=slots, combiner=C.Uniform(), window=3)
    with_one = 0
    for n in range(60):
        if n > 0:
            expected = ahead.predict_variance_slots(X[n : n + 1])[0]
            known = np.isfinite(expected)
            with_one = known.sum()
            assert np.array_equal(known, np.isfinite(found[n]))
            # Rounding of P, whose entries are up to 1 / ridge = 100, or of K^-1 (1e8) / noise.
            assert np.allclose(found[n][known], expected[known], rtol=1e-7, atol=1e-6), n
        ahead.learn_one(X[n], y[n].item())
    assert with_one >= 10
    assert np.isnan(found).any(axis=0).sum() == len(slots) - with_one


def test_evidence_is_the_same_however_the_stream_is_run():
    X, y = stream(3, 300, 2)

    def make(engine):
        return kb.KernelBank(slots=mixed_slots(), combiner=Recorder(), window=5, engine=engine)

    expected = recorded(lambda: make("serial").run(X, y))
    for engine in (kb.engines.Serial(shards=3, block=37), kb.engines.Threads(2, block=50)):
        found = recorded(lambda engine=engine: make(engine).run(X, y))
        for one, other in zip(expected, found, strict=True):
            assert np.array_equal(one, other, equal_nan=True)
    bank = make("serial")
    found = recorded(lambda: [bank.learn_one(x, t.item()) for x, t in zip(X, y, strict=True)])
    assert np.array_equal(expected[1], found[1], equal_nan=True)
    assert np.isnan(expected[1][:, 1]).all()  # Norma has none
    assert np.isfinite(expected[1][:, 0]).all()


def test_a_rule_that_asks_for_nothing_gets_no_variances():
    bank = kb.KernelBank(K.Gaussian(1.0), L.FourierRLS(features=8))
    bank.run([0.0, 1.0], [1.0, 2.0])
    assert bank._runtime.workspace.variances.size == 0


def test_a_learner_in_python_may_state_variances():
    @dataclass(frozen=True)
    class Mean(L.PythonLearner):
        def start(self, dimension, kernel):
            return {"mean": np.zeros(()), "count": np.zeros(())}

        def value(self, state, x, kernel):
            return state["mean"]

        def step(self, state, x, y, slope, kernel):
            state["count"] += 1
            state["mean"] += (y - state["mean"]) / state["count"]

        def variance_at(self, state, x, kernel):
            return 1 / (1 + state["count"])

    kb.checks.check_learner(Mean())
    bank = kb.KernelBank(K.Linear(1.0), Mean(), Recorder(), window=2)
    _, found = recorded(lambda: bank.run(np.arange(4.0), np.ones(4)))
    assert found[:, 0].tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    assert bank.predict_variance_slots([3.0])[0, 0] == 1 / 5


# --- weights that depend on the input -------------------------------------------------------------


@dataclass(frozen=True)
class Regions(C.Combiner):
    """Exponential weights of their own on either side of an input."""

    edge: float = 0.75
    rate: float = 3.0
    gates = True
    needs = frozenset(["variances"])

    def shapes(self, slots):
        return {"totals": (2, slots)}

    def weights_at(self, state, query):
        assert query.variances.shape == query.slot_predictions.shape
        totals = state["totals"][(query.inputs[:, 0] > self.edge).astype(int)]
        alive = np.isfinite(query.slot_predictions) & np.isfinite(totals)
        least = np.where(alive, totals, np.inf).min(axis=1, keepdims=True)
        least = np.where(np.isfinite(least), least, 0.0)
        powers = np.where(alive, np.exp(-self.rate * (np.where(alive, totals, 0) - least)), 0.0)
        return powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)

    def combine(self, objective, evidence, state, weights):
        chosen = np.zeros_like(evidence.slot_loss)
        for t, losses in enumerate(evidence.slot_loss):
            chosen[t] = self.weights_at(state, evidence.query(t))[0]
            state["totals"][int(evidence.inputs[t, 0] > self.edge)] += losses
            state["totals"][:, np.isinf(losses)] = np.inf
        return chosen


def two_regions():
    """Targets of which one slot knows the left part, and another the right."""
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 1.5, (400, 1))
    y = np.where(X[:, 0] > 0.75, np.sin(25 * X[:, 0]), X[:, 0]) + 0.05 * draw.normal(size=400)
    slots = [
        kb.Slot(K.Linear(1.0), L.LinearRLS(forgetting=0.97)),
        kb.Slot(K.Gaussian(0.1), L.FourierRLS(features=40)),
    ]
    return X, y, lambda **more: kb.KernelBank(slots=slots, combiner=Regions(), window=3, **more)


def test_a_gating_rule_passes_the_check():
    kb.checks.check_combiner(Regions())


def test_gated_predictions_are_the_same_asked_for_in_any_way(tmp_path):
    X, y, make = two_regions()
    trace = make().run(X, y)
    bank = make()
    for n in range(60):
        assert bank.predict_one(X[n]) == trace.predictions[n]
        bank.learn_one(X[n], y[n].item())
    assert np.array_equal(bank.predict(X), [bank.predict_one(x) for x in X])
    bank.save(tmp_path / "bank.kb")
    again = kb.load(tmp_path / "bank.kb", components={"Regions": Regions})
    assert np.array_equal(again.predict(X), bank.predict(X))
    assert np.array_equal(again.run(X[60:], y[60:]).predictions, trace.predictions[60:])
    threads = make(engine=kb.engines.Threads(2, block=50))
    assert np.array_equal(threads.run(X, y).predictions, trace.predictions)
    totals = trace.slot_loss[200:].sum(axis=0)
    assert trace.loss[200:].sum() < totals.min()  # better than each slot alone


def test_weights_at_of_another_shape_or_with_an_error_is_told_and_changes_nothing():
    X, y, make = two_regions()

    @dataclass(frozen=True)
    class Wrong(Regions):
        def weights_at(self, state, query):
            if len(SEEN.inputs) == 0:
                return super().weights_at(state, query)
            return np.ones(3) if len(SEEN.inputs) == 1 else 1 / 0

    SEEN.inputs = []
    bank = kb.KernelBank(slots=make().slots, combiner=Wrong(), window=3)
    bank.run(X[:50], y[:50])
    before = bank.predict(X[:5])
    SEEN.inputs = [None]
    for ask in (lambda: bank.predict(X[:5]), lambda: bank.predict_one(X[0])):
        with pytest.raises(ValueError, match="weights_at"):
            ask()
    SEEN.inputs = [None, None]
    with pytest.raises(ZeroDivisionError):
        bank.predict_one(X[0])
    with pytest.raises(ZeroDivisionError):
        bank.learn_one(X[0], 1.0)
    SEEN.inputs = []
    assert np.array_equal(bank.predict(X[:5]), before)
    assert bank.samples == 50
