"""Online combination of predictive densities: BMA, DMA, switching, stacking by log scores (naive).

D. Waxman, F. Llorente, P. M. Djuric, "Bayesian ensembling: insights from online optimization and
empirical Bayes" (online Bayesian stacking, OBS), arXiv 2505.15638, 2025; code
DanWaxman/OnlineBayesianStacking (OnlineGPsExperiment/compute_obs_weights.py was read; the paper's
text was not at hand beyond its opening).  Also: A. Raftery et al., DMA, Technometrics 2010; Helmbold
et al., EG, 1998; L. Orseau et al., Soft-Bayes, ALT 2017; A. Agarwal et al., ONS portfolios, ICML 2006.

K models, l_k = log N(y; m_k, v_k), r_k = exp(l_k).  Every function maps log scores L (T,K) to weights
(T+1,K): row t is used at step t (before y_t), row T after the last.  Start uniform.
  BMA        w_k <- w_k r_k^alpha, normalised (alpha = 1; alpha < 1 is a tempered posterior)
  threshold  models whose weight < drop before an update are set to 0 for good (DOEBE code: 1e-16)
  DMA        predictive w_k ~ (posterior_k)^gamma, then posterior ~ predictive r_k.  Row t is the
             predictive; row T is the predictive for T+1.  Code: gamma .99, no constant; Raftery et al.
             add c = .001/K before normalising (argument).
  switching  predictive_i = sum_j Q_ij posterior_j (S-DOEBE of Waxman and Djuric, TMLR 2024)
  OBS maximises sum_t log(w'r_t) over the simplex, g = r/(w'r):
  EG         w_k <- w_k exp(eta g_k), normalised (code: eta 1e-2); optional fixed share
             w <- (1-share) w + share/K (code: 1e-2)
  Soft-Bayes w_k <- w_k (1 - eta + eta g_k); decreasing rate (code): eta_t = sqrt(log K/(2 K t)), then
             w <- w eta_{t+1}/eta_t + (1 - eta_{t+1}/eta_t)/K
  ONS        r scaled by its maximum at t (leaves g unchanged); A = I, b = 0; A += g g',
             b += (1+1/beta) g, p = Proj_A(delta A^-1 b), w = (1-mix) p + mix/K (code: delta .8,
             beta 1e-2, mix 1e-2); g at the mixed w
  D-ONS      A <- (1-gamma) eps I + gamma A + g g', p = Proj_A(w + A^-1 g/beta), mixed as above
             (code: gamma .99, beta 1, mix 0, eps 1)
  Proj_A(x) = argmin over the simplex of (p-x)'A(p-x) (cvxopt there, active set here).
Mixture: mean = sum w m, variance = sum w (v + (m-mean)^2), log score = log sum w r.
"""

import numpy as np


def lse(a):
    m = np.max(a)
    return m if not np.isfinite(m) else m + np.log(np.exp(a - m).sum())


def gaussian_log_scores(mean, var, y):
    return -0.5 * (np.log(2 * np.pi * var) + (y[:, None] - mean) ** 2 / var)


def mixture(weights, mean, var, L):
    """weights (T,K) used at each step -> mixture means, variances, log scores, each (T,)."""
    T = len(mean)
    m, v, s = np.empty(T), np.empty(T), np.empty(T)
    for t in range(T):
        w = weights[t]
        m[t] = w @ mean[t]
        v[t] = w @ (var[t] + (mean[t] - m[t]) ** 2)
        s[t] = lse(L[t][w > 0] + np.log(w[w > 0]))
    return m, v, s


def bma(L, alpha=1.0, drop=0.0):
    T, K = L.shape
    logw, out = np.full(K, -np.log(K)), np.empty((T + 1, K))
    for t in range(T):
        out[t] = np.exp(logw)
        logw = np.where(np.exp(logw) < drop, -np.inf, logw) + alpha * L[t]
        logw = logw - lse(logw)
    out[T] = np.exp(logw)
    return out


def dma(L, gamma=0.99, c=0.0):
    T, K = L.shape
    post, out = np.full(K, 1.0 / K), np.empty((T + 1, K))
    for t in range(T + 1):
        with np.errstate(divide="ignore"):
            a = gamma * np.log(post)
        p = np.exp(a - lse(a)) + c
        out[t] = p / p.sum()
        if t < T:
            with np.errstate(divide="ignore"):
                a = np.log(out[t]) + L[t]
            post = np.exp(a - lse(a))
    return out


