"""Vovk-Azoury-Warmuth forecaster, and its two-level use over kernels, VAW^2 (naive reference).

V. Vovk, "Competitive on-line statistics", Int. Stat. Review 2001; K. Azoury, M. Warmuth, "Relative
loss bounds for on-line density estimation with the exponential family", Machine Learning 2001.
D. B. Rokhlin, O. V. Gurtovaya, "Random feature-based double Vovk-Azoury-Warmuth algorithm for online
multi-kernel learning", arXiv 2503.20087, 2025 (only the abstract and a summary were at hand: VAW
experts on each kernel's random Fourier features; a second VAW, or exponentially weighted averaging,
on their predictions; a concatenated-feature variant; number of features ~ sqrt(T)).  Their values of
the regularisers, clipping and kernels are NOT established; all are arguments.

VAW, features z_t known before predicting:
  A_t = lam I + sum_{s<=t} z_s z_s'   (the current z_t is in),   b_{t-1} = sum_{s<t} y_s z_s
  f_t = b_{t-1}' A_t^{-1} z_t
Equivalent: with ridge P_{t-1} = A_{t-1}^{-1}, f_t = ridge_t / (1 + z_t' P_{t-1} z_t).
Regret (|y_t| <= Y): sum (f_t-y_t)^2 <= min_u { lam |u|^2 + sum (u'z_t-y_t)^2 } + Y^2 sum z_t'A_t^{-1}z_t.
Discount (A. Jacobsen, A. Cutkosky, "Online linear regression in dynamic environments via discounting",
ICML 2024, with hint 0): A_t = z_t z_t' + g A_{t-1}, A_0 = lam I; b_t = y_t z_t + g b_{t-1};
f_t = g b_{t-1}' A_t^{-1} z_t.  g = 1 is VAW.

Second level: x_t = vector of the P experts' predictions at t (optionally clipped), VAW with lam2; the
weights may be negative and need not sum to one.  EWA: w <- w exp(-eta (f_p-y)^2), f = w'x.
"""

import numpy as np


def vaw(z, y, lam, discount=1.0):
    """z (T,M), y (T,) -> predictions (T,), coefficients (T,M) used at each step, leverages z'A^-1 z."""
    T, M = z.shape
    A, b = lam * np.eye(M), np.zeros(M)
    f, coef, lev = np.empty(T), np.empty((T, M)), np.empty(T)
    for t in range(T):
        A = discount * A + np.outer(z[t], z[t])
        coef[t] = np.linalg.solve(A, discount * b)
        f[t] = coef[t] @ z[t]
        lev[t] = z[t] @ np.linalg.solve(A, z[t])
        b = discount * b + y[t] * z[t]
    return f, coef, lev


def ridge_predictions(z, y, lam):
    """Forward predictions of online ridge regression (z_t not in A), for the identity above."""
    T, M = z.shape
    A, b, f = lam * np.eye(M), np.zeros(M), np.empty(T)
    shrink = np.empty(T)
    for t in range(T):
        f[t] = b @ np.linalg.solve(A, z[t])
        shrink[t] = 1 + z[t] @ np.linalg.solve(A, z[t])
        A += np.outer(z[t], z[t])
        b += y[t] * z[t]
    return f, shrink


def vaw_experts(z, y, lam, discount=1.0, clip=None):
    """z (T,P,M) -> expert predictions (T,P), clipped to [-clip, clip] if given."""
    x = np.stack([vaw(z[:, p], y, lam, discount)[0] for p in range(z.shape[1])], axis=1)
    return x if clip is None else np.clip(x, -clip, clip)


def vaw_aggregate(x, y, lam2, discount=1.0):
    """Second level on experts' predictions x (T,P): predictions (T,), weights (T,P)."""
    f, w, _ = vaw(x, y, lam2, discount)
    return f, w


def vaw2(z, y, lam1, lam2, discount1=1.0, discount2=1.0, clip=None):
    x = vaw_experts(z, y, lam1, discount1, clip)
    f, w = vaw_aggregate(x, y, lam2, discount2)
    return {"prediction": f, "expert_predictions": x, "weights": w}


def vaw_concatenated(z, y, lam):
    """One VAW on all kernels' features side by side; kernels scaled by P^-1/2 (their mean kernel)."""
    T, P, M = z.shape
    return vaw(z.reshape(T, P * M) / np.sqrt(P), y, lam)[0]


def ewa_aggregate(x, y, eta):
    """Exponentially weighted averaging of experts' predictions (second level of the comparison);
    eta <= 1/(8 Y^2) makes the square loss on [-Y, Y] exp-concave."""
    T, P = x.shape
    L, f, w = np.zeros(P), np.empty(T), np.empty((T, P))
    for t in range(T):
        e = np.exp(-eta * (L - L.min()))
        w[t] = e / e.sum()
        f[t] = w[t] @ x[t]
        L += (x[t] - y[t]) ** 2
    return f, w
