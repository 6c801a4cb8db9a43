"""Simplex and its quadratic program: exact, certified, the same by both methods."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support import naive
from support.combining import run_combiner
from support.marks import refuses

EPS = np.finfo(float).eps

# --- the program ----------------------------------------------------------------------------------


def exact(a, b):
    return np.array([float(t) for t in naive.simplex_qp(a, b)])


positive = st.floats(min_value=-300, max_value=300).map(lambda e: 10.0**e)
tame = st.floats(min_value=0.001, max_value=1000)
tiny = st.integers(1, 9).map(lambda k: k * 5e-324)
huge = st.floats(min_value=1e307, max_value=1.7e308)
curvatures = st.one_of(st.just(0.0), positive, tame, tiny, huge)
signed = st.one_of(positive, tame, tiny, huge, st.sampled_from([0.0, 1.0, 2.0]))
linear = st.tuples(signed, st.sampled_from([-1.0, 1.0])).map(lambda t: t[0] * t[1])


@st.composite
def problems(draw, smallest=1, largest=12):
    size = draw(st.integers(smallest, largest))
    a = draw(st.lists(curvatures, min_size=size, max_size=size))
    b = draw(st.lists(linear, min_size=size, max_size=size))
    return np.array(a), np.array(b)


@settings(max_examples=40)
@given(problems(), st.integers(-20, 20), st.randoms(use_true_random=False))
@example(
    (np.array([1.7e308, 1.6e308]), np.array([-1.5e308, 1.5e308])), 0, None
)  # b1 - b0 overflows
@example((np.array([0.0, 1.7e308]), np.array([1.7e308, -1.7e308])), 0, None)
@example((np.array([5e-324, 1e-323]), np.array([1e308, 1e308])), 0, None)
def test_simplex_qp_equals_exact_rationals(problem, power, random):
    # theta is a sum of at most P non-negative terms, each with a handful of roundings; its members
    # are at most 1, so P * 8 eps bounds the error of each.
    a, b = problem
    rounding = 8 * len(a) * EPS
    theta = kb.simplex_qp(a, b)
    assert (theta >= 0).all()
    assert np.abs(theta - exact(a, b)).max() <= rounding
    assert kb.kkt_residual(theta, a, b) <= rounding
    for method in ("sort", "pivot"):
        assert (theta == kb.simplex_qp(a, b, method=method)).all()
    order = list(range(len(a)))
    if random is not None:
        random.shuffle(order)
    permuted = kb.simplex_qp(a[order], b[order], method="pivot")
    assert np.abs(permuted - theta[order]).max() <= 2 * rounding
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(a, power), np.ldexp(b, power)
        back = [np.ldexp(x, -power) for x in scaled]
    if (back[0] == a).all() and (back[1] == b).all():  # nothing overflowed, no denormal lost bits
        assert np.abs(kb.simplex_qp(*scaled) - theta).max() <= 2 * rounding


def test_kkt_residual_of_moved_weight_is_large():
    """Relative to the size of the program; the minimiser is (3/4, 1/4)."""
    for size in (1e-200, 1.0, 1e200):
        a, b = np.array([size, size]), np.array([0.0, size])
        assert kb.kkt_residual([0.75, 0.25], a, b) <= 2 * EPS
        for moved in ([0.74, 0.26], [0.76, 0.24], [1.0, 0.0], [0.5, 0.5]):
            assert kb.kkt_residual(moved, a, b) > 1e-3
        assert kb.kkt_residual([0.75, 0.24], a, b) > 1e-3  # not on the simplex


@pytest.mark.parametrize(("size", "scale"), [(65, 1e6), (1000, 1.0), (20_000, 1e6)])
def test_simplex_qp_with_many_members_is_exact_by_both_methods(size, scale):
    draw = np.random.default_rng(size)
    a, b = scale * draw.uniform(0.01, 1.01, size), draw.normal(size=size)
    a[draw.random(size) < 0.01] = 0.0 if scale == 1.0 else 0.5
    b[draw.random(size) < 0.3] = np.round(b[draw.random(size) < 0.3][0], 1)
    theta = kb.simplex_qp(a, b, method="pivot")
    assert (theta == kb.simplex_qp(a, b, method="sort")).all()
    assert kb.kkt_residual(theta, a, b) <= 8 * size * EPS


def test_simplex_qp_of_rows_solves_each_alone_and_leaves_its_input():
    draw = np.random.default_rng(0)
    a, b = draw.uniform(0, 1, (5, 30)), draw.normal(size=(5, 30))
    before = a.copy(), b.copy()
    both = kb.simplex_qp(a, b)
    assert all((both[i] == kb.simplex_qp(a[i], b[i])).all() for i in range(5))
    residuals = kb.kkt_residual(both, a, b)
    assert residuals.shape == (5,)
    assert residuals.max() <= 8 * 30 * EPS
    assert (a == before[0]).all()
    assert (b == before[1]).all()


@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        ([1.0, np.nan], [0.0, 0.0], "'a'"),
        ([1.0, -1e-9], [0.0, 0.0], "'a'"),
        ([1.0, 1.0], [0.0, -np.inf], "'b'"),
        ([1.0, 1.0], [0.0], "'b'"),
        ([], [], "'a'"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), "'a'"),
        (["x", "y"], [0.0, 0.0], "'a'"),
        ([1.0, [2.0]], [0.0, 0.0], "'a'"),
        (1.0, 1.0, "'a'"),
    ],
)
def test_simplex_qp_with_bad_input_names_it(a, b, name):
    for function in (kb.simplex_qp, lambda a, b: kb.kkt_residual(b, a, b)):
        refuses(name, function, a, b)


def test_simplex_qp_with_wrong_method_or_weights_names_them():
    refuses("'method'", kb.simplex_qp, [1.0], [1.0], method="bisect")
    refuses("'theta'", kb.kkt_residual, [1.0], [1.0, 1.0], [1.0, 1.0])
    refuses("'theta'", kb.kkt_residual, [np.nan], [1.0], [1.0])


def test_sliding_sums_after_a_huge_loss_has_left_the_horizon_have_no_rounding():
    draw = np.random.default_rng(0)
    losses = draw.uniform(0, 1, (500, 3))
    losses[50], losses[260, 1] = 1e300, 1e30
    horizon = 17
    rule = kb.combiners.Simplex("prequential", horizon)
    for cuts in ((1, 3, 60, 61, 200, 437), range(1, 500)):
        history = run_combiner(rule, losses, cuts=cuts).history
        for n, shown in zip([*cuts, 500], history, strict=True):
            for p in range(3):
                total = math.fsum(losses[max(0, n - horizon) : n, p])
                assert abs(shown["linear"][p] - total) <= horizon * EPS * total
