"""OMKL-GF, OMKL-SFG and OMKL-SFG-R: online multi-kernel learning with feedback graphs (naive).

[1] P. M. Ghari, Y. Shen, "Online multi-kernel learning with graph-structured feedback", ICML 2020;
    code pouyamghari/OMKL-GF_ICML_2020 (mkl_algorithms.py, notebooks).
[2] P. M. Ghari, Y. Shen, "Graph-aided online multi-kernel learning", JMLR 24 (2023); code
    pouyamghari/Graph-Aided-Online-Multi-Kernel-Learning.
The papers' full texts were not at hand; this follows the authors' CODE, what looks like slips there
being arguments.  P kernels, z_p features (D^-1/2 normalised), f_p = theta_p'z_p.

OMKL-GF: J selective nodes, each joined to kernels drawn M times with replacement
  pmf of node j = 1..J    pi_j = (1 - xi^j) w/sum(w) + xi^j / P            (xi exploration = eta_t)
  kernel i in node j      a_ij = 1 - (1 - pi_ij)^M  (its probability),  A_ij = drawn or not
  node weights            u_j = sum_i A_ij w_i;  p_j = (1 - xi) u_j/sum(u) + xi/J;  node I ~ p
  prediction              f = sum_{i in S} w_i f_i / sum_{i in S} w_i,  S = {i : A_iI = 1}
  observation probability q_i = sum_j p_j a_ij      (p depends on the drawn A: not exactly P(i in S))
  losses, i in S only     l_i = [(f_i - y)^2 + lam |theta_i|^2] / q_i  (theta AFTER its step)
  step, i in S only       theta_i -= eta [2 (f_i - y) z_i + 2 lam theta_i] / c_i
  weights                 w_i *= exp(-eta k l_i)
  code of [1]: c_i = 1, k = 2^-floor(log2 J), and the graph (A, p, q) is frozen for good once a squared
  error < 1e-4 (freeze_below); code of [2]: c_i = q_i, q_i replaced by max(q_i, .05) (q_floor), k = 1,
  A and a frozen after step 300 or 500 (freeze_after) while p is recomputed.
  [1] Air: eta_t = xi_t = 1/sqrt(t), lam = .001, D = 50, gamma = 10^((i-8)/2) (17 kernels), frequencies
  randn*sqrt(gamma), w = 1, (M, J) in (1,7,10,17)x1, (1,7)x(2,4); MSE over all steps, mean of 200 runs.
  (steps divided by q as small as .05 diverge with eta_t = 1/sqrt(t): [2] uses .1/sqrt(t).)
  Air is used as stored; the Istanbul notebook scales y to [0,1] and x by max|x|.
draw: "exact" inverse cdf, or "code": while u > sum(p[:n]) (n from 0, stops at the last index), which is
  one too far: index n gets p[n-1], index 0 nothing, the last also its own.  [1] uses it for kernels
  and node, [2] for kernels in OMKL-GF (node exact) and for nodes in OMKL-SFG.

OMKL-SFG: one node per kernel, A (P,P), node i shows kernels {j : A_ij = 1}, fixed from distances:
  distance (first code)  sqrt(pi) [g_i + g_j - 2 sqrt2 g_i g_j / sqrt(g_i^2 + g_j^2)]
                         = integral of (exp(-r^2/2g_i^2) - exp(-r^2/2g_j^2))^2 dr
  (the last code has kernel_distance.py for Gaussian and Laplacian kernels instead; the stored file
  ends without a return, so its distances would be nan: pass your own dist)
  A: start with i; add M-1 times the kernel with the LARGEST summed distance to those chosen
  dominating set D: greedily the uncovered node covering most uncovered ones
  p_i = (1-xi) u_i/sum(u) + xi/|D| [i in D], node I ~ p, q_j = sum_i p_i A_ij
  prediction over S = neighbours of I with w; l_j, steps as above with max(q_j, .1) (q_floor) in both
  w_j *= exp(-eta l_j);  u_I *= exp(-eta (f - y)^2 / max(p_I, .2)) (p_floor); u = w = 1 at the start
  (the first version of the code puts f itself in place of (f - y)^2: u_loss="prediction").
  After step 300 (500) the code always takes node 0 (ter = 1, s_t = 0): stick_after.
OMKL-SFG-R: D_t = {i : u_i/sum(u) >= 10th largest (- 1e-7/(1-xi))}; B = A plus, for every kernel i, an
  edge to it from the member of D_t FARTHEST from it; p with D_t; q = pB; the prediction uses the
  neighbours in A, losses and steps those in B; no new refinement after step 300.  Settings [2]:
  eta_t = xi_t = .1/sqrt(t), lam = .001, D = 50, frequencies randn/sqrt(gamma), gamma = 10^(4i/50-2),
  M in 1,5,10,15,20, y to [0,1], x / max|x|, 20 runs.
Checked step by step (differences < 1e-15) against the authors' OMKLGF of [1] and OMKLSFG of [2], with
and without refinement, with the same uniforms and draw "code"; version="jmlr" was not run against it.
"""

