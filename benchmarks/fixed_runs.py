"""Fingerprints of a fixed set of runs: do two states of the code give the same bits?

    python benchmarks/fixed_runs.py > before.txt      # in the one state
    python benchmarks/fixed_runs.py > after.txt       # in the other
    diff before.txt after.txt                         # silent: every bit is the same

One line per run: its name and a SHA-256 of its predictions, weights and costs. The runs cover every
kernel, loss, learner and combiner, with one output and with three; delayed, missing, far and skewed
targets; slots that come and go; forecasts; labels; saved files that are loaded and continued; and
`kernelbank run` on each kind of file, killed and resumed. They take about three minutes. No figure
is kept in the repository: fingerprints may differ between processors and versions of the libraries,
so both states are run on one machine. `--only TEXT` runs those whose names contain the text; give
it several times for several texts.
"""

import argparse
import copy
import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kernelbank as kb

K, L, C, S = kb.kernels, kb.learners, kb.combiners, kb.Slot


def fingerprint(*arrays):
    """SHA-256 of shapes and bytes; labels and other objects by their text."""
    result = hashlib.sha256()
    for values in arrays:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            array = np.array([str(value) for value in array.ravel()])
        result.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return result.hexdigest()[:32]


def stream(samples, dimension=2, seed=0, labels=False):
    """Inputs in [0, 1.5], where every kernel is defined, and a bounded target."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1.5, (samples, dimension))
    y = np.sin(3 * X).sum(axis=1) / dimension + 0.1 * draw.normal(size=samples)
    return X, np.where(y >= np.median(y), 1.0, -1.0) if labels else y


def autoregression(samples, seed=0):
    """The stream of the paper's experiment."""
    noise = np.random.RandomState(seed).normal(0, np.sqrt(0.71519837), samples)
    y = np.zeros(samples)
    for n in range(samples):
        y[n] = (0.5488135 * y[n - 1] if n else 0.0) + noise[n]
    return np.arange(1.0, samples + 1), y


def columns(y):
    """(n, 3): three streams of targets with the values of one."""
    return np.column_stack([y, np.roll(y, 40), y[::-1]])


def of_bank(bank, X, y):
    """What a bank made of a stream, and what it would say now."""
    X = np.asarray(X).reshape(len(y), -1)
    trace = bank.run(X, y)
    return fingerprint(
        *(getattr(trace, name) for name in trace.fields),
        bank.weights,
        bank.predict(X[:20] * 0.9),
        bank.ledger.slot_cumulative_cost,
        bank.ledger.dropped,
        *bank.evidence().values(),
    )


def of_auto(bank, X, y, **options):
    """The same for an AutoBank."""
    trace = bank.run(X, y, record="all", **options)
    probabilities = bank.predict_proba(X[:20]) if bank.task == "classification" else []
    intervals = bank.predict_at(X[:20], 0.8) if bank.task == "regression" else []
    return fingerprint(
        *(getattr(trace, name) for name in trace.fields),
        bank.predict(X[:20]),
        probabilities,
        intervals,
        *(inner.weights for inner in bank.banks),
        [tuple(change) for change in bank.ledger.changes],
        bank.names,
    )


# --- the paper, kernels, losses, learners, combiners --------------------------------------------


def paper(combiner, **more):
    dictionary = kb.gaussian_grid(0.1, 10, 20, spacing="linear")
    return kb.KernelBank(
        dictionary, L.Norma(0.05, 100), combiner, window=10, regularization=0.01, **more
    )


def cauchy(X, Z):
    return 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2))


KERNELS = {
    "Gaussian": K.Gaussian(0.8),
    "Laplacian": K.Laplacian(1.5),
    "Matern 1/2": K.Matern(1.2, nu=0.5),
    "Matern 3/2": K.Matern(1.2, nu=1.5),
    "Matern 5/2": K.Matern(1.2, nu=2.5),
    "RationalQuadratic": K.RationalQuadratic(0.9, alpha=1.7),
    "Periodic": K.Periodic(2.5, width=1.1),
    "Linear": K.Linear(0.7),
    "Polynomial": K.Polynomial(3, offset=0.5, scale=0.3),
    "Custom": K.Custom(cauchy),
    "sum": K.Gaussian(0.5) + 0.25 * K.Linear(1.0),
    "product": K.Gaussian(2.0) * (K.Periodic(1.5, 1.0) + K.Custom(cauchy)),
    "ActiveDims": K.ActiveDims(K.Gaussian(0.8) + 0.5 * K.Linear(0.3), [0]),
    "Additive of order 1": K.Additive(K.Gaussian(0.6), 1),
    "Additive": K.Additive(K.Matern(1.1), 2) + K.ActiveDims(K.Polynomial(), [0]),
}


