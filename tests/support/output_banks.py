"""Banks with several outputs beside a bank of its own for each."""

from typing import NamedTuple

import numpy as np

import kernelbank as kb

from . import instances
from .every_bank import NUMBERS, Case, X, few_cases

OUTPUTS = 3


def columns(y):
    """(n, 3): three streams of targets, in the domain of any loss that takes the first."""
    return np.column_stack([y, np.roll(y, 40), y[::-1]])


def light_cases():
    """Every learner and combiner, in few banks: all learners of a loss in one, and small slots."""
    cases = {name: case for name, case in few_cases().items() if name.startswith("learners")}
    kernels, learner = kb.gaussian_grid(0.2, 2, 4), kb.learners.Norma(0.05, 30)
    for combiner, _ in instances.COMBINERS:
        if getattr(combiner, "restart", False):
            continue  # a slow rule in Python; another one is there
        cases[f"combiner {combiner!r}"] = Case(
            lambda engine, rule=combiner, **more: kb.KernelBank(
                kernels, learner, rule, window=5, engine=engine, **more
            ),
            X,
            NUMBERS,
        )
    return cases


def several(case):
    """The same bank with several outputs."""
    return Case(lambda engine: case.make(engine, outputs=OUTPUTS), case.X, columns(case.y))


class Alone(NamedTuple):
    """Banks of one output each, which have learned a stream, and their traces."""

    banks: list
    traces: list


def run_alone(case):
    """A bank of its own for each output."""
    banks = [case.make("serial") for _ in range(OUTPUTS)]
    targets = columns(case.y)
    return Alone(banks, [b.run(case.X, targets[:, k], record="all") for k, b in enumerate(banks)])


def same(one, other):
    """Whether two arrays have the same bits; NaN is NaN."""
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def state_of(bank, output):
    """The arrays of one output and those of all, by names without the output."""
    found = {}
    for name, array in bank.state().items():
        parts = name.split("/")
        outputs = [part for part in parts if part.startswith("output")]
        if outputs in ([], [f"output{output}"]):
            found["/".join(part for part in parts if part not in outputs)] = array
    return found


def assert_same_as_alone(bank, traces, alone):
    """States, traces, weights, predictions and ledgers are those of banks of their own."""
    for k, own in enumerate(alone.banks):
        done = 0
        for trace in traces:
            rows = slice(done, done + len(trace))
            for name in trace.fields:
                expected = getattr(alone.traces[k], name)[rows]
                assert same(getattr(trace, name)[:, k], expected), (k, name)
            done += len(trace)
        assert_same_output(bank, k, own)


def assert_same_output(bank, output, own):
    """One output of a bank is what a bank of its own is."""
    found, expected = state_of(bank, output), state_of(own, 0)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert same(found[name], array), (output, name)
    assert same(bank.weights[output], own.weights)
    assert same(bank.predict(X[:20])[:, output], own.predict(X[:20]))
    assert same(bank.predict_slots(X[:20])[:, output], own.predict_slots(X[:20]))
    variances = bank.predict_variance_slots(X[:5])[:, output]
    assert same(variances, own.predict_variance_slots(X[:5]))
    assert same(bank.predict_one(X[3])[output], own.predict_one(X[3]))
    for name in ("cumulative_cost", "slot_loss", "slot_cumulative_cost", "regret", "dropped"):
        assert same(getattr(bank.ledger, name)[output], getattr(own.ledger, name)), name
