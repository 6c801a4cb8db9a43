"""Kernel adaptive filters with the conventions of steven2358/kafbox (naive reference).

Kernel Adaptive Filtering Toolbox, S. Van Vaerenbergh; read: krls.m (059445e), krlst.m (1e56d66,
6643fd3, 311e4f4, 7142d02, 4e1166b), norma.m (18a30e5, 4e1166b), base/kernel.m (18a30e5).
Kernel 'gauss': k(a,b) = exp(-|a-b|^2 / (2 w^2)). Protocol: evaluate(x_t), then train(x_t, y_t);
prediction 0 with an empty dictionary. All functions return the evaluate() predictions, (T,).

KRLS (Engel, Mannor, Meir, IEEE TSP 2004; ALD threshold nu, at most M bases)
  a = Kinv k, delta = k_tt - k'a; delta > nu and m < M: grow (Kinv by block inverse, P <- diag(P,1),
  o = (y - k'alpha)/delta, alpha <- [alpha - a o; o]); else q = P a/(1+a'Pa), P <- P - q a'P,
  alpha <- alpha + Kinv q (y - k'alpha). No regularisation, no jitter.
KRLS-T (Van Vaerenbergh, Lazaro-Gredilla, Santamaria, TNNLS 2012; back-to-the-prior forgetting)
  evaluate: mean = k'Q mu with the posterior of t-1, i.e. BEFORE forgetting.
  train: Sigma <- lam Sigma + (1-lam) (K + jitter I), mu <- sqrt(lam) mu; y_mean = q'mu; k_tt + jitter;
  gamma2 = k_tt - k'q; h = Sigma q, sf2 = gamma2 + q'h, sy2 = sn2 + sf2; grow Q, mu, Sigma; if m > M
  or gamma2 < jitter remove one basis: the new one when gamma2 < jitter (Q back to the old), else
  argmin |Q mu|/diag(Q).
NORMA (Kivinen, Smola, Williamson, IEEE TSP 2004; squared loss with gradient -(y-f), no factor 2)
  train: alpha <- (1 - lam eta) alpha FIRST, then err = y - f(x) with the shrunk alpha, append eta err;
  drop the oldest beyond tau. order="paper" takes the error before the shrinkage.
"""

import numpy as np


def gauss(a, b, w):
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * w**2))


def bordered(A, corner=0.0):
    """A with one more row and column: zeros, and the corner."""
    out = np.pad(A, ((0, 1), (0, 1)))
    out[-1, -1] = corner
    return out


def krls(x, y, width, nu, M):
    """The predictions, and the dictionary at the end, as indices."""
    f, D = np.zeros(len(y)), [0]
    Kinv, alpha, P = np.ones((1, 1)), np.array([y[0]]), np.ones((1, 1))
    for t in range(1, len(y)):
        k = gauss(x[D], x[t], width)[:, 0]
        f[t] = k @ alpha
        a, e = Kinv @ k, y[t] - f[t]
        delta = 1.0 - k @ a
        if delta > nu and len(D) < M:
            D = [*D, t]
            border = np.append(-a, 1.0)
            Kinv = bordered(Kinv) + np.outer(border, border) / delta
            P = bordered(P, 1.0)
            alpha = np.append(alpha - a * e / delta, e / delta)
        else:
            q = P @ a / (1 + a @ P @ a)
            P = P - np.outer(q, a @ P)
            alpha = alpha + Kinv @ q * e
    return f, D


def krls_t(x, y, width, lam, sn2, M, jitter):
    """The means."""
    f, D, k = np.zeros(len(y)), [0], 1.0 + jitter
    Q, mu = np.array([[1 / k]]), np.array([y[0] * k / (k + sn2)])
    S = np.array([[k - k**2 / (k + sn2)]])
    for t in range(1, len(y)):
        m = len(D)
        k = gauss(x[D], x[t], width)[:, 0]
        q = Q @ k
        f[t] = q @ mu
        S = lam * S + (1 - lam) * (gauss(x[D], x[D], width) + jitter * np.eye(m))
        mu = np.sqrt(lam) * mu
        mean, gamma2, h = q @ mu, max(0.0, 1 + jitter - k @ q), S @ q
        sf2 = max(0.0, gamma2 + q @ h)
        sy2 = sn2 + sf2
        old, p = Q, np.append(q, -1.0)
        if gamma2 > 0:
            Q = bordered(Q) + np.outer(p, p) / gamma2
        p = np.append(h, sf2)
        mu = np.append(mu, mean) + (y[t] - mean) / sy2 * p
        S = np.block([[S, h[:, None]], [h[None], np.array([[sf2]])]]) - np.outer(p, p) / sy2
        D = [*D, t]
        if len(D) > M or gamma2 < jitter:
            r = m if gamma2 < jitter else int(np.argmin(np.abs(Q @ mu / np.diag(Q))))
            keep = [i for i in range(m + 1) if i != r]
            without = Q[np.ix_(keep, keep)] - np.outer(Q[keep, r], Q[keep, r]) / Q[r, r]
            Q = old if r == m else without
            mu, S, D = mu[keep], S[np.ix_(keep, keep)], [D[i] for i in keep]
    return f


def norma(x, y, width, eta, lam, tau, order="kafbox"):
    """The predictions."""
    f, alpha, D = np.zeros(len(y)), np.zeros(0), []
    for t in range(len(y)):
        k = gauss(x[D], x[t], width)[:, 0] if D else np.zeros(0)
        f[t] = k @ alpha
        shrunk = (1 - lam * eta) * alpha
        err = y[t] - (k @ shrunk if order == "kafbox" else f[t])
        alpha, D = np.append(shrunk, eta * err)[-tau:], ([*D, t])[-tau:]
    return f
