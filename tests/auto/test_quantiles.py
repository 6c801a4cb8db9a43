"""Quantiles as outputs of one bank: levels, order, scores, and the same bits."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument

LEVELS = (0.1, 0.5, 0.9)


def small(**settings):
    return kb.AutoBank(size="small", quantiles=LEVELS, **settings)


def noisy(rows, seed=0):
    """A stream whose noise grows with its second input."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1, (rows, 2))
    return X, np.sin(3 * X[:, 0]) + (0.05 + X[:, 1]) * draw.normal(size=rows)


@pytest.fixture(scope="module")
def stream():
    return noisy(400)


@pytest.fixture(scope="module")
def learned(stream):
    bank = small()
    return bank, bank.run(*stream)


def test_quantiles_never_cross(learned, stream):
    bank, trace = learned
    assert (np.diff(trace.quantiles[1:], axis=1) >= 0).all()
    assert (np.diff(bank.predict_quantiles(stream[0]), axis=1) >= 0).all()


def test_predictions_and_intervals_are_those_without_quantiles(learned, stream):
    bank, trace = learned
    plain = kb.AutoBank(size="small")
    without = plain.run(*stream)
    for field in ("predictions", "lower", "upper"):
        assert getattr(trace, field).tobytes() == getattr(without, field).tobytes()
    X = stream[0][:5]
    assert bank.predict(X).tobytes() == plain.predict(X).tobytes()
    assert bank.predict_interval(X).tobytes() == plain.predict_interval(X).tobytes()
    assert bank.predict_at(X).shape == (5, 3)


def test_the_scores_are_the_pinball_losses_of_the_trace(learned, stream):
    bank, trace = learned
    for k, score in enumerate(bank.ledger.quantiles):
        away = stream[1][1:] - trace.quantiles[1:, k]
        loss = np.maximum(score.level * away, (score.level - 1) * away).mean()
        assert score.scored == 399
        np.testing.assert_allclose(score.pinball, loss, rtol=1e-12)  # sums of 399 losses
        np.testing.assert_allclose(score.below, (away <= 0).mean(), rtol=1e-12)


def test_delayed_targets_keep_the_quantiles_of_their_prediction(stream):
    X, y = stream
    bank = small()
    trace = bank.run(X[:60], y[:60], delay=5)
    assert np.isnan(trace.quantiles[:6]).all()
    assert not np.isnan(trace.quantiles[6:]).any()
    assert bank.ledger.quantiles[0].scored == 54


def test_new_inputs_are_taken_up(stream):
    X, y = stream
    bank = small()
    bank.run(X[:150], y[:150])
    wider = np.column_stack([X, X[:, 0] ** 2])
    trace = bank.run(wider[150:180], y[150:180], added=1)
    assert np.isfinite(trace.quantiles).all()


def test_without_levels_there_are_no_quantiles():
    bank = kb.AutoBank(size="small")
    bank.learn_one([1.0], 2.0)
    with pytest.raises(InvalidArgument, match=r"kb\.AutoBank\(quantiles="):
        bank.predict_quantiles([[1.0]])
    assert bank.ledger.quantiles == ()


def test_several_targets_with_quantiles_are_refused():
    bank = small()
    with pytest.raises(InvalidArgument, match="'quantiles' must be left out for several targets"):
        bank.run(np.zeros((5, 1)), np.zeros((5, 2)))
    assert bank.samples == 0
