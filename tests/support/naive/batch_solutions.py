"""The batch problems that recursive least squares solves, solved at once."""

import numpy as np

from .estimate import solve


def exponential_solution(Phi, z, ridge, forgetting, w=None):
    """The minimiser of sum_i w_i (Phi_i . v - z_i)^2 + ridge |v|^2, where all fades.

    Everything fades by r = forgetting per step, and every step has a dummy sample.

    After n samples, number i (from 0) counts r^(n-i), the first ridge r^n, and the dummy "entry
    i mod D of v is 0" of step i counts D (1-r) ridge r^(n-1-i).
    """
    Phi, r = np.asarray(Phi, dtype=float), forgetting
    (n, size), w = Phi.shape, np.ones(len(Phi)) if w is None else np.asarray(w)
    rows = [*Phi, *np.eye(size)]
    targets = [*z, *np.zeros(size)]
    counts = [w[i] * r ** (n - i) for i in range(n)] + [ridge * r**n] * size
    if r < 1:
        for i in range(n):
            rows.append(np.eye(size)[i % size])
            targets.append(0.0)
            counts.append(size * (1 - r) * ridge * r ** (n - 1 - i))
    root = np.sqrt(counts)
    return np.linalg.lstsq(root[:, None] * rows, root * targets, rcond=None)[0]


def prior_solution(Phi, z, ridge, forgetting, w=None):
    """Weights that wander, cov(v_s, v_t) = r^(|s-t|/2) I / ridge: their mean after n samples.

    Sample i (from 0) is Phi_i . v_i plus noise of variance 1 / w_i; the result is the mean of v_n.
    """
    Phi, n = np.asarray(Phi, dtype=float), len(Phi)
    w, time = np.ones(n) if w is None else np.asarray(w), np.arange(n)
    together = forgetting ** (np.abs(time[:, None] - time) / 2)
    C = together * (Phi @ Phi.T) / ridge + np.diag(1 / w)
    return (forgetting ** ((n - time) / 2) * solve(C, np.asarray(z, dtype=float))) @ Phi / ridge
