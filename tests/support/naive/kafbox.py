"""Kernel adaptive filters with the conventions of steven2358/kafbox (naive reference).

Kernel Adaptive Filtering Toolbox, S. Van Vaerenbergh; read: krls.m (059445e), krlst.m (1e56d66,
6643fd3, 311e4f4, 7142d02, 4e1166b), norma.m (18a30e5, 4e1166b), swkrls.m (0da97ba, 29d97dc, 18a30e5),
fbkrls.m (18a30e5), base/kernel.m.
Kernel 'gauss': k(a,b) = exp(-|a-b|^2 / (2 w^2)), w = kernelpar.  Protocol: evaluate(x_t), then
train(x_t, y_t); prediction 0 with an empty dictionary.  All functions return the evaluate() predictions.

KRLS (Engel, Mannor, Meir, IEEE TSP 2004; ALD threshold nu 1e-4, at most M = 1000 bases)
  a = Kinv k, delta = k_tt - k'a; delta > nu and m < M: grow (Kinv by block inverse, P <- diag(P,1),
  o = (y - k'alpha)/delta, alpha <- [alpha - a o; o]); else q = P a/(1+a'Pa), P <- P - q a'P,
  alpha <- alpha + Kinv q (y - k'alpha).  No regularisation, no jitter.
KRLS-T (Van Vaerenbergh, Lazaro-Gredilla, Santamaria, TNNLS 2012; back-to-the-prior forgetting)
  evaluate: mean = k'Q mu with the posterior of t-1, i.e. BEFORE forgetting; variance
  s02 (sn2 + k_tt + jitter + k'(Q Sigma Q - Q)k), unknown scale (nan) at the first step.
  train: Sigma <- lam Sigma + (1-lam) K, mu <- sqrt(lam) mu; then predict again: y_mean = q'mu is
  sqrt(lam) times evaluate's mean, and is what the update and s02 use; k_tt + jitter; gamma2 = k_tt - k'q;
  h = Sigma q, sf2 = gamma2 + q'h, sy2 = sn2 + sf2; grow Q, mu, Sigma; nums += lam (y-y_mean)^2/sy2,
  dens += lam, s02 = nums/dens (the old sums are NOT discounted); if m > M or gamma2 < jitter remove one
  basis: the new one when gamma2 < jitter (Q back to the old), else argmin |Q mu|/diag(Q).
  jitter_in_forget: K + jitter I in the forgetting step (7142d02 and later) or K (earlier files).
  predict_after_forgetting=True returns y_mean and s02 sy2 instead of evaluate's values.
  Defaults lam .999, sn2 1e-2 (1e-4 earlier), M 100, jitter 1e-6, w 1.
NORMA (Kivinen, Smola, Williamson, IEEE TSP 2004; squared loss with gradient -(y-f), no factor 2)
  train: alpha <- (1 - lam eta) alpha FIRST, then err = y - f(x) with the shrunk alpha, append eta err;
  drop the oldest beyond tau.  tcoeff (eta_t = eta t^tcoeff) is declared but not used in the files read;
  order="paper" takes the error before the shrinkage.  Defaults tau 500, lam 1e-2, eta .5.
SW-KRLS (Van Vaerenbergh, Via, Santamaria, ICASSP 2006): ridge (K + cI)^-1 y on the last M pairs.
  Files before 18a30e5 test numel(b) > 1, which spoils the second sample's inverse (not followed).
FB-KRLS (Van Vaerenbergh et al., ICASSP 2010; no label update): append, alpha = Kinv y,
  Kinv = (K + lam I)^-1; beyond M remove argmin |alpha|/diag(Kinv) (leave-one-out error), alpha again.
"""

import numpy as np


def gauss(a, b, w):
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * w**2))


def krls(x, y, width, nu=1e-4, M=1000):
    """Returns predictions (T,), list of dictionaries (indices after each step), list of alphas."""
    f, D, dicts, alphas = np.zeros(len(y)), [], [], []
    for t in range(len(y)):
        if not D:
            Kinv, alpha, P, D = np.ones((1, 1)), np.array([y[t]]), np.ones((1, 1)), [t]
        else:
            k = gauss(x[D], x[t], width)[:, 0]
            f[t] = k @ alpha
            a, e = Kinv @ k, y[t] - f[t]
            delta = 1.0 - k @ a
            if delta > nu and len(D) < M:
                D = [*D, t]
                Kinv = np.block(
                    [
                        [Kinv + np.outer(a, a) / delta, -a[:, None] / delta],
                        [-a[None] / delta, np.array([[1 / delta]])],
                    ]
                )
                P = np.block([[P, np.zeros((len(P), 1))], [np.zeros((1, len(P))), np.ones((1, 1))]])
                alpha = np.append(alpha - a * e / delta, e / delta)
            else:
                q = P @ a / (1 + a @ P @ a)
                P = P - np.outer(q, a @ P)
                alpha = alpha + Kinv @ q * e
        dicts.append(list(D)), alphas.append(alpha.copy())
    return f, dicts, alphas


