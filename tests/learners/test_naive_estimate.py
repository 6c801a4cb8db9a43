"""Linear algebra, bounds and decisions of the naive learners, against facts that do not come from them."""

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest

from support.naive import (
    gaussian,
    hinge,
    logistic,
    squared,
)
from support.naive.estimate import (
    gram,
    inverse,
    logistic_curvature,
    product,
    solve,
)
from support.naive.learners import (
    KLMS,
    KNLMS,
    KRLS,
    POLK,
    QKLMS,
    FixedBudgetKRLS,
    Forgetron,
    FourierRLS,
    FourierSGD,
    KRLSTracker,
    LinearRLS,
    NystromSGD,
    Projectron,
    SlidingWindowKRLS,
    linear_features,
)
from support.naive_checks import (
    POINTS,
    close,
    exact_gram_matrices,  # noqa: F401  (a fixture)
    labels,
    run,
)

pytestmark = pytest.mark.usefixtures("exact_gram_matrices")


FIRST_ORDER = [
    lambda loss, **more: KLMS(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: QKLMS(gaussian(1.0), loss, 0.01, quantization=0.5, budget=6),
    lambda loss, **more: KNLMS(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: POLK(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: NystromSGD(gaussian(1.0), loss, 0.01, landmarks=6),
    lambda loss, **more: FourierSGD(linear_features(1.0), loss, 0.01),
]
SECOND_ORDER = [
    lambda loss, **more: KRLS(gaussian(1.0), loss, 0.01, budget=6, **more),
    lambda loss, **more: SlidingWindowKRLS(gaussian(1.0), loss, 0.01, budget=6, **more),
    lambda loss, **more: FixedBudgetKRLS(gaussian(1.0), loss, 0.01, budget=6, **more),
    lambda loss, **more: KRLSTracker(gaussian(1.0), loss, 0.01, budget=6, **more),
    lambda loss, **more: FourierRLS(linear_features(1.0), loss, 0.01, forgetting=0.9, **more),
    lambda loss, **more: LinearRLS(linear_features(0.0), loss, 0.01, forget="prior", **more),
]
LABELS = [
    lambda loss, **more: Forgetron(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: Projectron(gaussian(1.0), loss, 0.01, budget=6),
]


def test_products_keep_what_rounding_loses():
    A = np.array([[1e16, 1.0, -1e16], [1 + 2.0**-30, -1.0, 0.0]])
    x = np.array([1.0, 0.5, 1.0])
    assert product(A, x)[0] == 0.5
    x = np.array([1 - 2.0**-30, 1.0, 0.0])
    assert product(A, x)[1] == -(2.0**-60)


def exactly(A, b):
    """A^-1 b in rationals, rounded once."""
    rows = [[Fraction(v) for v in (*row, t)] for row, t in zip(A.tolist(), b.tolist(), strict=True)]
    for i, pivot in enumerate(rows):
        pivot[:] = [v / pivot[i] for v in pivot]
        for row in rows[:i] + rows[i + 1 :]:
            row[:] = [v - row[i] * p for v, p in zip(row, pivot, strict=True)]
    return np.array([float(row[-1]) for row in rows])


def test_solutions_are_right_to_the_last_bits_for_a_nearly_singular_matrix():
    points = np.linspace(0, 1, 8)[:, None]
    K = gram(gaussian(1.0), points, points)
    assert np.linalg.cond(K) > 1e11
    np.testing.assert_allclose(solve(K, np.arange(8.0)), exactly(K, np.arange(8.0)), rtol=1e-14)
    np.testing.assert_allclose(inverse(K)[:, 3], exactly(K, np.eye(8)[3]), rtol=1e-14)
    assert np.abs(np.linalg.inv(K)[3, 3] / inverse(K)[3, 3] - 1) > 1e-9  # it is worth the trouble


@pytest.mark.parametrize("make", FIRST_ORDER + SECOND_ORDER + LABELS)
def test_predict_changes_nothing_and_norms_and_magnitudes_bound_it(make):
    X, y = labels(25)
    method = make(hinge() if make in LABELS else squared())
    assert method.predict(X[0]) == method.norm2() == method.magnitude(X[0]) == 0
    kept = X.copy()
    for x, target in zip(kept, y, strict=True):
        before = method.predict(x)
        assert method.predict(x) == before
        method.learn(x, float(target))
        x[:] = np.nan  # a method must not keep the caller's array
    assert method.norm2() > 0
    own = (
        method.kernel(X[0], X[0])
        if hasattr(method, "kernel")
        else np.dot(method.features(X[0]), method.features(X[0]))
    )
    assert abs(method.predict(X[0])) <= sqrt(method.norm2() * own) * (1 + 1e-12)  # Cauchy-Schwarz
    assert abs(method.predict(X[0])) <= method.magnitude(X[0]) * (1 + 1e-12)


@pytest.mark.parametrize("make", SECOND_ORDER)
def test_second_order_methods_learn_labels_through_the_logistic_loss(make):
    X, y = labels(60)
    method = make(logistic(), curvature=logistic_curvature)
    right = 0
    for x, target in zip(X, y, strict=True):
        right += method.predict(x) * target > 0
        method.learn(x, float(target))
    assert right > 36


def test_working_responses_are_the_parabola_above_the_loss_that_touches_it():
    value, _ = logistic()
    method = SlidingWindowKRLS(gaussian(1.0), logistic(), 0.0, curvature=logistic_curvature)
    run(method, *labels(10))
    for x in POINTS:
        f, step = method.predict(x), 1e-4
        e, z, w = method.working_response(x, 1.0)
        slope = (value(f + step, 1.0) - value(f - step, 1.0)) / (2 * step)
        close([-2 * w * e, z], [slope, f + e], 1e-6)
        for other in (-30.0, -3.0, -f, 0.0, f / 2, 2 * f, 30.0):
            above = value(f, 1.0) + w * ((other - z) ** 2 - e**2)
            assert value(other, 1.0) <= above * (1 + 1e-12)
        close(value(-f, 1.0), value(f, 1.0) + w * ((-f - z) ** 2 - e**2))  # and touches at -f


@pytest.mark.parametrize(
    ("make", "setting", "bound"),
    [
        (QKLMS, "quantization", 0.7),
        (KNLMS, "coherence", exp(-(0.7**2) / 2)),
        (Projectron, "tolerance", sqrt(2 * (1 - exp(-(0.7**2))))),
        (KRLS, "novelty", 1 - exp(-(0.7**2))),
        (NystromSGD, "novelty", 1 - exp(-(0.7**2))),
    ],
)
def test_a_second_point_is_kept_on_one_side_of_the_bound_only(make, setting, bound):
    # The kernel is 2 exp(-d^2/2), so the square of its cosine is exp(-d^2), and k(x, x) = 2.
    def kernel(x, t):
        return 2 * gaussian(1.0)(x, t)

    sizes = []
    for factor in (0.999, 1.001):
        loss = hinge() if make is Projectron else squared()
        method = make(kernel, loss, 0.0, **{setting: factor * bound})
        run(method, [np.zeros(1), np.array([0.7])], [1.0, -1.0])
        sizes.append(len(method.landmarks if make is NystromSGD else method.centres))
    assert sizes == ([1, 2] if make is KNLMS else [2, 1])


def test_close_decisions_are_recorded_and_exact_ties_are_not():
    x = np.zeros(1)
    method = QKLMS(gaussian(1.0), squared(), 0.0, quantization=1.0)
    run(method, [x, x + 1.0], [1.0, 1.0])  # exactly at the bound
    assert method.closest == np.inf
    assert len(method.centres) == 1
    method.learn(x + 1.0 + 1e-12, 1.0)
    assert method.closest < 1e-11
    assert len(method.centres) == 2


def test_condition_numbers_are_recorded():
    method = POLK(gaussian(1.0), squared(), 0.0, compression=0.0)
    run(method, [np.zeros(1), np.array([0.1])], [1.0, -1.0])
    k = exp(-0.005)  # the eigenvalues are 1 + k and 1 - k
    close(method.condition / ((1 + k) / (1 - k)), 1.0, 1e-9)