def fourth_power(f, y):
    return 0.25 * (f - y) ** 4


def fourth_power_derivative(f, y):
    return (f - y) ** 3


LOSSES = {
    "squared": (kb.losses.Squared(), False),
    "absolute": (kb.losses.Absolute(), False),
    "huber": (kb.losses.Huber(0.4), False),
    "epsilon": (kb.losses.EpsilonInsensitive(0.2), False),
    "pinball": (kb.losses.Pinball(0.8), False),
    "logistic": (kb.losses.Logistic(), True),
    "hinge": (kb.losses.Hinge(), True),
    "squared hinge": (kb.losses.SquaredHinge(), True),
    "poisson": (kb.losses.Poisson(0.2), False),
    "custom": (
        kb.losses.Custom(fourth_power, fourth_power_derivative, curvature=None, name="fourth"),
        False,
    ),
}


@dataclass(frozen=True)
class RunningMean(L.PythonLearner):
    """A learner in Python."""

    def start(self, dimension, kernel):
        return {"mean": np.zeros(()), "count": np.zeros(())}

    def value(self, state, x, kernel):
        return state["mean"]

    def step(self, state, x, y, slope, kernel):
        state["count"] += 1
        state["mean"] += (y - state["mean"]) / state["count"]

    def norm(self, state, kernel):
        return state["mean"] ** 2


@dataclass(frozen=True)
class Discounted(C.Combiner):
    """A combiner in Python: exponential weights of discounted losses."""

    def shapes(self, slots):
        return {"totals": (slots,)}

    def combine(self, objective, evidence, state, weights):
        chosen = np.zeros_like(evidence.slot_loss)
        for t, losses in enumerate(evidence.slot_loss):
            state["totals"][...] = 0.95 * state["totals"] + losses
            powers = 1 / (1 + state["totals"] - state["totals"].min())
            chosen[t] = powers / powers.sum()
        return chosen


class Slope:
    """A model of a user's own: the last target, and the change of the first input."""

    def __init__(self):
        self.x, self.y = 0.0, 0.0

    def predict_one(self, x):
        return self.y + float(x[0]) - self.x

    def learn_one(self, x, y):
        self.x, self.y = float(x[0]), y


TREE = S(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=31, split_after=5))

LEARNERS = {
    "FixedBudgetKRLS": L.FixedBudgetKRLS(budget=12, ridge=0.02),
    "FixedBudgetKRLS label_rate": L.FixedBudgetKRLS(budget=12, ridge=0.02, label_rate=0.1),
    "FourierRLS": L.FourierRLS(features=12, ridge=0.05),
    "FourierRLS forgetting": L.FourierRLS(features=12, ridge=0.05, forgetting=0.98),
    "FourierRLS prior": L.FourierRLS(features=12, ridge=0.05, forgetting=0.98, forget="prior"),
    "FourierRLS walk": L.FourierRLS(features=12, ridge=0.05, forgetting=0.99, forget="random_walk"),
    "FourierSGD": L.FourierSGD(features=12, learning_rate=0.2),
    "FourierSGD adagrad": L.FourierSGD(
        features=12, learning_rate=0.2, step_size="adagrad", restart=50
    ),
    "KLMS": L.KLMS(0.1, budget=25),
    "KNLMS": L.KNLMS(0.2, coherence=0.8, budget=20),
    "KRLS": L.KRLS(novelty=0.01, budget=15),
    "KRLSTracker": L.KRLSTracker(budget=15, forgetting=0.99, noise=0.02),
    "KRLSTracker before": L.KRLSTracker(
        budget=15, forgetting=0.95, noise=0.02, forget_when="before", jitter=1e-6
    ),
    "NearestNeighborGP": L.NearestNeighborGP(neighbors=6, memory=40, noise=0.05),
    "PythonLearner": RunningMean(),
    "Norma": L.Norma(0.05, 30),
    "Norma inverse_sqrt": L.Norma(0.2, 30, step_size="inverse_sqrt"),
    "Norma adagrad": L.Norma(0.2, 30, step_size="adagrad"),
    "QKLMS": L.QKLMS(0.1, quantization=0.3, budget=25),
    "SlidingWindowKRLS": L.SlidingWindowKRLS(budget=15, ridge=0.02),
}

