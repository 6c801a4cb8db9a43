"""Losses by their formulas: each function returns value(f, y) and its derivative with respect to f.

At a kink the derivative is the subgradient of smallest absolute value.
"""

from math import exp, inf, log, log1p


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


# ---------------------------------------------------------------- Moreau envelopes


def envelope(loss, smoothing):
    """min over u of l(u, y) + (u - f)^2 / (2 smoothing), by bisection for the u.

    u is where l'(u, y) + (u - f) / smoothing changes its sign. It lies between f and
    f - smoothing * l'(f, y), because l' does not decrease.
    """
    value_of, slope_of = loss

    def proximal_point(f, y):
        other = f - smoothing * slope_of(f, y)
        low, high = min(f, other), max(f, other)
        while low < (middle := (low + high) / 2) < high:
            if slope_of(middle, y) + (middle - f) / smoothing > 0:
                high = middle
            else:
                low = middle
        return (low + high) / 2

    def value(f, y):
        u = proximal_point(f, y)
        return value_of(u, y) + (u - f) ** 2 / (2 * smoothing)

    def derivative(f, y):
        return (f - proximal_point(f, y)) / smoothing

    return value, derivative


def x_log_x(x):
    """x log x, and its limit 0 at 0."""
    return x * log(x) if x > 0 else 0.0


def exp_or_inf(x):
    """exp(x), infinite where Python would raise an error."""
    return exp(x) if x < 709 else inf


def poisson(smoothing):
    """e^f - y f, less its least value y - y log y; for smoothing > 0 its envelope."""

    def value(f, y):
        return exp_or_inf(f) - y * f - (y - x_log_x(y))

    plain = value, lambda f, y: exp_or_inf(f) - y
    return plain if smoothing == 0 else envelope(plain, smoothing)
