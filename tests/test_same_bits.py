"""The same bits, however a stream is run: the promise that everything else stands on.

Every component is run in one call of `run`, and then in each of the other ways: in blocks, one by
one, in shards, in threads, on Ray, copied, pickled, saved and loaded at any moment. Traces are
compared bit by bit, and so are the files that the banks are saved to: they hold the whole state.
"""

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support import instances, ray_cluster
from support.learner_cases import kernel_of, losses_of
from support.second_order import PrototypeRLS

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

K, L, C = kb.kernels, kb.learners, kb.combiners

SAMPLES = 300  # more than the 256 after which the arrays of a bank slide
X, NUMBERS = instances.stream(3, SAMPLES, 2)
LABELS = instances.stream(3, SAMPLES, 2, labels=True)[1]
MISSING = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
THREE = np.digitize(NUMBERS, np.quantile(NUMBERS, [0.3, 0.7]))
OWN = {
    "cauchy": K.Custom(instances.cauchy),
    "fourth": instances.FOURTH,
    "PrototypeRLS": PrototypeRLS,
}
"""Components of the tests' own, which `kb.load` must be given."""


class Case(NamedTuple):
    """A bank to make, given its engine, and the stream for it."""

    make: Callable[[Any], Any]
    X: np.ndarray
    y: np.ndarray


# --- every instance --------------------------------------------------------------------------


def bank_case(labels=False, **options):
    return Case(
        lambda engine: kb.KernelBank(window=5, engine=engine, **options),
        X,
        LABELS if labels else NUMBERS,
    )


def auto_case(rows, y, **options):
    return Case(lambda engine: kb.AutoBank(size="small", engine=engine, **options), rows, y)


def mixed_slots():
    """Slots of several methods; two learn the residual of another, one has a loss of its own."""
    return [
        kb.Slot(K.Linear(0.5), L.LinearRLS()),
        *(kb.Slot(K.Gaussian(width), L.Norma(0.05, 30)) for width in (0.2, 0.4, 0.8, 1.6, 3.2)),
        kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5)),
        kb.Slot(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=0),
        kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 30), residual_of=7),
        kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 30), loss="absolute"),
        kb.Slot(K.Gaussian(0.6), PrototypeRLS()),
    ]


def all_cases():
    cases = {}
    for kernel, _ in instances.KERNELS:
        cases[f"kernel {instances.name_of(kernel)}"] = bank_case(dictionary=kernel)
    for loss, _ in instances.LOSSES:
        name = f"loss {instances.name_of(loss)}"
        cases[name] = bank_case(loss.labels, dictionary=kb.gaussian_grid(0.2, 2, 6), loss=loss)
    for learner in [*instances.LEARNERS, L.Norma(0.05, 30)]:
        for loss in losses_of(learner):
            # Two kernels of one structure: a leaf that is not full.
            kernels = [kernel_of(learner), kernel_of(learner)]
            case = bank_case(
                loss in ("logistic", "hinge"), dictionary=kernels, learner=learner, loss=loss
            )
            cases[f"learner {learner!r} with {loss}"] = case
    for combiner, _ in instances.COMBINERS:
        cases[f"combiner {combiner!r}"] = bank_case(slots=mixed_slots(), combiner=combiner)
    cases["float32"] = bank_case(dictionary=kb.gaussian_grid(0.2, 2, 6), dtype="float32")
    cases["AutoBank"] = auto_case(X, NUMBERS)
    cases["AutoBank with lags and missing inputs"] = auto_case(MISSING, NUMBERS, lags=2)
    cases["AutoBank for another loss"] = auto_case(X, NUMBERS, loss="absolute")
    cases["AutoBank for two classes"] = auto_case(
        MISSING, LABELS, task="classification", classes=[-1.0, 1.0], lags=1
    )
    cases["AutoBank for three classes"] = auto_case(
        X, THREE, task="classification", classes=[0, 1, 2]
    )
    return cases


CASES = all_cases()


