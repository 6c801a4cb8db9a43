"""The online multi-kernel scheme by its definition: slow, plain, and meant to be read.

Every estimate is a list of (coefficient, x) terms. Its values and norm are full sums over those
terms, recomputed from nothing each time. Sums use math.fsum, which adds no rounding of its own.
"""

from fractions import Fraction
from itertools import combinations
from math import exp, fsum, log1p, pi, sqrt
from types import SimpleNamespace

import numpy as np

from support import naive_combiners

# ---------------------------------------------------------------- kernels: k(x, t) -> float


def squared_distance(x, t):
    """|x - t|^2."""
    return float(np.dot(x - t, x - t))


def gaussian(width):
    """exp(-|x-t|^2 / (2 width^2))."""
    return lambda x, t: exp(-squared_distance(x, t) / (2 * width**2))


def laplacian(width):
    """exp(-|x-t|_1 / width)."""
    return lambda x, t: exp(-float(np.sum(np.abs(x - t))) / width)


def matern(width, nu):
    """The Matern kernel of smoothness nu = 0.5, 1.5 or 2.5, with r = |x-t|_2 / width."""
    shape = {
        0.5: lambda r: exp(-r),
        1.5: lambda r: (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
        2.5: lambda r: (1 + sqrt(5) * r + 5 * r**2 / 3) * exp(-sqrt(5) * r),
    }[nu]
    return lambda x, t: shape(sqrt(squared_distance(x, t)) / width)


def rational_quadratic(width, alpha):
    """(1 + |x-t|^2 / (2 alpha width^2))^-alpha."""
    return lambda x, t: (1 + squared_distance(x, t) / (2 * alpha * width**2)) ** -alpha


def periodic(period, width):
    """exp(-2 sum sin^2(pi (x-t) / period) / width^2)."""
    return lambda x, t: exp(-2 * float(np.sum(np.sin(pi * (x - t) / period) ** 2)) / width**2)


def linear(offset):
    """x.t + offset."""
    return lambda x, t: float(np.dot(x, t)) + offset


def polynomial(degree, offset, scale):
    """(scale x.t + offset)^degree."""
    return lambda x, t: (scale * float(np.dot(x, t)) + offset) ** degree


def spline():
    """Product over the coordinates of 1 + xt + m^2 (3M - m) / 6, m = min(x, t), M = max(x, t)."""

    def kernel(x, t):
        m, M = np.minimum(x, t), np.maximum(x, t)
        return float(np.prod(1 + x * t + m**2 * (3 * M - m) / 6))

    return kernel


def on(kernel, coordinates):
    """The kernel of some coordinates."""
    return lambda x, t: kernel(x[list(coordinates)], t[list(coordinates)])


def low_order(kernel, order):
    """The mean of the kernel over all subsets of `order` coordinates, or of all if there are fewer."""

    def mean(x, t):
        subsets = list(combinations(range(len(x)), min(order, len(x))))
        return fsum(on(kernel, subset)(x, t) for subset in subsets) / len(subsets)

    return mean


# ------------------------------------ losses: (value(f, y), derivative(f, y) with respect to f)
# At a kink the derivative is the subgradient of smallest absolute value.


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


# ---------------------------------------------------------------- the QP, in exact arithmetic


def simplex_qp(a, b):
    """Exact minimiser of sum a_p t_p^2 + b_p t_p over the simplex, a_p >= 0, as Fractions."""
    a, b = [Fraction(v) for v in a], [Fraction(v) for v in b]
    theta = [Fraction(0)] * len(a)
    curved = sorted((p for p in range(len(a)) if a[p] > 0), key=lambda p: b[p])
    flat = [p for p in range(len(a)) if a[p] == 0]

    if flat:
        least = min(b[p] for p in flat)
        better = [p for p in curved if b[p] < least]
        share = {p: (least - b[p]) / (2 * a[p]) for p in better}
        rest = 1 - sum(share.values())
        if rest > 0:
            ties = [p for p in flat if b[p] == least]
            for p in better:
                theta[p] = share[p]
            for p in ties:
                theta[p] = rest / len(ties)
            return theta
        curved = better

    # All curved: t_p = (level - b_p) / (2 a_p) on the active ones, which are the smallest b_p.
    # The active set is the one whose level lies above its own b and not above any other b.
    for size in range(1, len(curved) + 1):
        active, others = curved[:size], curved[size:]
        level = (2 + sum(b[p] / a[p] for p in active)) / sum(1 / a[p] for p in active)
        if all(b[p] < level for p in active) and all(b[p] >= level for p in others):
            for p in active:
                theta[p] = (level - b[p]) / (2 * a[p])
            return theta
    raise AssertionError("a non-empty simplex always has a minimiser")


def simplex_qp_floats(a, b):
    """The exact minimiser, each entry rounded once to float64."""
    return np.array([float(t) for t in simplex_qp(a, b)])


# ---------------------------------------------------------------- one slot


def value(terms, kernel, x):
    """f(x) = sum_i alpha_i k(x_i, x)."""
    return fsum(alpha * kernel(t, x) for alpha, t in terms)


def gram_terms(terms, kernel):
    """Every alpha_i alpha_j k(x_i, x_j): their sum is the norm^2 of the estimate."""
    return [alpha * beta * kernel(x, t) for alpha, x in terms for beta, t in terms]


def learn(terms, kernel, window, derivative, learning_rate, regularization, budget):
    """One NORMA step on a window of (x, y): the new terms and the dropped ones."""
    gradients = [derivative(value(terms, kernel, x), y) for x, y in window]
    decay = 1 - learning_rate * regularization
    newest = window[-1][0]
    new = [(decay * alpha, x) for alpha, x in terms] + [(0.0, newest)]
    first = len(new) - len(window)  # the window's samples are the last terms
    for i, gradient in enumerate(gradients):
        alpha, x = new[first + i]
        new[first + i] = (alpha - learning_rate * gradient, x)
    cut = max(0, len(new) - budget)
    return new[cut:], new[:cut]


# ---------------------------------------------------------------- the combiners


def omkr_rate(n):
    """The step size that makes w^(n), n = 1, 2, ..."""
    return max(8e-4 * 2.0 ** -((n - 1) // 50), 1e-5)


def omkr_step(w, rate, values, targets, derivative, a, regularization, gradient):
    """One gradient step of w; values[p][i] is f_p at the i-th sample of the window."""
    slots = range(len(w))
    mixed = [fsum(w[p] * values[p][i] for p in slots) for i in range(len(targets))]
    slopes = [derivative(f, y) for f, y in zip(mixed, targets, strict=True)]
    ridge = {"exact": 2.0, "printed": regularization}[gradient]
    step = [fsum(g * f for g, f in zip(slopes, values[p], strict=True)) for p in slots]
    return np.array([w[p] - rate * (step[p] + ridge * a[p] * w[p]) for p in slots])


def column_sums(rows):
    """Sum of each column."""
    return np.array([fsum(column) for column in np.transpose(rows)])


# ---------------------------------------------------------------- the game


def play(X, y, kernels, loss, *, window, budget, learning_rate, regularization, combiner):
    """The whole game with one NORMA learner per kernel; row n is the n-th sample, from 0.

    combiner: "simplex", ("prequential", horizon), "uniform", "best", ("omkr", "exact"),
    ("omkr", "printed"), or a name from naive_combiners and its settings: ("hedge", {"rate": 1.0}),
    "fixed_share", "intervals", "stacking", "slope_stacking", and ("joint", settings) for squared loss.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    X = X.reshape(len(X), -1)
    cost_of, derivative = loss
    samples, slots = len(X), range(len(kernels))
    rule, option = (combiner, None) if isinstance(combiner, str) else combiner
    if budget < window or not 0 < 1 - learning_rate * regularization <= 1:
        raise ValueError("needs budget >= window and a decay in (0, 1]")

    out = SimpleNamespace(dropped=np.zeros(len(kernels)))
    for name in ("predictions", "cost", "loss", "bound"):
        setattr(out, name, np.zeros(samples))
    for name in ("weights", "slot_cost", "slot_loss", "slot_predictions"):
        setattr(out, name, np.zeros((samples, len(kernels))))
    for name in ("curvature", "window_loss", "norm2", "magnitude", "value_magnitude"):
        setattr(out, name, np.zeros((samples, len(kernels))))

    estimates = [[] for _ in slots]
    norm2 = np.zeros(len(kernels))  # of the estimates as they stand
    uniform = np.full(len(kernels), 1 / len(kernels))
    theta = np.zeros(len(kernels)) if rule == "omkr" else uniform

    for n in range(samples):
        # Reveal: the window is the last `window` samples, this one included.
        recent = range(max(0, n + 1 - window), n + 1)
        sample_window = [(X[i], float(y[i])) for i in recent]
        targets = [target for _, target in sample_window]

        # Charge the proposal, and every slot alone.
        values = [[value(estimates[p], kernels[p], x) for x, _ in sample_window] for p in slots]
        mixed = [fsum(theta[p] * values[p][i] for p in slots) for i in range(len(targets))]
        losses = [[cost_of(f, t) for f, t in zip(values[p], targets, strict=True)] for p in slots]
        mixed_losses = [cost_of(f, t) for f, t in zip(mixed, targets, strict=True)]
        penalty = [regularization / 2 * norm2[p] for p in slots]
        mixed_penalty = fsum(theta[p] ** 2 * penalty[p] for p in slots)
        out.weights[n] = theta
        out.predictions[n] = mixed[-1]
        out.loss[n] = mixed_losses[-1]
        out.cost[n] = fsum(mixed_losses) + mixed_penalty
        out.bound[n] = fsum(theta[p] * fsum(losses[p]) for p in slots) + mixed_penalty
        for p in slots:
            out.slot_predictions[n, p] = values[p][-1]
            out.slot_loss[n, p] = losses[p][-1]
            out.slot_cost[n, p] = fsum(losses[p]) + penalty[p]

        # Learn: every slot on its own.
        for p, kernel in enumerate(kernels):
            old, step = estimates[p], (learning_rate, regularization, budget)
            estimates[p], dropped = learn(old, kernel, sample_window, derivative, *step)
            out.dropped[p] += fsum(alpha**2 * kernel(x, x) for alpha, x in dropped)

        # What the slots are worth now.
        values = [[value(estimates[p], kernels[p], x) for x, _ in sample_window] for p in slots]
        for p, kernel in enumerate(kernels):
            products = gram_terms(estimates[p], kernel)
            norm2[p] = max(0.0, fsum(products))  # rounding alone can make it negative
            out.norm2[n, p] = norm2[p]
            out.curvature[n, p] = regularization / 2 * norm2[p]
            out.window_loss[n, p] = fsum(map(cost_of, values[p], targets))
            out.magnitude[n, p] = fsum(map(abs, products))
            out.value_magnitude[n, p] = max(
                fsum(abs(alpha * kernel(t, x)) for alpha, t in estimates[p])
                for x, _ in sample_window
            )

        # Weigh: the combination for the next sample.
        a, b = out.curvature[n], out.window_loss[n]
        if rule == "simplex":
            theta = simplex_qp_floats(a, b)
        elif rule == "prequential":
            theta = simplex_qp_floats(a, column_sums(out.slot_loss[: n + 1][-option:]))
        elif rule == "uniform":
            theta = uniform
        elif rule == "best":
            theta = np.zeros(len(kernels))
            theta[np.argmin(column_sums(out.slot_cost[: n + 1]))] = 1.0
        elif rule == "omkr":  # row 0 used w^(1), so row n used w^(n+1); this makes w^(n+2)
            rate = omkr_rate(n + 2)
            theta = omkr_step(theta, rate, values, targets, derivative, a, regularization, option)
        elif rule in ("hedge", "fixed_share", "intervals"):
            theta = getattr(naive_combiners, rule)(out.slot_loss[: n + 1], **option)
        elif rule == "stacking":
            seen = out.slot_predictions[: n + 1], y[: n + 1]
            theta = naive_combiners.stacking(*seen, **option)
        elif rule == "slope_stacking":
            seen = out.slot_predictions[: n + 1], y[: n + 1], out.weights[: n + 1]
            theta = naive_combiners.slope_stacking(*seen, loss, **option)
        elif rule == "joint":
            rows, seen = np.transpose(values), np.array(targets)
            if option["horizon"]:
                rows = out.slot_predictions[: n + 1][-option["horizon"] :]
                seen = y[: n + 1][-option["horizon"] :]
            discounts = option["discount"] ** np.arange(len(rows))[::-1]
            theta = naive_combiners.joint_squared(rows, seen, discounts, a + option["ridge"])
        else:
            raise ValueError(f"unknown combiner {combiner!r}")

    out.next_weights = theta
    out.cumulative_cost = np.cumsum(out.cost)
    out.estimates = estimates
    out.value = value
    return out


# ---------------------------------------------------------------- the experiment's stream


def ar1(seed, samples):
    """x = 1, ..., n as a column; y_n = 0.5488135 y_{n-1} + u_n, y_0 = 0, var u = 0.71519837."""
    noise = np.random.RandomState(seed).normal(0, sqrt(0.71519837), samples)
    y, last = np.zeros(samples), 0.0
    for n in range(samples):
        last = 0.5488135 * last + noise[n]
        y[n] = last
    return np.arange(1.0, samples + 1).reshape(-1, 1), y
