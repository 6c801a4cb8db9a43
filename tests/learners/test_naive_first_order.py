"""Naive first-order learners against facts that do not come from them."""

from math import log, sqrt

import numpy as np
import pytest

from support.naive import (
    gaussian,
    hinge,
    huber,
    linear,
    matern,
    squared,
    squared_distance,
)
from support.naive.estimate import (
    gram,
)
from support.naive.learners import (
    KLMS,
    KNLMS,
    POLK,
    QKLMS,
    Forgetron,
    NystromSGD,
    Projectron,
    largest_shrink,
)
from support.naive_checks import (
    POINTS,
    Terms,
    close,
    exact_gram_matrices,  # noqa: F401  (a fixture)
    labels,
    predictions,
    run,
    stream,
)

pytestmark = pytest.mark.usefixtures("exact_gram_matrices")


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
