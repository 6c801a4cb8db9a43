"""Rules by likelihoods: Bayesian model averaging and stacking, against their naive forms."""

import numpy as np
import pytest

import kernelbank as kb
from support.combining import one_by_one, run_combiner
from support.naive import combiners
from support.naive.rivals import bayesian_ensembles

EPS = np.finfo(float).eps
C = kb.combiners
RULES = [
    C.BayesianAveraging(),
    C.BayesianAveraging(noise=0.3),
    C.BayesianAveraging(forgetting=0.9),
    C.BayesianAveraging(switching=0.03, noise=0.3),
    C.BayesianStacking(),
    C.BayesianStacking(noise=0.3),
    C.BayesianStacking(learning_rate=0.05),
    C.BayesianStacking(learning_rate=0.05, switching=0.01, noise=0.3),
]


def problem(samples=60, slots=4, seed=0):
    """Predictions of different accuracy, targets, and variances: the last slot has none."""
    draw = np.random.default_rng(seed)
    targets = draw.normal(size=samples)
    noise = np.linspace(0.4, 0.8, slots)
    predictions = targets[:, None] + noise * draw.normal(size=(samples, slots))
    variances = draw.exponential(size=(samples, slots))
    variances[:, -1] = np.nan
    return predictions, targets, variances


def naive_weights(rule, predictions, targets, variances):
    common = {"switching": rule.switching, "noise": rule.noise, "variances": variances}
    if isinstance(rule, C.BayesianAveraging):
        return combiners.bayesian_averaging(predictions, targets, rule.forgetting, **common)
    return combiners.bayesian_stacking(predictions, targets, rule.learning_rate, **common)


def allowed(rule, predictions, targets, variances):
    """A weight is an exponential of a sum of n log scores, each with a few roundings.

    Of the sum of squares behind an estimated noise there are n more.
    """
    scores = combiners.log_scores(predictions, targets, rule.noise, variances)
    n = len(targets)
    return 8 * n * (n + 8) * EPS * max(1.0, np.abs(scores).max())


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_weights_equal_those_of_the_independent_naive_form(rule):
    predictions, targets, variances = problem()
    run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    bound = allowed(rule, predictions, targets, variances)
    assert bound < 1e-8
    for n in range(len(targets)):
        seen = predictions[: n + 1], targets[: n + 1], variances[: n + 1]
        assert np.abs(run.weights[n] - naive_weights(rule, *seen)).max() <= bound
    cut = run_combiner(
        rule,
        values=predictions,
        targets=targets,
        variances=variances,
        cuts=one_by_one(len(targets)),
    )
    assert np.array_equal(run.weights, cut.weights)


def test_forgetting_and_switching_together_are_a_power_and_then_a_chain():
    predictions, targets, variances = problem()
    rule = C.BayesianAveraging(forgetting=0.8, switching=0.1, noise=0.3)
    run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    weights = np.full(4, 0.25)
    scores = combiners.log_scores(predictions, targets, 0.3, variances)
    for row, found in zip(scores, run.weights, strict=True):
        powers = (weights * np.exp(row)) ** 0.8
        weights = 0.9 * powers / powers.sum() + 0.1 / 4
        assert np.abs(found - weights).max() < 1e-11


def test_soft_bayes_with_switching_shares_twice():
    predictions, targets, variances = problem()
    rule = C.BayesianStacking(switching=0.1, noise=0.3)
    run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    scores = combiners.log_scores(predictions, targets, 0.3, variances)
    weights = np.full(4, 0.25)
    for n, (row, found) in enumerate(zip(scores, run.weights, strict=True)):
        rate = np.sqrt(np.log(4) / (8 * (n + 1)))
        weights = weights * (1 - rate + rate * bayesian_ensembles.stacking_gradient(weights, row))
        kept = np.sqrt((n + 1) / (n + 2))
        weights = 0.9 * (kept * weights + (1 - kept) / 4) + 0.1 / 4
        assert np.abs(found - weights).max() < 1e-11


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_failed_slot_has_no_weight_and_the_rest_share_it(rule):
    predictions, targets, variances = problem()
    predictions[20:, 1] = np.nan
    run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    assert (run.weights[20:, 1] == 0).all()
    assert (run.weights[:20, 1] > 0).all()
    assert np.isfinite(run.weights).all()
    assert np.abs(run.weights.sum(axis=1) - 1).max() < 8 * EPS
    predictions[40:] = np.nan
    run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    assert (run.weights[40:] == 0).all()


