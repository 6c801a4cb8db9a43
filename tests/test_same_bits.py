"""The same bits, however a stream is run: the promise that everything else stands on.

Every component is run in one call of `run`, and then in each of the other ways: in blocks, one by
one, in shards, in threads, copied, pickled, saved and loaded at any moment (on Ray:
`tests/bank/engines/test_ray.py`). Traces are
compared bit by bit, and so are the files that the banks are saved to: they hold the whole state.
"""

import copy
import functools
import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.every_bank import OWN, SAMPLES, all_cases
from support.same_bits import assert_same_bits, run_whole

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

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


@functools.lru_cache(maxsize=2)
def whole_run(name):
    """The run that all ways are compared with."""
    return run_whole(CASES[name])


def in_turn(number):
    """Marks of five instances of six, which are for the slow tests."""
    return [pytest.mark.slow] if number % 6 else []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=in_turn(n)) for n, name in enumerate(CASES)]
)
def test_every_instance_in_every_way_has_the_same_bits(name, way, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bits")

    @settings(max_examples=2)
    @given(st.integers(0, SAMPLES - 1))
    def check(moment):
        done = WAYS[way](CASES[name], moment, folder / "bank.kb")
        assert_same_bits(whole_run(name), *done)

    check()
