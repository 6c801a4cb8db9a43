"""AutoBank with every loss, and quantiles as outputs of one bank."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto import slots
from kernelbank.errors import InvalidArgument
from support.auto_streams import SMALL
from support.marks import refuses

L = kb.losses


pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


LOGARITHM = L.Custom(
    lambda f, y: np.log(np.cosh(f - y)), lambda f, y: np.tanh(f - y), curvature=1.0, name="log cosh"
)


NUMBERS = [
    *(loss for name, kind in sorted(L.BUILT_IN.items()) if (loss := kind()).any_target),
    L.Pinball(0.1),
    L.Huber(0.2),
    LOGARITHM,
]


LABELS = [loss for _, kind in sorted(L.BUILT_IN.items()) if (loss := kind()).labels]


def skewed_numbers(count, seed=0):
    """Errors of two kinds: their spread depends on the second input, and they are skewed."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-2, 2, size=(count, 2))
    spread = 0.2 + 0.3 * (X[:, 1] > 0)
    return X, 50 + 4 * np.sin(2 * X[:, 0]) + X[:, 1] + spread * draw.exponential(size=count)


def skewed_labels(count, seed=0):
    X, y = skewed_numbers(count, seed)
    return X, np.where(y > 51, "high", "low")


def best_constant(loss, targets):
    return min(loss.value(f, targets).mean() for f in np.linspace(targets.min(), targets.max(), 99))


@pytest.mark.parametrize("loss", NUMBERS, ids=repr)
def test_numbers_are_learned_with_every_loss(loss):
    X, y = skewed_numbers(500)
    bank = kb.AutoBank(loss=loss, **SMALL)
    trace = bank.run(X, y)
    unit = y[:200].std()  # losses are of the target in its deviations
    own = loss.value(trace.predictions[200:] / unit, y[200:] / unit).mean()
    assert own < 0.5 * best_constant(loss, y[200:] / unit)
    inside = (y >= trace.lower) & (y <= trace.upper)
    assert abs(inside[100:].mean() - 0.9) < 0.05
    assert type(bank.bank.combiner).__name__ == (
        "RobustStacking" if loss == L.Squared() else "Joint"
    )


@pytest.mark.parametrize("loss", LABELS, ids=repr)
def test_labels_are_learned_with_every_loss(loss):
    X, y = skewed_labels(500)
    trace = kb.AutoBank("classification", loss=loss, **SMALL).run(X, y)
    wrong = np.mean(trace.predictions[200:] != y[200:])
    assert wrong < 0.4 * min(np.mean(y == "low"), np.mean(y == "high"))
    chances = trace.probabilities[200:, trace.classes.index("high")]
    surprise = -np.log(np.where(y[200:] == "high", chances, 1 - chances)).mean()
    assert surprise < 0.4 * np.log(2)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantile_holds_for_all_inputs_only_with_shifted_slots(quantile, monkeypatch):
    X, y = skewed_numbers(1500, 1)

    def shares():
        trace = kb.AutoBank(loss=L.Pinball(quantile), **SMALL).run(X, y)
        below, narrow = y[500:] < trace.predictions[500:], X[500:, 1] < 0
        return np.array([below[narrow].mean(), below[~narrow].mean()])

    assert np.abs(shares() - quantile).max() < 0.08
    if quantile == 0.9:  # without shifted slots nothing can be right
        monkeypatch.setattr(slots, "SHIFTED", ())
        assert np.abs(shares() - quantile).max() > 0.1


def test_loss_that_slots_or_task_cannot_use_is_refused():
    second_order = [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.KRLS())]
    with pytest.raises(InvalidArgument, match=r"have a bounded curvature for KRLS.*kb\.Slot"):
        kb.AutoBank(loss="absolute", slots=second_order)
    tree = [kb.Slot(kb.kernels.TreeKernel(), kb.learners.PartitionTree())]
    refuses(r"have a bounded curvature.*kb\.Slot", kb.AutoBank, loss="absolute", slots=tree)
    refuses("be one for numbers in regression", kb.AutoBank, loss="hinge")


# --- quantiles as outputs of one bank --------------------------------------------------------------


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


def test_without_levels_there_are_no_quantiles():
    bank = kb.AutoBank(size="small")
    bank.learn_one([1.0], 2.0)
    refuses(r"kb\.AutoBank\(quantiles=", bank.predict_quantiles, [[1.0]])
    assert bank.ledger.quantiles == ()


def test_quantiles_of_several_targets_are_those_of_each(stream):
    X, y = stream
    Y = np.column_stack([y, 100.0 - 5.0 * y])
    Y[7::9, 1] = np.nan
    bank = small()
    trace = bank.run(X, Y)
    assert trace.quantiles.shape == (400, 2, 3)
    assert (np.diff(trace.quantiles[2:], axis=2) >= 0).all()
    for k in range(2):
        of_target = trace.of_output(k).quantiles
        for level, score in enumerate(bank.ledger.quantiles):
            away = Y[:, k] - of_target[:, level]
            loss = np.nanmean(np.maximum(score.level * away, (score.level - 1) * away))
            assert score.scored[k] == np.isfinite(away).sum()
            np.testing.assert_allclose(score.pinball[k], loss, rtol=1e-12)  # sums of 399 losses
            # Learned, not drawn: the share below is within four deviations of 400 coins of the level.
            assert abs(score.below[k] - score.level) < 4 * np.sqrt(0.25 / 400)
    copied = kb.from_bytes(bank.to_bytes())
    assert copied.predict_quantiles(X[:3]).tobytes() == bank.predict_quantiles(X[:3]).tobytes()
    assert bank.predict_quantiles(X[:3]).shape == (3, 2, 3)
