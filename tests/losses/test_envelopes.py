"""Losses that are infinite outside a domain or have no bounded curvature: Moreau envelopes."""

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import BARRIER, NAIVE_BARRIER, stream

EPS = np.finfo(float).eps
L, K, M = kb.losses, kb.kernels, kb.learners
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def counts(samples, seed=0):
    """Counts whose rate is exp(1 + sin x), between 1 and 7.4."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 10, samples)
    rate = np.exp(1 + np.sin(X))
    return X, draw.poisson(rate).astype(float), rate


def deviance(rate, y):
    """Half the mean Poisson deviance, but for a part that depends on y alone."""
    return float((rate - y * np.log(rate)).mean())


# --- the formulas -----------------------------------------------------------------------------


def test_poisson_loss_without_smoothing_is_half_the_deviance():
    f, y = np.array([-2.0, 0.0, 1.0, 3.0]), np.array([0.0, 1.0, 4.0, 7.0])
    loss = L.Poisson(smoothing=0)
    expected = np.exp(f) - y * f - (y - y * np.log(np.where(y > 0, y, 1)))
    assert np.abs(loss.value(f, y) - expected).max() <= 100 * EPS
    assert np.abs(loss.derivative(f, y) - (np.exp(f) - y)).max() <= 100 * EPS
    assert loss.curvature is None


@pytest.mark.parametrize("loss", [L.Poisson(0.3), L.PoissonRate(0.3)], ids=repr)
@pytest.mark.parametrize("y", [0.0, 0.5, 3.0, 1000.0])
def test_envelope_is_finite_has_the_minimiser_of_the_loss_and_lies_below_it(loss, y):
    f = np.concatenate([-np.logspace(-3, 12, 60), np.logspace(-3, 12, 60)])
    value, slope = loss.value(f, y), loss.derivative(f, y)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert value.min() >= -100 * EPS * (1 + y)  # the least value is 0
    if y > 0:
        best = np.log(y) if isinstance(loss, L.Poisson) else y
        assert abs(loss.derivative(best, y)) <= 100 * EPS * (1 + y) / loss.smoothing
        assert abs(loss.value(best, y)) <= 100 * EPS * (1 + y) * (1 + abs(best))
    if isinstance(loss, L.Poisson):
        inside = f < 30
        plain = L.Poisson(0)
        above = plain.value(f[inside], y) - value[inside]
        bound = loss.smoothing / 2 * plain.derivative(f[inside], y) ** 2
        size = 1 + np.abs(plain.value(f[inside], y)) + y * (8 + np.abs(f[inside]))
        assert (above >= -100 * EPS * size).all()
        assert (above <= bound + 100 * EPS * size).all()


def test_envelope_of_the_absolute_loss_is_hubers():
    huber, smoothing = L.Huber(0.4), 0.4
    sharp = L.Custom(
        lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y), smoothing=smoothing, name="sharp"
    )
    f, y = np.linspace(-3, 3, 101), 0.25
    assert np.abs(sharp.value(f, y) - huber.value(f, y) / smoothing).max() < 1e-14
    assert np.abs(sharp.derivative(f, y) - huber.derivative(f, y) / smoothing).max() < 1e-14
    assert sharp.curvature == 1 / smoothing


def test_custom_loss_with_a_domain_is_only_called_inside_it():
    asked = []

    def value(f, y):
        asked.append(f)
        return -np.log(f) - np.log(1 - f)

    def derivative(f, y):
        asked.append(f)
        return -1 / f + 1 / (1 - f)

    box = L.Custom(value, derivative, smoothing=0.01, domain=(0, 1), name="box")
    kb.checks.check_loss(box)
    assert np.isfinite(box.value([-1e6, -1.0, 0.0, 0.5, 1.0, 2.0, 1e6], 0.0)).all()
    assert all(((f > 0) & (f < 1)).all() for f in asked)


@pytest.mark.slow
def test_custom_loss_that_overflows_is_solved_from_where_it_does_not():
    gamma = L.Custom(
        lambda f, y: f + y * np.exp(-f) - 1 - np.log(y),
        lambda f, y: 1 - y * np.exp(-f),
        name="gamma",
        smoothing=0.1,
        targets=(1e-9, np.inf),
    )
    kb.checks.check_loss(gamma)
    for f in (-1000.0, -3.0, 2.0):
        u = f - 0.1 * gamma.derivative(f, 2.0)
        assert abs(1 - 2 * np.exp(-u) + (u - f) / 0.1) <= 1e-12 * (1 + abs(f) / 0.1)
    with pytest.raises(ValueError, match="'y' must lie in"):
        kb.KernelBank(loss=gamma).learn_one(0.0, -1.0)


@pytest.mark.slow
def test_custom_envelope_equals_its_definition():
    value, derivative = NAIVE_BARRIER
    for f in (-50.0, -3.0, -2.999, -1.0, 0.0, 0.5, 40.0):
        for y in (-2.0, 0.0, 1.5):
            size = 1 + abs(value(f, y)) + f * f / BARRIER.smoothing
            assert abs(BARRIER.value(f, y) - value(f, y)) <= 100 * EPS * size
            assert abs(BARRIER.derivative(f, y) - derivative(f, y)) <= 100 * EPS * size
    kb.checks.check_loss(BARRIER)


# --- in banks ---------------------------------------------------------------------------------


def test_bank_with_a_custom_envelope_equals_the_definition_and_gives_the_same_bits(tmp_path):
    X, y = stream(4, 30, 2)
    kernels = [K.Gaussian(0.5), K.Gaussian(1.5)]
    names = {"window": 4, "regularization": 0.1}

    def make():
        return kb.KernelBank(kernels, M.Norma(0.05, 10), loss=BARRIER, **names)

    bank, loop = make(), make()
    trace = bank.run(X, y)
    oracle = naive.run(
        X, y, [naive.gaussian(0.5), naive.gaussian(1.5)], NAIVE_BARRIER,
        budget=10, learning_rate=0.05, combiner="simplex", **names,
    )  # fmt: skip
    assert np.abs(trace.slot_predictions - oracle.slot_predictions).max() < 1e-12
    assert np.abs(trace.slot_cost - oracle.slot_cost).max() < 1e-11
    for n in range(15):
        loop.learn_one(X[n], y[n])
    loop.save(tmp_path / "bank.kb")
    rest = kb.load(tmp_path / "bank.kb", components={"barrier": BARRIER}).run(X[15:], y[15:])
    assert np.array_equal(rest.slot_predictions, trace.slot_predictions[15:])
    assert np.array_equal(rest.weights, trace.weights[15:])


LEARNERS = [
    M.Norma(0.02, 100),
    M.KLMS(0.05, 200),
    M.FourierSGD(100, 0.05),
    M.FourierRLS(100),
    M.KRLSTracker(50),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_counts_are_learned_better_than_by_their_running_mean(learner):
    X, y, _ = counts(800)
    bank = kb.KernelBank(kb.gaussian_grid(0.3, 3, 6), learner, loss="poisson")
    trace = bank.run(X, y)
    mean = np.concatenate([[1.0], np.cumsum(y)[:-1] / np.arange(1, len(y))])
    late = slice(200, None)
    assert deviance(np.exp(trace.predictions[late]), y[late]) < deviance(mean[late], y[late]) - 0.2
    assert bank.quarantined == ()


@pytest.mark.parametrize("combiner", [None, kb.combiners.Hedge(), kb.combiners.Joint()], ids=repr)
def test_rates_are_learned_with_a_loss_that_is_infinite_below_zero(combiner):
    X, y, rate = counts(1500)
    learner = M.FourierSGD(100, 0.1)
    bank = kb.KernelBank(kb.gaussian_grid(0.3, 3, 6), learner, combiner, loss="poisson_rate")
    trace = bank.run(X, y)
    late = slice(500, None)
    guess = np.maximum(trace.predictions[late], 1e-3)
    assert deviance(guess, y[late]) < deviance(np.full(1000, y.mean()), y[late]) - 0.3
    assert np.abs(guess - rate[late]).mean() < 0.5 * np.abs(y.mean() - rate[late]).mean()


def test_slot_does_not_fail_at_counts_that_no_exponential_can_follow():
    X = np.arange(200) / 20
    y = np.where(np.arange(200) % 50 == 49, 1e6, 3.0)
    bank = kb.KernelBank(kb.gaussian_grid(0.3, 3, 4), M.Norma(0.005, 50), loss="poisson")
    assert np.isfinite(bank.run(X, y).slot_cost).all()
    plain = kb.KernelBank(kb.gaussian_grid(0.3, 3, 4), M.Norma(0.005, 50), loss=L.Poisson(0))
    plain.run(X, y)
    assert len(plain.quarantined) == 4  # what the smoothing prevents


# --- second-order methods ---------------------------------------------------------------------


def stepped_curvature(loss, f, y):
    """bound / 4^k with the largest k <= 8 at which the step leaves half of the derivative."""
    slope, found = loss.derivative(f, y), loss.curvature
    for k in range(1, 9):
        c = loss.curvature / 4**k
        if not loss.derivative(f - slope / c, y) / slope >= 0.5:
            break
        found = c
    return found


@pytest.mark.parametrize("loss", [L.Huber(0.3), L.Poisson(0.2), L.PoissonRate(0.5)], ids=repr)
def test_second_order_method_takes_the_curvature_along_its_step(loss):
    """Recursive least squares on a linear kernel, against its equations with that curvature."""
    draw = np.random.default_rng(3)
    X = draw.uniform(-1, 1, (60, 2))
    y = np.abs(2 * X[:, 0] + draw.normal(size=60))
    bank = kb.KernelBank([K.Linear(1.0)], M.LinearRLS(ridge=0.5), loss=loss, window=3)
    trace = bank.run(X, y)
    weights, P = np.zeros(3), np.eye(3) / 0.5
    for n, (x, target) in enumerate(zip(X, y, strict=True)):
        phi = np.append(x, 1.0)
        f = weights @ phi
        assert abs(trace.slot_predictions[n, 0] - f) < 1e-9
        c = stepped_curvature(loss, f, target)
        gain = P @ phi / (2 / c + phi @ P @ phi)
        weights = weights - gain * loss.derivative(f, target) / c
        P = P - np.outer(gain, phi @ P)


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kb.KernelBank(loss="poisson").learn_one(0.0, -1.0), r"'y' must lie in \[0, inf\]"),
        (lambda: kb.KernelBank(loss="poisson").run([0.0], [-0.5]), r"'y' must lie in \[0, inf\]"),
        (lambda: L.Poisson(-1), "'smoothing' of Poisson"),
        (lambda: L.PoissonRate(0), "'smoothing' of PoissonRate"),
        (lambda: L.Custom(np.add, np.add, domain=(0, 1)), "'smoothing' of Custom must be > 0 with"),
        (lambda: L.Custom(np.add, np.add, domain=(1, 0), smoothing=1), "'domain' of Custom"),
        (lambda: L.Custom(np.add, np.add, targets=3), "'targets' of Custom"),
        (lambda: L.Custom(np.add, np.add, curvature=1, smoothing=2), "'curvature' of Custom"),
        (lambda: kb.AutoBank(loss="poisson"), "because targets are standardised.*lower=0"),
        (lambda: kb.Slot(K.Gaussian(1.0), M.KLMS(), loss="poisson"), "a built-in loss for all"),
        (
            lambda: kb.KernelBank(
                slots=[
                    kb.Slot(K.Gaussian(1.0), M.KLMS()),
                    kb.Slot(K.Gaussian(1.0), M.KLMS(), residual_of=0),
                ],
                loss="poisson",
            ),
            "be one for all numbers where slots learn a residual",
        ),
        (
            lambda: kb.KernelBank(learner=M.KRLS(), loss=L.Poisson(0)),
            "have a bounded curvature for KRLS",
        ),
    ],
)
def test_losses_of_counts_refuse_what_they_cannot_use(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_negative_count_after_the_first_sample_is_refused_and_changes_nothing():
    bank = kb.KernelBank(loss="poisson")
    bank.learn_one(0.0, 2.0)
    bank.learn_one(0.5, 3.0)
    with pytest.raises(ValueError, match="'y' must lie in"):
        bank.learn_one(1.0, -1.0)
    assert bank.samples == 2
