"""Naive learners against facts that do not come from them."""

import numpy as np
import pytest

from support.naive import (
    estimate,
    gaussian,
    hinge,
    huber,
    linear,
    logistic,
    matern,
    squared,
)
from support.naive.batch_solutions import (
    exponential_solution,
    prior_solution,
    ridge_solution,
)
from support.naive.estimate import (
    gram,
    logistic_curvature,
)
from support.naive.learners import (
    KLMS,
    KNLMS,
    POLK,
    FixedBudgetKRLS,
    Forgetron,
    FourierRLS,
    KRLSTracker,
    NystromSGD,
    Projectron,
    SlidingWindowKRLS,
    cosine_features,
    linear_features,
)


@pytest.fixture
def exact_gram_matrices(monkeypatch):
    """Naive learners without the raised diagonal, which is our addition to the published methods."""
    monkeypatch.setattr(estimate, "JITTER", 0.0)


def stream(samples, dimension=2, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(samples, dimension))
    return X, np.sin(2 * X[:, 0]) + X[:, -1] / 2 + 0.1 * draw.normal(size=samples)


def labels(samples, seed=0):
    X, y = stream(samples, seed=seed)
    return X, np.where(y > 0, 1.0, -1.0)


def run(method, X, y):
    for x, target in zip(X, y, strict=True):
        method.learn(x, float(target))
    return method


def predictions(method, points):
    return np.array([method.predict(x) for x in points])


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


class Terms:
    """A sum of terms a k(c, .), written out once more."""

    def __init__(self, kernel):
        self.kernel, self.terms = kernel, []

    def __call__(self, x):
        return sum(a * self.kernel(c, x) for a, c in self.terms)

    def step(self, decay, a, c):
        self.terms = [(decay * b, t) for b, t in self.terms] + [(a, c)]

    def norm2(self):
        return sum(a * self(c) for a, c in self.terms)


POINTS = stream(7, seed=99)[0]


def run_weighted(method, X, y):
    """Run, and return the working responses and their weights: (z, w)."""
    seen = []
    for x, target in zip(X, y, strict=True):
        seen.append(method.working_response(x, target)[1:])
        method.learn(x, target)
    return np.array(seen).T


pytestmark = pytest.mark.usefixtures("exact_gram_matrices")


def test_klms_is_functional_gradient_descent_and_drops_its_oldest():
    X, y, loss = *stream(30), huber(0.3)
    plain = Terms(matern(1.0, 1.5))
    method = KLMS(plain.kernel, loss, 0.3, learning_rate=0.2, budget=12)
    dropped = 0.0
    for x, target in zip(X, y, strict=True):
        plain.step(1.0, -0.2 * loss[1](plain(x), target), x)
        if len(plain.terms) > 12:
            a, c = plain.terms.pop(0)
            dropped += a**2 * plain.kernel(c, c)
        method.learn(x, target)
    close(predictions(method, POINTS), [plain(x) for x in POINTS])
    close([method.norm2(), method.dropped], [plain.norm2(), dropped])


def test_knlms_moves_least_for_its_target_on_a_dictionary_of_low_coherence():
    X, y = stream(40)
    kernel = linear(0.5)  # k(x, x) is not 1
    method = KNLMS(kernel, squared(), 0.0, 0.5, coherence=0.8, epsilon=1e-12)
    for x, target in zip(X, y, strict=True):
        before, size = method.alpha.copy(), len(method.centres)
        method.learn(x, target)
        # Half of the squared loss's slope is the error: at rate 1/2 the step projects onto
        # the coefficients that are right about (x, y), if epsilon does not matter.
        close(method.predict(x), target, 1e-8)
        move = method.alpha - np.append(before, np.zeros(len(method.centres) - size))
        close(move, method.row(x) * (move @ method.row(x)) / (method.row(x) @ method.row(x)))
    K = method.gram()
    cosines = np.abs(K) / np.sqrt(np.outer(np.diag(K), np.diag(K))) - np.eye(len(K))
    assert 1 < len(K) < 40
    assert cosines.max() <= 0.8
    nothing = KNLMS(linear(0.0), squared(), 0.0)  # k(0, .) = 0
    run(nothing, [np.zeros(2), X[0], np.zeros(2)], [1.0, 1.0, 1.0])
    assert len(nothing.centres) == 2