@pytest.mark.parametrize("rule", [r for r in RULES if r.noise is None], ids=repr)
def test_the_unit_of_the_target_changes_no_weight(rule):
    predictions, targets, variances = problem()
    one = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    other = run_combiner(rule, values=1e5 * predictions, targets=1e5 * targets, variances=variances)
    assert np.abs(one.weights - other.weights).max() < 1e-9


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_extreme_likelihoods_leave_weights_on_the_simplex(rule):
    predictions, targets, variances = problem(200)
    predictions[50] += [1e150, -1e3, 0.0, 1e9]
    predictions[120] = targets[120] + [0.0, 1e8, 1e8, 1e8]
    run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
    assert np.isfinite(run.weights).all()
    assert run.weights.min() >= 0
    assert np.abs(run.weights.sum(axis=1) - 1).max() < 8 * EPS


def mixture_scores(weights, scores):
    """The log score of the mixture with the weights before each sample."""
    before = np.vstack([np.full(scores.shape[1], 1 / scores.shape[1]), weights[:-1]])
    top = scores.max(axis=1)
    return np.log((before * np.exp(scores - top[:, None])).sum(axis=1)) + top


def test_averaging_is_at_most_log_p_behind_the_best_slot():
    for seed in range(5):
        predictions, targets, variances = problem(300, seed=seed)
        rule = C.BayesianAveraging(noise=0.3)
        run = run_combiner(rule, values=predictions, targets=targets, variances=variances)
        scores = combiners.log_scores(predictions, targets, 0.3, variances)
        regret = scores.sum(axis=0).max() - mixture_scores(run.weights, scores).sum()
        assert regret <= np.log(4) + 1e-9


def test_stacking_keeps_a_mixture_where_averaging_ends_at_one_slot():
    draw = np.random.default_rng(0)
    n = 4000
    targets = np.where(draw.random(n) < 0.6, -1.0, 1.0) + 0.4 * draw.normal(size=n)
    predictions = np.tile([-1.0, 1.0, 0.3], (n, 1))  # two slots that are right now and then
    scores = combiners.log_scores(predictions, targets, 0.16)
    found = {}
    for rule in (C.BayesianAveraging(noise=0.16), C.BayesianStacking(noise=0.16)):
        run = run_combiner(rule, values=predictions, targets=targets)
        found[type(rule)] = mixture_scores(run.weights, scores).sum()
        if isinstance(rule, C.BayesianStacking):
            assert np.abs(run.weights[-1] - [0.6, 0.4, 0.0]).max() < 0.08
        else:
            assert run.weights[-1].max() > 0.999
    assert found[C.BayesianStacking] > found[C.BayesianAveraging] + 1000
    best = np.log(np.exp(scores) @ [0.6, 0.4, 0.0]).sum()
    assert best - found[C.BayesianStacking] < 4 * np.sqrt(3 * n * np.log(3))


def test_with_the_logistic_loss_the_likelihood_is_that_of_the_label():
    X = np.linspace(0, 3, 80)
    y = np.where(np.sin(3 * X) > 0, 1.0, -1.0)
    learner = kb.learners.FourierRLS(features=20)
    for rule in (C.BayesianAveraging(), C.BayesianStacking(learning_rate=0.1)):
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 3, 3), learner, rule, "logistic", window=1)
        trace = bank.run(X, y)
        if isinstance(rule, C.BayesianAveraging):
            expected = bayesian_ensembles.bma(-trace.slot_loss)
        else:
            expected = bayesian_ensembles.stacking_eg(-trace.slot_loss, 0.1)
        assert np.abs(trace.weights - expected[:-1]).max() < 1e-11
        assert np.abs(bank.weights - expected[-1]).max() < 1e-11


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: C.BayesianAveraging(forgetting=0.0), "'forgetting' of BayesianAveraging"),
        (lambda: C.BayesianAveraging(switching=1.5), "'switching' of BayesianAveraging"),
        (lambda: C.BayesianAveraging(noise=0.0), "'noise' of BayesianAveraging"),
        (lambda: C.BayesianStacking(learning_rate=-1.0), "'learning_rate' of BayesianStacking"),
        (lambda: C.BayesianStacking(noise="small"), "'noise' of BayesianStacking"),
        (lambda: C.VAW(ridge=0.0), "'ridge' of VAW"),
    ],
)
def test_wrong_settings_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
