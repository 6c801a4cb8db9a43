"""What the tests of the naive learners share: streams, runs, and a sum of terms written out again."""

import numpy as np
import pytest

from support.naive import estimate


@pytest.fixture
def exact_gram_matrices(monkeypatch):
    """Naive learners without the raised diagonal, which is our addition to the published methods."""
    monkeypatch.setattr(estimate, "JITTER", 0.0)


def stream(samples, dimension=2, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(samples, dimension))
    return X, np.sin(2 * X[:, 0]) + X[:, -1] / 2 + 0.1 * draw.normal(size=samples)


def labels(samples, seed=0):
    X, y = stream(samples, seed=seed)
    return X, np.where(y > 0, 1.0, -1.0)


def run(method, X, y):
    for x, target in zip(X, y, strict=True):
        method.learn(x, float(target))
    return method


def predictions(method, points):
    return np.array([method.predict(x) for x in points])


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


class Terms:
    """A sum of terms a k(c, .), written out once more."""

    def __init__(self, kernel):
        self.kernel, self.terms = kernel, []

    def __call__(self, x):
        return sum(a * self.kernel(c, x) for a, c in self.terms)

    def step(self, decay, a, c):
        self.terms = [(decay * b, t) for b, t in self.terms] + [(a, c)]

    def norm2(self):
        return sum(a * self(c) for a, c in self.terms)


POINTS = stream(7, seed=99)[0]


def run_weighted(method, X, y):
    """Run, and return the working responses and their weights: (z, w)."""
    seen = []
    for x, target in zip(X, y, strict=True):
        seen.append(method.working_response(x, target)[1:])
        method.learn(x, target)
    return np.array(seen).T