@pytest.mark.parametrize(("compression", "budget"), [(0.3, 100), (0.05, 4)])
def test_polk_stays_within_its_compression_and_is_an_orthogonal_projection(compression, budget):
    X, y = stream(20)
    kernel = gaussian(1.0)
    method = POLK(kernel, squared(), 0.1, 0.3, compression=compression, budget=budget)
    sizes = []
    for x, target in zip(X, y, strict=True):
        exact = Terms(kernel)
        exact.terms = list(zip(method.alpha, list(method.centres), strict=True))
        exact.step(1 - 0.3 * 0.1, -0.3 * 2 * (exact(x) - target), x)
        spent = method.dropped
        method.learn(x, target)
        spent = method.dropped - spent
        gap = Terms(kernel)
        gap.terms = exact.terms + [
            (-a, c) for a, c in zip(method.alpha, method.centres, strict=True)
        ]
        close(gap.norm2(), spent, 1e-9)
        close([gap(c) for c in method.centres], 0 * method.alpha, 1e-7)
        if len(sizes) < budget:
            assert gap.norm2() <= compression**2 + 1e-12
        sizes.append(len(method.centres))
    assert max(sizes) <= budget
    assert sizes[-1] < 20


def test_forgetron_and_projectron_are_perceptrons_when_nothing_need_be_lost():
    X, y = labels(60)
    X[30:40] = X[:10]
    for method in (
        Forgetron(gaussian(0.5), hinge(), 0.0),
        Projectron(gaussian(0.5), hinge(), 0.0, tolerance=0.0),
    ):
        plain = Terms(gaussian(0.5))
        for x, target in zip(X, y, strict=True):
            if target * plain(x) <= 0:
                plain.step(1.0, target, x)
            method.learn(x, target)
        close(predictions(method, POINTS), [plain(x) for x in POINTS], 1e-8)
        assert len(plain.terms) > 10


def test_nystrom_is_gradient_descent_projected_on_the_landmarks():
    X, y = stream(25)
    kernel = gaussian(1.5)
    method = NystromSGD(kernel, squared(), 0.1, landmarks=8, learning_rate=0.2)
    plain = Terms(kernel)
    for x, target in zip(X, y, strict=True):
        slope = 2 * (plain(x) - target)
        method.learn(x, target)
        plain.terms = [(0.98 * a, c) for a, c in plain.terms]
        K = gram(kernel, method.landmarks, method.landmarks)
        share = np.linalg.solve(K, gram(kernel, method.landmarks, [x])[:, 0])
        plain.terms += [(-0.2 * slope * a, c) for a, c in zip(share, method.landmarks, strict=True)]
    close(predictions(method, POINTS), [plain(x) for x in POINTS], 1e-9)
    close(method.norm2(), plain.norm2(), 1e-9)


@pytest.mark.parametrize(
    ("loss", "curvature"), [(squared(), None), (logistic(), logistic_curvature)]
)
def test_sliding_window_is_kernel_ridge_regression_on_the_last_samples(loss, curvature):
    X, y = stream(30) if curvature is None else labels(30)
    more = {} if curvature is None else {"curvature": curvature}
    method = SlidingWindowKRLS(gaussian(1.0), loss, 0.0, budget=12, ridge=0.05, **more)
    z, w = run_weighted(method, X, y)
    # By the gradient of sum w (f(x_i) - z_i)^2 + ridge |f|^2, which must vanish in every direction.
    residual = w[-12:] * (predictions(method, X[-12:]) - z[-12:])
    close(residual + 0.05 * method.alpha, np.zeros(12), 1e-9)
    np.testing.assert_array_equal(method.centres, X[-12:])
    if curvature is None:
        primal = np.linalg.solve(gram(gaussian(1.0), X[-12:], X[-12:]) + 0.05 * np.eye(12), y[-12:])
        close(predictions(method, POINTS), gram(gaussian(1.0), POINTS, X[-12:]) @ primal)