LINEAR = {
    "LinearRLS": L.LinearRLS(),
    "LinearRLS forgetting": L.LinearRLS(forgetting=0.97),
    "LinearRLS prior": L.LinearRLS(forgetting=0.99, forget="prior", constant_forgetting=0.8),
}

OTHER_SLOTS = {
    "PartitionTree": TREE,
    "FourierRLS on a sum of kernels": S(
        0.5 * K.Laplacian(0.6) + K.Linear(0.3),
        L.FourierRLS(
            features=12, ridge=0.05, forgetting=0.98, forget="prior", constant_forgetting=0.8
        ),
    ),
    "LastValue": S(K.NoKernel(), L.LastValue()),
    "LastValue column": S(K.NoKernel(), L.LastValue(column=1)),
    "Adapter": S(K.NoKernel(), L.Adapter(Slope)),
    "transform": S(K.Gaussian(0.6), L.Norma(0.05, 30), transform=kb.transforms.ShiftedLog(1.5)),
}

COMBINERS = {
    "Simplex": C.Simplex(),
    "Simplex jensen": C.Simplex(bound="jensen"),
    "Simplex prequential": C.Simplex(evidence="prequential", horizon=7),
    "Uniform": C.Uniform(),
    "Best": C.Best(),
    "OMKR": C.OMKR(),
    "OMKR printed": C.OMKR(gradient="printed"),
    "Hedge": C.Hedge(),
    "Hedge rate": C.Hedge(learning_rate=2.0),
    "Hedge cost": C.Hedge(learning_rate=2.0, evidence="cost"),
    "AdaRaker": kb.rivals.AdaRaker(kernels=2),
    "FixedShare": C.FixedShare(learning_rate=1.5, share=0.05),
    "Joint": C.Joint(ridge=0.3),
    "Joint prequential": C.Joint("prequential", horizon=7, discount=0.9, ridge=0.1),
    "Stacking": C.Stacking(discount=0.9, ridge=0.2),
    "RobustStacking": C.RobustStacking(0.9, 0.2, degrees_of_freedom=3.0),
    "in Python": Discounted(),
}


def mixed_slots():
    """Slots of several methods; one learns another's residual, one a loss of its own."""
    return [
        S(K.Linear(0.5), L.LinearRLS()),
        S(K.Gaussian(0.6), L.Norma(0.05, 30)),
        S(K.Gaussian(0.9), L.Norma(0.05, 30)),
        TREE,
        S(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=0),
        S(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5), residual_of=4),
        S(K.Gaussian(0.6), L.FourierRLS(features=12)),
    ]


def squared_beside_absolute():
    """Second-order slots that learn by squares in a bank for another loss."""
    squared = kb.losses.Squared()
    return [
        S(K.Gaussian(0.6), L.FourierSGD(features=12)),
        S(K.Gaussian(0.6), L.KRLS(budget=15), loss=squared),
        S(K.Linear(0.5), L.LinearRLS(), loss=squared, residual_of=1),
    ]


