"""The paper's experiment: the check values of its specification, and the claims about it."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.research import paper
from support import naive


@pytest.fixture(scope="module")
def runs():
    return list(paper.run_seeds(4, 1000))


def test_stream_equals_the_naive_ar1():
    x, y = kb.datasets.ar1(0, 50)
    naive_x, naive_y = naive.ar1(0, 50)
    assert (x == naive_x[:, 0]).all()
    assert np.abs(y - naive_y).max() <= 1e-15
    scaled = kb.datasets.ar1(0, 50, "std")[1]
    assert np.allclose(scaled, y * np.sqrt(0.71519837), rtol=1e-12)


def test_costs_and_losses_equal_the_check_values(runs):
    run = runs[0]
    cost = [run.cost_after(1000, name) for name in (paper.SCHEME, paper.EXACT, paper.BEST)]
    assert cost == pytest.approx([3410.491, 3421.350, 3881.337], abs=5e-4)
    assert (run.best_by_cost, run.best_by_loss) == (2, 4)
    assert run.slot_cost[-1].max() == pytest.approx(6625.781, abs=5e-4)
    assert run.cost_after(1000, paper.PRINTED) == pytest.approx(3409.3, abs=0.05)
    assert runs[3].cost_after(1000, paper.EXACT) == pytest.approx(3506, abs=0.5)
    assert runs[3].cost_after(1000, paper.SCHEME) == pytest.approx(3611, abs=0.5)
    losses = [run.mean_loss(of) for of in (paper.SCHEME, run.best_by_cost, run.best_by_loss)]
    assert losses == pytest.approx([0.857, 0.904, 0.848], abs=5e-4)


def test_overtaking_step_is_final(runs):
    for run in runs:
        for name in paper.COMBINERS:
            step = int(run.overtakes(name))
            best = run.slot_cost.min(axis=1)
            assert (run.cost[name][step - 1 :] < best[step - 1 :]).all()
            assert step == 1 or not run.cost[name][step - 2] < best[step - 2]


def test_claims_hold_on_so_many_seeds(runs):
    assert list(paper.claims(runs).values()) == [0, 4, 4, 0, 1]
    assert list(paper.claims(runs[:1]).values())[-1] == 1  # OMKR is beaten on seed 0 only


def test_figure_says_from_which_step_on_each_is_below_the_best_norma(runs):
    axes, lead = paper.cumulative_cost(runs[0]).axes
    labels = [text.get_text() for text in lead.get_legend().get_texts()]
    assert labels == [f"below from step {step} on" for step in (7, 121, 120)]
    assert "best NORMA (width 1.14)" in axes.get_legend_handles_labels()[1]
    assert np.array_equal(
        lead.lines[0].get_ydata(), runs[0].cost[paper.SCHEME] - runs[0].slot_cost.min(axis=1)
    )


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
    short, begun = next(paper.run_seeds(1, 200)), runs[0].until(200)
    for one, other in zip(paper.table([short]), paper.table([begun]), strict=True):
        assert one == other
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
    other = list(paper.run_seeds(4, 1000, "std"))
    assert [s.below for s in paper.standings(other, (300, 1000))] == [4] * 6
