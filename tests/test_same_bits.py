"""The same bits, however a stream is run: the promise that everything else stands on.

Every component is run in one call of `run`, and then in the other ways: in blocks, one by one, in
threads, copied, pickled, saved and loaded, after a reset (on Ray:
`tests/bank/engines/test_ray.py`). Traces are compared bit by bit, and so are the files that the
banks are saved to: they hold the whole state.
"""

import copy
import functools
import itertools
import pickle

import pytest

import kernelbank as kb
from support import output_banks
from support.every_bank import OWN, SAMPLES, all_cases, few_cases
from support.same_bits import assert_same_bits, run_whole

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

CASES, FEW = all_cases(), few_cases()


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
            if isinstance(bank, kb.KernelBank):
                bank.predict_one(case.X[n - 1])  # a query that is not learned next
        bank.learn_one(case.X[n], case.y[n].item() if case.y.ndim == 1 else case.y[n])
    return bank, traces


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
    "in threads": run_in_threads,
    "copied": run_copied,
    "pickled": run_pickled,
    "saved and loaded": run_saved,
}


# --- the promise -----------------------------------------------------------------------------


@functools.lru_cache(maxsize=2)
def few_whole(name):
    return run_whole(FEW[name])


@functools.lru_cache(maxsize=2)
def whole_run(name):
    return run_whole(CASES[name])


IN_EVERY_WAY = "learners with squared"
"""Slots of many kinds; another bank is run in one way, in turn."""


def few_cases_and_ways():
    for n, name in enumerate(FEW):
        for w, way in enumerate(WAYS):
            if name == IN_EVERY_WAY or n % len(WAYS) == w:
                yield name, way, 1 + (37 * n + 101 * w) % (SAMPLES - 1)


@pytest.mark.parametrize(("name", "way", "moment"), [*few_cases_and_ways()])
def test_every_bank_in_some_way_has_the_same_bits(name, way, moment, tmp_path):
    assert_same_bits(few_whole(name), *WAYS[way](FEW[name], moment, tmp_path / "bank.kb"))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_every_instance_in_every_way_has_the_same_bits(name, way, tmp_path):
    assert_same_bits(whole_run(name), *WAYS[way](CASES[name], 131, tmp_path / "bank.kb"))


# --- several outputs: each has the bits of a bank of its own --------------------------------------

LIGHT = output_banks.light_cases()


@functools.lru_cache(maxsize=2)
def alone(name):
    """The banks that all ways of a light case are compared with."""
    return output_banks.run_alone(LIGHT[name])


def light_cases_and_ways():
    """One way for each bank, in turn; and every way for the learners with the squared loss."""
    for n, name in enumerate(LIGHT):
        for w, way in enumerate(WAYS):
            if name == IN_EVERY_WAY or n % len(WAYS) == w:
                yield name, way, 1 + (37 * n + 101 * w) % (SAMPLES - 1)


@pytest.mark.parametrize(("name", "way", "moment"), [*light_cases_and_ways()])
def test_every_output_in_some_way_is_that_of_a_bank_of_its_own(name, way, moment, tmp_path):
    bank, traces = WAYS[way](output_banks.several(LIGHT[name]), moment, tmp_path / "bank.kb")
    output_banks.assert_same_as_alone(bank, traces, alone(name))
