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
              r_I = L_t(f_t) - L_t(f_I)  (> 0: the instance beat the ensemble);  update="linear"
              is Daniely et al.'s h_I (1 + eta(I) r_I).
  With fresh starts the instance of length 1 always predicts 0 and short ones nearly so, and their
  h starts largest: on bounded losses the ensemble shrinks towards 0 (demo: MSE 0.154 against 0.020
  with restart=False).  The authors' code does not restart (below).
  L_t here is the squared error (loss="plain"); loss="regularised" adds lam |.|^2 of the
  concatenated coefficients w_p theta_p (an assumption: the paper does not spell the norm out).

AUTHORS' MATLAB (N1cekiko/AdaRaker, commits fc17f30, 1f1047a, 9154716; function adaraker_matlab)
test_adap_mkl_main.m loads TomData (no script for the Air data is published, AirData.mat is not in
the repository, and no normalisation is done in the code: the .mat files come prepared):
  kernels    params.sigma = [0.1 1 10] MULTIPLIES the frequencies: Gaussian widths 10, 1, 0.1
  features   L = 50 frequencies, z = [sin(Vx); cos(Vx)] WITHOUT 1/sqrt(L) (|z|^2 = 50)
  V          orthogonal blocks Q (qr of randn(N,N)) times sigma * sqrt(chi2rnd(1)): chi with ONE
             degree of freedom, not N, so |v| ~ sigma |N(0,1)| and the kernel is not Gaussian if N>1
  start      theta_p (the code's w) = 0; kernel weights (the code's theta) 1/3 each
  levels     S = 2; level k = 1..floor(log2 T)+1 stands for length 2^(k-1); at t it is active if
             k <= floor(log2(t-1))+1 (one level at t = 1); a new interval when (t-1) mod 2^(k-1) = 0
  rate       eta_k = min(0.1/S, 0.1/sqrt(S^k)): .05 .05 .0354 .025 ...  (k = 1: length 1)
  gradient   theta <- (1 - eta_k lam/10) theta + (eta_k/10) 2 (y-f) z, lam = 0.01: a further 1/10;
             i.e. step eta_k/10 on (y-f)^2 + (lam/2) |theta|^2; with features normalised by
             1/sqrt(50) the same path has step 50 eta_k/10 = 5 eta_k (0.25 at k = 1, 2)
  kernel w   e_p = (y-f_p)^2 (plain); ratio = (e - mid + 1e-12)/(halfrange + 1e-12) in [-1, 1];
             w_p <- w_p 0.5^ratio + 1e-12 (best kernel doubles, worst halves, whatever the scale);
             divided by its sum only if max > 1e10
  restart    NONE: at a new interval theta and w are KEPT; only h_k is set to eta_k
  h          start 1 for every level, active or not; h_k <- h_k b^ratio_k + 1e-10 over active levels,
             b = eta of the LAST active level (0.05 or less: x20 for the best, /20 for the worst);
             then h is divided by its sum over ALL levels
  predict    f = sum_k h_k f_k / sum_k h_k over all levels, inactive ones contributing f = 0
  error      er_t = (f_t - y_t)^2, er_1 REPLACED BY 1; reported number = mean of er over all T steps
             (one run, plain MSE in the units of the .mat y, which seem scaled to [0,1])
