"""Naive second-order learners and learners on features against facts that do not come from them."""

import numpy as np
import pytest

from support.naive import (
    gaussian,
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
    KRLS,
    POLK,
    FixedBudgetKRLS,
    FourierRLS,
    FourierSGD,
    KRLSTracker,
    LinearRLS,
    NystromSGD,
    SlidingWindowKRLS,
    cosine_features,
    linear_features,
)
from support.naive_checks import (
    POINTS,
    Terms,
    close,
    exact_gram_matrices,  # noqa: F401  (a fixture)
    labels,
    predictions,
    run,
    run_weighted,
    stream,
)

pytestmark = pytest.mark.usefixtures("exact_gram_matrices")


def test_krls_interpolates_while_every_sample_is_novel():
    X, y = stream(15)
    method = run(KRLS(matern(1.0, 0.5), squared(), 0.0, novelty=1e-9), X, y)
    close(predictions(method, X), y, 1e-9)


def test_krls_is_least_squares_on_the_dictionary_if_it_spans_everything():
    # With a linear kernel the first two points span the plane, so Engel's projections are exact.
    X, y = stream(30)
    method = run(KRLS(linear(0.0), squared(), 0.0, novelty=1e-6), X, y)
    assert len(method.centres) == 2
    close(predictions(method, POINTS), POINTS @ np.linalg.lstsq(X, y, rcond=None)[0])


@pytest.mark.parametrize("budget", [9, 100])
@pytest.mark.parametrize(
    ("loss", "curvature"), [(squared(), None), (logistic(), logistic_curvature)]
)
def test_krls_follows_the_published_recursion(loss, curvature, budget):
    X, y = stream(40) if curvature is None else labels(40)
    kernel = gaussian(1.0)
    more = {} if curvature is None else {"curvature": curvature}
    method = KRLS(kernel, loss, 0.0, novelty=0.02, budget=budget, **more)
    alpha, P = np.zeros(0), np.zeros((0, 0))
    sizes = []
    for x, target in zip(X, y, strict=True):
        C, (e, _, w) = list(method.centres), method.working_response(x, target)
        method.learn(x, target)
        Kinv = np.linalg.inv(gram(kernel, C, C))
        a = Kinv @ gram(kernel, C, [x])[:, 0]
        delta = kernel(x, x) - a @ gram(kernel, C, [x])[:, 0]
        if len(method.centres) > len(C):
            assert not C or delta > 0.02
            P = np.block([[P, np.zeros((len(C), 1))], [np.zeros((1, len(C))), 1 / w]])
            alpha = np.append(alpha - a * e / delta, e / delta)
        else:
            assert delta <= 0.02 or len(C) == budget
            q = P @ a / (1 / w + a @ P @ a)
            P = P - np.outer(q, a @ P)
            alpha = alpha + Kinv @ q * e
        close(method.alpha, alpha, 1e-7)
        sizes.append(len(method.centres))
    assert sizes[-1] == 9 if budget == 9 else 9 < sizes[-1] < 40


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


def test_fixed_budget_is_kernel_ridge_regression_until_it_is_full():
    X, y = stream(20)
    full = run(FixedBudgetKRLS(gaussian(1.0), squared(), 0.0, budget=20), X, y)
    window = run(SlidingWindowKRLS(gaussian(1.0), squared(), 0.0, budget=20), X, y)
    close(full.alpha, window.alpha)


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


def test_fixed_budget_moves_kept_labels_towards_new_ones_nearby():
    X, _ = stream(5)
    method = FixedBudgetKRLS(gaussian(1.0), squared(), 0.0, label_rate=0.5)
    run(method, [X[0], X[0] + 100, X[0]], [1.0, 1.0, 3.0])
    np.testing.assert_allclose(method.z, [2.0, 1.0, 3.0])


