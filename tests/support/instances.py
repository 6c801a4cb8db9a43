"""One list of every component, beside its naive definition: all tests run over it."""

import numpy as np

import kernelbank as kb
from support import naive

K, L = kb.kernels, kb.losses


def cauchy(X, Z):
    return 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def naive_cauchy(x, t):
    return 1 / (1 + float(((x - t) ** 2).sum()))


KERNELS = [
    (K.Gaussian(0.8), naive.gaussian(0.8)),
    (K.Laplacian(1.5), naive.laplacian(1.5)),
    (K.Matern(1.2, nu=0.5), naive.matern(1.2, 0.5)),
    (K.Matern(1.2, nu=1.5), naive.matern(1.2, 1.5)),
    (K.Matern(1.2, nu=2.5), naive.matern(1.2, 2.5)),
    (K.RationalQuadratic(0.9, alpha=1.7), naive.rational_quadratic(0.9, 1.7)),
    (K.Periodic(2.5, width=1.1), naive.periodic(2.5, 1.1)),
    (K.Linear(0.7), naive.linear(0.7)),
    (K.Polynomial(3, offset=0.5, scale=0.3), naive.polynomial(3, 0.5, 0.3)),
    (K.Custom(cauchy), naive_cauchy),
    (
        K.Gaussian(0.5) + 0.25 * K.Linear(1.0),
        lambda x, t: naive.gaussian(0.5)(x, t) + 0.25 * naive.linear(1.0)(x, t),
    ),
    (
        K.Gaussian(2.0) * (K.Periodic(1.5, 1.0) + K.Custom(cauchy)),
        lambda x, t: (
            naive.gaussian(2.0)(x, t) * (naive.periodic(1.5, 1.0)(x, t) + naive_cauchy(x, t))
        ),
    ),
    (
        K.ActiveDims(K.Gaussian(0.8) + 0.5 * K.Linear(0.3), [0]),
        naive.active_dims(
            lambda x, t: naive.gaussian(0.8)(x, t) + 0.5 * naive.linear(0.3)(x, t),
            [0],
        ),
    ),
    (K.Additive(K.Gaussian(0.6), 1), naive.additive(naive.gaussian(0.6), 1)),
    (
        K.Additive(K.Matern(1.1) * K.Custom(cauchy), 2) + K.ActiveDims(K.Polynomial(), [0]),
        lambda x, t: (
            naive.additive(lambda u, v: naive.matern(1.1, 1.5)(u, v) * naive_cauchy(u, v), 2)(x, t)
            + naive.active_dims(naive.polynomial(2, 1.0, 1.0), [0])(x, t)
        ),
    ),
]


def fourth_power(f, y):
    return 0.25 * (f - y) ** 4


def fourth_power_derivative(f, y):
    return (f - y) ** 3


FOURTH = L.Custom(fourth_power, fourth_power_derivative, curvature=None, name="fourth")


LOSSES = [
    (L.Squared(), naive.squared()),
    (L.Absolute(), naive.absolute()),
    (L.Huber(0.4), naive.huber(0.4)),
    (L.EpsilonInsensitive(0.2), naive.epsilon_insensitive(0.2)),
    (L.Pinball(0.8), naive.pinball(0.8)),
    (L.Logistic(), naive.logistic()),
    (L.Hinge(), naive.hinge()),
    (L.SquaredHinge(), naive.squared_hinge()),
    (L.Poisson(0.2), naive.poisson(0.2)),
    (FOURTH, (fourth_power, fourth_power_derivative)),
]


def targets_for(loss, y):
    """Targets for which a loss is defined, from any."""
    if loss.labels:
        return np.where(y >= np.median(y), 1.0, -1.0)
    return y if loss.any_target else np.abs(y)


TREE = kb.Slot(K.TreeKernel(0.7, 6), kb.learners.PartitionTree(nodes=15, split_after=5))
"""A slot of another kernel and learner, for the losses whose curvature is known."""

