"""The paper's scheme on an adaptive dictionary by its definition: NORMA slots, simplex weights.

Written from the rules in the docstring of `AdaptiveDictionary`. What a bank still holds after n
samples: those since the last multiple of 256 before sample n, and `budget` samples before these.
"""

from math import fsum
from types import SimpleNamespace

import numpy as np

from .bank import gram_terms, learn, value
from .combiners import simplex_qp_floats


def learn_range(X, y, kernel, first, last, window, step, derivative):
    """The terms of a slot that begins at sample `first`, after it has learned sample `last`."""
    terms = []
    for n in range(first, last + 1):
        recent = range(max(first, n + 1 - window), n + 1)
        terms, _ = learn(terms, kernel, [(X[i], float(y[i])) for i in recent], derivative, *step)
    return terms


def first_kernels(pool, size):
    """Evenly spaced, halves rounded up; the middle one alone."""
    if size == 1:
        return [(pool - 1) // 2]
    return [int(np.floor(i * (pool - 1) / (size - 1) + 0.5)) for i in range(size)]


class Pool:
    """Which kernels run, how often each has been started, and when it was last retired."""

    def __init__(self, kernels, size):
        self.members = first_kernels(kernels, size)
        self.started = {k: [] for k in range(kernels)}  # after how many samples
        self.stopped = dict.fromkeys(range(kernels), 0)
        for k in self.members:
            self.started[k].append(0)
        self.exchanged = 0
        self.idle = [0] * size

    def runs(self, k):
        return len(self.started[k])

    def revise(self, shares, samples, threshold, retire, patience):
        """The slots whose kernels were exchanged."""
        size = len(self.members)
        for p in range(size):
            self.idle[p] = self.idle[p] + 1 if shares[p] < threshold / size else 0
        waiting = [p for p in range(size) if self.idle[p] >= patience]
        waiting.sort(key=lambda p: (shares[p], p))
        most = min(max(1, int(retire * size)), len(self.started) - size)
        places = waiting[:most]
        gone = [self.members[p] for p in places]
        staying = [p for p in range(size) if p not in places and shares[p] > 0]
        staying.sort(key=lambda p: (-shares[p], p))
        before = list(self.members)
        for k in gone:
            self.stopped[k] = samples
        running = [self.members[p] for p in range(size) if p not in places]
        refinements = 0
        for p in places:
            free = [k for k in self.started if k not in running and k not in gone]
            if self.exchanged % 2 == 0 and staying:
                near = before[staying[refinements % len(staying)]]
                refinements += 1
                chosen = min(free, key=lambda k: (abs(k - near) * (1 + self.runs(k)), k))
            else:
                fewest = min(map(self.runs, free))
                rare = [k for k in free if self.runs(k) == fewest]
                if fewest == 0:
                    known = [k for k in self.started if self.runs(k)]
                    chosen = max(rare, key=lambda k: (min(abs(k - j) for j in known), -k))
                else:
                    chosen = min(rare, key=lambda k: (self.stopped[k], k))
            running.append(chosen)
            self.members[p] = chosen
            self.started[chosen].append(samples)
            self.idle[p] = 0
            self.exchanged += 1
        return places


def run(
    X,
    y,
    kernels,
    loss,
    *,
    size,
    every,
    threshold,
    retire,
    patience,
    window,
    budget,
    learning_rate,
    regularization,
):
    """The whole stream; row n is the n-th sample, from 0. members: after each revision."""
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    cost_of, derivative = loss
    step = (learning_rate, regularization, budget)
    slots, samples = range(size), len(X)
    out = SimpleNamespace(members=[], predictions=np.zeros(samples), cost=np.zeros(samples))
    out.weights, out.slot_predictions = np.zeros((samples, size)), np.zeros((samples, size))
    out.slot_cost = np.zeros((samples, size))
    pool = Pool(len(kernels), size)
    estimates, theta = [[] for _ in slots], np.full(size, 1 / size)
    since = 0  # the first sample after the last revision
    for n in range(samples):
        recent = [(X[i], float(y[i])) for i in range(max(0, n + 1 - window), n + 1)]
        targets = [target for _, target in recent]
        own = [kernels[k] for k in pool.members]
        half = [
            regularization / 2 * fsum(gram_terms(estimates[p], own[p])) if estimates[p] else 0.0
            for p in slots
        ]
        values = [[value(estimates[p], own[p], x) for x, _ in recent] for p in slots]
        mixed = [fsum(theta[p] * values[p][i] for p in slots) for i in range(len(recent))]
        out.weights[n], out.predictions[n] = theta, mixed[-1]
        out.cost[n] = fsum(map(cost_of, mixed, targets))
        out.cost[n] += fsum(theta[p] ** 2 * half[p] for p in slots)
        for p in slots:
            out.slot_predictions[n, p] = values[p][-1]
            out.slot_cost[n, p] = fsum(map(cost_of, values[p], targets)) + half[p]
            estimates[p], _ = learn(estimates[p], own[p], recent, derivative, *step)
        a = [regularization / 2 * fsum(gram_terms(estimates[p], own[p])) for p in slots]
        b = [
            fsum(cost_of(value(estimates[p], own[p], x), target) for x, target in recent)
            for p in slots
        ]
        theta = simplex_qp_floats(a, b)
        if (n + 1) % every:
            continue
        sums = np.array([fsum(np.abs(out.weights[since : n + 1, p])) for p in slots])
        since = n + 1
        exchanged = pool.revise(sums / fsum(sums), n + 1, threshold, retire, patience)
        held = max(0, n // 256 * 256 - budget)
        for p in exchanged:
            kernel = kernels[pool.members[p]]
            estimates[p] = learn_range(X, y, kernel, held, n, window, step, derivative)
            theta[p] = 0.0
        theta = theta / fsum(theta) if theta.any() else np.full(size, 1 / size)
        out.members.append(tuple(pool.members))
    return out
