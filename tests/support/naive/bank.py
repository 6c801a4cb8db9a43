"""The online multi-kernel scheme by its definition: slow, plain, and meant to be read.

Every estimate is a list of (coefficient, x) terms. Its values and norm are full sums over those
terms, recomputed from nothing each time. Sums use math.fsum, which adds no rounding of its own.
"""

from math import fsum, sqrt
from types import SimpleNamespace

import numpy as np

from . import combiners
from .estimate import StepSize

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


# ---------------------------------------------------------------- the bank


def run(
    X,
    y,
    kernels,
    loss,
    *,
    window,
    budget,
    learning_rate,
    regularization,
    combiner="simplex",
    step_size="constant",
):
    """A whole bank with one NORMA learner per kernel; row n is the n-th sample, from 0.

    combiner: "simplex" or "uniform". Others are compared by `combiners.RULES`.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    X = X.reshape(len(X), -1)
    cost_of, derivative = loss
    samples, slots = len(X), range(len(kernels))
    decay = 1 - (0 if step_size == "adagrad" else learning_rate * regularization)
    if budget < window or not 0 < decay <= 1:
        raise ValueError("needs budget >= window and a decay in (0, 1]")

    out = SimpleNamespace(dropped=np.zeros(len(kernels)))
    for name in ("predictions", "cost", "loss", "bound"):
        setattr(out, name, np.zeros(samples))
    for name in ("weights", "slot_cost", "slot_loss", "slot_predictions"):
        setattr(out, name, np.zeros((samples, len(kernels))))
    for name in ("curvature", "window_loss", "magnitude", "value_magnitude"):
        setattr(out, name, np.zeros((samples, len(kernels))))

    estimates = [[] for _ in slots]
    rates = [StepSize(learning_rate, step_size, regularization) for _ in slots]
    norm2 = np.zeros(len(kernels))  # of the estimates as they stand
    theta = np.full(len(kernels), 1 / len(kernels))

    for n in range(samples):
        # Reveal: the window is the last `window` samples, this one included.
        recent = range(max(0, n + 1 - window), n + 1)
        sample_window = [(X[i], float(y[i])) for i in recent]
        targets = [target for _, target in sample_window]

        # The cost of the proposal, and of every slot alone.
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
            g = [derivative(f, t) for f, t in zip(values[p], targets, strict=True)]
            gradient = [(slope, x) for slope, (x, _) in zip(g, sample_window, strict=True)]
            rate = rates[p].next(max(0.0, fsum(gram_terms(gradient, kernel))))
            old, step = estimates[p], (rate, regularization, budget)
            estimates[p], dropped = learn(old, kernel, sample_window, derivative, *step)
            out.dropped[p] += fsum(alpha**2 * kernel(x, x) for alpha, x in dropped)

        # The evidence of the slots.
        values = [[value(estimates[p], kernels[p], x) for x, _ in sample_window] for p in slots]
        for p, kernel in enumerate(kernels):
            products = gram_terms(estimates[p], kernel)
            norm2[p] = max(0.0, fsum(products))  # rounding alone can make it negative
            out.curvature[n, p] = regularization / 2 * norm2[p]
            out.window_loss[n, p] = fsum(map(cost_of, values[p], targets))
            out.magnitude[n, p] = fsum(map(abs, products))
            out.value_magnitude[n, p] = max(
                fsum(abs(alpha * kernel(t, x)) for alpha, t in estimates[p])
                for x, _ in sample_window
            )

        # Combine: the weights for the next sample.
        if combiner == "simplex":
            theta = combiners.simplex_qp_floats(out.curvature[n], out.window_loss[n])

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
