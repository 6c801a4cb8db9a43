"""Step sizes by facts that do not come from their definitions."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.io import specs
from support.instances import stream

L = kb.learners
LEARNERS = [L.Norma, L.KLMS, L.QKLMS, L.KNLMS, L.POLK, L.NystromSGD, L.FourierSGD]

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def bank_of(learner, **options):
    return kb.KernelBank(kb.gaussian_grid(0.3, 2, 3), learner, **options)


@pytest.mark.parametrize("kind", LEARNERS)
def test_adagrad_does_not_depend_on_the_scale_of_the_loss(kind):
    X, y = stream(2, 80, 2)
    loss = kb.losses.Custom(
        lambda f, y: 4 * (f - y) ** 2, lambda f, y: 8 * (f - y), curvature=8.0, name="four times"
    )
    plain, scaled = (
        bank_of(kind(step_size="adagrad"), loss=given, window=3, regularization=0.0).run(X, y)
        for given in ("squared", loss)
    )
    assert (plain.slot_predictions == scaled.slot_predictions).all()  # a power of two: no rounding
    assert np.abs(plain.slot_predictions).max() > 0.01


@pytest.mark.parametrize("kind", [kind for kind in LEARNERS if kind is not L.KNLMS])
@pytest.mark.parametrize("target", [1e-6, 3.0])
def test_first_step_of_adagrad_has_the_length_of_the_learning_rate(kind, target):
    bank = bank_of(kind(learning_rate=0.25, step_size="adagrad"), window=1, regularization=1e-9)
    norms = 2 * bank.run([[0.5]], [target]).curvature[0] / 1e-9
    # 1e-7: what raising the diagonal of a Gram matrix by 1e-8 may change.
    assert norms == pytest.approx(0.25**2, rel=1e-7)


@pytest.mark.parametrize("kind", LEARNERS)
def test_rate_that_decays_settles_where_a_constant_one_does_not(kind):
    # On noise alone, the last functions of a constant rate keep moving; those of 1 / sqrt(t) less.
    draw = np.random.default_rng(0)
    X, y = draw.uniform(0, 1, (2000, 1)), draw.normal(size=2000)
    moves = []
    for step_size in ("constant", "inverse_sqrt"):
        bank = bank_of(kind(learning_rate=0.05, step_size=step_size), window=1)
        bank.run(X[:1900], y[:1900])
        before = bank.predict_slots(X[:20])
        bank.run(X[1900:], y[1900:])
        moves.append(np.abs(bank.predict_slots(X[:20]) - before).mean())
    assert moves[1] < 0.5 * moves[0]


@pytest.mark.parametrize("kind", LEARNERS)
def test_setting_that_a_file_does_not_have_is_constant(kind):
    spec = specs.to_spec(kind())
    assert spec.pop("step_size") == "constant"
    assert specs.from_spec(spec, L.BUILT_IN, {}) == kind()
    with pytest.raises(ValueError, match=r"'step_size' of .* must be one of"):
        kind(step_size="sqrt")


def test_restart_forgets_at_multiples_counted_from_one():
    X, y = stream(2, 50, 2)
    bank = bank_of(L.FourierSGD(20, restart=7), window=1)
    zero = (bank.run(X, y).slot_predictions == 0).all(axis=1)
    assert np.flatnonzero(zero).tolist() == [0, 6, 13, 20, 27, 34, 41, 48]
