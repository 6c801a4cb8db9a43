"""The experiment: the check values of its specification, and what is said about it."""

import numpy as np
import pytest

from kernelbank.evaluation.experiments import claims, paper
from support import naive


@pytest.fixture(scope="module")
def games():
    return [paper.play(seed, 1000) for seed in range(4)]


def test_stream():
    x, y = paper.stream(0, 50)
    naive_x, naive_y = naive.ar1(0, 50)
    assert (x == naive_x[:, 0]).all()
    assert np.abs(y - naive_y).max() <= 1e-15
    scaled = paper.stream(0, 50, "std")[1]
    assert np.allclose(scaled, y * np.sqrt(0.71519837), rtol=1e-12)


def test_check_values(games):
    game = games[0]
    assert game.final_cost(paper.SCHEME) == pytest.approx(3410.491, abs=5e-4)
    assert game.slot_cumulative_cost[-1].min() == pytest.approx(3881.337, abs=5e-4)
    assert game.best_by_cost == 2
    assert game.slot_cumulative_cost[-1].max() == pytest.approx(6625.781, abs=5e-4)
    assert game.final_cost(paper.EXACT) == pytest.approx(3421.350, abs=5e-4)
    assert game.final_cost(paper.PRINTED) == pytest.approx(3409.3, abs=0.05)
    assert games[3].final_cost(paper.EXACT) == pytest.approx(3506, abs=0.5)
    assert games[3].final_cost(paper.SCHEME) == pytest.approx(3611, abs=0.5)


def test_one_step_ahead(games):
    game = games[0]
    assert game.mean_loss(paper.SCHEME) == pytest.approx(0.857, abs=5e-4)
    assert game.slot_mean_loss(game.best_by_cost) == pytest.approx(0.904, abs=5e-4)
    assert game.slot_mean_loss(game.best_by_loss) == pytest.approx(0.848, abs=5e-4)
    assert game.best_by_loss == 4


def test_overtaking_is_for_good(games):
    for game in games:
        for name in paper.COMBINERS:
            step = game.overtakes(name)
            best = game.slot_cumulative_cost.min(axis=1)
            assert (game.cumulative_cost[name][step - 1 :] < best[step - 1 :]).all()
            assert step == 1 or not game.cumulative_cost[name][step - 2] < best[step - 2]


def test_claims_count_the_losing_seeds(games):
    held, beyond = claims.claims(games)
    assert held[0].held == (0, 1, 2, 3)
    assert held[1].failed == (3,)
    assert "held on 3 of 4 seeds, not on seed 3." in held[1].words()
    assert beyond[1].words().endswith("held on none of 4 seeds.")


def test_never_is_said():
    row = claims.Row("step", (None, 5.0, 7.0), 0)
    assert row.cells() == ("step", "never", "6 (1 never)", "5", "7")
    assert claims.Row("step", (None,), 0).cells()[2] == "never"


def test_snapshot_is_the_proposal_before_its_sample(games):
    game = games[0]
    snap = paper.snapshot(game)
    assert snap.step == 42
    player = paper.bank(paper.COMBINERS[paper.SCHEME])
    trace = player.run(game.x[:42], game.y[:42])
    at_sample = np.interp(42.0, snap.grid, snap.curves[paper.SCHEME])
    assert at_sample == pytest.approx(trace.predictions[41], abs=1e-3)
    assert (game.slot_cumulative_cost[41][snap.best] <= game.slot_cumulative_cost[41]).all()
    assert paper.snapshot(paper.play(0, 5)).step == 5
