"""The bounds of the theory, right in every constant; the batch solution; regret."""

import itertools
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import theory

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support import naive
from support.combining import run_combiner
from support.naive import regret as naive_regret

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")


@pytest.fixture(scope="module")
def certificates():
    return theory.run_seed(0, 60)


def test_every_bound_holds_and_none_is_empty(certificates):
    names = [one.name for one in certificates]
    assert len(set(names)) == len(names) == 9
    for one in certificates:
        assert one.held, one
        assert np.isfinite([one.bound, one.measured]).all()
        assert one.bound > 0
    assert not theory.tightest("two", [(1.0, 0.5), (0.1, 0.2)]).held
    assert theory.tightest("two", [(1.0, 0.5), (0.1, 0.02)]).measured == 0.5


def test_command_prints_the_table_of_the_page_and_fails_if_a_bound_did_not_hold(
    monkeypatch, capsys
):
    with pytest.raises(SystemExit) as ended:
        theory.main(["--seeds", "1", "--samples", "20"])
    assert ended.value.code == 0
    parts = [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines()]
    assert parts[0] == "| part, compared with"
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
    assert all(f"{part} |" in page for part in parts[2:])
    right = theory.hedge_bound
    monkeypatch.setattr(theory, "hedge_bound", lambda *given: 0.1 * right(*given))
    with pytest.raises(SystemExit) as ended:
        theory.main(["--seeds", "1", "--samples", "100"])
    assert ended.value.code == 1
    assert "| Hedge, the best slot |" in capsys.readouterr().out


# --- NORMA ----------------------------------------------------------------------------------------


def test_gradients_of_norma_are_the_steps_of_the_estimates():
    """|C_n'| = |f_{n+1} - f_n| / rate, from the terms of the naive definition."""
    x, y = kb.datasets.ar1(seed=0, samples=15)
    own = theory.paper_bank(kb.combiners.Simplex(), 15)
    gradients, _ = theory.norma_steps(own, x, y)
    kernel = naive.gaussian(own.dictionary[3].width)
    total, terms = 0.0, []
    for n in range(15):
        window = [(x[i : i + 1], y[i]) for i in range(max(0, n - 9), n + 1)]
        new, _ = naive.bank.learn(terms, kernel, window, naive.squared()[1], 0.05, 0.01, 15)
        before = [alpha for alpha, _ in terms] + [0.0]
        change = [(alpha - old, t) for (alpha, t), old in zip(new, before, strict=True)]
        total += sum(naive.bank.gram_terms(change, kernel)) / 0.05**2
        terms = new
    assert gradients[3] == pytest.approx(total, rel=1e-9)


def test_comparator_of_norma_costs_least_of_all_functions():
    x, y = kb.datasets.ar1(seed=0, samples=30)
    kernel = kb.kernels.Gaussian(1.0)
    K = kernel(x, x)
    least, norm, length = theory.comparators(K, y, 10, 1)
    draw = np.random.default_rng(0)
    m = np.array([min(10, 30 - i) for i in range(30)])

    def cost(c):
        values = K @ c
        return sum(
            ((values - y)[max(0, n - 9) : n + 1] ** 2).sum() + 0.005 * c @ values for n in range(30)
        )

    best = np.linalg.solve(2 * m[:, None] * K + 0.3 * np.eye(30), 2 * m * y)
    assert least == pytest.approx(cost(best))
    assert norm == pytest.approx((best @ K @ best) ** 0.5)
    assert length == 0.0
    assert all(cost(best + 0.1 * draw.normal(size=30)) > least for _ in range(20))
    assert theory.comparators(K, y, 10, 3)[0] < least


# --- weights --------------------------------------------------------------------------------------


def regret_of(combiner, losses):
    """The weighted loss minus the loss of the best slot, for artificial losses (n, P)."""
    after = run_combiner(combiner, losses).weights
    weights = np.vstack([np.full(losses.shape[1], 1 / losses.shape[1]), after[:-1]])
    return float((weights * losses).sum() - losses.sum(axis=0).min())


