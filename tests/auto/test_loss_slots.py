"""AutoBank with every loss: it minimises it, in the same bits, and is never infinite."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto import slots
from kernelbank.errors import InvalidArgument
from support.auto_streams import HOSTILE, SMALL

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


@pytest.mark.parametrize("name", ["constant target", "alternating"])
def test_hostile_streams_with_other_losses_give_finite_predictions(name):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 3))
    X, y = HOSTILE[name](X, 5 + 2 * np.sin(2 * X[:, 0]))
    y = y.clip(-1e150, 1e150)
    bank = kb.AutoBank(lags=1, loss="absolute", **SMALL)
    trace = bank.run(X, y, record="all")
    for field in trace.fields:
        assert np.isfinite(getattr(trace, field)[1:].astype(float)).all(), field
    assert np.nanmax(np.abs(trace.predictions)) <= 2 * np.abs(y).max() + 1e-300
    labels = np.where(y > np.median(y), 1, 0)
    trace = kb.AutoBank("classification", loss="hinge", **SMALL).run(X, labels, record="all")
    for field in trace.fields:
        assert np.isfinite(getattr(trace, field)[1:].astype(float)).all(), field


def test_shifted_slots_are_on_the_slots_in_their_names():
    X, y = skewed_numbers(20)
    by_squares, absolute, hinge = (
        kb.AutoBank("classification" if loss == "hinge" else "regression", loss=loss)
        for loss in ("squared", "absolute", "hinge")
    )
    for bank in (by_squares, absolute):
        bank.run(X, y)
    hinge.run(X, y > 51)
    assert hinge.names == by_squares.names
    assert not any(" shift" in name for name in hinge.names)
    shifted = [name for name in absolute.names if name.endswith(" shift")]
    assert len(shifted) == 3 * 4 * 2
    for name in shifted:
        slot = absolute.bank.slots[absolute.names.index(name)]
        assert absolute.names[slot.residual_of] == name.rsplit(" + ", 1)[0]


def test_loss_that_slots_or_task_cannot_use_is_refused():
    second_order = [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.KRLS())]
    with pytest.raises(InvalidArgument, match=r"have a bounded curvature for KRLS.*kb\.Slot"):
        kb.AutoBank(loss="absolute", slots=second_order)
    tree = [kb.Slot(kb.kernels.TreeKernel(), kb.learners.PartitionTree())]
    with pytest.raises(InvalidArgument, match=r"have a bounded curvature.*kb\.Slot"):
        kb.AutoBank(loss="absolute", slots=tree)
    with pytest.raises(InvalidArgument, match="be one for numbers in regression"):
        kb.AutoBank(loss="hinge")
