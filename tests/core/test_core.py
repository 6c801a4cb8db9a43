"""A bank of the core: copies and states go on alike, and what is forged or fails does no harm."""

import copy
import warnings

import fixed_runs
import numpy as np
import pytest

import kernelbank as kb
from support.core_banks import learned, made

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning"),
]

X, NUMBERS = fixed_runs.stream(330)
TARGETS = {
    "numbers": (X, NUMBERS),
    "labels": fixed_runs.stream(330, labels=True),
    "positive": (X, np.abs(NUMBERS)),
    "paper": fixed_runs.autoregression(700),
}
CASES = {name: (kind, bank) for name, kind, bank in fixed_runs.component_banks()}


def same(found, expected):
    return np.array_equal(np.squeeze(found), np.squeeze(expected), equal_nan=True)


@pytest.mark.parametrize("name", [name for name in CASES if "Adapter" not in name])
def test_copy_and_restored_state_go_on_alike(name):
    kind, make = CASES[name]
    inputs, y = TARGETS[kind]
    inputs = np.asarray(inputs, dtype=float).reshape(len(y), -1)
    bank, Y = make(), y[:, None]
    one = made(bank, inputs.shape[1])
    learned(one, inputs[:150], Y[:150])
    copied, restored = one.copy(), made(bank, inputs.shape[1])
    restored.restore(one.state())
    expected = learned(one, inputs[150:], Y[150:])
    for other in (copied, restored):
        found = learned(other, inputs[150:], Y[150:])
        assert all(same(found[field], expected[field]) for field in expected)


def test_a_users_function_that_fails_changes_nothing():
    calls = []

    def cauchy(A, B):
        calls.append(len(B))
        if len(calls) == 40:
            raise RuntimeError("enough")
        return fixed_runs.cauchy(A, B)

    bank = made(kb.KernelBank(kb.kernels.Custom(cauchy), kb.learners.Norma(0.05, 30)), 2)
    learned(bank, X[:30], NUMBERS[:30, None])
    before = bank.state()
    with pytest.raises(RuntimeError, match="enough"):
        learned(bank, X[30:60], NUMBERS[30:60, None])
    after = bank.state()
    assert all(same(after[name], before[name]) for name in before)


def test_forged_states_are_refused_or_go_on():
    """Counts, positions and indices are altered; what is accepted must learn and predict."""
    draw = np.random.default_rng(0)
    warnings.simplefilter("ignore")
    refused = 0
    for name, (kind, make) in CASES.items():
        if "Adapter" in name or name.startswith("paper"):
            continue
        inputs, y = TARGETS[kind]
        bank = make()
        one = made(bank, 2)
        learned(one, inputs[:60], y[:60, None])
        state = one.state()
        whole = [key for key, array in state.items() if array.dtype == np.int64 and key != "seen"]
        for _ in range(20):
            forged = copy.deepcopy(state)
            key = str(draw.choice(whole or list(state)))
            array = forged[key].reshape(-1)
            if not len(array):
                continue
            place = int(draw.integers(len(array)))
            array[place] = int(draw.choice([-1, 0, 1, 7, 100, 2**31, 2**53, -(2**40)]))
            forged[key] = array.reshape(state[key].shape)
            other = made(bank, 2)
            try:
                other.restore(forged)
            except ValueError:
                refused += 1
                continue
            learned(other, inputs[60:90], y[60:90, None])
            other.predict(inputs[:3])
            other.copy().state()
    assert refused > 50