RATE = 0.05
EQUAL = np.tile(np.eye(2), (5000, 1))
"""Two slots that lose in turn: the weights pay rate / 8 per sample, Hoeffding's term."""
ONE = np.tile([1.0, 0.0], (300, 1))
"""One slot always loses: it takes log 2 / rate until the other has all weight."""


@pytest.mark.parametrize(("losses", "share"), [(EQUAL, 0.8), (ONE, 0.85), (3 * EQUAL, 0.95)])
def test_bound_of_hedge_is_almost_reached(losses, share):
    regret = regret_of(kb.combiners.Hedge(learning_rate=RATE), losses)
    bound = theory.hedge_bound(RATE, 2, np.ptp(losses, axis=1))
    assert share * bound <= regret <= bound


@pytest.mark.parametrize("switches", [0, 1, 3])
def test_prior_of_fixed_share_is_that_of_every_sequence(switches):
    """Exponential weights over all sequences are FixedShare; the bound is -log of their prior."""
    slots, samples, rate, share = 3, 5, 0.7, 0.2
    losses = np.random.default_rng(1).uniform(0, 1, (samples, slots))
    same, other = 1 - share + share / slots, share / slots
    prior, posterior = {}, np.zeros(slots)
    for sequence in itertools.product(range(slots), repeat=samples + 1):
        changes = [p != q for p, q in itertools.pairwise(sequence)]
        chance = 1 / slots * np.prod([other if change else same for change in changes])
        sums = sum(losses[t, sequence[t]] for t in range(samples))
        posterior[sequence[-1]] += chance * exp(-rate * sums)
        prior[sequence] = chance
    assert sum(prior.values()) == pytest.approx(1)
    combiner = kb.combiners.FixedShare(rate, share)
    assert run_combiner(combiner, losses).weights[-1] == pytest.approx(posterior / posterior.sum())
    some = next(s for s in prior if sum(p != q for p, q in itertools.pairwise(s)) == switches)
    spreads = np.ptp(np.vstack([losses, losses[:1]]), axis=1)  # one per element of a sequence
    bound = theory.fixed_share_bound(rate, share, slots, switches, spreads)
    assert bound == pytest.approx(-log(prior[some]) / rate + rate / 8 * (spreads**2).sum())


# --- the separable bound --------------------------------------------------------------------------


def test_gap_of_the_direct_sum_bound_is_how_much_the_slots_disagree():
    """For squared loss sum_p w_p (f_p - y)^2 - (F - y)^2 = sum_p w_p (f_p - F)^2 at each sample."""
    x, y = kb.datasets.ar1(seed=0, samples=200)
    trace = kb.KernelBank(kb.gaussian_grid(0.1, 10, 6), window=1).run(x, y)
    apart = (trace.slot_predictions - trace.predictions[:, None]) ** 2
    assert trace.bound_gap == pytest.approx((trace.weights * apart).sum(axis=1), abs=1e-12)


def test_jensen_bound_is_the_weighted_cost_of_the_slots():
    x, y = kb.datasets.ar1(seed=0, samples=24)
    kernels = [0.5, 2.0, 7.0]
    dictionary = [kb.kernels.Gaussian(width) for width in kernels]
    trace = kb.KernelBank(dictionary, kb.learners.Norma(0.05, 15)).run(x, y)
    by_hand = naive.run(
        x,
        y,
        [naive.gaussian(w) for w in kernels],
        naive.squared(),
        window=10,
        budget=15,
        learning_rate=0.05,
        regularization=0.01,
        combiner="simplex",
    )
    norms = np.vstack([np.zeros(3), by_hand.curvature[:-1]])  # of the proposals
    looser = (by_hand.weights * (1 - by_hand.weights) * norms).sum(axis=1)
    jensen = (trace.weights * trace.slot_cost).sum(axis=1)
    assert jensen == pytest.approx(by_hand.bound + looser, rel=1e-8)
    assert (jensen >= trace.cost + trace.bound_gap - 1e-12).all()


# --- the batch solution ---------------------------------------------------------------------------