COMBINERS = [
    (kb.combiners.Simplex(), ("simplex", {})),
    (kb.combiners.Simplex(evidence="prequential", horizon=7), ("prequential", {"horizon": 7})),
    (kb.combiners.Simplex(bound="jensen"), ("jensen", {})),
    (kb.combiners.Uniform(), ("uniform", {})),
    (kb.combiners.Best(), ("best", {})),
    (kb.combiners.OMKR(), ("omkr", {"gradient": "exact"})),
    (kb.combiners.OMKR(gradient="printed"), ("omkr", {"gradient": "printed"})),
    (kb.combiners.Hedge(), ("hedge", {"rate": None})),
    (kb.combiners.Hedge(learning_rate=2.0), ("hedge", {"rate": 2.0})),
    (
        kb.combiners.Hedge(learning_rate=0.3, evidence="cost"),
        ("hedge_by_cost", {"rate": 0.3}),
    ),
    (kb.rivals.AdaRaker(kernels=2), ("adaraker", {"kernels": 2})),
    (
        kb.rivals.AdaRaker(kernels=1, learning_rate=0.8, restart=True, normalize=False),
        (
            "adaraker",
            {"kernels": 1, "learning_rate": 0.8, "restart": True, "normalize": False},
        ),
    ),
    (
        kb.combiners.FixedShare(learning_rate=1.5, share=0.05),
        ("fixed_share", {"rate": 1.5, "share": 0.05}),
    ),
    (
        kb.combiners.Joint(ridge=0.3, tolerance=1e-10),
        ("joint", {"horizon": 0, "discount": 1.0, "ridge": 0.3}),
    ),
    (
        kb.combiners.Joint("prequential", horizon=7, discount=0.9, ridge=0.1, tolerance=1e-10),
        ("joint", {"horizon": 7, "discount": 0.9, "ridge": 0.1}),
    ),
    (
        kb.combiners.Stacking(discount=0.9, ridge=0.2, tolerance=1e-10),
        ("stacking", {"discount": 0.9, "ridge": 0.2}),
    ),
    (
        kb.combiners.RobustStacking(0.9, 0.2, tolerance=1e-10, degrees_of_freedom=3.0),
        ("robust_stacking", {"discount": 0.9, "ridge": 0.2, "degrees_of_freedom": 3.0}),
    ),
]

M = kb.learners
LEARNERS = [
    M.FixedBudgetKRLS(budget=12, ridge=0.02),
    M.FixedBudgetKRLS(budget=12, ridge=0.02, label_rate=0.1),
    M.FourierRLS(features=12, ridge=0.05),
    M.FourierRLS(features=12, ridge=0.05, forgetting=0.98),
    M.FourierRLS(features=12, ridge=0.05, forgetting=0.98, forget="prior"),
    M.FourierRLS(features=12, ridge=0.05, forgetting=0.99, forget="random_walk"),
    M.FourierSGD(features=12, learning_rate=0.2),
    M.FourierSGD(features=12, learning_rate=0.2, step_size="adagrad", restart=32),
    M.KLMS(0.1, budget=25),
    M.KLMS(0.3, budget=25, step_size="inverse_sqrt"),
    M.KNLMS(0.2, coherence=0.8, budget=20),
    M.KNLMS(0.2, coherence=0.8, budget=20, step_size="adagrad"),
    M.KRLS(novelty=0.01, budget=15),
    M.KRLSTracker(budget=10, forgetting=0.99, noise=0.02),
    M.KRLSTracker(budget=10, forgetting=0.95, noise=0.02, forget_when="before", jitter=1e-6),
    M.LastValue(),
    M.LastValue(column=1),
    M.LinearRLS(),
    M.LinearRLS(forgetting=0.97),
    M.LinearRLS(forgetting=0.97, forget="prior"),
    M.LinearRLS(forgetting=0.99, forget="prior", constant_forgetting=0.8),
    M.NearestNeighborGP(neighbors=6, memory=40, noise=0.05),
    M.NearestNeighborGP(neighbors=1, memory=7, noise=0.5, constant=0.0),
    M.PartitionTree(nodes=31, split_after=5),
    M.QKLMS(0.1, quantization=0.3, budget=25),
    M.QKLMS(0.3, quantization=0.3, budget=25, step_size="adagrad"),
    M.SlidingWindowKRLS(budget=15, ridge=0.02),
]
"""Learners with settings under which all of their branches are taken; Norma has its own tests."""

VIEWS = [
    (K.TreeKernel(0.7, 6), M.PartitionTree(nodes=31, split_after=5)),
    (K.TreeKernel(0.7, 6), M.PartitionTree(nodes=15, split_after=5, seed=1)),
    (K.Linear(0.5), M.LinearRLS(forgetting=0.97)),
    (K.Linear(0.5), M.LinearRLS(forgetting=0.99, forget="prior", constant_forgetting=0.8)),
    (K.Gaussian(0.6), M.FourierRLS(features=12, ridge=0.05)),
    (K.Additive(K.Matern(0.6), 2), M.FourierRLS(features=12, ridge=0.05, seed=1)),
    (
        0.5 * K.Laplacian(0.6) + K.Linear(0.3),
        M.FourierRLS(
            features=12, ridge=0.05, forgetting=0.98, forget="prior", constant_forgetting=0.8
        ),
    ),
    (0.5 * K.Matern(0.6), M.NearestNeighborGP(neighbors=6, memory=40)),
    (
        K.Gaussian(0.6) + K.ActiveDims(K.Linear(0.3), [1]),
        M.FourierSGD(features=12, learning_rate=0.2),
    ),
]
"""Kernels and learners that cost no more `ActiveDims` some columns than on these columns alone."""


def name_of(pair):
    """A readable test id."""
    component = pair[0] if isinstance(pair, tuple) else pair
    return getattr(component, "name", "") or repr(component)


def stream(seed, samples, dimension, labels=False):
    """Irregular, non-negative inputs (so that every kernel is defined) and a bounded target."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1.5, (samples, dimension))
    y = np.sin(3 * X).sum(axis=1) / dimension + 0.1 * draw.normal(size=samples)
    return X, np.where(y >= np.median(y), 1.0, -1.0) if labels else y
