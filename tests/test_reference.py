"""The paper's scheme as it is written there: the same as a bank's, and as its page shows it."""

import re
from pathlib import Path

import numpy as np
import pytest

import kernelbank as kb
from kernelbank import reference

ROOT = Path(__file__).parents[1]
EPS = np.finfo(float).eps
RATE, RIDGE, WINDOW, BUDGET, SAMPLES = 0.05, 0.01, 10, 30, 80
WIDTHS = np.linspace(0.1, 10, 8)


def bank(combiner):
    kernels = [kb.kernels.Gaussian(width) for width in WIDTHS]
    learner = kb.learners.Norma(learning_rate=RATE, budget=BUDGET)
    return kb.KernelBank(kernels, learner, combiner, window=WINDOW, regularization=RIDGE)


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
@pytest.mark.parametrize(
    ("rule", "combiner", "columns"),
    [
        ("scheme", kb.combiners.Simplex(), 1),
        ("omkr", kb.combiners.OMKR(), 2),
        ("omkr printed", kb.combiners.OMKR(gradient="printed"), 1),
    ],
)
def test_reference_equals_a_bank(rule, combiner, columns):
    """The tolerances follow from the size of the terms.

    E bounds every |f - y|. A coefficient gets at most 2 rate E from each of the samples of a
    window, so the coefficients sum to at most M. After n stable steps a value f(x), a sum of
    BUDGET + WINDOW terms, is off by at most n (BUDGET + WINDOW + 50) eps (1 + E + M), norm^2 by 2 M
    times as much. Weights of the simplex move by the error of a and b over twice the least a of an
    active slot; Algorithm 1 itself adds (2 P + 4) eps of the size of its terms. A step of OMKR
    contracts, and sums n such errors.
    """
    x, y = kb.datasets.ar1(seed=1, samples=SAMPLES)
    X = np.column_stack([x, np.cos(x)])[:, :columns]
    kernels = [reference.gaussian(width) for width in WIDTHS]
    played = reference.run(X, y, kernels, rule, WINDOW, BUDGET, RATE, RIDGE)
    weighted = bank(combiner)
    trace = weighted.run(X, y)
    largest = np.sqrt(max(played.cost.max(), played.slot_cost.max()))  # E
    total = BUDGET * WINDOW * 2 * RATE * largest  # M
    values = SAMPLES * (BUDGET + WINDOW + 50) * EPS * (1 + largest + total)
    costs = WINDOW * 2 * largest * values + RIDGE * total * values
    assert np.abs(trace.slot_cost - played.slot_cost).max() <= costs
    rows = np.vstack([played.weights, played.next_weights])
    if rule == "scheme":
        active = np.where(rows[1:] > 0, trace.curvature, np.inf).min(axis=1)
        rounding = (2 * len(WIDTHS) + 4) * EPS * 2 * largest**2
        weights = np.append(0.0, (costs + rounding) / (2 * active))
    else:
        step = 8e-4 * (len(WIDTHS) * costs + 2 * RIDGE * total * values)
        weights = np.arange(SAMPLES + 1) * step
    assert np.median(weights) < 1e-4  # or else this would not test weights
    differences = np.abs(np.vstack([trace.weights, weighted.weights]) - rows).max(axis=1)
    assert (differences <= weights).all()
    mixed = values + len(WIDTHS) * weights[:-1] * largest
    assert (np.abs(trace.predictions - played.predictions) <= mixed).all()
    charged = WINDOW * 2 * largest * mixed + costs + 2 * weights[:-1] * trace.slot_cost.sum(axis=1)
    assert (np.abs(trace.cost - played.cost) <= charged).all()


def test_algorithm_1_is_the_exact_program_where_the_curvatures_are_of_one_size():
    draw = np.random.default_rng(0)
    for _ in range(50):
        a, b = draw.uniform(0.5, 2, 7), draw.uniform(0, 3, 7)
        allowed = (2 * 7 + 4) * EPS * (b.max() + 2 * a.max()) / a.min()
        assert np.abs(reference.algorithm_1(a, b) - kb.simplex_qp(a, b)).max() <= allowed
    equal = reference.algorithm_1(np.zeros(4), np.ones(4))  # with delta in the place of 0
    assert np.abs(equal - 0.25).max() <= (2 * 4 + 4) * EPS * 2 / (2 * reference.DELTA)


def test_page_shows_the_lines_of_the_code():
    code = (ROOT / "src/kernelbank/reference.py").read_text(encoding="utf-8")
    page = (ROOT / "docs/reference-scheme.md").read_text(encoding="utf-8")
    lines = re.findall(r"\| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(lines) == 19
    assert [line for line in lines if line not in code] == []
    assert len(code.splitlines()) <= 150