def component_banks():
    """A bank for every component that stays, by name, with the kind of targets that it takes."""
    grid, three = kb.gaussian_grid(0.3, 2, 6), kb.gaussian_grid(0.3, 1.5, 3)
    for name, rule in (("Simplex", C.Simplex()), ("OMKR", C.OMKR()), ("Joint", C.Joint())):
        yield f"paper {name}", "paper", lambda r=rule, **more: paper(r, **more)
    for name, kernel in KERNELS.items():
        yield (
            f"kernel {name}",
            "numbers",
            lambda k=kernel, **more: kb.KernelBank(k, L.Norma(0.05, 40), **more),
        )
    for name, (loss, discrete) in LOSSES.items():
        kind = "labels" if discrete else "positive" if "poisson" in name else "numbers"
        yield (
            f"loss {name}",
            kind,
            lambda loss=loss, **more: kb.KernelBank(grid, loss=loss, **more),
        )
    for name, learner in LEARNERS.items():
        yield (
            f"learner {name}",
            "numbers",
            lambda m=learner, **more: kb.KernelBank(three, m, **more),
        )
    for name in ("KRLS", "FourierRLS", "KLMS", "Norma"):
        yield (
            f"logistic {name}",
            "labels",
            lambda m=LEARNERS[name], **more: kb.KernelBank(three, m, loss="logistic", **more),
        )
    for name, learner in LINEAR.items():
        yield (
            f"learner {name}",
            "numbers",
            lambda m=learner, **more: kb.KernelBank(K.Linear(0.5), m, **more),
        )
    for name, slot in OTHER_SLOTS.items():
        yield f"slot {name}", "numbers", lambda s=slot, **more: kb.KernelBank(slots=[s], **more)
    for name, rule in COMBINERS.items():
        yield (
            f"combiner {name}",
            "numbers",
            lambda r=rule, **more: kb.KernelBank(slots=mixed_slots(), combiner=r, **more),
        )
    yield (
        "slots with losses of their own",
        "numbers",
        lambda **more: kb.KernelBank(slots=squared_beside_absolute(), loss="absolute", **more),
    )


def basic_runs():
    """Runs of `KernelBank`, by name: each component with one output and with three."""
    X, y = stream(330)
    targets = {
        "numbers": (X, y),
        "labels": stream(330, labels=True),
        "positive": (X, np.abs(y)),
        "paper": autoregression(1000),
    }
    for name, kind, bank in component_banks():
        yield name, lambda bank=bank, data=targets[kind]: of_bank(bank(), *data)
        yield (
            f"{name}, three outputs",
            lambda bank=bank, data=targets[kind]: of_bank(
                bank(outputs=3), data[0][:300], columns(data[1][:300])
            ),
        )
    for name in ("FourierRLS", "FourierRLS prior", "KRLSTracker", "KRLSTracker before"):
        yield (
            f"variances of {name}",
            lambda m=LEARNERS[name]: variances(
                kb.KernelBank(kb.gaussian_grid(0.3, 1.5, 3), m), X, y
            ),
        )
    yield (
        "variances of LinearRLS",
        lambda: variances(kb.KernelBank(K.Linear(0.5), LINEAR["LinearRLS prior"]), X, y),
    )
    yield "losses by output", lambda: losses_by_output(X, y)
    yield "missing targets", lambda: missing_targets(X, y)
    yield "large targets", lambda: large_targets(X, y)
    yield "initial function", lambda: initial_function(X, y)
    yield (
        "threads",
        lambda: of_bank(kb.KernelBank(slots=mixed_slots(), engine=kb.engines.Threads(2)), X, y),
    )
    yield "one by one", lambda: one_by_one(X, y)
    yield "one by one, three outputs", lambda: one_by_one(X, columns(y), outputs=3)
    yield "late targets", lambda: late_targets(X, y)
    for outputs in (1, 3):
        yield (
            f"saved and loaded, {outputs}",
            lambda n=outputs: saved_and_loaded(X, columns(y)[:, :n], outputs=n),
        )
    for name in ("Norma", "FourierRLS prior", "KRLSTracker", "NearestNeighborGP", "QKLMS"):
        yield (
            f"saved and loaded, {name}",
            lambda m=LEARNERS[name]: saved_and_loaded(
                X, y[:, None], dictionary=kb.gaussian_grid(0.3, 1.5, 3), learner=m
            ),
        )
    yield "wider inputs", lambda: wider(X, y)
    yield "other slots", lambda: other_slots(X, y)
    yield "other slots, three outputs", lambda: other_slots(X, columns(y), outputs=3)
    yield "adaptive dictionary", lambda: adaptive(*autoregression(1200))
    yield "raker", lambda: of_bank(kb.rivals.raker(features=20), X, y)
    yield "adaraker", lambda: of_bank(kb.rivals.adaraker(features=20), X, y)


def variances(bank, X, y):
    """To eight digits: their sums may be taken in any order."""
    bank.run(X, y)
    found = bank.predict_variance_slots(X[:20] * 0.9)
    return fingerprint([f"{value:.7e}" for value in found.ravel()])


