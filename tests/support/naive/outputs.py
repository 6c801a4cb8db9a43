"""What a sample without a target means for the learners, one sample after the other.

Its input counts, its target does not: an input is a term, a neighbor or part of a covariance as
any other. `y` holds NaN where a target is missing.
"""

import numpy as np


def nearest_neighbors(kernel, X, y, neighbors, memory, noise, constant):
    """(n,): Gaussian process on those of the nearest inputs that have a target."""
    X = X.astype(np.float32).astype(float)
    out = []
    for n, x in enumerate(X):
        past = range(max(0, n - memory), n)
        nearest = sorted(past, key=lambda i: (((X[i] - x) ** 2).sum(), -i))[:neighbors]
        known = [i for i in nearest if not np.isnan(y[i])]
        gram = np.array([[kernel(X[i], X[j]) + constant for j in known] for i in known])
        row = np.array([kernel(x, X[i]) + constant for i in known])
        system = gram.reshape(len(known), len(known)) + noise * np.eye(len(known))
        out.append(row @ np.linalg.solve(system, y[known]) if known else 0.0)
    return np.array(out)


def least_squares(features, y, ridge):
    """(n,): P takes every input, the weights move by known targets only."""
    size = features.shape[1]
    weights, P, out = np.zeros(size), np.eye(size) / ridge, []
    for phi, target in zip(features, y, strict=True):
        prediction = phi @ weights
        out.append(prediction)
        gain = P @ phi / (1 + phi @ P @ phi)
        if not np.isnan(target):
            weights = weights + gain * (target - prediction)
        P = P - np.outer(gain, phi @ P)
    return np.array(out)


def norma(kernel, X, y, rate, regularization, budget):
    """(n,): f decays with every sample; a sample without a target is a term with coefficient 0."""
    terms, out = [], []
    for x, target in zip(X, y, strict=True):
        prediction = sum(alpha * kernel(t, x) for alpha, t in terms)
        out.append(prediction)
        slope = 0.0 if np.isnan(target) else 2 * (prediction - target)
        terms = [((1 - rate * regularization) * alpha, t) for alpha, t in terms]
        terms = [*terms, (-rate * slope, x)][-budget:]
    return np.array(out)
