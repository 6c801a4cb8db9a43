"""AdaRaker: hierarchical ensemble of Raker instances (naive reference).

Y. Shen, T. Chen, G. B. Giannakis, "Random feature-based online multi-kernel learning in
environments with unknown dynamics", JMLR 20(22), 2019.  Construction after Daniely, Gonen,
Shalev-Shwartz, "Strongly adaptive online learning", ICML 2015.  (Full text not at hand: equations
from memory, no numbers quoted; the Matlab below was read.)

PAPER (function adaraker), t = 1, 2, ...
  intervals   I = [k 2^j, (k+1) 2^j - 1], k >= 1, j >= 0; active at t: j = 0..floor(log2 t)
  rate        eta(I) = min(1/2, eta0 / sqrt(|I|)): gradient step AND kernel weights of the instance
  instance    a Raker started afresh at I's first step (theta = 0, w = 1/P)
  ensemble    f_t = sum_I h_I f_I / sum_I h_I over active I
  weights     h_I = eta(I) at I's first step; then h_I <- h_I exp(eta(I) r_I),
              r_I = (f_t - y)^2 - (f_I - y)^2  (> 0: the instance beat the ensemble)
  With fresh starts the instance of length 1 always predicts 0 and short ones nearly so, and their
  h starts largest: on bounded losses the ensemble shrinks towards 0.

AUTHORS' MATLAB (N1cekiko/AdaRaker, commits fc17f30, 1f1047a, 9154716; function adaraker_matlab)
  features   z = [sin(Vx); cos(Vx)] WITHOUT 1/sqrt(L)
  start      theta_p (the code's w) = 0; kernel weights (the code's theta) 1/P each
  levels     S = 2; level k = 1..floor(log2 T)+1 stands for length 2^(k-1); at t it is active if
             k <= floor(log2(t-1))+1 (one level at t = 1); a new interval when (t-1) mod 2^(k-1) = 0
  rate       eta_k = min(0.1/S, 0.1/sqrt(S^k))
  gradient   theta <- (1 - eta_k lam/10) theta + (eta_k/10) 2 (y-f) z, lam = 0.01
  kernel w   e_p = (y-f_p)^2 (plain); ratio = (e - mid + 1e-12)/(halfrange + 1e-12) in [-1, 1];
             w_p <- w_p 0.5^ratio + 1e-12 (best kernel doubles, worst halves, whatever the scale);
             divided by its sum only if max > 1e10
  restart    NONE: at a new interval theta and w are KEPT; only h_k is set to eta_k
  h          start 1 for every level, active or not; h_k <- h_k b^ratio_k + 1e-10 over active levels,
             b = eta of the LAST active level; then h is divided by its sum over ALL levels
  predict    f = sum_k h_k f_k / sum_k h_k over all levels, inactive ones contributing f = 0
"""

import numpy as np


def adaraker(z, y, eta0, lam, weight_loss="regularised"):
    """z (T,P,M) normalised features.  Returns prediction (T,), h (T,J) as used (unnormalised),
    kernel_weights (T,J,P), kernel_predictions (T,J,P), NaN where a level is inactive."""
    T, P, M = z.shape
    J = T.bit_length()
    eta = [min(0.5, eta0 / np.sqrt(2.0**j)) for j in range(J)]
    theta, log_w, h = np.zeros((J, P, M)), np.zeros((J, P)), np.zeros(J)
    out = {"prediction": np.empty(T), "h": np.zeros((T, J))}
    out |= {name: np.full((T, J, P), np.nan) for name in ("kernel_weights", "kernel_predictions")}
    for i in range(T):
        active, f = range((i + 1).bit_length()), np.zeros(J)
        for j in active:
            if (i + 1) % 2**j == 0:
                h[j], theta[j], log_w[j] = eta[j], 0.0, 0.0
            w = np.exp(log_w[j] - log_w[j].max())
            w /= w.sum()
            fp = np.array([theta[j, p] @ z[i, p] for p in range(P)])
            f[j] = w @ fp
            out["kernel_weights"][i, j], out["kernel_predictions"][i, j] = w, fp
        act = list(active)
        out["h"][i, act] = h[act]
        prediction = out["prediction"][i] = h[act] @ f[act] / h[act].sum()
        for j in act:
            h[j] *= np.exp(eta[j] * ((prediction - y[i]) ** 2 - (f[j] - y[i]) ** 2))
            for p in range(P):
                e = out["kernel_predictions"][i, j, p] - y[i]
                penalty = lam * (theta[j, p] ** 2).sum() if weight_loss == "regularised" else 0.0
                log_w[j, p] -= eta[j] * (e**2 + penalty)
                theta[j, p] -= eta[j] * (2 * e * z[i, p] + 2 * lam * theta[j, p])
    return out


def _ratio(e, tiny):
    return (e - (e.max() + e.min()) / 2 + tiny) / ((e.max() - e.min()) / 2 + tiny)


def adaraker_matlab(z, y, lam=0.01, beta=0.5, S=2, scale=0.1, divisor=10.0):
    """z (T,P,2L) UNNORMALISED features.  Returns the predictions (T,)."""
    T, P, M = z.shape
    K = int(np.floor(np.log(T) / np.log(S))) + 1
    eta = [min(scale / S, scale / np.sqrt(float(S) ** k)) for k in range(1, K + 1)]
    theta, w, h = np.zeros((K, P, M)), np.full((K, P), 1.0 / P), np.ones(K)
    predictions, n = np.empty(T), 1
    for i in range(T):
        f = np.zeros(K)
        for k in range(n):
            if i % S**k == 0:
                h[k] = eta[k]
            fp = np.array([theta[k, p] @ z[i, p] for p in range(P)])
            f[k] = fp @ w[k] / w[k].sum()
            step = eta[k] / divisor
            for p in range(P):
                theta[k, p] = (1 - step * lam) * theta[k, p] + step * 2 * (y[i] - fp[p]) * z[i, p]
            w[k] = w[k] * beta ** _ratio((y[i] - fp) ** 2, 1e-12) + 1e-12
            if w[k].max() > 1e10:
                w[k] /= w[k].sum()
        predictions[i] = h @ f / h.sum()
        h[:n] = h[:n] * eta[n - 1] ** _ratio((f[:n] - y[i]) ** 2, 1e-10) + 1e-10
        h = h / h.sum()
        n = int(np.floor(np.log(i + 1) / np.log(S))) + 1
    return predictions