def krls_t(
    x,
    y,
    width,
    lam=0.999,
    sn2=1e-2,
    M=100,
    jitter=1e-6,
    jitter_in_forget=True,
    predict_after_forgetting=False,
):
    """Returns dict: mean (T,), var (T,) (nan at step 0), s02 (T,), dicts, mus, Sigmas, Qs (after step)."""
    T, D = len(y), []
    o = {
        "mean": np.zeros(T),
        "var": np.full(T, np.nan),
        "s02": np.empty(T),
        "dicts": [],
        "mus": [],
        "Sigmas": [],
        "Qs": [],
    }
    for t in range(T):
        if not D:
            k = 1.0 + jitter
            Q, mu, S, D = np.array([[1 / k]]), np.array([y[t] * k / (k + sn2)]), None, [t]
            S = np.array([[k - k**2 / (k + sn2)]])
            nums, dens = y[t] ** 2 / (k + sn2), 1.0
        else:
            m = len(D)
            k = gauss(x[D], x[t], width)[:, 0]
            q = Q @ k
            o["mean"][t] = q @ mu
            o["var"][t] = nums / dens * (sn2 + max(0.0, 1 + jitter + k @ (Q @ S @ Q - Q) @ k))
            S = lam * S + (1 - lam) * (
                gauss(x[D], x[D], width) + jitter_in_forget * jitter * np.eye(m)
            )
            mu = np.sqrt(lam) * mu
            ym, g2, h = q @ mu, max(0.0, 1 + jitter - k @ q), S @ q
            sf2 = max(0.0, g2 + q @ h)
            sy2 = sn2 + sf2
            if predict_after_forgetting:
                o["mean"][t], o["var"][t] = ym, nums / dens * sy2
            Qold, p = Q, np.append(q, -1.0)
            if g2 > 0:
                Q = np.block([[Q, np.zeros((m, 1))], [np.zeros((1, m + 1))]]) + np.outer(p, p) / g2
            p = np.append(h, sf2)
            mu = np.append(mu, ym) + (y[t] - ym) / sy2 * p
            S = np.block([[S, h[:, None]], [h[None], np.array([[sf2]])]]) - np.outer(p, p) / sy2
            D = [*D, t]
            nums, dens = nums + lam * (y[t] - ym) ** 2 / sy2, dens + lam
            if len(D) > M or g2 < jitter:
                r = m if g2 < jitter else int(np.argmin(np.abs(Q @ mu / np.diag(Q))))
                keep = [i for i in range(m + 1) if i != r]
                Q = (
                    Qold
                    if r == m
                    else Q[np.ix_(keep, keep)] - np.outer(Q[keep, r], Q[keep, r]) / Q[r, r]
                )
                mu, S, D = mu[keep], S[np.ix_(keep, keep)], [D[i] for i in keep]
        o["s02"][t] = nums / dens
        for name, v in (
            ("dicts", list(D)),
            ("mus", mu.copy()),
            ("Sigmas", S.copy()),
            ("Qs", Q.copy()),
        ):
            o[name].append(v)
    return o


def norma(x, y, width, eta=0.5, lam=1e-2, tau=500, tcoeff=0.0, order="kafbox"):
    """Returns predictions (T,) and list of alphas (oldest first, last min(t+1, tau) samples)."""
    f, alpha, D, alphas = np.zeros(len(y)), np.zeros(0), [], []
    for t in range(len(y)):
        k = gauss(x[D], x[t], width)[:, 0] if D else np.zeros(0)
        f[t] = k @ alpha
        step = eta * (t + 1.0) ** tcoeff
        shrunk = (1 - lam * step) * alpha
        err = y[t] - (k @ shrunk if order == "kafbox" else f[t])
        alpha, D = np.append(shrunk, step * err)[-tau:], ([*D, t])[-tau:]
        alphas.append(alpha.copy())
    return f, alphas