# --- every way -------------------------------------------------------------------------------


def run_in_blocks(case, moment, path):
    """Several calls of `run`, cut at any places."""
    cuts = sorted({0, moment, (moment * 7) % SAMPLES, (moment * 31) % SAMPLES, SAMPLES})
    bank = case.make("serial")
    pairs = itertools.pairwise(cuts)
    return bank, [bank.run(case.X[a:b], case.y[a:b], record="all") for a, b in pairs]


def run_one_by_one(case, moment, path):
    """`learn_one` from some sample on, with a `predict_one` before every third."""
    bank = case.make("serial")
    traces = [bank.run(case.X[:moment], case.y[:moment], record="all")] if moment else []
    for n in range(moment, SAMPLES):
        if n % 3 == 0:
            bank.predict_one(case.X[n])
        bank.learn_one(case.X[n], case.y[n].item())
    return bank, traces


def run_in_shards(case, moment, path):
    """More shards, and blocks of another length."""
    bank = case.make(kb.engines.Serial(shards=3, block=1 + moment % 100))
    return bank, [bank.run(case.X, case.y, record="all")]


def run_in_threads(case, moment, path):
    bank = case.make(kb.engines.Threads(2, block=1 + moment % 200))
    return bank, [bank.run(case.X, case.y, record="all")]


def run_on_ray(case, moment, path):
    bank = case.make(kb.engines.Ray(shards=2, block=1 + moment % 200))
    return bank, [bank.run(case.X, case.y, record="all")]


def run_continued(case, moment, again):
    bank = case.make("serial")
    traces = [bank.run(case.X[:moment], case.y[:moment], record="all")] if moment else []
    bank = again(bank)
    if moment < SAMPLES:
        traces.append(bank.run(case.X[moment:], case.y[moment:], record="all"))
    return bank, traces


def run_copied(case, moment, path):
    return run_continued(case, moment, copy.deepcopy)


def run_pickled(case, moment, path):
    return run_continued(case, moment, lambda bank: pickle.loads(pickle.dumps(bank)))


def run_saved(case, moment, path):
    def again(bank):
        bank.save(path)
        return kb.load(path, components=OWN)

    return run_continued(case, moment, again)


WAYS = {
    "in blocks": run_in_blocks,
    "one by one": run_one_by_one,
    "in shards": run_in_shards,
    "in threads": run_in_threads,
    "copied": run_copied,
    "pickled": run_pickled,
    "saved and loaded": run_saved,
}


# --- the promise -----------------------------------------------------------------------------


def saved_bytes(bank, folder):
    path = folder / "compared.kb"
    bank.save(path)
    return path.read_bytes()


def assert_same_bits(case, way, moment, folder):
    whole = case.make("serial")
    expected = whole.run(case.X, case.y, record="all")
    bank, traces = way(case, moment, folder / "bank.kb")
    done = 0
    for trace in traces:
        rows = slice(done, done + len(trace))
        for name in expected.fields:
            one, other = getattr(trace, name), getattr(expected, name)[rows]
            assert one.tobytes() == other.tobytes() or np.array_equal(one, other), name
        done += len(trace)
    assert saved_bytes(bank, folder) == saved_bytes(whole, folder)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_every_instance_in_every_way_has_the_same_bits(name, way, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bits")

    @settings(max_examples=2)
    @given(st.integers(0, SAMPLES - 1))
    def check(moment):
        assert_same_bits(CASES[name], WAYS[way], moment, folder)

    check()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ray_cluster.private_token(tmp_path_factory):
        yield
        import ray

        ray.shutdown()


QUICK = ("combiner Simplex()", "loss Huber(delta=0.4)")
"""Instances that `make test` runs on Ray; the others are slow."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in CASES]
)
def test_every_instance_on_ray_has_the_same_bits(name, cluster, tmp_path):
    assert_same_bits(CASES[name], run_on_ray, 100, tmp_path)
    ray_cluster.release_processes()