import numpy as np


def draw(p, u, rule="exact"):
    n = 0
    while n < len(p) - 1 and u > p[: n + (rule == "exact")].sum():
        n += 1
    return n


def _step(th, w, z, y, f, i, eta, lam, q, c, k=1.0):
    """Step of kernel i: theta row, then loss estimate with the new theta, then weight."""
    th[i] = th[i] - eta * (2 * (f[i] - y) * z[i] + 2 * lam * th[i]) / c
    loss = ((f[i] - y) ** 2 + lam * (th[i] ** 2).sum()) / q
    w[i] = w[i] * np.exp(-eta * k * loss)
    return loss


def omkl_gf(
    z,
    y,
    eta,
    lam,
    M,
    J,
    u_graph,
    u_node,
    xi=None,
    version="icml",
    q_floor=0.05,
    freeze_below=None,
    freeze_after=None,
    draw_kernels="exact",
    draw_node="exact",
):
    """z (T,P,m), y (T,), u_graph (T,J,M), u_node (T,) uniforms; version "icml" or "jmlr".
    Row t of weights/thetas is used at step t (T+1 rows, unnormalised weights)."""
    T, P, m = z.shape
    eta = np.broadcast_to(eta, (T,))
    xi = eta if xi is None else np.broadcast_to(xi, (T,))
    th, w, frozen = np.zeros((P, m)), np.ones(P), False
    o = {
        "prediction": np.empty(T),
        "weights": np.empty((T + 1, P)),
        "thetas": np.zeros((T + 1, P, m)),
        "node": np.empty(T, int),
        "shown": np.zeros((T, P), bool),
        "p": np.empty((T, J)),
        "q": np.empty((T, P)),
        "losses": np.zeros((T, P)),
    }
    for t in range(T):
        o["weights"][t], o["thetas"][t] = w, th
        if not frozen:
            A, a = np.zeros((P, J)), np.empty((P, J))
            for j in range(J):
                pi = (1 - xi[t] ** (j + 1)) * w / w.sum() + xi[t] ** (j + 1) / P
                a[:, j] = 1 - (1 - pi) ** M
                for k in range(M):
                    A[draw(pi, u_graph[t, j, k], draw_kernels), j] = 1
        if not frozen or version == "jmlr":
            u = w @ A
            p = (1 - xi[t]) * u / u.sum() + xi[t] / J
            q = a @ p
        node = draw(p, u_node[t], draw_node)
        S = np.flatnonzero(A[:, node])
        f = np.array([th[i] @ z[t, i] for i in range(P)])
        o["prediction"][t] = w[S] @ f[S] / w[S].sum()
        o["node"][t], o["p"][t], o["q"][t] = node, p, q
        o["shown"][t, S] = True
        for i in S:
            qi, k = (
                (q[i], 0.5 ** np.floor(np.log2(J)))
                if version == "icml"
                else (max(q[i], q_floor), 1.0)
            )
            c = 1.0 if version == "icml" else qi
            o["losses"][t, i] = _step(th, w, z[t], y[t], f, i, eta[t], lam, qi, c, k)
        if freeze_below is not None and (o["prediction"][t] - y[t]) ** 2 < freeze_below:
            frozen = True
        if freeze_after is not None and t > freeze_after:  # t counted from 0, as in the code
            frozen = True
    o["weights"][T], o["thetas"][T] = w, th
    return o