def process(kernel, X, z, noise, x):
    """Mean and variance of a Gaussian process at x, in the textbook form (inputs of any kind)."""
    A = gram(kernel, X, X) + np.diag(noise)
    k = gram(kernel, X, [x])[:, 0]
    return k @ np.linalg.solve(A, z), kernel(x, x) - k @ np.linalg.solve(A, k)


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
@pytest.mark.parametrize(
    ("loss", "curvature"), [(squared(), None), (logistic(), logistic_curvature)]
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


def test_tracker_prunes_the_centre_that_changes_the_mean_least():
    X, y = stream(9)
    kernel = gaussian(1.0)
    whole = run(KRLSTracker(kernel, squared(), 0.0, budget=9), X, y)
    less = run(KRLSTracker(kernel, squared(), 0.0, budget=8), X, y)
    changes = []
    for j in range(9):  # the mean at the removed centre, as the others then have it
        others = np.delete(X, j, axis=0)
        kept = np.linalg.solve(gram(kernel, others, others), np.delete(whole.mean, j))
        changes.append(abs(gram(kernel, [X[j]], others)[0] @ kept - whole.mean[j]))
    gone = int(np.argmin(changes))
    np.testing.assert_array_equal(less.centres, np.delete(X, gone, axis=0))
    for x in less.centres:  # nothing is lost at the others
        close([less.predict(x), less.variance(x)], [whole.predict(x), whole.variance(x)], 1e-8)


def test_samples_whose_kernel_function_is_zero_are_passed_over():
    for method in (
        KRLS(linear(0.0), squared(), 0.0),
        KRLSTracker(linear(0.0), squared(), 0.0),
        NystromSGD(linear(0.0), squared(), 0.0),
        POLK(linear(0.0), squared(), 0.0),
    ):
        run(method, [np.zeros(2), np.array([1.0, 0.0]), np.zeros(2)], [5.0, 1.0, 5.0])
        assert method.predict(np.array([1.0, 0.0])) > 0.1
        assert method.predict(np.zeros(2)) == 0


def features():
    draw = np.random.default_rng(5)
    return cosine_features(draw.normal(size=(9, 2)), draw.uniform(0, 6, 9))


def test_fourier_sgd_is_gradient_descent_with_the_kernel_of_its_features():
    X, y = stream(25)
    phi = features()
    plain = Terms(lambda x, t: float(phi(x) @ phi(t)))
    method = FourierSGD(phi, squared(), 0.3, learning_rate=0.2)
    for x, target in zip(X, y, strict=True):
        plain.step(0.94, -0.4 * (plain(x) - target), x)
        method.learn(x, target)
    close(predictions(method, POINTS), [plain(x) for x in POINTS])
    close(method.norm2(), plain.norm2())


def test_cosine_features_approach_the_gaussian_kernel():
    draw = np.random.default_rng(0)
    phi = cosine_features(draw.normal(size=(4000, 2)) / 1.5, draw.uniform(0, 2 * np.pi, 4000))
    for x in POINTS[:4]:
        close(phi(x) @ phi(POINTS[5]), gaussian(1.5)(x, POINTS[5]), 0.06)


@pytest.mark.parametrize(
    ("loss", "curvature"), [(squared(), None), (logistic(), logistic_curvature)]
)
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.7])
@pytest.mark.parametrize("forget", ["exponential", "prior"])
@pytest.mark.parametrize("phi", [features(), linear_features(0.5)])
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


def test_linear_rls_is_kernel_ridge_regression_with_the_linear_kernel():
    X, y = stream(20)
    method = run(LinearRLS(linear_features(0.5), squared(), 0.0, ridge=0.1), X, y)
    dual = run(SlidingWindowKRLS(linear(0.5), squared(), 0.0, ridge=0.1), X, y)
    close(predictions(method, POINTS), predictions(dual, POINTS), 1e-9)
    close(method.norm2(), dual.norm2(), 1e-9)


def test_dummies_keep_the_ridge_alive_where_nothing_is_seen():
    # All inputs alike: without dummies the unseen directions' variance would grow as 0.9^-n.
    phi = linear_features(1.0)
    method = FourierRLS(phi, squared(), 0.0, forgetting=0.9, ridge=0.1)
    run(method, np.ones((500, 2)), np.ones(500))
    assert np.linalg.eigvalsh(method.covariance).max() < 20
    close(method.predict(np.ones(2)), 1.0, 0.02)