DRAW = np.random.default_rng(5)
X, Y = DRAW.uniform(-1, 1, (12, 2)), DRAW.normal(size=12)
KERNELS = [kb.kernels.Gaussian(0.3), kb.kernels.Laplacian(1.0), kb.kernels.Linear(0.5)]
MATRICES = [kernel(X, X) for kernel in KERNELS]


def joint_cost(weights, coefficients):
    """sum (F - y)^2 + regularization / 2 sum_p w_p^2 |f_p|^2, F = sum_p w_p f_p, f_p = K_p c_p."""
    values = sum(w * (K @ c) for w, K, c in zip(weights, MATRICES, coefficients, strict=True))
    norms = [c @ K @ c for K, c in zip(MATRICES, coefficients, strict=True)]
    penalty = sum(w**2 * norm for w, norm in zip(weights, norms, strict=True))
    return ((values - Y) ** 2).sum() + 0.2 / 2 * penalty


def test_batch_solution_is_certified_optimal_and_costs_least():
    solution = kb.batch_solution(KERNELS, X, Y, 0.2)
    assert 0 <= solution.gap <= 1e-9 * solution.cost
    values = sum(MATRICES) @ solution.coefficients
    assert values == pytest.approx(solution.values, abs=1e-12)
    # Any weights above 0 are optimal, with f_p = g_p / w_p; no random ones are better.
    least = np.inf
    for trial in range(200):
        weights = DRAW.dirichlet(np.ones(3))
        functions = np.array([solution.coefficients / w for w in weights])
        assert joint_cost(weights, functions) == pytest.approx(solution.cost, rel=1e-9)
        change = DRAW.normal(size=(3, 12)) * DRAW.choice([0.01, 0.1, 1])
        functions = functions + 0.01 * change if trial % 2 else change
        least = min(least, joint_cost(weights, functions))
    assert solution.cost - solution.gap <= least
    assert least <= solution.cost * 1.5  # some come close, so that the claim says something


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dictionary": []}, "at least one kernel"),
        ({"dictionary": [kb.kernels.TreeKernel(1.0, 3)]}, "function of two inputs"),
        ({"regularization": 0.0}, "'regularization'"),
        ({"y": Y[:5]}, "as many rows"),
    ],
)
def test_wrong_arguments_of_a_batch_solution_are_named(change, message):
    given = {"dictionary": KERNELS, "X": X, "y": Y, "regularization": 0.2} | change
    with pytest.raises(InvalidArgument, match=message):
        kb.batch_solution(**given)


# --- regret ---------------------------------------------------------------------------------------

R = kb.regret
LOSS, SLOT_LOSS = DRAW.uniform(0, 1, 9), DRAW.uniform(0, 1, (9, 3))


@pytest.mark.parametrize("samples", [1, 2, 5, 9])
def test_regret_after_each_sample_is_that_of_the_best_comparator_so_far(samples):
    loss, alone = LOSS[:samples], SLOT_LOSS[:samples]
    assert R.best_slot(LOSS, SLOT_LOSS)[samples - 1] == pytest.approx(
        naive_regret.best_slot(loss, alone)
    )
    for length in (1, 2, 4, 20):
        found = R.best_slot_per_interval(LOSS, SLOT_LOSS, length)[samples - 1]
        assert found == pytest.approx(naive_regret.best_slot_per_interval(loss, alone, length))
    for switches in (0, 1, 3, 8):
        found = R.best_slot_sequence(LOSS, SLOT_LOSS, switches)[samples - 1]
        assert found == pytest.approx(naive_regret.best_slot_sequence(loss, alone, switches))


@pytest.mark.parametrize(
    ("loss", "slot_loss", "message"),
    [
        ([], np.zeros((0, 2)), "'loss' must have the shape"),
        (LOSS, SLOT_LOSS[:5], "'slot_loss' must have the shape"),
        ([np.nan], [[1.0]], "'loss' must have no NaN"),
    ],
)
def test_wrong_arguments_of_regret_are_named(loss, slot_loss, message):
    with pytest.raises(InvalidArgument, match=message):
        R.best_slot(loss, slot_loss)