def losses_by_output(X, y):
    losses = [kb.losses.Squared(), kb.losses.Absolute(), kb.losses.Pinball(0.8)]
    bank = kb.KernelBank(kb.gaussian_grid(0.3, 2, 6), outputs=3, loss=losses)
    return of_bank(bank, X, columns(y))


def missing_targets(X, y):
    slots = [S(K.Gaussian(0.6), L.FourierRLS(features=12)), S(K.Linear(0.5), L.LinearRLS()), TREE]
    bank = kb.KernelBank(slots=slots, combiner=C.Stacking(), window=1, outputs=3)
    holes = np.random.default_rng(5).random((len(y), 3)) < 0.2
    return of_bank(bank, X, np.where(holes, np.nan, columns(y)))


def large_targets(X, y):
    """Single targets far from all others; a slot that fails is quarantined."""
    far = y.copy()
    far[[50, 120, 121]] *= [1e3, 1e8, -1e140]
    return of_bank(kb.KernelBank(slots=mixed_slots(), combiner=C.Stacking()), X, far)


def initial_function(X, y):
    points = (X[:7] + 0.1, np.cos(np.arange(42.0)).reshape(7, 6))
    grid = kb.gaussian_grid(0.2, 2, 6)
    learners = (L.Norma(0.05, 30), L.KNLMS(0.2, budget=20), L.FourierSGD(features=12))
    banks = [kb.KernelBank(grid, learner, initial=points) for learner in learners]
    return fingerprint([of_bank(bank, X, y) for bank in banks])


def other_slots(X, y, **options):
    """Slots that are kept, moved, added and retired, twice."""
    bank = kb.KernelBank(slots=mixed_slots(), combiner=C.Stacking(), **options)
    parts = [of_bank(bank, X[:120], y[:120])]
    new = S(K.Gaussian(0.4), L.FourierRLS(features=12))
    slots = [bank.slots[3], new, bank.slots[0], bank.slots[1]]
    bank = bank.with_slots(slots, kept=[3, None, 0, 1])
    parts.append(of_bank(bank, X[120:200], y[120:200]))
    residual = S(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5), residual_of=0)
    bank = bank.with_slots(
        [bank.slots[2], residual], kept=[2, None], replay=(X[150:200], y[150:200])
    )
    parts.append(of_bank(bank, X[200:], y[200:]))
    return fingerprint(parts)


def adaptive(x, y):
    pool = kb.AdaptiveDictionary(kb.gaussian_grid(0.05, 50, 40), size=6, every=140, threshold=0.5)
    bank = kb.KernelBank(pool, L.Norma(0.05, 30), window=5)
    parts = [of_bank(bank, x[:700], y[:700])]
    with tempfile.TemporaryDirectory() as folder:
        bank.save(Path(folder) / "bank.kb")
        bank = kb.load(Path(folder) / "bank.kb")
    changes = [(change.name, change.kind) for change in bank.ledger.slot_changes]
    return fingerprint([*parts, of_bank(bank, x[700:], y[700:])], changes)


def one_by_one(X, y, **options):
    bank, said = kb.KernelBank(slots=mixed_slots(), **options), []
    for x, target in zip(X, y, strict=True):
        said.append(bank.predict_one(x))
        bank.learn_one(x, target)
    return fingerprint(said, bank.weights, bank.ledger.slot_loss)


def late_targets(X, y):
    bank, said, questions = kb.KernelBank(slots=mixed_slots()), [], []
    for t in range(len(X)):
        value, slots = bank.predict_slots_one(X[t])
        said.append(value)
        questions.append(slots)
        if t >= 3:
            bank.learn_one(X[t - 3], float(y[t - 3]), questions[t - 3])
    return fingerprint(said, questions, bank.weights)


def saved_and_loaded(X, y, **options):
    y = y[:, 0] if y.shape[1] == 1 else y
    if "dictionary" not in options:
        options |= {"slots": mixed_slots(), "combiner": C.Stacking()}
    bank = kb.KernelBank(**options)
    bank.run(X[:150], y[:150])
    with tempfile.TemporaryDirectory() as folder:
        bank.save(Path(folder) / "bank.kb")
        bank = kb.load(Path(folder) / "bank.kb")
    other = copy.deepcopy(bank)
    return of_bank(bank, X[150:], y[150:]) + of_bank(other, X[150:200], y[150:200])


