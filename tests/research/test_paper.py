"""The paper's experiment: the check values of its specification, and the claims about it."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.research import paper
from support import naive


@pytest.fixture(scope="module")
def runs():
    return [paper.run_seed(seed, 1000) for seed in range(4)]


def test_stream_equals_the_naive_ar1():
    x, y = kb.datasets.ar1(0, 50)
    naive_x, naive_y = naive.ar1(0, 50)
    assert (x == naive_x[:, 0]).all()
    assert np.abs(y - naive_y).max() <= 1e-15
    scaled = kb.datasets.ar1(0, 50, "std")[1]
    assert np.allclose(scaled, y * np.sqrt(0.71519837), rtol=1e-12)


def test_costs_equal_the_check_values(runs):
    run = runs[0]
    assert run.final_cost(paper.SCHEME) == pytest.approx(3410.491, abs=5e-4)
    assert run.slot_cumulative_cost[-1].min() == pytest.approx(3881.337, abs=5e-4)
    assert run.best_by_cost == 2
    assert run.slot_cumulative_cost[-1].max() == pytest.approx(6625.781, abs=5e-4)
    assert run.final_cost(paper.EXACT) == pytest.approx(3421.350, abs=5e-4)
    assert run.final_cost(paper.PRINTED) == pytest.approx(3409.3, abs=0.05)
    assert runs[3].final_cost(paper.EXACT) == pytest.approx(3506, abs=0.5)
    assert runs[3].final_cost(paper.SCHEME) == pytest.approx(3611, abs=0.5)


def test_losses_one_step_ahead_equal_the_check_values(runs):
    run = runs[0]
    assert run.mean_loss(paper.SCHEME) == pytest.approx(0.857, abs=5e-4)
    assert run.slot_mean_loss(run.best_by_cost) == pytest.approx(0.904, abs=5e-4)
    assert run.slot_mean_loss(run.best_by_loss) == pytest.approx(0.848, abs=5e-4)
    assert run.best_by_loss == 4


def test_overtaking_step_is_final(runs):
    for run in runs:
        for name in paper.COMBINERS:
            step = run.overtakes(name)
            best = run.slot_cumulative_cost.min(axis=1)
            assert (run.cumulative_cost[name][step - 1 :] < best[step - 1 :]).all()
            assert step == 1 or not run.cumulative_cost[name][step - 2] < best[step - 2]


def test_claims_name_the_seeds_on_which_they_failed(runs):
    paper_says, beyond = paper.claims(runs)
    assert paper_says[1].held == (0, 1, 2, 3)
    assert beyond[1].text().endswith("held on none of 4 seeds.")
    assert beyond[2].text().endswith("held on 1 of 4 seeds, only seed 0.")
    claim = paper.Claim("It", (0, 1, 2), (3,))
    assert claim.text() == "It: held on 3 of 4 seeds, not on seed 3."


def test_seed_row_without_value_says_never():
    row = paper.SeedRow("step", (None, 5.0, 7.0), 0)
    assert row.cells() == ("step", "never", "6 (1 never)", "5", "7")
    assert paper.SeedRow("step", (None,), 0).cells()[2] == "never"


def test_estimates_are_made_before_their_sample(runs):
    run = runs[0]
    estimates = paper.estimates_at(run)
    assert estimates.step == 42
    own = paper.bank(paper.COMBINERS[paper.SCHEME])
    trace = own.run(run.x[:42], run.y[:42])
    at_sample = np.interp(42.0, estimates.grid, estimates.curves[paper.SCHEME])
    assert at_sample == pytest.approx(trace.predictions[41], abs=1e-3)
    assert (run.slot_cumulative_cost[41][estimates.best] <= run.slot_cumulative_cost[41]).all()
    assert paper.estimates_at(paper.run_seed(0, 5)).step == 5


def test_generator_stream_is_drawn_as_the_public_generator_draws():
    draw = np.random.RandomState(0)
    coefficient, covariance = draw.random_sample((1, 1)), np.diag(draw.random_sample(1))
    assert round(float(coefficient[0, 0]), 8) == 0.5488135
    assert round(float(covariance[0, 0]), 8) == 0.71518937  # the paper prints 0.71519837
    state = np.zeros(1)
    x, y = paper.generator_stream(20)
    for n in range(20):
        state = coefficient @ state + draw.multivariate_normal(np.zeros(1), covariance)
        assert (x[n], y[n]) == (n + 1, pytest.approx(state[0], rel=1e-13))


def test_beginning_of_a_run_is_a_shorter_run(runs):
    short, begun = paper.run_seed(1, 200), runs[1].until(200)
    for name in paper.COMBINERS:
        assert (short.cumulative_cost[name] == begun.cumulative_cost[name]).all()
        assert (short.loss[name] == begun.loss[name]).all()
    assert (short.slot_cumulative_cost == begun.slot_cumulative_cost).all()
    assert (short.slot_loss == begun.slot_loss).all()
    assert (short.x == begun.x).all()
    assert (short.y == begun.y).all()


def made_up_run(scheme, exact, printed, slots):
    names = (paper.SCHEME, paper.EXACT, paper.PRINTED)
    costs = dict(zip(names, map(np.array, (scheme, exact, printed)), strict=True))
    return paper.PaperRun(0, np.arange(2.0), np.zeros(2), costs, costs, np.array(slots), slots)


def test_standings_count_seeds_and_average_margins():
    runs = [
        made_up_run([1.0, 3.0], [2.0, 2.0], [1.0, 4.0], [[4.0, 5.0], [9.0, 6.0]]),
        made_up_run([1.0, 1.0], [4.0, 2.0], [2.0, 4.0], [[2.0, 4.0], [2.0, 4.0]]),
    ]
    found = {(s.samples, s.rival): (s.below, s.margin) for s in paper.standings(runs, (1, 2))}
    assert found == {
        (1, paper.EXACT): (2, (1 / 2 + 3 / 4) / 2),
        (1, paper.PRINTED): (1, (0 + 1 / 2) / 2),  # equal is not below
        (1, paper.BEST): (2, (3 / 4 + 1 / 2) / 2),
        (2, paper.EXACT): (1, (-1 / 2 + 1 / 2) / 2),
        (2, paper.PRINTED): (2, (1 / 4 + 3 / 4) / 2),
        (2, paper.BEST): (2, (1 / 2 + 1 / 2) / 2),  # the best slot may change
    }


def test_verdict_on_omkr_depends_on_length_and_reading(runs):
    assert [s.below for s in paper.standings(runs, (300, 1000))] == [4, 4, 4, 3, 2, 4]
    other = [paper.run_seed(seed, 1000, "std") for seed in range(4)]
    assert [s.below for s in paper.standings(other, (300, 1000))] == [4] * 6
