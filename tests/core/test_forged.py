"""States that somebody has altered are refused, or the bank goes on: nothing leaves an array.

Counts, ring positions, pointers and indices become others that are plausible, numbers any numbers.
Under `make sanitize` a step beyond an array, or any other undefined behaviour, ends the tests.
KERNELBANK_FORGED states in all, 300 by default.
"""

import os
import warnings

import fixed_runs
import numpy as np
import pytest

from support.core_banks import learned, made

FORGED = int(os.environ.get("KERNELBANK_FORGED", "300"))
SAMPLES, MORE = 300, 40
X, NUMBERS = fixed_runs.stream(SAMPLES + MORE)
TARGETS = {
    "numbers": (X, NUMBERS),
    "labels": fixed_runs.stream(SAMPLES + MORE, labels=True),
    "positive": (X, np.abs(NUMBERS)),
    "paper": fixed_runs.autoregression(SAMPLES + MORE),
}
CASES = {
    name: (kind, make)
    for name, kind, make in fixed_runs.component_banks()
    if not any(word in name for word in ("kernel ", "loss ", "Adapter", "PythonLearner"))
}
ROUNDS = -(-FORGED // len(CASES))
WHOLE = [-(2**63), -(2**40), -1, 0, 1, 2, 7, 63, 64, 100, 255, 256, 2**31, 2**53 - 1, 2**63 - 1]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 0.5, 7.0, 1e18, -1e18, 1e308, 5e-324]


def forge(state, draw):
    """The state with one array altered; what was done to it."""
    whole = [name for name, array in state.items() if array.dtype == np.int64 and array.size]
    floats = [name for name, array in state.items() if array.dtype != np.int64 and array.size]
    name = str(draw.choice(whole if whole and draw.random() < 0.6 else floats))
    array = state[name].copy()
    flat = array.reshape(-1)
    places = draw.integers(len(flat), size=int(draw.choice([1, 1, 1, 2, 5])))
    way = str(draw.choice(["step", "swap", "other", "any", "all"]))
    if way == "step":
        with np.errstate(all="ignore"):
            flat[places] += draw.choice([-1, 1, -2, 2], size=len(places)).astype(flat.dtype)
    elif way == "swap":
        flat[places] = flat[places[::-1]]
        flat[places[0]], flat[-1] = flat[-1], flat[places[0]]
    elif way == "other":
        flat[places] = draw.choice(flat, size=len(places))
    else:
        values = WHOLE if array.dtype == np.int64 else FLOATS
        with np.errstate(all="ignore"):
            chosen = np.array(values)[draw.integers(len(values))].astype(flat.dtype)
        flat[slice(None) if way == "all" else places] = chosen
    return {**state, name: array}, (name, way)


@pytest.fixture(scope="module")
def refused():
    """How many states were refused; enough of them, over all cases."""
    count = {"refused": 0, "accepted": 0}
    yield count
    if sum(count.values()) >= FORGED:
        assert count["refused"] > FORGED / 20
        assert count["accepted"] > FORGED / 20


@pytest.mark.parametrize("name", CASES)
def test_forged_states_are_refused_or_go_on(name, refused):
    kind, make = CASES[name]
    inputs, y = TARGETS[kind]
    inputs = np.asarray(inputs, dtype=float).reshape(len(y), -1)
    draw = np.random.default_rng(sum(map(ord, name)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for outputs in (1, 2):
            bank, Y = make(outputs=outputs), np.column_stack([y, y[::-1]])[:, :outputs]
            whole = made(bank, inputs.shape[1])
            learned(whole, inputs[:SAMPLES], Y[:SAMPLES])
            state = whole.state()
            for _ in range(-(-ROUNDS // 2)):
                forged, _ = forge(state, draw)
                other = made(bank, inputs.shape[1])
                try:
                    other.restore(forged)
                except ValueError:
                    refused["refused"] += 1
                    continue
                refused["accepted"] += 1
                go_on(other, inputs[SAMPLES:], Y[SAMPLES:])


def go_on(bank, inputs, Y):
    """Everything that a bank is for."""
    learned(bank, inputs[:25], Y[:25])
    bank.predict_slots_one(inputs[25])
    learned(bank, inputs[25:26], Y[25:26])
    copied = bank.copy()
    bank.predict(inputs[:3])
    bank.variance_slots(inputs[:3])
    for other in (bank, copied):
        learned(other, inputs[26:], Y[26:])
        other.predict_slots(inputs[:3])
    try:
        copied.restore(bank.state())
    except ValueError:  # a state may have become one that nobody would accept
        return
    learned(copied, inputs[:3], Y[:3])