AirData.mat, TomData.mat and TwitterData.mat are in JeongminChae/MKL_Online_Federated_Learning; the
OMKL-GF notebook uses AirData.mat as stored but scales other data (y to [0,1], x by max|x|).
The commented main of a descendant (file with mkl_online, mkl_adap_online_rf) sets all_step =
1/sqrt(T), beta .5, lambda .01, L 50, sigma [0.1 1 10] for Raker too, and lists Twitter/Tom/AirData.
"""

import numpy as np


def active_levels(t):
    """Levels j of the dyadic intervals containing t >= 1, and whether one starts at t."""
    return [(j, t % 2**j == 0) for j in range(t.bit_length())]


def adaraker(
    z,
    y,
    eta0,
    lam,
    update="exp",
    loss="plain",
    weight_loss="regularised",
    restart=True,
    max_rate=0.5,
):
    """z (T,P,M) normalised features.  Returns prediction (T,), instance_predictions (T,J) nan if
    inactive, h (T,J) as used (unnormalised), kernel_weights (T,J,P), kernel_predictions (T,J,P)."""
    T, P, M = z.shape
    J = T.bit_length()
    eta = np.array([min(max_rate, eta0 / np.sqrt(2.0**j)) for j in range(J)])
    theta, logw, h = np.zeros((J, P, M)), np.full((J, P), -np.log(P)), np.zeros(J)
    out = {
        "prediction": np.empty(T),
        "instance_predictions": np.full((T, J), np.nan),
        "h": np.zeros((T, J)),
        "kernel_weights": np.full((T, J, P), np.nan),
        "kernel_predictions": np.full((T, J, P), np.nan),
    }
    for i in range(T):
        levels = active_levels(i + 1)
        f, coef = np.zeros(J), np.zeros((J, P, M))
        for j, starts in levels:
            if starts:
                h[j] = eta[j]
                if restart:
                    theta[j], logw[j] = 0.0, -np.log(P)
            w = np.exp(logw[j] - logw[j].max())
            w /= w.sum()
            fp = np.array([theta[j, p] @ z[i, p] for p in range(P)])
            f[j], coef[j] = w @ fp, w[:, None] * theta[j]
            out["kernel_weights"][i, j], out["kernel_predictions"][i, j] = w, fp
            out["instance_predictions"][i, j] = f[j]
        act = [j for j, _ in levels]
        out["h"][i, act] = h[act]
        hb = h[act] / h[act].sum()
        pred = out["prediction"][i] = hb @ f[act]
        reg = lam if loss == "regularised" else 0.0
        mix = np.einsum("j,jpm->pm", hb, coef[act])
        combined = (pred - y[i]) ** 2 + reg * (mix**2).sum()
        for j in act:
            r = combined - ((f[j] - y[i]) ** 2 + reg * (coef[j] ** 2).sum())
            h[j] *= np.exp(eta[j] * r) if update == "exp" else 1 + eta[j] * r
            for p in range(P):
                e = out["kernel_predictions"][i, j, p] - y[i]
                pen = lam * (theta[j, p] ** 2).sum() if weight_loss == "regularised" else 0.0
                logw[j, p] -= eta[j] * (e**2 + pen)
                theta[j, p] -= eta[j] * (2 * e * z[i, p] + 2 * lam * theta[j, p])
    return out


def _ratio(e, tiny):
    return (e - (e.max() + e.min()) / 2 + tiny) / ((e.max() - e.min()) / 2 + tiny)


def adaraker_matlab(z, y, lam=0.01, beta=0.5, S=2, scale=0.1, step_divisor=10.0):
    """z (T,P,2L) UNNORMALISED features.  Returns prediction, errors (first = 1), mse, h (T,K) as
    used at each step (all levels), instance_predictions (T,K) (0 where inactive)."""
    T, P, M = z.shape
    K = int(np.floor(np.log(T) / np.log(S))) + 1
    eta = [min(scale / S, scale / np.sqrt(float(S) ** k)) for k in range(1, K + 1)]
    theta, w, h = np.zeros((K, P, M)), np.full((K, P), 1.0 / P), np.ones(K)
    F, H, pred, n = np.zeros((T, K)), np.zeros((T, K)), np.empty(T), 1
    for i in range(T):
        for k in range(n):
            if i % S**k == 0:
                h[k] = eta[k]
            fp = np.array([theta[k, p] @ z[i, p] for p in range(P)])
            F[i, k] = fp @ w[k] / w[k].sum()
            for p in range(P):
                theta[k, p] = (1 - eta[k] * lam / step_divisor) * theta[k, p] + eta[
                    k
                ] / step_divisor * 2 * (y[i] - fp[p]) * z[i, p]
            w[k] = w[k] * beta ** _ratio((y[i] - fp) ** 2, 1e-12) + 1e-12
            if w[k].max() > 1e10:
                w[k] /= w[k].sum()
        H[i] = h
        pred[i] = h @ F[i] / h.sum()
        h[:n] = h[:n] * eta[n - 1] ** _ratio((F[i, :n] - y[i]) ** 2, 1e-10) + 1e-10
        h = h / h.sum()
        n = int(np.floor(np.log(i + 1) / np.log(S))) + 1
    errors = (pred - y) ** 2
    errors[0] = 1.0
    return {
        "prediction": pred,
        "errors": errors,
        "mse": errors.mean(),
        "h": H,
        "instance_predictions": F,
    }
