"""Streams for the tests of AutoBank, and helpers that run a bank on them."""

import numpy as np

import kernelbank as kb

SMALL = {"size": "small"}


def numbers(count, seed=0, noise=0.1, dimension=3):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, dimension))
    y = 5 + 2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, -1] + noise * draw.normal(size=count)
    return X, y


def troubled(count, seed=0):
    """Numbers with missing inputs, extreme values, a new level and a burst of far targets."""
    X, y = numbers(count, seed)
    draw = np.random.default_rng(seed + 1)
    X[draw.random(X.shape) < 0.05] = np.nan
    X[50, 0], X[90, 1] = 1e9, -1e5
    y[60], y[100] = 1e8, -200.0
    y[120:123] += 300
    y[150:] += 100
    return X, y


def labelled(count, kind, seed=0):
    X, y = numbers(count, seed)
    bounds = [4.0, 6.0] if kind == "three" else [5.0]
    classes = np.digitize(y, bounds)
    return X, {
        "two": classes,
        "three": classes,
        "late": np.where(np.arange(count) < 90, 0, classes),
    }[kind]


def late_classes(rows=620):
    """Two classes, three from row 150 (after the last restart), four from row 560 (after a revision)."""
    draw, row = np.random.default_rng(3), np.arange(rows)
    X = draw.normal(size=(rows, 3))
    y = np.where(X[:, 0] > 0, "right", "left")
    y = np.where((row >= 150) & (X[:, 1] > 0.8), "top", y)
    return X, np.where((row >= 560) & (X[:, 2] > 0.8), "front", y)


def two_targets(count=200, seed=0):
    """Inputs (n, 3), and two targets of different scale."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, 3))
    first = 5 + 2 * np.sin(2 * X[:, 0]) + 0.1 * draw.normal(size=count)
    second = 1000 - 300 * X[:, 1] * X[:, 2] + 10 * draw.normal(size=count)
    return X, np.column_stack([first, second])


def troubled_targets(count=200, seed=0):
    """The same with missing targets and inputs, far targets, a level, and a third target late."""
    X, Y = two_targets(count, seed)
    draw = np.random.default_rng(seed + 1)
    Y = np.column_stack([Y, 3 * Y[:, 0] - 50])
    Y[draw.random(Y.shape) < 0.2] = np.nan
    Y[[0, 3, 40, 41]] = np.nan
    Y[: count * 3 // 4, 2] = np.nan
    X[draw.random(X.shape) < 0.05] = np.nan
    Y[50, 0], Y[55, 1] = 1e8, -1e7
    Y[count * 4 // 5 :, 0] += 1000
    return X, Y


HOSTILE = {
    "constant inputs": lambda X, y: (np.ones_like(X), y),
    "constant target": lambda X, y: (X, np.full(len(y), 7.0)),
    "nearly constant": lambda X, y: (1e9 + 1e-9 * X, 1e9 + 1e-9 * y),
    "tiny": lambda X, y: (X * 1e-140, y * 1e-140),
    "huge": lambda X, y: (X * 1e148, y * 1e148),
    "mixed scales": lambda X, y: (X * np.array([1e-100, 1.0, 1e100]), y),
    "alternating": lambda X, y: (X, np.where(np.arange(len(y)) % 2, 1e150, -1e150)),
    "heavy tails": lambda X, y: (np.tan(1.57 * np.tanh(X)), np.sinh(3 * y)),
    "wild": lambda X, y: (X * 10.0 ** (50 * y)[:, None].clip(-2, 2), y * 10.0 ** (50 * X[:, 0])),
    "all missing": lambda X, y: (np.full_like(X, np.nan), y),
    "mostly missing": lambda X, y: (np.where(X > 1, X, np.nan), y),
    "steps": lambda X, y: (np.round(X), np.round(np.arange(len(y)) / 50) * 1e6),
    "walk": lambda X, y: (np.cumsum(X, axis=0), np.cumsum(y - 5) * 100),
    "growing": lambda X, y: (X, np.exp(np.arange(len(y)) / 2).clip(0, 1e150)),
    "spikes": lambda X, y: (X, np.where(np.arange(len(y)) % 37 == 0, 1e12, y)),
}


def predict_and_learn(bank, X, y, delay=0, files=(), path=None):
    """Predictions by predict_one and learn_one, through files at some rows."""
    answers, waiting = [], []
    for t in range(len(y)):
        answers.append(bank.predict_one(X[t]))
        waiting.append(t)
        if len(waiting) > delay:
            row = waiting.pop(0)
            bank.learn_one(X[row], y[row])
        if t in files:
            bank.save(path)
            bank = kb.load(path)
    for row in waiting:
        bank.learn_one(X[row], y[row])
    return answers, bank


def assert_same_state(one, other):
    first, second = one.describe(), other.describe()
    assert first[0] == second[0]
    assert first[1].keys() == second[1].keys()
    for name, array in first[1].items():
        np.testing.assert_array_equal(array, second[1][name], err_msg=name)


def rmse(trace, y, rows):
    return float(np.sqrt(np.mean((trace.predictions[rows] - y[rows]) ** 2)))