def wider(X, y):
    bank = kb.KernelBank(K.Linear(1.0), L.LinearRLS())
    bank.run(X[:100], y[:100])
    bank = bank.with_inputs(3)
    return of_bank(bank, np.column_stack([X, X[:, 0] ** 2])[100:], y[100:])


# --- AutoBank -----------------------------------------------------------------------------------


def auto_stream(rows=700):
    """Inputs, and a target with interactions that drifts."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(rows, 3))
    y = 50 + 5 * np.sin(2 * X[:, 0]) * X[:, 1] + np.cumsum(draw.normal(size=rows)) * 0.2
    return X, y, draw


def auto_runs():
    """Runs of `AutoBank`, by name."""
    X, y, draw = auto_stream()
    missing = np.where(draw.random(X.shape) < 0.1, np.nan, X)
    jump = y + np.where(np.arange(700) >= 400, 2000.0, 0.0)
    jump[[200, 300, 301]] += [5e3, 9e9, -700]
    skewed = np.exp(y / 10 + 0.5 * X[:, 2])
    wave = y + 20 * np.sin(np.arange(700) * 2 * np.pi / 24)
    three = np.column_stack([y, jump, skewed])
    holes = np.where(draw.random(three.shape) < 0.1, np.nan, three)
    two = np.where(y > np.median(y), "high", "low")
    five = np.digitize(X[:, 0] * X[:, 1] + 0.3 * X[:, 2], [-1.0, -0.3, 0.3, 1.0])
    late = np.where(np.arange(700) < 150, five % 2, five)  # three classes come later
    A = kb.AutoBank
    classes = {"task": "classification", "size": "small"}
    yield "auto", lambda: of_auto(A(), X, y)
    yield "auto, one input", lambda: of_auto(A(size="small"), X[:, :1], y)
    yield "auto, long", lambda: of_auto(A(), *auto_stream(8400)[:2])
    yield "auto small, lags", lambda: of_auto(A(lags=3, size="small"), X, y)
    yield "auto large, missing", lambda: of_auto(A(size="large"), missing[:300], y[:300])
    yield "auto lags, late, missing", lambda: of_auto(A(lags=2), missing, y, delay=3)
    yield "auto seasons, late", lambda: of_auto(A(seasons=(7, 24)), missing, y, delay=3)
    yield "auto seasons found", lambda: of_auto(A(seasons="auto", size="small"), X, wave)
    yield "auto far targets", lambda: of_auto(A(lags=1), X, jump)
    yield "auto far targets, late", lambda: of_auto(A(size="small"), X, jump, delay=2)
    yield "auto skewed targets", lambda: of_auto(A(lags=1), X, skewed)
    yield "auto skewed targets, late", lambda: of_auto(A(size="small"), X, skewed, delay=2)
    yield "auto bounds", lambda: of_auto(A(lower=40.0, upper=60.0), X, np.clip(y, 40, 60))
    yield "auto quantiles", lambda: of_auto(A(quantiles=(0.1, 0.9), size="small"), X, y)
    yield "auto pinball", lambda: of_auto(A(loss=kb.losses.Pinball(0.9), size="small"), X, y)
    yield "auto no scaling", lambda: of_auto(A(scalings="none"), X[:300], y[:300])
    yield "auto three targets", lambda: of_auto(A(size="small"), X, three)
    yield "auto three targets, missing", lambda: of_auto(A(lags=1, size="small"), missing, holes)
    yield "auto three targets, late", lambda: of_auto(A(size="small"), X, three, delay=2)
    yield "auto horizons", lambda: of_auto(A(lags=3, horizons=(1, 4, 24)), X, wave)
    yield (
        "auto horizons, seasons, missing",
        lambda: of_auto(A(lags=2, horizons=4, seasons=24, size="small"), missing, wave),
    )
    yield "auto known inputs", lambda: known_inputs(X, wave)
    yield "auto two classes", lambda: of_auto(A("classification"), X, two)
    yield (
        "auto two classes, lags, late, missing",
        lambda: of_auto(A(lags=2, **classes), missing, two, delay=2),
    )
    yield "auto three classes", lambda: of_auto(A(**classes), X[:300], np.minimum(five, 2)[:300])
    yield (
        "auto five classes named",
        lambda: of_auto(A(classes=[0, 1, 2, 3, 4], **classes), X, five),
    )
    yield "auto five classes", lambda: of_auto(A("classification"), X[:600], five[:600])
    yield "auto classes that come late", lambda: of_auto(A(lags=1, **classes), missing, late)
    yield "auto threads", lambda: of_auto(A(engine="threads"), X[:300], y[:300])
    yield "auto one by one", lambda: auto_one_by_one(X, jump)
    yield "auto one by one, default", lambda: auto_one_by_one(missing, y, size="default")
    yield "auto saved and loaded", lambda: auto_saved(missing, y, lags=2, size="small")
    yield "auto saved and loaded, targets", lambda: auto_saved(X, three, size="small")
    yield (
        "auto saved and loaded, horizons",
        lambda: auto_saved(X, wave, lags=2, horizons=3, size="small"),
    )
    yield "auto saved and loaded, classes", lambda: auto_saved(X, five, **classes)
    yield "auto added inputs", lambda: auto_added(X, y)
    yield "auto table", lambda: auto_table(X, y)
    yield (
        "auto own slots",
        lambda: of_auto(A(slots=mixed_slots(), combiner=C.Simplex(), window=5), X, y),
    )
    yield "forecast with lags", lambda: forecast(y)


def known_inputs(X, y):
    """Forecasts that use later values of one input."""
    bank = kb.AutoBank(lags=2, horizons=3, known=[0], size="small")
    trace = bank.run(X[:400], y[:400], record="all")
    told = bank.forecast(X[400:403, :1])
    return fingerprint(trace.predictions, trace.forecasts, told.point, told.lower, told.upper)


def auto_table(X, y):
    """Rows with text and times, read by name."""
    bank, said = kb.AutoBank(size="small"), []
    for n, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        when = np.datetime64("2024-01-01T00:00") + np.timedelta64(15 * n, "m")
        x = {"a": row[0], "b": row[1], "kind": "north" if row[2] > 0 else "south", "t": when}
        said.append(bank.predict_one(x))
        bank.learn_one(x, target)
    return fingerprint(said, bank.banks[0].weights)


def auto_one_by_one(X, y, size="small"):
    bank, said = kb.AutoBank(lags=1, size=size), []
    for x, target in zip(X, y, strict=True):
        said.append((bank.predict_one(x), *bank.predict_interval_one(x, 0.8)))
        bank.learn_one(x, float(target))
    return fingerprint(said, bank.banks[0].weights)


def auto_saved(X, y, **options):
    """Saved while targets are awaited, loaded, told them, copied and continued."""
    bank = kb.AutoBank(**options)
    bank.run(X[:333], y[:333])
    asked = [bank.predict_one(x) for x in X[333:336]]
    with tempfile.TemporaryDirectory() as folder:
        bank.save(Path(folder) / "bank.kb")
        bank = kb.load(Path(folder) / "bank.kb")
    for x, target in zip(X[333:336], y[333:336], strict=True):
        bank.learn_one(x, target)
    other = copy.deepcopy(bank)
    parts = [of_auto(bank, X[336:], y[336:]), of_auto(other, X[336:400], y[336:400])]
    return fingerprint(asked, parts)


def auto_added(X, y):
    bank = kb.AutoBank(size="small")
    bank.run(X[:250, :2], y[:250])
    return of_auto(bank, X[250:], y[250:], added=1)


def forecast(y):
    bank = kb.AutoBank(lags=4, size="small")
    bank.run(np.arange(600.0), y[:600])
    return fingerprint(bank.predict(np.arange(600.0, 640.0)), bank.input_ranges())


# --- other libraries, and the command ------------------------------------------------------------


def library_runs():
    """Runs through scikit-learn and River, where they are installed."""
    X, y = stream(250, 3)
    try:
        from kernelbank.sklearn import KernelBankClassifier, KernelBankRegressor

        yield (
            "sklearn",
            lambda: fingerprint(
                KernelBankRegressor(size="small").fit(X, y).predict(X),
                KernelBankClassifier(size="small").fit(X, y > 0).predict_proba(X),
            ),
        )
        from kernelbank.river import KernelBankRegressor as RiverRegressor
    except ImportError:
        return

    def river():
        model, said = RiverRegressor(size="small"), []
        for n, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            x = dict(zip("abc" if n > 50 else "ab", row, strict=False))
            said.append(model.predict_one(x))
            model.learn_one(x, target)
        return fingerprint(said)

    yield "river", river


COMMAND = ["--time", "t", "--categorical", "kind", "--allow-missing", "--on-bad-row", "skip"]
COMMAND += ["--checkpoint-every", "300", "--quiet"]
NAMES = ["t", "a", "b", "kind", "y", "z", "label"]


def sensor_rows(count):
    """Sensor rows with times, categories that appear late, missing cells and bad rows."""
    draw = np.random.default_rng(3)
    for n in range(count):
        a, b = draw.normal(size=2).tolist()
        kind = ["north", "south", "west"][int(draw.integers(3 if n > 700 else 2))]
        time_of_row = f"2024-01-{1 + n // 96 % 28:02d}T{n // 4 % 24:02d}:{n % 4 * 15:02d}:00"
        y = 10 + 3 * float(np.sin(a)) * b + (kind == "south") + n / 500
        label = ["low", "middle", "high"][int(np.digitize(a * b, [-0.3, 0.3]))]
        row = [time_of_row, a, b, kind, y, y**2 + a, label]
        if n % 97 == 50:
            row[1] = None
        if n % 211 == 200:
            row[2] = "broken"
        yield row


def write_rows(path, count):
    """The rows as a file of the kind that its name says; Parquet has no bad rows."""
    rows = list(sensor_rows(count))
    if path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([NAMES, *rows])
    elif path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    else:
        import pyarrow
        from pyarrow import parquet

        whole = [row for row in rows if row[2] != "broken"]
        columns = {name: list(values) for name, values in zip(NAMES, zip(*whole), strict=True)}
        parquet.write_table(pyarrow.table(columns), path)


def of_command(*options, file="rows.csv", kills=0, rows=2500):
    """The predictions of a run that is killed so often and started again each time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / file, rows)
        command = [sys.executable, "-m", "kernelbank", "run", str(folder / file), *COMMAND]
        command += ["--state", str(folder / "state"), *options]
        command += ["--predictions", str(folder / "out.csv")]
        saved = folder / "state" / "state.kb"
        for _ in range(kills):
            before = saved.stat().st_mtime_ns if saved.exists() else 0
            process = subprocess.Popen(command, env=os.environ)
            while process.poll() is None:
                time.sleep(0.02)
                if saved.exists() and saved.stat().st_mtime_ns > before:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
        subprocess.run(command, check=True)
        said = [(folder / "out.csv").read_text()]
        bad = folder / "state" / "bad-rows.jsonl"
        if bad.exists():
            said.append(bad.read_text().replace(name, ""))
        return fingerprint(said)


