"""Hilbert-space Gaussian processes and dynamic online ensembles of basis expansions (naive reference).

A. Solin, S. Sarkka, "Hilbert space methods for reduced-rank Gaussian process regression", Statistics
and Computing 30, 2020.  D. Waxman, P. M. Djuric, "Dynamic online ensembles of basis expansions",
TMLR 2024; code DanWaxman/DynamicOnlineBasisExpansions (models.py, doebe.py, sdoebe.py at 095c4a4).

Domain [-L_1,L_1] x .. x [-L_d,L_d], Dirichlet Laplacian; multi-index j = (j_1..j_d), j_k >= 1:
  phi_j(x) = prod_k L_k^-1/2 sin(pi j_k (x_k + L_k) / (2 L_k)),  omega_jk = pi j_k / (2 L_k)
  k(x,x') ~ sum_j S(omega_j) phi_j(x) phi_j(x');  scaled features sqrt(S(omega_j)) phi_j(x)
Spectral densities (variance s2, length scales l_k, u = sum_k (l_k omega_k)^2):
  Gaussian  S = s2 (2 pi)^(d/2) prod l_k exp(-u/2)                  for exp(-r^2/2), r^2 = sum (dx_k/l_k)^2
  Matern nu S = s2 2^d pi^(d/2) Gamma(nu+d/2) (2 nu)^nu / Gamma(nu) prod l_k (2 nu + u)^-(nu+d/2)
Indices: full grid of m_k per dimension (Solin-Sarkka), or additive: m per dimension side by side, i.e.
the sum of d one-dimensional kernels, s2 each (DOAddHSGP of the code).
code_index=True follows featurize of the code, where the sines use linspace(1, M+1, M) in place of
1..M (non-integer frequencies, not zero at +L, while sqrt(S) uses 1..M): looks like a slip.

Recursive regression on features z (weights theta, noise variance n2):
  theta_0 ~ N(0, prior I);  each step: P <- P + walk I (random walk; 0 = static), then
  m = z'theta, v = z'Pz + n2;  theta <- theta + P z (y-m)/v;  P <- P - P z z'P/v
  The code adds the walk before the first step too (walk_first=True) and caps v at 1e6 in the loss only.
Ensemble (DOEBE): w_k <- w_k N(y; m_k, v_k), normalised; weights < 1e-16 before an update go to zero.
  Switching S-DOEBE: w <- Q w first.  Mean sum w m, variance sum w (v + (mean-m)^2).
  weights="predictive": those before y_t (an honest forecast; the authors' later repository,
  OnlineBayesianStacking, does this).  weights="code": doebe.py and sdoebe.py of the TMLR repository
  combine the predictions of step t with the weights AFTER y_t was seen.
Settings of the code: x and y standardised with the mean and std of the first 1000 points, clipped to
+-1000; nMSE = mean squared error / var(y); PLL = Gaussian log density with the mixture's moments.
"""

import math

import numpy as np

from .bayesian_ensembles import bma, gaussian_log_scores, switching


def spectral_density(omega, lengths, s2=1.0, kernel="gaussian", nu=1.5):
    """omega (J,d) -> (J,)."""
    omega, lengths = np.atleast_2d(omega), np.asarray(lengths, float)
    d, out = omega.shape[1], np.empty(len(omega))
    for j in range(len(omega)):
        u = ((lengths * omega[j]) ** 2).sum()
        if kernel == "gaussian":
            out[j] = s2 * (2 * math.pi) ** (d / 2) * lengths.prod() * math.exp(-u / 2)
        else:
            c = 2**d * math.pi ** (d / 2) * math.gamma(nu + d / 2) * (2 * nu) ** nu / math.gamma(nu)
            out[j] = s2 * c * lengths.prod() * (2 * nu + u) ** -(nu + d / 2)
    return out


def features(x, L, m, lengths, s2=1.0, kernel="gaussian", nu=1.5):
    """x (T,d), L (d,), m (d,) -> (T, prod m), last dimension's index fastest."""
    T, d = x.shape
    index = np.stack(np.meshgrid(*[np.arange(1, k + 1) for k in m], indexing="ij"), -1).reshape(
        -1, d
    )
    omega = math.pi * index / (2 * np.asarray(L, float))
    z = np.empty((T, len(index)))
    root = np.sqrt(spectral_density(omega, lengths, s2, kernel, nu))
    for t in range(T):
        for j in range(len(index)):
            z[t, j] = root[j] * np.prod(np.sin(omega[j] * (x[t] + L)) / np.sqrt(L))
    return z


def additive_features(x, L, m, lengths, s2=1.0, kernel="gaussian", nu=1.5, code_index=False):
    """One-dimensional features of every dimension side by side: (T, d*m)."""
    blocks = []
    for k in range(x.shape[1]):
        j = np.arange(1, m + 1)
        root = np.sqrt(
            spectral_density(math.pi * j[:, None] / (2 * L[k]), [lengths[k]], s2, kernel, nu)
        )
        freq = math.pi / (2 * L[k]) * (np.linspace(1, m + 1, m) if code_index else j)
        blocks.append(root * np.sin((x[:, k : k + 1] + L[k]) * freq) / np.sqrt(L[k]))
    return np.concatenate(blocks, axis=1)


def recursive_regression(z, y, n2, prior=1.0, walk=0.0, walk_first=True):
    """z (T,M) -> predictive means, variances (with noise), thetas (T+1,M), last covariance."""
    T, M = z.shape
    theta, P = np.zeros((T + 1, M)), prior * np.eye(M)
    mean, var = np.empty(T), np.empty(T)
    for t in range(T):
        if t > 0 or walk_first:
            P = P + walk * np.eye(M)
        Pz = P @ z[t]
        mean[t], var[t] = z[t] @ theta[t], z[t] @ Pz + n2
        theta[t + 1] = theta[t] + Pz * (y[t] - mean[t]) / var[t]
        P = P - np.outer(Pz, Pz) / var[t]
    return mean, var, theta, P


def ensemble(mean, var, y, Q=None, drop=1e-16, weights="predictive"):
    """mean, var (T,K) -> mixture mean, variance (T,), weights used (T,K)."""
    L = gaussian_log_scores(mean, var, y)
    w = bma(L, drop=drop) if Q is None else switching(L, Q)
    if weights == "predictive":
        used = w[:-1]
    elif Q is None:
        used = w[1:]
    else:  # posterior: predictive times likelihood
        used = w[:-1] * np.exp(L - L.max(axis=1, keepdims=True))
        used = used / used.sum(axis=1, keepdims=True)
    mix = (used * mean).sum(axis=1)
    return mix, (used * (var + (mix[:, None] - mean) ** 2)).sum(axis=1), used
