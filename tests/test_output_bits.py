"""Every output of a bank has the bits of a bank of its own, however the stream is run."""

import copy
import functools
import itertools
import pickle

import pytest

import kernelbank as kb
from support.every_bank import OWN, SAMPLES
from support.output_banks import (
    OUTPUTS,
    assert_same_as_alone,
    bank_cases,
    columns,
    light_cases,
    run_alone,
)

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

LIGHT, CASES = light_cases(), bank_cases()
MOMENT = 100


def run_in_blocks(case, y, path):
    bank = case.make("serial", outputs=OUTPUTS)
    cuts = itertools.pairwise([0, 7, MOMENT, 290, SAMPLES])
    return bank, [bank.run(case.X[a:b], y[a:b]) for a, b in cuts]


def run_one_by_one(case, y, path):
    bank = case.make("serial", outputs=OUTPUTS)
    traces = [bank.run(case.X[: 2 * MOMENT], y[: 2 * MOMENT])]
    for n in range(2 * MOMENT, SAMPLES):
        if n % 3 == 0:
            bank.predict_one(case.X[n])
        if n % 4 == 0:
            bank.predict_one(case.X[n - 1])  # a query that is not learned next
        bank.learn_one(case.X[n], y[n])
    return bank, traces


def run_in_threads(case, y, path):
    bank = case.make(kb.engines.Threads(2, block=70), outputs=OUTPUTS)
    return bank, [bank.run(case.X, y)]


def run_continued(case, y, again):
    bank = case.make("serial", outputs=OUTPUTS)
    first = bank.run(case.X[:MOMENT], y[:MOMENT])
    bank = again(bank)
    return bank, [first, bank.run(case.X[MOMENT:], y[MOMENT:])]


def run_copied(case, y, path):
    return run_continued(case, y, copy.deepcopy)


def run_pickled(case, y, path):
    return run_continued(case, y, lambda bank: pickle.loads(pickle.dumps(bank)))


def run_saved(case, y, path):
    def again(bank):
        bank.save(path)
        return kb.load(path, components=OWN)

    return run_continued(case, y, again)


def run_after_reset(case, y, path):
    bank = case.make("serial", outputs=OUTPUTS)
    bank.run(case.X[:50] / 2, y[:50])
    bank.reset()
    return bank, [bank.run(case.X, y)]


WAYS = {
    "in blocks": run_in_blocks,
    "one by one": run_one_by_one,
    "in threads": run_in_threads,
    "copied": run_copied,
    "pickled": run_pickled,
    "saved and loaded": run_saved,
    "after a reset": run_after_reset,
}


@functools.lru_cache(maxsize=2)
def alone(name):
    """The banks that all ways of a light case are compared with."""
    return run_alone(LIGHT[name])


def assert_same_bits(case, way, path, expected):
    bank, traces = way(case, columns(case.y), path)
    assert_same_as_alone(bank, traces, expected)


def marks_of(number, name, way):
    """One way for each bank, in turn; and every way for the learners with the squared loss."""
    ways = list(WAYS)
    quick = ways[number % len(ways)] == way or name == "learners with squared"
    return [] if quick else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=marks_of(n, name, way))
        for n, name in enumerate(LIGHT)
        for way in WAYS
    ],
)
def test_every_learner_and_combiner_in_every_way_is_that_of_a_bank_of_its_own(name, way, tmp_path):
    assert_same_bits(LIGHT[name], WAYS[way], tmp_path / "bank.kb", alone(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_instance_is_that_of_a_bank_of_its_own(name, tmp_path):
    expected = run_alone(CASES[name])
    for way in (run_in_blocks, run_one_by_one):
        assert_same_bits(CASES[name], way, None, expected)
