"""Raker: random-feature online multi-kernel learning (naive reference).

Y. Shen, T. Chen, G. B. Giannakis, "Random feature-based online multi-kernel learning in
environments with unknown dynamics", JMLR 20(22), 2019 (arXiv 1712.09983). (Stated from memory of the
paper; the steps agree with the Python Raker of pouyamghari/OMKL-GF_ICML_2020.)

  features    z_p(x) = D^-1/2 [sin(v_1'x) .. sin(v_D'x), cos(v_1'x) .. cos(v_D'x)],
              v_i drawn from the kernel's spectral density
  prediction  f_p = theta_p' z_p(x),   f = sum_p wbar_p f_p,   wbar = w / sum(w)
  loss        L_p = (f_p - y)^2 + lam |theta_p|^2, or the squared error only (weight_loss="plain")
  step        theta_p <- theta_p - eta [2 (f_p - y) z_p + 2 lam theta_p]
  weights     w_p <- w_p exp(-eta_weights L_p)          (the same eta in the paper's algorithm)
  start       theta_p = 0, w_p = 1/P

No clipping, no floor of the weights: computed in logarithms, mathematically the same. eta may be a
(T,) array.
"""

import numpy as np


def raw_features(x, frequencies):
    """x (T,d), frequencies (P,D,d) -> (T,P,2D), sines first, without D^-1/2."""
    angles = np.einsum("pmd,td->tpm", frequencies, x)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=2)


def raker(z, y, eta, lam, weight_loss, eta_weights):
    """z (T,P,M), y (T,).  Returns prediction (T,), kernel_predictions (T,P), weights (T+1,P), of
    which row t is used at step t."""
    T, P, M = z.shape
    eta = np.broadcast_to(eta, (T,))
    theta, log_w = np.zeros((P, M)), np.zeros(P)
    f, weights = np.empty((T, P)), np.full((T + 1, P), 1 / P)
    for t in range(T):
        f[t] = [theta[p] @ z[t, p] for p in range(P)]
        penalty = lam * (theta**2).sum(axis=1) if weight_loss == "regularised" else 0.0
        log_w = log_w - eta_weights * ((f[t] - y[t]) ** 2 + penalty)
        e = np.exp(log_w - log_w.max())
        weights[t + 1] = e / e.sum()
        theta = theta - eta[t] * (2 * (f[t] - y[t])[:, None] * z[t] + 2 * lam * theta)
    prediction = np.array([weights[t] @ f[t] for t in range(T)])
    return {"prediction": prediction, "kernel_predictions": f, "weights": weights}
