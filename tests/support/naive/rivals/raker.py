"""Raker: random-feature online multi-kernel learning (naive reference).

Y. Shen, T. Chen, G. B. Giannakis, "Random feature-based online multi-kernel learning in
environments with unknown dynamics", JMLR 20(22), 2019 (arXiv 1712.09983).

Equations (stated from memory of the paper; its full text was not at hand, so no equation
numbers are quoted; the steps agree with the Python Raker of pouyamghari/OMKL-GF_ICML_2020):

  features    z_p(x) = D^-1/2 [sin(v_1'x) .. sin(v_D'x), cos(v_1'x) .. cos(v_D'x)],
              v_i drawn from the kernel's spectral density (Gaussian kernel
              exp(-|x-x'|^2 / (2 s^2)): v ~ N(0, s^-2 I)); orthogonal variant: v_i = s^-1 r_i q_i,
              q_i rows of random orthogonal matrices, r_i ~ chi with d degrees of freedom.
  prediction  f_p = theta_p' z_p(x),   f = sum_p wbar_p f_p,   wbar = w / sum(w)
  loss        L_p = (f_p - y)^2 + lam |theta_p|^2
  step        theta_p <- theta_p - eta [2 (f_p - y) z_p + 2 lam theta_p]
  weights     w_p <- w_p exp(-eta L_p)          (same eta in the paper's algorithm)
  start       theta_p = 0, w_p = 1/P

Differences, all arguments here:
  weight_loss  "regularised" (paper: L is the regularised loss) or "plain" (squared error only).
  penalty_at   "before": |theta|^2 at the theta that predicted (paper: L(f_p,t)).
               "after": the Python code above computes the penalty with the theta ALREADY updated
               (residual still the old one).
  eta_weights  None = eta (paper).  The authors' Matlab does something else (see adaraker.py:
               w_p <- w_p beta^ratio + 1e-12 with losses rescaled to [-1, 1]).
No clipping, no floor of the weights: computed in logarithms, mathematically the same.
eta and eta_weights may be (T,) arrays.  Comparison runs of Raker in the OMKL-GF notebooks (Table_1:
Air data): eta_t = 1/sqrt(t) in both steps (0.1/sqrt(t) in the JMLR 2023 notebooks), lam = 0.001,
D = 50, 17 kernels gamma_i = 10^((i-8)/2), i = 0..16, frequencies randn * sqrt(gamma_i), w = 1 at
the start, no further normalisation of AirData.mat, error = mean over all steps of (f_t - y_t)^2.
"""

import numpy as np


def fourier_features(x, freqs, normalise=True):
    """x (T,d), freqs (P,D,d) already divided by the width -> (T,P,2D), sines first."""
    T, P, D = len(x), freqs.shape[0], freqs.shape[1]
    z = np.empty((T, P, 2 * D))
    for t in range(T):
        for p in range(P):
            a = freqs[p] @ x[t]
            z[t, p, :D] = np.sin(a)
            z[t, p, D:] = np.cos(a)
    return z / np.sqrt(D) if normalise else z


def exponential_weights(losses, eta, log_w0=None):
    """losses (T,P) -> normalised weights (T+1,P); row t is used at step t, row T is the last."""
    T, P = losses.shape
    eta = np.broadcast_to(eta, (T,))
    log_w = np.full(P, -np.log(P)) if log_w0 is None else np.array(log_w0, float)
    out = np.empty((T + 1, P))
    for t in range(T + 1):
        e = np.exp(log_w - log_w.max())
        out[t] = e / e.sum()
        if t < T:
            log_w = log_w - eta[t] * losses[t]
    return out


def kernel_sgd(z, y, eta, lam):
    """One kernel: z (T,M), y (T,) -> predictions (T,), thetas (T+1,M) (row t used at step t)."""
    T, M = z.shape
    eta = np.broadcast_to(eta, (T,))
    theta = np.zeros((T + 1, M))
    f = np.empty(T)
    for t in range(T):
        f[t] = theta[t] @ z[t]
        theta[t + 1] = theta[t] - eta[t] * (2 * (f[t] - y[t]) * z[t] + 2 * lam * theta[t])
    return f, theta


def raker(z, y, eta, lam, weight_loss="regularised", penalty_at="before", eta_weights=None):
    """z (T,P,M), y (T,).  Returns dict: prediction (T,), kernel_predictions (T,P),
    weights (T+1,P) normalised, thetas (T+1,P,M), losses (T,P) as they enter the weights."""
    T, P, M = z.shape
    f = np.empty((T, P))
    thetas = np.empty((T + 1, P, M))
    for p in range(P):
        f[:, p], thetas[:, p] = kernel_sgd(z[:, p], y, eta, lam)
    losses = (f - y[:, None]) ** 2
    if weight_loss == "regularised":
        th = thetas[:-1] if penalty_at == "before" else thetas[1:]
        losses = losses + lam * (th**2).sum(axis=2)
    elif weight_loss != "plain":
        raise ValueError(weight_loss)
    w = exponential_weights(losses, eta if eta_weights is None else eta_weights)
    pred = np.array([w[t] @ f[t] for t in range(T)])
    return {
        "prediction": pred,
        "kernel_predictions": f,
        "weights": w,
        "thetas": thetas,
        "losses": losses,
    }
