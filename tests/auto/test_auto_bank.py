"""AutoBank: the same bits however a stream is cut, its ledger, its inner bank."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.auto_streams import (
    SMALL,
    assert_same_state,
    labelled,
    numbers,
    predict_and_learn,
    troubled,
)
from support.marks import slow


@pytest.mark.parametrize(("lags", "delay"), [(2, 3), slow(0, 0), slow(0, 3), slow(2, 0)])
def test_run_of_troubled_numbers_equals_predict_one_and_learn_one(lags, delay, tmp_path):
    X, y = troubled(180)
    whole = kb.AutoBank(lags=lags, **SMALL)
    trace = whole.run(X, y, delay=delay)
    files = (1, 4, 60, 121, 152)
    answers, loop = predict_and_learn(
        kb.AutoBank(lags=lags, **SMALL), X, y, delay, files, tmp_path / "auto.kb"
    )
    np.testing.assert_array_equal(answers, trace.predictions)
    assert {c.what for c in whole.ledger.changes} >= {"target level"}
    assert_same_state(whole, loop)


@pytest.mark.parametrize("kind", [slow("two"), slow("three"), "late"])
@pytest.mark.parametrize("delay", [slow(0), 2])
def test_run_of_labels_equals_predict_one_and_learn_one(kind, delay, tmp_path):
    X, y = labelled(200, kind)
    whole = kb.AutoBank("classification", lags=1, **SMALL)
    trace = whole.run(X, y, delay=delay)
    bank = kb.AutoBank("classification", lags=1, **SMALL)
    answers, loop = predict_and_learn(bank, X, y, delay, (3, 40, 95), tmp_path / "auto.kb")
    unknown = [t for t, answer in enumerate(answers) if answer is None]
    assert unknown == list(range(delay + 1))
    np.testing.assert_array_equal(answers[delay + 1 :], trace.predictions[delay + 1 :])
    assert_same_state(whole, loop)


def test_prediction_is_the_weighted_sum_of_slot_predictions():
    X, y = numbers(300)
    trace = kb.AutoBank(**SMALL).run(X, y, record="all")
    mixed = (trace.weights * trace.slot_predictions).sum(axis=1)
    low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
    room = 0.05 * (high - low)
    # Beyond the range of the targets so far a prediction is limited.
    before = np.r_[0, np.arange(299)]
    inside = (mixed > (low - room)[before]) & (mixed < (high + room)[before])
    rows = np.arange(300) >= 40
    close = np.isclose(mixed, trace.predictions, rtol=1e-9)
    assert (close | ~inside | ~rows).all()
    assert close[rows].mean() > 0.95


def test_predictions_before_the_first_row():
    X, _ = numbers(3)
    bank = kb.AutoBank()
    assert np.isnan(bank.predict_one(X[0]))
    assert np.isnan(bank.predict_interval_one(X[0])).all()
    assert np.isnan(bank.predict(X)).all()
    assert np.isnan(bank.predict_at(X)).all()
    assert np.isnan(bank.ledger.mean_loss)
    assert bank.ledger.changes == ()
    labels = kb.AutoBank("classification")
    assert labels.predict_one(X[0]) is None
    assert labels.predict_proba_one(X[0]) == {}
    with pytest.raises(InvalidArgument, match="needs to know the labels"):
        labels.predict(X)


@pytest.mark.parametrize(("delay", "lags"), [(0, 0), (3, 2)])
def test_rows_before_the_first_target_have_no_prediction_and_are_not_scored(delay, lags):
    X, y = numbers(60)
    bank = kb.AutoBank(lags=lags, **SMALL)
    trace = bank.run(X, y, delay=delay, record="all")
    for field in ("predictions", "lower", "upper", "slot_predictions"):
        array = getattr(trace, field)
        assert np.isnan(array[: delay + 1]).all(), field
        assert np.isfinite(array[delay + 1 :]).all(), field
    errors = (trace.predictions - y)[delay + 1 :]
    assert bank.ledger.mean_loss == pytest.approx(np.mean(errors**2))
    assert np.isfinite(bank.predict(X)).all()


def test_label_before_the_first_target_is_none():
    X, _ = numbers(10)
    y = np.array(["a", "b"] * 5)
    trace = kb.AutoBank("classification", **SMALL).run(X, y, delay=1)
    assert trace.predictions[:2].tolist() == [None, None]
    assert set(trace.predictions[2:]) <= {"a", "b"}
    assert np.isnan(trace.probabilities[:2]).all()
    assert np.allclose(trace.probabilities[2:].sum(axis=1), 1)


def test_ledger_has_the_mean_losses_of_the_trace():
    X, y = numbers(200)
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, y)
    assert bank.ledger.mean_loss == pytest.approx(np.mean((trace.predictions - y)[1:] ** 2))
    assert bank.ledger.baseline_loss == pytest.approx(np.mean(np.diff(y) ** 2))
    assert "200 samples" in repr(bank.ledger)
    assert repr(kb.AutoBank(**SMALL).ledger).endswith("; 0 signals of change)")
    assert "200 samples" in repr(bank)
    labels = np.where(y > np.median(y), 1, 0)
    bank = kb.AutoBank("classification", **SMALL)
    trace = bank.run(X, labels)
    assert bank.ledger.mean_loss == np.mean((trace.predictions != labels)[1:])
    assert bank.ledger.baseline_loss == pytest.approx(np.mean(np.diff(labels) != 0))


def test_own_slots_and_combiner_are_used():
    X, y = numbers(200)
    slots = [kb.Slot(kb.kernels.Gaussian(w), kb.learners.KLMS(budget=50)) for w in (0.5, 2.0)]
    bank = kb.AutoBank(slots=slots, combiner=kb.combiners.Hedge())
    trace = bank.run(X, y, record="all")
    assert trace.weights.shape == (200, 2)
    assert isinstance(bank.bank.combiner, kb.combiners.Hedge)
    wide = kb.AutoBank(slots=slots, scalings=["rank", "standard"])
    wide.run(X, y)
    assert wide.bank.samples == 200


def test_saved_size_does_not_grow_with_the_stream(tmp_path):
    X, y = numbers(2100, noise=0.5)
    bank = kb.AutoBank(lags=1, **SMALL)
    bank.run(X[:600], y[:600])  # from then on the same slots run
    sizes = []
    for part in range(3):
        rows = slice(600 + part * 500, 1100 + part * 500)
        bank.run(X[rows], y[rows])
        bank.save(tmp_path / "auto.kb")
        sizes.append((tmp_path / "auto.kb").stat().st_size)
    assert max(sizes) - min(sizes) < 1000  # the signals of change, and digits of numbers