def gaussian_distance(g):
    g = np.asarray(g, float)
    s = np.sqrt(g[:, None] ** 2 + g[None] ** 2)
    return np.sqrt(np.pi) * (g[:, None] + g[None] - 2 * np.sqrt(2) * g[:, None] * g[None] / s)


def similarity_graph(dist, M):
    P = len(dist)
    A = np.eye(P)
    for i in range(P):
        chosen = [i]
        for _ in range(M - 1):
            s = dist[chosen].sum(axis=0)
            s[chosen] = 0
            chosen.append(int(np.argmax(s)))
        A[i, chosen] = 1
    return A


def dominating_set(A):
    left, D = list(range(len(A))), []
    while left:
        best = left[int(np.argmax(A[np.ix_(left, left)].sum(axis=1)))]
        D.append(best)
        left = [i for i in left if A[best, i] == 0]
    return D


def refine(A, dist, u, top=10, slack=1e-7, xi=0.0):
    ub = u / u.sum()
    D = [i for i in range(len(u)) if ub[i] >= np.sort(ub)[-top] - slack / (1 - xi)]
    B = A.copy()
    for i in range(len(u)):
        B[D[int(np.argmax(dist[D, i]))], i] = 1
    return D, B


def omkl_sfg(
    z,
    y,
    eta,
    lam,
    A,
    dist,
    u_node,
    xi=None,
    refined=False,
    top=10,
    q_floor=0.1,
    p_floor=0.2,
    u_loss="squared",
    stick_after=None,
    refine_until=None,
    draw_node="exact",
):
    """A (P,P) from similarity_graph; u_node (T,) uniforms (the code burns a second one in -R)."""
    T, P, m = z.shape
    eta = np.broadcast_to(eta, (T,))
    xi = eta if xi is None else np.broadcast_to(xi, (T,))
    th, w, u, D, B = np.zeros((P, m)), np.ones(P), np.ones(P), dominating_set(A), A
    o = {
        "prediction": np.empty(T),
        "weights": np.empty((T + 1, P)),
        "node_weights": np.empty((T + 1, P)),
        "thetas": np.zeros((T + 1, P, m)),
        "node": np.empty(T, int),
        "shown": np.zeros((T, P), bool),
        "p": np.empty((T, P)),
        "q": np.empty((T, P)),
        "losses": np.zeros((T, P)),
    }
    for t in range(T):
        o["weights"][t], o["thetas"][t], o["node_weights"][t] = w, th, u
        if refined and (refine_until is None or t < refine_until):
            D, B = refine(A, dist, u, top, xi=xi[t])
        p = (1 - xi[t]) * u / u.sum()
        p[D] += xi[t] / len(D)
        q = p @ B
        stuck = stick_after is not None and t >= stick_after and not refined
        node = 0 if stuck else draw(p, u_node[t], draw_node)
        S, seen = np.flatnonzero(A[node]), np.flatnonzero(B[node])
        f = np.array([th[i] @ z[t, i] for i in range(P)])
        pred = o["prediction"][t] = w[S] @ f[S] / w[S].sum()
        o["node"][t], o["p"][t], o["q"][t] = node, p, q
        o["shown"][t, seen] = True
        for i in seen:
            qi = max(q[i], q_floor)
            o["losses"][t, i] = _step(th, w, z[t], y[t], f, i, eta[t], lam, qi, qi)
        own = (pred - y[t]) ** 2 if u_loss == "squared" else pred
        u[node] *= np.exp(-eta[t] * own / max(p[node], p_floor))
    o["weights"][T], o["thetas"][T], o["node_weights"][T] = w, th, u
    return o