def switching(L, Q):
    """Q (K,K), Q[i,j] = P(model i now | model j before); row t of the result is the predictive."""
    T, K = L.shape
    post, out = np.full(K, 1.0 / K), np.empty((T + 1, K))
    for t in range(T + 1):
        out[t] = Q @ post
        if t < T:
            with np.errstate(divide="ignore"):
                a = np.log(out[t]) + L[t]
            post = np.exp(a - lse(a))
    return out


def stacking_gradient(w, scores):
    """r / (w'r), computed safely."""
    r = np.exp(scores - scores.max())
    return r / (w @ r)


def stacking_eg(L, eta=1e-2, share=0.0):
    T, K = L.shape
    w, out = np.full(K, 1.0 / K), np.empty((T + 1, K))
    for t in range(T):
        out[t] = w
        with np.errstate(divide="ignore"):
            a = np.log(w) + eta * stacking_gradient(w, L[t])
        w = (1 - share) * np.exp(a - lse(a)) + share / K
    out[T] = w
    return out


def soft_bayes(L, eta=None):
    """eta None: the decreasing rate with its correction; a number: constant rate."""
    T, K = L.shape
    w, out = np.full(K, 1.0 / K), np.empty((T + 1, K))
    for t in range(T):
        out[t] = w
        rate = np.sqrt(np.log(K) / (2 * K * (t + 1))) if eta is None else eta
        w = w * (1 - rate + rate * stacking_gradient(w, L[t]))
        if eta is None:
            c = np.sqrt((t + 1) / (t + 2))
            w = w * c + (1 - c) / K
    out[T] = w
    return out


def project(x, A, tol=1e-12):
    """argmin over the simplex of (p-x)'A(p-x): active set, exact."""
    K = len(x)
    p, free = np.full(K, 1.0 / K), np.ones(K, bool)
    for _ in range(50 * K + 100):
        F = np.flatnonzero(free)
        Z = np.flatnonzero(~free)
        B = A[np.ix_(F, F)]  # minimise over p_F with p_Z = 0, sum p_F = 1
        c = np.linalg.solve(B, np.stack([A[F] @ x, np.ones(len(F))], axis=1))
        nu = (1 - c[:, 0].sum()) / c[:, 1].sum()
        q = np.zeros(K)
        q[F] = c[:, 0] + nu * c[:, 1]
        if (q[F] >= -tol).all():
            p = np.maximum(q, 0)
            mult = (A @ (p - x))[Z] - nu  # >= 0 at the optimum
            if len(Z) == 0 or mult.min() >= -1e-9 * max(1.0, np.abs(A).max()):
                return p / p.sum()
            free[Z[int(np.argmin(mult))]] = True
        else:
            neg = [i for i in F if q[i] < -tol]
            steps = [p[i] / (p[i] - q[i]) for i in neg]
            p = p + min(steps) * (q - p)
            free[neg[int(np.argmin(steps))]] = False
    raise RuntimeError("active set did not finish")


def ons(L, delta=0.8, beta=1e-2, mix=1e-2):
    T, K = L.shape
    w, out, A, b = np.full(K, 1.0 / K), np.empty((T + 1, K)), np.eye(K), np.zeros(K)
    for t in range(T):
        out[t] = w
        g = stacking_gradient(w, L[t])
        A = A + np.outer(g, g)
        b = b + (1 + 1 / beta) * g
        w = (1 - mix) * project(delta * np.linalg.solve(A, b), A) + mix / K
    out[T] = w
    return out


def discounted_ons(L, gamma=0.99, beta=1.0, mix=0.0, eps=1.0):
    T, K = L.shape
    w, out, A = np.full(K, 1.0 / K), np.empty((T + 1, K)), eps * np.eye(K)
    for t in range(T):
        out[t] = w
        g = stacking_gradient(w, L[t])
        A = (1 - gamma) * eps * np.eye(K) + gamma * A + np.outer(g, g)
        w = (1 - mix) * project(w + np.linalg.solve(A, g) / beta, A) + mix / K
    out[T] = w
    return out
