"""Losses by their formulas: each function returns value(f, y) and its derivative with respect to f.

At a kink the derivative is the subgradient of smallest absolute value.
"""

from math import exp, log1p


def sign(r):
    """-1, 0 or 1."""
    return float(r > 0) - float(r < 0)


def squared():
    """(f - y)^2."""
    return (lambda f, y: (f - y) ** 2), (lambda f, y: 2 * (f - y))


def absolute():
    """|f - y|."""
    return (lambda f, y: abs(f - y)), (lambda f, y: sign(f - y))


def huber(delta):
    """r^2 / 2 for |r| <= delta, delta (|r| - delta / 2) beyond, r = f - y."""

    def value(f, y):
        r = abs(f - y)
        return r**2 / 2 if r <= delta else delta * (r - delta / 2)

    def derivative(f, y):
        r = f - y
        return r if abs(r) <= delta else delta * sign(r)

    return value, derivative


def epsilon_insensitive(epsilon):
    """max(0, |f - y| - epsilon)."""

    def value(f, y):
        return max(0.0, abs(f - y) - epsilon)

    def derivative(f, y):
        return sign(f - y) if abs(f - y) > epsilon else 0.0

    return value, derivative


def pinball(quantile):
    """max(q r, (q - 1) r), r = y - f."""

    def value(f, y):
        return max(quantile * (y - f), (quantile - 1) * (y - f))

    def derivative(f, y):
        if f == y:
            return 0.0
        return -quantile if f < y else 1 - quantile

    return value, derivative


def logistic():
    """log(1 + exp(-y f)), written so that exp never overflows."""

    def value(f, y):
        return max(0.0, -y * f) + log1p(exp(-abs(y * f)))

    def derivative(f, y):
        e = exp(-abs(y * f))
        return -y * e / (1 + e) if y * f >= 0 else -y / (1 + e)

    return value, derivative


def hinge():
    """max(0, 1 - y f)."""
    return (lambda f, y: max(0.0, 1 - y * f)), (lambda f, y: -y if y * f < 1 else 0.0)


def squared_hinge():
    """max(0, 1 - y f)^2."""

    def derivative(f, y):
        return -2 * y * max(0.0, 1 - y * f)

    return (lambda f, y: max(0.0, 1 - y * f) ** 2), derivative
