"""Combiners by their definition, from the whole history each time: slow, plain, meant to be read."""

from itertools import combinations
from math import exp, fsum, inf, log, sqrt

import numpy as np


def normal(weights):
    """The weights divided by their sum."""
    total = fsum(weights)
    return np.array([w / total for w in weights])


def exponential(rate, losses):
    """Weights proportional to exp(-rate * sum of losses); losses is (n, P)."""
    totals = [fsum(column) for column in np.transpose(losses)]
    best = min(totals)
    if rate == inf:
        return normal([1.0 if total == best else 0.0 for total in totals])
    return normal([exp(-rate * (total - best)) for total in totals])


def mix_loss(rate, weights, losses):
    """-log(sum_p w_p exp(-rate l_p)) / rate; the least loss with weight for an infinite rate."""
    living = [(w, loss) for w, loss in zip(weights, losses, strict=True) if w > 0]
    best = min(loss for _, loss in living)
    if rate == inf:
        return best
    return best - log(fsum(w * exp(-rate * (loss - best)) for w, loss in living)) / rate


def adahedge_rate(losses):
    """The rate after these losses: log P over the sum of w'l - mix loss."""
    lost = 0.0
    slots = losses.shape[1]
    for n in range(len(losses)):
        rate = log(slots) / lost if lost > 0 else inf
        weights = exponential(rate, losses[:n]) if n else np.full(slots, 1 / slots)
        mean = fsum(weights * losses[n])
        lost += max(0.0, mean - mix_loss(rate, weights, losses[n]))
    return log(slots) / lost if lost > 0 else inf


def hedge(losses, rate):
    """Exponential weights; AdaHedge's rate if there is none."""
    return exponential(adahedge_rate(losses) if rate is None else rate, losses)


def fixed_share(losses, rate, share):
    """Exponential steps, each followed by sharing."""
    slots = losses.shape[1]
    weights = np.full(slots, 1 / slots)
    for row in losses:
        posterior = normal([w * exp(-rate * loss) for w, loss in zip(weights, row, strict=True)])
        weights = (1 - share) * posterior + share / slots
    return weights


def intervals(losses, learning_rate, levels):
    """Exponential weights on dyadic intervals, mixed by their regrets; the whole game replayed."""
    slots = losses.shape[1]
    rates = [min(0.5, learning_rate / 2 ** (i / 2)) for i in range(levels)]
    bounded = np.zeros(losses.shape)
    by_instance = np.zeros((len(losses), levels))  # bounded losses of the instances
    by_mixture = np.zeros(len(losses))
    scale = 0.0

    def weigh(n):
        """Weights before sample n, of the mixture and of the instances."""
        starts = [n - n % 2**i for i in range(levels)]
        own = [
            exponential(rates[i], bounded[starts[i] : n]) if n > starts[i] else normal([1] * slots)
            for i in range(levels)
        ]
        regrets = [by_mixture[starts[i] : n] - by_instance[starts[i] : n, i] for i in range(levels)]
        shares = normal([rates[i] * exp(rates[i] * fsum(regrets[i])) for i in range(levels)])
        return sum(h * v for h, v in zip(shares, own, strict=True)), own

    for n, row in enumerate(losses):
        weights, own = weigh(n)
        paid = fsum(weights * np.abs(row))
        scale += (paid - scale) / min(n + 1, 2 ** (levels - 1))
        step_ratio = row - row.min()
        bounded[n] = [min(1.0, e / scale) if e > 0 else 0.0 for e in step_ratio]
        by_mixture[n] = fsum(weights * bounded[n])
        by_instance[n] = [fsum(v * bounded[n]) for v in own]
    return weigh(len(losses))[0]


def joint_cost(weights, values, targets, discounts, penalty, loss):
    """sum_i d_i l(w'f_i, y_i) + sum_p penalty_p w_p^2; values is (rows, P)."""
    mixed = [fsum(weights * row) for row in values]
    losses = [d * loss(f, y) for d, f, y in zip(discounts, mixed, targets, strict=True)]
    return fsum(losses) + fsum(penalty * weights**2)


def joint_squared(values, targets, discounts, penalty):
    """The minimiser for squared loss: the best of the minimisers on every face of the simplex."""
    slots = values.shape[1]
    best, least = None, inf
    for size in range(1, slots + 1):
        for face in map(list, combinations(range(slots), size)):
            F = values[:, face]
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = 2 * (F.T * discounts) @ F + 2 * np.diag(penalty[face])
            system[size, size] = 0.0
            right = np.append(2 * (F.T * discounts) @ targets, 1.0)
            solution = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            if solution.min() < 0:
                continue
            weights = np.zeros(slots)
            weights[face] = solution / solution.sum()
            cost = joint_cost(
                weights, values, targets, discounts, penalty, lambda f, y: (f - y) ** 2
            )
            if cost < least:
                best, least = weights, cost
    return best


def stacking(predictions, targets, discount, ridge):
    """Least discounted squares on the simplex; the ridge is relative to the best slot's loss."""
    discounts = discount ** np.arange(len(targets))[::-1]
    losses = [fsum(discounts * (column - targets) ** 2) for column in np.transpose(predictions)]
    penalty = np.full(len(losses), ridge * min(losses))
    return joint_squared(predictions, targets, discounts, penalty)


def slope_stacking(predictions, targets, weights, loss, discount, ridge, caution):
    """Stacking of the parabolas that touch the loss at each proposal, weights'predictions."""
    value, derivative = loss
    errors, mean = [], 0.0
    for n, (f, y, w) in enumerate(zip(predictions, targets, weights, strict=True)):
        mixture = fsum(w * f)
        mean += (abs(value(mixture, y)) - mean) * max(1 / (n + 1), 1 - discount)
        unit = caution * mean
        change = derivative(mixture, y) * (f - mixture)
        errors.append(sqrt(unit) * (1 + change / unit) if unit > 0 else 0 * change)
    if mean == 0:  # nothing was ever lost: nothing moves
        return weights[-1]
    return stacking(np.array(errors), np.zeros(len(errors)), discount, ridge)
