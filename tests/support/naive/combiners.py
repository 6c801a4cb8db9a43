"""Combiners by their definition, from the whole history each time: slow, plain, meant to be read."""

from fractions import Fraction
from functools import cache
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


def dyadic_start(t, level):
    """The first sample of the interval of 2^level samples with sample t = 1, 2, ...; None if none.

    The intervals are [k 2^level, (k + 1) 2^level - 1] for k = 1, 2, ...
    """
    return t - t % 2**level if t >= 2**level else None


def adaraker(
    losses, predictions, targets, loss, kernels, learning_rate=1.0, restart=False, normalize=True
):
    """Weights of instances with `kernels` slots each; the whole stream repeated."""
    slots = losses.shape[1]
    groups = [range(p, min(p + kernels, slots)) for p in range(0, slots, kernels)]
    rates = [min(0.5, learning_rate / 2 ** (j / 2)) for j in range(len(groups))]
    bounded = np.zeros(losses.shape)
    gains = np.zeros((len(losses), len(groups)))  # l(f, y) - l(f_j, y)
    scale = 0.0

    def before(t):
        """Weights of the prediction of sample t: (P,) for each active instance, and h."""
        own, shares = {}, {}
        for j, group in enumerate(groups):
            start = dyadic_start(t, j)
            if start is None:
                continue
            since = bounded[(start if restart else 1) - 1 : t - 1][:, list(group)]
            own[j] = np.zeros(slots)
            own[j][list(group)] = exponential(rates[j], since) if len(since) else 1 / len(group)
            shares[j] = rates[j] * exp(rates[j] * fsum(gains[start - 1 : t - 1, j]))
        size = fsum(shares.values())
        return own, {j: share / size for j, share in shares.items()}

    for n, (row, f, y) in enumerate(zip(losses, predictions, targets, strict=True)):
        own, shares = before(n + 1)
        combined = loss(fsum(shares[j] * fsum(own[j] * f) for j in own), y)
        scale += (abs(combined) - scale) / min(n + 1, 2 ** (len(groups) - 1))
        lost = [combined, *row, *(loss(fsum(own[j] * f), y) for j in own)]
        if normalize:
            lost = [min(1.0, value / scale) if value else 0.0 for value in lost]
        bounded[n] = lost[1 : 1 + slots]
        for j, own_loss in zip(own, lost[1 + slots :], strict=True):
            gains[n, j] = lost[0] - own_loss
    own, shares = before(len(losses) + 1)
    return sum(shares[j] * own[j] for j in own)


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
            errors = values @ weights - targets
            cost = discounts @ errors**2 + penalty @ weights**2
            if cost < least:
                best, least = weights, cost
    return best


def stacking(predictions, targets, discount, ridge):
    """Least discounted squares on the simplex; the ridge is relative to the best slot's loss."""
    discounts = discount ** np.arange(len(targets))[::-1]
    losses = [fsum(discounts * (column - targets) ** 2) for column in np.transpose(predictions)]
    penalty = np.full(len(losses), ridge * min(losses))
    return joint_squared(predictions, targets, discounts, penalty)


def robust_stacking(*seen, **settings):
    """The weights after the last sample; the whole stream repeated."""
    return robust_stacking_path(*seen, **settings)[-1]


@cache
def stacking_of_bytes(predictions, targets, discount, ridge):
    """`stacking`, once for each part of a stream that is repeated."""
    y = np.frombuffer(targets)
    return stacking(np.frombuffer(predictions).reshape(len(y), -1), y, discount, ridge)


def robust_stacking_path(predictions, targets, discount, ridge, degrees_of_freedom):
    """A mean of two weights after each sample.

    The second ones are stacking of errors over sqrt(s + r^2 / degrees_of_freedom), with r their
    own error of each sample.
    """
    plain = own = np.full(predictions.shape[1], 1 / predictions.shape[1])
    errors, mean, sums, path = [], 0.0, [0.0, 0.0], []
    for n, (f, y) in enumerate(zip(predictions, targets, strict=True)):
        r = fsum(own * f) - y
        sums = [discount * sums[0] + r**2, discount * sums[1] + (fsum(plain * f) - y) ** 2]
        mean += (r**2 - mean) * max(1 / (n + 1), 1 - discount)
        size = sqrt(mean + r**2 / degrees_of_freedom)
        errors.append((f - y) / size if size > 0 else 0 * f)
        if mean > 0:  # else they were never wrong: nothing moves
            zeros = np.zeros(n + 1)
            own = stacking_of_bytes(np.array(errors).tobytes(), zeros.tobytes(), discount, ridge)
        seen = predictions[: n + 1].tobytes(), targets[: n + 1].tobytes()
        plain = stacking_of_bytes(*seen, discount, ridge)
        share = min(max(0.5 + 2.5 * (1 - sums[0] / sums[1]), 0), 1) if sums[1] > 0 else 0.5
        path.append(share * own + (1 - share) * plain)
    return path


# ---------------------------------------------------------------- the simplex program, in exact arithmetic


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


def jensen(a, b):
    """The minimiser of sum (a_p + b_p) t_p over the simplex: equal shares for the least."""
    costs = np.asarray(a) + np.asarray(b)
    return normal([1.0 if cost == costs.min() else 0.0 for cost in costs])


# ---------------------------------------------------------------- OMKR


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


# ---------------------------------------------------------------- by name


def joint_of(s, horizon, discount, ridge):
    """The joint weights on the window, or on the last predictions."""
    rows, targets = np.transpose(s.values), s.targets
    if horizon:
        rows, targets = s.predictions[-horizon:], s.y[-horizon:]
    discounts = discount ** np.arange(len(rows))[::-1]
    return joint_squared(rows, np.array(targets), discounts, s.a + ridge)


RULES = {
    "simplex": lambda s: simplex_qp_floats(s.a, s.b),
    "prequential": lambda s, horizon: simplex_qp_floats(s.a, column_sums(s.losses[-horizon:])),
    "jensen": lambda s: jensen(s.a, s.b),
    "uniform": lambda s: np.full(len(s.a), 1 / len(s.a)),
    "best": lambda s: np.eye(len(s.a))[np.argmin(column_sums(s.costs))],
    "omkr": lambda s, gradient: omkr_step(
        s.last, omkr_rate(len(s.y) + 1), s.values, s.targets, s.loss[1], s.a, s.ridge, gradient
    ),
    "hedge": lambda s, rate: hedge(s.losses, rate),
    "hedge_by_cost": lambda s, rate: hedge(s.costs, rate),
    "fixed_share": lambda s, rate, share: fixed_share(s.losses, rate, share),
    "adaraker": lambda s, **more: adaraker(s.losses, s.predictions, s.y, s.loss[0], **more),
    "joint": joint_of,
    "stacking": lambda s, **more: stacking(s.predictions, s.y, **more),
    "robust_stacking": lambda s, **more: robust_stacking(s.predictions, s.y, **more),
}
"""The weights after the last of n samples, from what the slots did and a combiner's settings.

y (n,); predictions, losses, costs (n, P), before each sample; a, b (P,), values (P, L) and targets (L,)
on the window after the last one; last (P,), the weights before it; ridge; loss, value and derivative.
"""
