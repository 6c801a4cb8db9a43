"""The paper's experiment: the check values of its specification, and the claims about it."""

import numpy as np
import pytest

from kernelbank.evaluation.experiments import paper, paper_claims
from support import naive


@pytest.fixture(scope="module")
def runs():
    return [paper.run_seed(seed, 1000) for seed in range(4)]


def test_stream_equals_the_naive_ar1():
    x, y = paper.stream(0, 50)
    naive_x, naive_y = naive.ar1(0, 50)
    assert (x == naive_x[:, 0]).all()
    assert np.abs(y - naive_y).max() <= 1e-15
    scaled = paper.stream(0, 50, "std")[1]
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
    held, beyond = paper_claims.claims(runs)
    assert held[0].held == (0, 1, 2, 3)
    assert held[1].failed == (3,)
    assert "held on 3 of 4 seeds, not on seed 3." in held[1].text()
    assert beyond[1].text().endswith("held on none of 4 seeds.")


def test_seed_row_without_value_says_never():
    row = paper_claims.SeedRow("step", (None, 5.0, 7.0), 0)
    assert row.cells() == ("step", "never", "6 (1 never)", "5", "7")
    assert paper_claims.SeedRow("step", (None,), 0).cells()[2] == "never"


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
