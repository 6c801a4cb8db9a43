"""What the naive online methods share: exact linear algebra, and the two forms of an estimate.

f is a sum of terms alpha_j k(c_j, .), oldest centre first, or weights . phi(x). Gram matrices and
their inverses are built from nothing at every step, and solved to the last bits (`solve`), so
that a difference from a fast method is the fast method's.

Every method has predict(x), learn(x, y), norm2(), magnitude(x) (the sum of the absolute terms of
f(x): what rounding is measured against) and

- dropped: norm^2 of all removed terms, where the method counts it;
- closest: how near any yes-or-no decision so far came to going the other way, relative to its
  scale. A comparison with another implementation means nothing if it is not well above rounding.
"""

from math import fsum, inf, log, sqrt, tanh

import numpy as np

# ---------------------------------------------------------------- linear algebra


def gram(kernel, left, right):
    """The matrix of k(left_i, right_j)."""
    values = [kernel(x, t) for x in left for t in right]
    return np.array(values, dtype=float).reshape(len(left), len(right))


def solve(A, b):
    """A^-1 b for a vector or a matrix, refined with residuals in extended precision."""
    x = np.linalg.solve(A, b)
    for _ in range(3):
        residual = b - A.astype(np.longdouble) @ x
        x = x + np.linalg.solve(A, residual.astype(float))
    return x


def inverse(A):
    """A^-1."""
    return solve(A, np.eye(len(A)))


JITTER = 1e-8


def raise_diagonal(K, jitter=None):
    """K + jitter diag(K): smooth kernels on near inputs cannot be inverted otherwise."""
    return K + (JITTER if jitter is None else jitter) * np.diag(np.diag(K))


def dot(a, b):
    """a . b."""
    return fsum(np.asarray(a) * b)


# ---------------------------------------------------------------- estimates


def squared_curvature(g):
    """l'' of the squared loss (f - y)^2."""
    return 2.0


def logistic_curvature(g):
    """That of the best parabola above the logistic loss that touches it where its slope is g.

    tanh(f / 2) / 2 f, with f = +-log((1 - |g|) / |g|).
    """
    f = log((1 - abs(g)) / abs(g))
    return tanh(f / 2) / (2 * f) if f else 0.25


class StepSize:
    """rate_t of the samples t = 1, 2, ...; |g|^2 of the loss's gradient is given for each."""

    def __init__(self, learning_rate, step_size, regularization=0.0):
        self.learning_rate, self.rule = learning_rate, step_size
        self.regularization = regularization
        self.squares = []

    def next(self, squared_gradient):
        """The rate of the next sample."""
        self.squares.append(squared_gradient)
        if self.rule == "constant":
            return self.learning_rate
        if self.rule == "inverse_sqrt":
            return self.learning_rate / sqrt(len(self.squares))
        if not any(self.squares):
            return 0.0
        rate = self.learning_rate / sqrt(fsum(self.squares))
        return min(rate, 0.5 / self.regularization) if self.regularization else rate


class Estimate:
    """Decisions that remember how close they were, and the loss as a method sees it.

    A method's settings are attributes of its class; those that are given replace them.
    """

    curvature = staticmethod(squared_curvature)
    learning_rate, step_size = 0.1, "constant"
    decays = False  # whether a step multiplies f by 1 - rate * regularization

    def __init__(self, loss, regularization, **settings):
        self.derivative = loss[1]
        self.regularization = regularization
        self.dropped = 0.0
        self.closest = inf
        for name, value in settings.items():
            setattr(self, name, value)
        self.rates = self.new_rates()

    def new_rates(self):
        """The step sizes, from the first sample on."""
        return StepSize(
            self.learning_rate, self.step_size, self.regularization if self.decays else 0.0
        )

    def exceeds(self, value, bound, scale):
        """Whether value > bound. Exact equality is no close call: it is meant."""
        if value != bound and scale > 0:
            self.closest = min(self.closest, abs(value - bound) / scale)
        return value > bound

    def least(self, values):
        """The index of the smallest value, the first of equals."""
        first, *others = sorted(values)
        if others and others[0] > first:
            self.closest = min(self.closest, (others[0] - first) / abs(others[0]))
        return int(np.argmin(values))

    def gradient(self, x, y):
        """g = l'(f(x), y)."""
        return self.derivative(self.predict(x), y)

    def working_response(self, x, y):
        """(e, z, w): near f(x) the loss is w (f - z)^2 up to a constant, and e = z - f(x)."""
        f = self.predict(x)
        if self.curvature is squared_curvature:
            return y - f, y, 1.0
        g = self.derivative(f, y)
        c = self.curvature(g)
        return -g / c, f - g / c, c / 2

    def predict(self, x):
        """f(x)."""
        return fsum(self.terms(x))

    def magnitude(self, x):
        """The sum of the absolute terms of f(x)."""
        return fsum(np.abs(self.terms(x)))


class KernelExpansion(Estimate):
    """f = sum_j alpha_j k(c_j, .)."""

    jitter = None  # JITTER

    def __init__(self, kernel, loss, regularization, **settings):
        super().__init__(loss, regularization, **settings)
        self.kernel = kernel
        self.centres = []
        self.alpha = np.zeros(0)

    def row(self, x):
        """k(c_j, x) for all centres."""
        return gram(self.kernel, self.centres, [x])[:, 0]

    def gram(self):
        """K, the Gram matrix of the centres."""
        return gram(self.kernel, self.centres, self.centres)

    def raised(self):
        """K with its diagonal raised a little: what is inverted wherever K^-1 is written."""
        return raise_diagonal(self.gram(), self.jitter)

    def terms(self, x):
        """The summands of f(x)."""
        return self.alpha * self.row(x)

    def norm2(self):
        """alpha' K alpha; rounding alone can make it negative."""
        return max(0.0, fsum((self.gram() * np.outer(self.alpha, self.alpha)).ravel()))

    def append(self, x, coefficient):
        """Add the term coefficient k(x, .)."""
        self.centres.append(np.array(x, dtype=float))
        self.alpha = np.append(self.alpha, coefficient)

    def drop_oldest(self):
        """Forget the oldest term."""
        c, coefficient = self.centres.pop(0), self.alpha[0]
        self.alpha = self.alpha[1:]
        self.dropped += coefficient**2 * self.kernel(c, c)

    def projection(self, x):
        """(K^-1 k, k(x,x) - k'K^-1 k): k(x, .) projected on the centres, what is left squared."""
        k, own = self.row(x), self.kernel(x, x)
        a = solve(self.raised(), k)
        return a, max(0.0, fsum([own, *(-a * k)]))


class FeatureExpansion(Estimate):
    """f(x) = weights . phi(x); features is the function phi."""

    def __init__(self, features, loss, regularization, **settings):
        super().__init__(loss, regularization, **settings)
        self.features = features
        self.weights = None  # as many zeros as there are features, once they are seen

    def terms(self, x):
        """The summands of f(x)."""
        return np.zeros(0) if self.weights is None else self.weights * self.features(x)

    def norm2(self):
        """|weights|^2."""
        return 0.0 if self.weights is None else dot(self.weights, self.weights)
