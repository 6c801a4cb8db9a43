"""The oracle of the single-kernel methods against facts that do not come from it."""

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest

from support import naive_learners
from support.naive import (
    gaussian,
    hinge,
    huber,
    linear,
    logistic,
    matern,
    squared,
    squared_distance,
)
from support.naive_learners import (
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
    cosine_features,
    exponential_solution,
    gram,
    inverse,
    largest_shrink,
    linear_features,
    logistic_curvature,
    prior_solution,
    product,
    ridge_solution,
    solve,
)


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


@pytest.fixture(autouse=True)
def _exact_gram_matrices(monkeypatch):
    """The raised diagonal is an addition of ours: the published facts hold without it."""
    monkeypatch.setattr(naive_learners, "JITTER", 0.0)


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


class Terms:
    """A plain sum of terms; `row` and `norm2` are written out once more."""

    def __init__(self, kernel):
        self.kernel, self.terms = kernel, []

    def __call__(self, x):
        return sum(a * self.kernel(c, x) for a, c in self.terms)

    def step(self, decay, a, c):
        self.terms = [(decay * b, t) for b, t in self.terms] + [(a, c)]

    def norm2(self):
        return sum(a * self(c) for a, c in self.terms)


POINTS = stream(7, seed=99)[0]
EVERY = [
    lambda loss, **more: KLMS(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: QKLMS(gaussian(1.0), loss, 0.01, quantization=0.5, budget=6),
    lambda loss, **more: KNLMS(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: POLK(gaussian(1.0), loss, 0.01, budget=6),
    lambda loss, **more: NystromSGD(gaussian(1.0), loss, 0.01, landmarks=6),
    lambda loss, **more: FourierSGD(linear_features(1.0), loss, 0.01),
]
SECOND = [
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


# ---------------------------------------------------------------- the tools


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


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("make", EVERY + SECOND + LABELS)
def test_predict_is_pure_and_norms_and_magnitudes_make_sense(make):
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


@pytest.mark.parametrize("make", SECOND)
def test_second_order_methods_learn_labels_through_the_logistic_loss(make):
    X, y = labels(60)
    method = make(logistic(), second=logistic_curvature)
    right = 0
    for x, target in zip(X, y, strict=True):
        right += method.predict(x) * target > 0
        method.learn(x, float(target))
    assert right > 36


def test_working_responses_are_the_parabola_above_the_loss_that_touches_it():
    value, _ = logistic()
    method = SlidingWindowKRLS(gaussian(1.0), logistic(), 0.0, second=logistic_curvature)
    run(method, *labels(10))
    for x in POINTS:
        f, step = method.predict(x), 1e-4
        e, z, w = method.working(x, 1.0)
        slope = (value(f + step, 1.0) - value(f - step, 1.0)) / (2 * step)
        close([-2 * w * e, z], [slope, f + e], 1e-6)
        for other in (-30.0, -3.0, -f, 0.0, f / 2, 2 * f, 30.0):
            above = value(f, 1.0) + w * ((other - z) ** 2 - e**2)
            assert value(other, 1.0) <= above * (1 + 1e-12)
        close(value(-f, 1.0), value(f, 1.0) + w * ((-f - z) ** 2 - e**2))  # and touches at -f


# ---------------------------------------------------------------- first order, on centres


@pytest.mark.parametrize("loss", [squared(), huber(0.3)])
def test_klms_is_functional_gradient_descent_and_drops_its_oldest(loss):
    X, y = stream(30)
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


def test_qklms_is_klms_without_quantization_and_its_centres_stay_apart():
    X, y = stream(30)
    fine = run(QKLMS(gaussian(1.0), squared(), 0.0, quantization=0.0), X, y)
    close(
        predictions(fine, POINTS), predictions(run(KLMS(gaussian(1.0), squared(), 0), X, y), POINTS)
    )
    coarse = run(QKLMS(gaussian(1.0), squared(), 0.0, quantization=0.5), X, y)
    assert 1 < len(coarse.centres) < 30
    for i, c in enumerate(coarse.centres):
        assert all(squared_distance(c, t) > 0.25 for t in coarse.centres[:i])
    for x in X:  # everything seen is near a centre
        assert min(squared_distance(x, c) for c in coarse.centres) <= 0.25
    full = run(QKLMS(gaussian(1.0), squared(), 0.0, quantization=0.0, budget=5), X, y)
    np.testing.assert_array_equal(full.centres, X[:5])
    plain = Terms(gaussian(1.0))
    for n, (x, target) in enumerate(zip(X, y, strict=True)):
        nearest = x if n < 5 else min(X[:5], key=lambda c: squared_distance(c, x))
        plain.step(1.0, -0.1 * 2 * (plain(x) - target), nearest)
    close(predictions(full, POINTS), [plain(x) for x in POINTS])


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


def test_polk_without_compression_is_functional_gradient_descent():
    X, y = stream(25)
    X[20:] = X[:5]  # repeated points depend on the centres and take none of their own
    plain = Terms(matern(1.0, 0.5))
    method = POLK(plain.kernel, squared(), 0.3, learning_rate=0.2, compression=0.0)
    for x, target in zip(X, y, strict=True):
        plain.step(1 - 0.2 * 0.3, -0.2 * 2 * (plain(x) - target), x)
        method.learn(x, target)
        close(method.norm2(), plain.norm2())
    close(predictions(method, POINTS), [plain(x) for x in POINTS])
    assert len(method.centres) == 20
    assert method.dropped < 1e-20


@pytest.mark.parametrize(("compression", "budget"), [(0.05, 100), (0.3, 100), (0.0, 4), (0.05, 4)])
def test_polk_stays_within_its_compression_and_is_an_orthogonal_projection(compression, budget):
    X, y = stream(30)
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
    assert sizes[-1] < 30


def test_polk_removes_the_centre_whose_loss_is_least():
    X, y = stream(6)
    kernel = gaussian(1.0)
    whole = run(POLK(kernel, squared(), 0.0, compression=0.0), X, y)
    less = run(POLK(kernel, squared(), 0.0, compression=0.0, budget=5), X, y)
    K, values = whole.gram(), whole.gram() @ whole.alpha
    losses = []
    for j in range(6):
        others = [i for i in range(6) if i != j]
        kept = np.linalg.solve(K[np.ix_(others, others)], values[others])
        losses.append(whole.norm2() - kept @ values[others])
    close(less.dropped, min(losses), 1e-9)
    gone = int(np.argmin(losses))
    np.testing.assert_array_equal(less.centres, np.delete(X, gone, axis=0))


def test_largest_shrink_is_the_largest():
    draw = np.random.default_rng(0)
    grid = np.linspace(0, 1, 10001)[1:]
    for _ in range(300):
        s = draw.exponential()
        a, b, q = s * s - 2 * s * draw.normal() * 2, 2 * s, -draw.exponential() - 15 / 32
        phi = largest_shrink(a, b, q)
        assert 0 < phi <= 1
        assert a * phi**2 + b * phi + q <= 1e-12
        above = grid[grid > phi + 1e-9]
        assert (a * above**2 + b * above + q > 0).all()
    close(largest_shrink(0.0, 2.0, -0.5), 0.25)


def test_forgetron_keeps_its_damage_and_its_norm_in_bounds():
    X, y = labels(300, seed=3)
    y[::7] *= -1
    kernel = gaussian(0.3)
    method = Forgetron(kernel, hinge(), 0.0, budget=10)
    dropped, forgotten, shrunk = 0.0, 0.0, 0
    for x, target in zip(X, y, strict=True):
        whole = Terms(kernel)
        whole.terms = [*zip(method.alpha, list(method.centres), strict=True), (target, x)]
        damage, mistakes = method.damage, method.mistakes
        method.learn(x, target)
        if method.mistakes > mistakes and len(whole.terms) > 10:
            phi, gone = method.shrink, abs(method.shrink * whole.terms[0][0])
            shrunk += phi < 1
            assert 0 < phi <= 1
            close(method.alpha, [phi * a for a, _ in whole.terms[1:]])
            # What forgetting adds to norm^2, and twice the forgotten coefficient: the damage.
            lost = method.norm2() - phi**2 * whole.norm2() + 2 * gone
            close(method.damage - damage, lost)
            dropped, forgotten = dropped + gone**2, forgotten + 2 * gone
        assert method.damage <= 15 / 32 * method.mistakes + 1e-9
        # A mistake adds at most k(x, x) = 1 to norm^2, and shrinking adds nothing.
        assert method.norm2() <= method.mistakes + method.damage - forgotten + 1e-9
    assert len(method.centres) == 10
    assert shrunk > 10
    close(method.dropped, dropped)


def test_forgetron_keeps_the_published_bound_on_mistakes():
    # Dekel, Shalev-Shwartz, Singer 2008: for a budget of at least 83, k(x, x) <= 1 and any g with
    # |g| <= sqrt((B + 1) / log(B + 1)) / 4, mistakes <= 2 |g|^2 + 4 sum of the hinge losses of g.
    draw = np.random.default_rng(1)
    X = draw.normal(size=(700, 2)) * 0.3 + [1.0, 0.0]
    X /= np.sqrt((X**2).sum(axis=1))[:, None]
    y = np.where(draw.uniform(size=700) < 0.5, 1.0, -1.0)
    X *= y[:, None]
    y[draw.uniform(size=700) < 0.15] *= -1
    budget = 83
    g = np.array([sqrt((budget + 1) / log(budget + 1)) / 4, 0.0])
    method = run(Forgetron(linear(0.0), hinge(), 0.0, budget=budget), X, y)
    assert method.mistakes > budget
    assert method.mistakes <= 2 * g @ g + 4 * np.maximum(0, 1 - y * (X @ g)).sum()


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


def test_projectron_projects_within_its_tolerance_and_when_it_is_full():
    X, y = labels(80)
    kernel = gaussian(1.0)
    for tolerance, budget in ((0.3, 100), (0.01, 5)):
        method = Projectron(kernel, hinge(), 0.0, tolerance=tolerance, budget=budget)
        projected = 0
        for x, target in zip(X, y, strict=True):
            old, size = Terms(kernel), len(method.centres)
            old.terms = list(zip(method.alpha, list(method.centres), strict=True))
            wrong = target * old(x) <= 0
            method.learn(x, target)
            gap = Terms(kernel)
            gap.terms = old.terms + ([(target, x)] if wrong else [])
            gap.terms += [(-a, c) for a, c in zip(method.alpha, method.centres, strict=True)]
            if size < budget:
                assert gap.norm2() <= tolerance**2 + 1e-9
            if wrong and len(method.centres) == size:
                projected += 1
                close([gap(c) for c in method.centres], np.zeros(size), 1e-8)
        assert projected > 3
        assert len(method.centres) <= budget
    nothing = run(Projectron(linear(0.0), hinge(), 0.0), np.zeros((2, 2)), [1.0, -1.0])
    assert nothing.centres == []


def test_nystrom_features_reproduce_the_projected_kernel():
    X, y = stream(40)
    kernel = gaussian(1.5)
    method = run(NystromSGD(kernel, squared(), 0.1, landmarks=8), X, y)
    C = method.landmarks
    assert len(C) == 8
    middle = np.linalg.inv(gram(kernel, C, C))
    for x in POINTS:
        for t in X[:5]:
            projected = gram(kernel, [x], C) @ middle @ gram(kernel, C, [t])
            close(method.features(x) @ method.features(t), projected[0, 0], 1e-9)


def test_nystrom_is_gradient_descent_projected_on_the_landmarks():
    X, y = stream(40)
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


# ---------------------------------------------------------------- second order, on centres


def weighted(method, X, y):
    """Run, and note what the method saw: (z, w)."""
    seen = []
    for x, target in zip(X, y, strict=True):
        seen.append(method.working(x, target)[1:])
        method.learn(x, target)
    return np.array(seen).T


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
@pytest.mark.parametrize(("loss", "second"), [(squared(), None), (logistic(), logistic_curvature)])
def test_krls_follows_the_published_recursion(loss, second, budget):
    X, y = stream(40) if second is None else labels(40)
    kernel = gaussian(1.0)
    more = {} if second is None else {"second": second}
    method = KRLS(kernel, loss, 0.0, novelty=0.02, budget=budget, **more)
    alpha, P = np.zeros(0), np.zeros((0, 0))
    sizes = []
    for x, target in zip(X, y, strict=True):
        C, (e, _, w) = list(method.centres), method.working(x, target)
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


@pytest.mark.parametrize(("loss", "second"), [(squared(), None), (logistic(), logistic_curvature)])
def test_sliding_window_is_kernel_ridge_regression_on_the_last_samples(loss, second):
    X, y = stream(30) if second is None else labels(30)
    more = {} if second is None else {"second": second}
    method = SlidingWindowKRLS(gaussian(1.0), loss, 0.0, budget=12, ridge=0.05, **more)
    z, w = weighted(method, X, y)
    # By the gradient of sum w (f(x_i) - z_i)^2 + ridge |f|^2, which must vanish in every direction.
    residual = w[-12:] * (predictions(method, X[-12:]) - z[-12:])
    close(residual + 0.05 * method.alpha, np.zeros(12), 1e-9)
    np.testing.assert_array_equal(method.centres, X[-12:])
    if second is None:
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
@pytest.mark.parametrize(("loss", "second"), [(squared(), None), (logistic(), logistic_curvature)])
def test_tracker_is_a_gaussian_process_in_space_and_time(forgetting, loss, second):
    # Going back to the prior means cov(f_s(x), f_t(x')) = k(x, x') forgetting^(|s - t| / 2).
    X, y = stream(25) if second is None else labels(25)
    X[20] = X[3]  # one sample without a centre of its own
    kernel = matern(1.0, 1.5)
    more = {} if second is None else {"second": second}
    method = KRLSTracker(kernel, loss, 0.0, 50, forgetting, 0.1, **more)
    z, w = weighted(method, X, y)
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


def test_samples_that_a_kernel_cannot_see_are_passed_over():
    for method in (
        KRLS(linear(0.0), squared(), 0.0),
        KRLSTracker(linear(0.0), squared(), 0.0),
        NystromSGD(linear(0.0), squared(), 0.0),
        POLK(linear(0.0), squared(), 0.0),
    ):
        run(method, [np.zeros(2), np.array([1.0, 0.0]), np.zeros(2)], [5.0, 1.0, 5.0])
        assert method.predict(np.array([1.0, 0.0])) > 0.1
        assert method.predict(np.zeros(2)) == 0


# ---------------------------------------------------------------- on features


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


@pytest.mark.parametrize(("loss", "second"), [(squared(), None), (logistic(), logistic_curvature)])
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.7])
@pytest.mark.parametrize("forget", ["exponential", "prior"])
@pytest.mark.parametrize("phi", [features(), linear_features(0.5)])
def test_recursive_least_squares_solve_their_batch_problems(loss, second, forgetting, forget, phi):
    X, y = stream(40) if second is None else labels(40)
    more = {} if second is None else {"second": second}
    method = FourierRLS(phi, loss, 0.0, forgetting, 0.05, forget, **more)
    z, w = weighted(method, X, y)
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


# ---------------------------------------------------------------- bounds and close calls


@pytest.mark.parametrize(
    ("make", "objective", "bound"),
    [
        (QKLMS, "quantization", 0.7),
        (KNLMS, "coherence", exp(-(0.7**2) / 2)),
        (Projectron, "tolerance", sqrt(2 * (1 - exp(-(0.7**2))))),
        (KRLS, "novelty", 1 - exp(-(0.7**2))),
        (NystromSGD, "novelty", 1 - exp(-(0.7**2))),
    ],
)
def test_a_second_point_is_kept_on_one_side_of_the_bound_only(make, objective, bound):
    # The kernel is 2 exp(-d^2/2), so the square of its cosine is exp(-d^2), and k(x, x) = 2.
    def kernel(x, t):
        return 2 * gaussian(1.0)(x, t)

    sizes = []
    for factor in (0.999, 1.001):
        loss = hinge() if make is Projectron else squared()
        method = make(kernel, loss, 0.0, **{objective: factor * bound})
        run(method, [np.zeros(1), np.array([0.7])], [1.0, -1.0])
        sizes.append(len(method.landmarks if make is NystromSGD else method.centres))
    assert sizes == ([1, 2] if make is KNLMS else [2, 1])


def test_close_calls_are_remembered_and_exact_ties_are_not():
    x = np.zeros(1)
    method = QKLMS(gaussian(1.0), squared(), 0.0, quantization=1.0)
    run(method, [x, x + 1.0], [1.0, 1.0])  # exactly at the bound
    assert method.closest == np.inf
    assert len(method.centres) == 1
    method.learn(x + 1.0 + 1e-12, 1.0)
    assert method.closest < 1e-11
    assert len(method.centres) == 2


def test_conditions_are_noted():
    method = POLK(gaussian(1.0), squared(), 0.0, compression=0.0)
    run(method, [np.zeros(1), np.array([0.1])], [1.0, -1.0])
    k = exp(-0.005)  # the eigenvalues are 1 + k and 1 - k
    close(method.condition / ((1 + k) / (1 - k)), 1.0, 1e-9)
