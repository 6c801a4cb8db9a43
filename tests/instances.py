"""One list of every component, beside its naive definition: all tests run over it."""

import numpy as np

import kernelbank as kb
import naive

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
    (K.Spline(), naive.spline()),
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
]

FOURTH = L.Custom(
    lambda f, y: 0.25 * (f - y) ** 4, lambda f, y: (f - y) ** 3, curvature=None, name="fourth"
)

LOSSES = [
    (L.Squared(), naive.squared()),
    (L.Absolute(), naive.absolute()),
    (L.Huber(0.4), naive.huber(0.4)),
    (L.EpsilonInsensitive(0.2), naive.epsilon_insensitive(0.2)),
    (L.Pinball(0.8), naive.pinball(0.8)),
    (L.Logistic(), naive.logistic()),
    (L.Hinge(), naive.hinge()),
    (L.SquaredHinge(), naive.squared_hinge()),
    (FOURTH, (lambda f, y: 0.25 * (f - y) ** 4, lambda f, y: (f - y) ** 3)),
]

COMBINERS = [
    (kb.combiners.Simplex(), "simplex"),
    (kb.combiners.Simplex(evidence="prequential", horizon=7), ("prequential", 7)),
    (kb.combiners.Uniform(), "uniform"),
    (kb.combiners.Best(), "best"),
    (kb.combiners.OMKR(), ("omkr", "exact")),
    (kb.combiners.OMKR(gradient="printed"), ("omkr", "printed")),
    (kb.combiners.Hedge(), ("hedge", {"rate": None})),
    (kb.combiners.Hedge(learning_rate=2.0), ("hedge", {"rate": 2.0})),
    (
        kb.combiners.FixedShare(learning_rate=1.5, share=0.05),
        ("fixed_share", {"rate": 1.5, "share": 0.05}),
    ),
    (
        kb.combiners.Intervals(learning_rate=0.8, levels=5),
        ("intervals", {"learning_rate": 0.8, "levels": 5}),
    ),
    (
        kb.combiners.Joint(ridge=0.3, tolerance=1e-10),
        ("joint", {"horizon": 0, "discount": 1.0, "ridge": 0.3}),
    ),
    (
        kb.combiners.Joint("prequential", horizon=7, discount=0.9, ridge=0.1, tolerance=1e-10),
        ("joint", {"horizon": 7, "discount": 0.9, "ridge": 0.1}),
    ),
]


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