def test_fixed_budget_removes_the_sample_that_the_others_predict_best():
    X, y = stream(12)
    method = run(FixedBudgetKRLS(gaussian(1.0), squared(), 0.0, budget=11, ridge=0.1), X, y)
    errors = []
    for j in range(12):
        others = run(
            SlidingWindowKRLS(gaussian(1.0), squared(), 0.0, budget=11, ridge=0.1),
            np.delete(X, j, axis=0),
            np.delete(y, j),
        )
        errors.append(abs(others.predict(X[j]) - y[j]))
    np.testing.assert_array_equal(method.centres, np.delete(X, np.argmin(errors), axis=0))


def process(kernel, X, z, noise, x):
    """Mean and variance of a Gaussian process at x, in the textbook form (inputs of any kind)."""
    A = gram(kernel, X, X) + np.diag(noise)
    k = gram(kernel, X, [x])[:, 0]
    return k @ np.linalg.solve(A, z), kernel(x, x) - k @ np.linalg.solve(A, k)


@pytest.mark.parametrize(
    ("forgetting", "loss", "curvature"),
    [(1.0, squared(), None), (0.95, logistic(), logistic_curvature)],
)
def test_tracker_is_a_gaussian_process_in_space_and_time(forgetting, loss, curvature):
    # Going back to the prior means cov(f_s(x), f_t(x')) = k(x, x') forgetting^(|s - t| / 2).
    X, y = stream(25) if curvature is None else labels(25)
    X[20] = X[3]  # one sample without a centre of its own
    kernel = matern(1.0, 1.5)
    more = {} if curvature is None else {"curvature": curvature}
    method = KRLSTracker(kernel, loss, 0.0, 50, forgetting, 0.1, **more)
    z, w = run_weighted(method, X, y)
    assert len(method.centres) == 24

    def wandering(x, t):
        return kernel(x[1:], t[1:]) * forgetting ** (abs(x[0] - t[0]) / 2)

    timed = np.column_stack([np.arange(25.0), X])
    for x in (*POINTS, X[3], X[24]):
        mean, variance = process(wandering, timed, z, 0.1 / w, np.array([25.0, *x]))
        close([method.predict(x), method.variance(x)], [mean, variance], 1e-8)


def features():
    draw = np.random.default_rng(5)
    return cosine_features(draw.normal(size=(9, 2)), draw.uniform(0, 6, 9))


@pytest.mark.parametrize(
    ("loss", "curvature", "forgetting", "forget", "phi"),
    [
        (squared(), None, 1.0, "exponential", features()),
        (squared(), None, 0.7, "prior", features()),
        (squared(), None, 0.99, "exponential", linear_features(0.5)),
        (logistic(), logistic_curvature, 1.0, "prior", linear_features(0.5)),
        (logistic(), logistic_curvature, 0.7, "exponential", features()),
        (logistic(), logistic_curvature, 0.99, "prior", features()),
    ],
)
def test_recursive_least_squares_solve_their_batch_problems(
    loss, curvature, forgetting, forget, phi
):
    X, y = stream(40) if curvature is None else labels(40)
    more = {} if curvature is None else {"curvature": curvature}
    method = FourierRLS(phi, loss, 0.0, forgetting, 0.05, forget, **more)
    z, w = run_weighted(method, X, y)
    Phi = np.array([phi(x) for x in X])
    batch = {"exponential": exponential_solution, "prior": prior_solution}[forget]
    close(method.weights, batch(Phi, z, 0.05, forgetting, w), 1e-8)
    if forgetting == 1:
        close(method.weights, ridge_solution(Phi, z, 0.05, w), 1e-8)
        normal = Phi.T @ (w * (Phi @ method.weights - z)) + 0.05 * method.weights
        close(normal, 0 * normal, 1e-8)