def command_runs():
    """Runs of `kernelbank run`, by name."""
    numbers = ["--target", "y", "--features", "a,b"]
    both = ["--target", "y,z", "--features", "a,b", "--lags", "1"]
    labels = ["--target", "label", "--features", "a,b", "--task", "classification"]
    lags = [*numbers, "--lags", "2"]
    for name, options in {
        "": lags,
        ", delay": [*lags, "--delay", "3"],
        ", horizon": [*lags, "--horizon", "1,6", "--seasons", "24"],
        ", targets": both,
        ", labels": labels,
    }.items():
        yield f"command{name}", lambda o=options: of_command(*o)
        yield f"command{name}, killed", lambda o=options: of_command(*o, kills=2)
    yield "command, paper", lambda: of_command(*numbers, "--preset", "paper")
    for file in ("rows.jsonl", "rows.parquet"):
        yield f"command, {file}", lambda f=file: of_command(*lags, file=f)
        yield f"command, {file}, killed", lambda f=file: of_command(*lags, file=f, kills=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="TEXT")
    only = parser.parse_args().only or [""]
    warnings.simplefilter("ignore")
    for runs in (basic_runs, auto_runs, library_runs, command_runs):
        for name, run in runs():
            if any(text in name for text in only):
                print(f"{name:50} {run()}", flush=True)


if __name__ == "__main__":
    main()
