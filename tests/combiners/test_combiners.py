"""Combiners on evidence of our own making: against definitions, bounds and other solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

import kernelbank as kb
from kernelbank.combiners.hessian_columns import KEPT
from support import naive
from support.instances import COMBINERS, LOSSES, name_of, stream
from support.naive import combiners as naive_combiners
from support.weighing import one_by_one, problem, weigh

EPS = np.finfo(float).eps
C, L = kb.combiners, kb.losses
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


EXPONENTIAL = [
    C.Hedge(),
    C.Hedge(learning_rate=0.7),
    C.FixedShare(learning_rate=0.7, share=0.1),
    C.Intervals(levels=4),
]


def definition(combiner, losses):
    if isinstance(combiner, C.Hedge):
        return naive_combiners.hedge(losses, combiner.learning_rate)
    if isinstance(combiner, C.FixedShare):
        return naive_combiners.fixed_share(losses, combiner.learning_rate, combiner.share)
    return naive_combiners.intervals(losses, combiner.learning_rate, combiner.levels)


# --- exponential weights --------------------------------------------------------------------------


@pytest.mark.parametrize("combiner", EXPONENTIAL, ids=repr)
@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_exponential_weights_against_their_definition(combiner, size):
    draw = np.random.default_rng(1)
    losses = size * draw.exponential(size=(60, 5)) * [1, 1.1, 0.9, 2, 1]
    weights = weigh(combiner, losses, cuts=(1, 7, 8, 40)).weights
    for n in range(60):
        expected = definition(combiner, losses[: n + 1])
        assert np.abs(weights[n] - expected).max() <= 1e-11, n


@settings(max_examples=40)
@given(
    st.sampled_from(EXPONENTIAL),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-300, 1e-8, 1.0, 1e8, 1e250, 1e307]),
    st.lists(st.integers(1, 59), unique=True, max_size=6).map(sorted),
)
def test_weights_are_on_the_simplex_of_the_living_for_losses_of_any_size(
    combiner, seed, size, cuts
):
    draw = np.random.default_rng(seed)
    slots = int(draw.integers(1, 7))
    losses = size * draw.exponential(size=(60, slots)) * 10 ** draw.uniform(-3, 1, slots)
    for p in range(slots):
        if draw.uniform() < 0.5:
            losses[int(draw.integers(0, 60)) :, p] = np.inf
    played = weigh(combiner, losses, cuts=cuts)
    living = np.isfinite(losses)
    assert np.isfinite(played.weights).all()
    assert (played.weights >= 0).all()
    assert (played.weights[~living] == 0).all()
    expected = living.any(axis=1).astype(float)
    assert np.abs(played.weights.sum(axis=1) - expected).max() <= 16 * slots * EPS
    again = weigh(combiner, losses, cuts=one_by_one(60))
    assert (again.weights == played.weights).all()
    assert all(np.array_equal(played.state[name], again.state[name]) for name in played.state)


def hedge_bound(spread, samples, slots):
    return spread * np.sqrt(np.log(slots) * samples) + spread * (16 / 3 * np.log(slots) + 2)


def regret(weights, losses):
    """Loss of the weights before each sample minus that of the best slot."""
    before = np.vstack([np.full(losses.shape[1], 1 / losses.shape[1]), weights[:-1]])
    losses = losses - losses.min(axis=1, keepdims=True)  # which changes no regret
    return (before * losses).sum() - losses.sum(axis=0).min()


def adversaries(samples):
    draw = np.random.default_rng(0)
    alternating = np.zeros((samples, 2))
    alternating[0] = [0.5, 0.0]
    alternating[1::2, 1] = 1.0
    alternating[2::2, 0] = 1.0
    coins = draw.integers(0, 2, (samples, 5)).astype(float)
    walk = np.where(np.arange(samples)[:, None] // 97 % 4 == np.arange(4), 0.0, 1.0)
    shifted = coins * 1e-6 + 1e6
    return {"alternating": alternating, "coins": coins, "walk": walk, "shifted": shifted}


@pytest.mark.parametrize("name", adversaries(1))
@pytest.mark.parametrize("size", [2.0**-40, 1.0, 2.0**60])
def test_adahedge_keeps_its_bound_on_losses_of_any_scale(name, size):
    losses = adversaries(4000)[name] * size
    weights = weigh(C.Hedge(), losses).weights
    spread = (losses.max(axis=1) - losses.min(axis=1)).max()
    allowed = hedge_bound(spread, *losses.shape)
    assert regret(weights, losses) <= allowed
    if name == "alternating":  # where following the leader loses on every sample
        following = np.eye(2)[np.argmin(np.cumsum(losses, axis=0), axis=1)]
        assert regret(following, losses) > 5 * allowed
    unscaled = weigh(C.Hedge(), adversaries(4000)[name]).weights
    assert (weights == unscaled).all()  # a power of two changes no bit


def test_adahedge_against_an_adversary_that_sees_the_weights():
    losses = np.zeros((60, 3))
    weights = np.full(3, 1 / 3)
    for n in range(60):  # the slot with the largest weight loses, always
        losses[n, np.argmax(weights)] = 1.0
        weights = weigh(C.Hedge(), losses[: n + 1]).weights[-1]
    assert regret(weigh(C.Hedge(), losses[:60]).weights, losses[:60]) <= hedge_bound(1, 60, 3)


def test_adahedge_has_constant_regret_if_one_slot_is_always_best():
    draw = np.random.default_rng(2)
    losses = draw.uniform(0.5, 1, (20_000, 6))
    losses[:, 4] = draw.uniform(0, 0.5, 20_000)
    weights = weigh(C.Hedge(), losses).weights
    assert regret(weights, losses) <= 1 + 16 / 3 * np.log(6) + 2
    assert weights[-1, 4] > 0.999


def test_a_slot_far_behind_does_not_spoil_the_sums_of_the_others():
    losses = np.tile([0.0, 0.25, 0.0], (1000, 1))
    losses[0] = [1e200, 0.0, 0.0]
    weights = weigh(C.Hedge(learning_rate=0.01), losses).weights
    assert weights[-1, 0] == 0
    assert weights[-1, 1] / weights[-1, 2] == pytest.approx(np.exp(-0.01 * 0.25 * 999), rel=1e-12)


def test_losses_that_all_slots_have_had_leave_no_rounding():
    losses = np.zeros((20_010, 2))
    losses[0:20_000:2, 0] = losses[1:20_000:2, 1] = 1e12  # 1e16 each, where a unit is two
    losses[20_000:, 0] = 0.3
    weights = weigh(C.Hedge(learning_rate=0.1), losses).weights
    assert weights[-1, 0] / weights[-1, 1] == pytest.approx(np.exp(-0.3), rel=1e-12)


def test_hedge_takes_up_the_next_best_when_the_leader_is_out():
    losses = np.tile([0.0, 5.0, 6.0], (2000, 1))
    losses[1500:, 0] = np.inf
    for combiner in (C.Hedge(), C.Hedge(learning_rate=3.0)):
        weights = weigh(combiner, losses).weights
        assert weights[1499, 0] == 1.0
        assert weights[-1, 0] == 0.0
        assert weights[-1, 1] == 1.0
        assert weights[-1, 2] < 1e-100


def test_who_forgets_follows_a_change_that_hedge_sleeps_through():
    draw = np.random.default_rng(3)
    losses = draw.uniform(0, 1, (4096 + 100, 3))
    losses[:4096, 0] *= 0.3
    losses[4096:, 2] *= 0.1
    switched = {
        repr(combiner): weigh(combiner, losses).weights[-1, 2]
        for combiner in (C.Hedge(learning_rate=1.0), C.FixedShare(), C.Intervals())
    }
    slow, *quick = switched.values()
    assert slow < 1e-3
    assert min(quick) > 0.5, switched
    losses = losses[:2048]
    assert weigh(C.Intervals(), losses).weights[-2, 0] > 0.5


def test_no_slot_falls_below_its_share():
    losses = np.tile([0.0, 50.0, 90.0, 1.0], (300, 1))
    losses[200:, 3] = np.inf
    weights = weigh(C.FixedShare(share=0.2), losses).weights
    assert weights[:200].min() >= 0.05
    assert weights[200:, :3].min() >= 0.2 / 3
    assert (weights[200:, 3] == 0).all()


def test_intervals_start_anew_at_multiples_of_their_length():
    losses = np.tile([0.0, 1.0], (64, 1))
    weights = weigh(C.Intervals(levels=4), losses).weights
    starts = np.arange(1, 65) % 8 == 0
    assert np.abs(weights[starts] - 0.5).max() <= 4 * EPS
    assert (weights[~starts & (np.arange(1, 65) % 2 == 1), 0] > 0.5).all()


# --- the joint problem ----------------------------------------------------------------------------


def solve_joint(values, targets, loss, penalty, **options):
    """Weights, certificate and cost of one joint problem, given as one window."""
    rows, slots = values.shape
    combiner = C.Joint(**options)
    window = np.zeros((rows, rows, slots))  # the window fills up; its last state is the problem
    for n in range(rows):
        window[n, rows - n - 1 :] = values[: n + 1]
    padded = np.concatenate([np.zeros(rows - 1), targets])
    played = weigh(
        combiner,
        values=window,
        targets=padded,
        curvature=np.tile(penalty, (rows, 1)),
        loss=loss,
    )
    return played.weights[-1], played.report


def cost_of(weights, values, targets, loss, penalty):
    return float(loss.value(values @ weights, targets).sum() + (penalty * weights**2).sum())


def projected(v):
    """The point of the simplex that is nearest to v."""
    ordered = np.sort(v)[::-1]
    sums = np.cumsum(ordered) - 1
    last = np.flatnonzero(ordered > sums / np.arange(1, len(v) + 1))[-1]
    return np.maximum(v - sums[last] / (last + 1), 0)


def reference(values, targets, loss, penalty):
    """The least cost that scipy finds: by linear programming, or SLSQP from several starts."""
    rows, slots = values.shape
    pieces = {  # the loss as max over k of slope_k * (z - y) + height_k, or of a margin
        L.Absolute: lambda: [(1.0, 0.0), (-1.0, 0.0)],
        L.Pinball: lambda: [(-loss.quantile, 0.0), (1 - loss.quantile, 0.0)],
        L.EpsilonInsensitive: lambda: [(1.0, -loss.epsilon), (-1.0, -loss.epsilon), (0.0, 0.0)],
    }
    if not penalty.any() and (type(loss) in pieces or isinstance(loss, L.Hinge)):
        above, bounds = [], []
        if isinstance(loss, L.Hinge):  # t >= 1 - y z, t >= 0
            above += [np.hstack([-targets[:, None] * values, -np.eye(rows)])]
            bounds += [-np.ones(rows)]
            above += [np.hstack([0 * values, -np.eye(rows)])]
            bounds += [np.zeros(rows)]
        else:
            for slope, height in pieces[type(loss)]():
                above += [np.hstack([slope * values, -np.eye(rows)])]
                bounds += [slope * targets - height]
        equal = np.hstack([np.ones((1, slots)), np.zeros((1, rows))])
        found = linprog(
            np.append(np.zeros(slots), np.ones(rows)),
            A_ub=np.vstack(above),
            b_ub=np.concatenate(bounds),
            A_eq=equal,
            b_eq=[1.0],
            bounds=[(0, None)] * slots + [(None, None)] * rows,
        )
        return found.fun
    best = np.inf
    for start in [np.full(slots, 1 / slots), *np.eye(slots)]:
        found = minimize(
            cost_of,
            start,
            (values, targets, loss, penalty),
            jac=lambda w, *_: values.T @ loss.derivative(values @ w, targets) + 2 * penalty * w,
            bounds=[(0, 1)] * slots,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        best = min(best, cost_of(projected(found.x), values, targets, loss, penalty))
    return best


@pytest.mark.parametrize("loss", [pair[0] for pair in LOSSES], ids=name_of)
@pytest.mark.parametrize("ridge", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
@pytest.mark.parametrize("alike", [pytest.param(0.0, marks=pytest.mark.slow), 0.95])
def test_the_joint_weights_cost_no_more_than_those_of_another_solver(loss, ridge, alike):
    for seed in range(4):
        slots, rows = [(3, 8), (6, 30), (9, 5), (5, 60)][seed]
        values, targets = problem(seed, slots, rows, loss.labels, alike=alike)
        penalty = np.full(slots, ridge) * np.arange(1, slots + 1)
        weights, report = solve_joint(values, targets, loss, penalty, tolerance=1e-6, steps=5000)
        cost = cost_of(weights, values, targets, loss, penalty)
        rounding = 100 * rows * EPS * (1 + cost)
        assert abs(report["cost"] - cost) <= rounding
        assert abs(weights.sum() - 1) <= 8 * slots * EPS
        assert weights.min() >= 0
        least = reference(values, targets, loss, penalty)
        assert cost - least <= report["gap"] + rounding + 1e-9 * cost  # the certificate is true
        assert report["scale"] <= cost + 1e-3 * (cost + np.abs(targets).sum() ** 2)
        assert report["gap"] <= 1e-6 * report["scale"], (seed, report)


SMOOTH = [L.Squared(), L.Huber(0.4), L.Logistic(), L.SquaredHinge()]


def certificate(weights, values, targets, discounts, penalty, loss):
    """The Frank-Wolfe gap by its definition, and the cost."""
    mixed = values @ weights
    gradient = values.T @ (discounts * loss.derivative(mixed, targets)) + 2 * penalty * weights
    cost = (discounts * loss.value(mixed, targets)).sum() + (penalty * weights**2).sum()
    return float(weights @ gradient - gradient.min()), float(cost)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SMOOTH), st.booleans(), st.data())
def test_every_sample_is_solved_to_its_certificate(seed, loss, degenerate, draw):
    pick = np.random.default_rng(seed)
    slots = int(pick.choice([1, 2, 3, 8, 21]))
    horizon, discount, ridge = draw.draw(
        st.tuples(
            st.sampled_from([1, 2, 9, 40]),
            st.sampled_from([1.0, 0.9, 0.5]),
            st.sampled_from([0.0, 1e-3, 2.0]),
        )
    )
    values, targets = problem(seed, slots, 50, loss.labels, alike=float(pick.choice([0.0, 0.9])))
    if degenerate:  # equal slots, a slot of nothing
        values[:, slots // 2] = values[:, 0]
        values[:, -1] = 0.0
    curvature = pick.choice([0.0, 0.1]) * pick.uniform(size=(50, slots))
    joint = C.Joint("prequential", horizon, discount, ridge, tolerance=1e-5, steps=10_000)
    played = weigh(
        joint,
        values=values,
        targets=targets,
        curvature=curvature,
        loss=loss,
        cuts=one_by_one(50),
    )
    for n in range(50):
        rows = slice(max(0, n + 1 - horizon), n + 1)
        discounts = discount ** (n - np.arange(rows.start, n + 1.0))
        seen = (values[rows], targets[rows], discounts, curvature[n] + ridge, loss)
        gap, cost = certificate(played.weights[n], *seen)
        report = played.reports[n]
        rounding = 1e-12 * (1 + cost)
        assert abs(report["gap"] - gap) <= rounding, n
        assert abs(report["cost"] - cost) <= rounding, n
        assert cost <= report["scale"] * (1 + 1e-12)
        assert gap <= 1e-5 * report["scale"] + rounding, (n, report)


@pytest.mark.parametrize("evidence", ["window", "prequential"])
@pytest.mark.parametrize("slots", [5, KEPT + 40])
def test_joint_weights_have_the_same_bits_for_all_cuts(evidence, slots):
    draw = np.random.default_rng(4)
    shape = (40, 12, slots) if evidence == "window" else (40, slots)
    values = draw.normal(size=shape)
    values[25:, ..., 1] = np.nan
    options = {
        "values": values,
        "targets": draw.normal(size=40 + (12 if evidence == "window" else 1)),
    }
    for loss in (L.Squared(), L.Huber(0.3), L.Absolute()):
        combiner = C.Joint(evidence, horizon=12, ridge=0.01)
        whole = weigh(combiner, loss=loss, **options)
        for cuts in (one_by_one(40), (3, 4, 30)):
            again = weigh(combiner, loss=loss, cuts=cuts, **options)
            assert (whole.weights == again.weights).all()
            assert all(np.array_equal(whole.state[k], again.state[k]) for k in whole.state)
        assert (whole.weights[25:, 1] == 0).all()
        assert np.abs(whole.weights.sum(axis=1) - 1).max() <= 8 * slots * EPS


def test_many_slots_that_all_matter_are_solved_too():
    slots = KEPT + 40  # more columns and a larger face than are kept
    values = np.eye(slots) * 10.0
    targets = np.linspace(0.95, 1.0, slots)
    weights, report = solve_joint(
        values, targets, L.Squared(), np.zeros(slots), tolerance=1e-6, steps=10**5
    )
    # On the whole simplex: w_p = (y_p - m) / 10 with m such that they add up to one.
    expected = (targets - (targets.sum() - 10) / slots) / 10
    assert report["gap"] <= 1e-6 * report["cost"]
    assert np.abs(weights - expected).max() <= np.sqrt(1e-6 * report["cost"]) / 10


def test_too_few_steps_leave_a_true_certificate():
    values, targets = problem(0, 12, 40, False)
    for loss in (L.Squared(), L.Absolute(), L.Huber(0.4)):
        penalty = np.zeros(12)
        weights, report = solve_joint(values, targets, loss, penalty, tolerance=1e-12, steps=1)
        cost = cost_of(weights, values, targets, loss, penalty)
        assert report["gap"] > 1e-12 * cost
        assert cost - reference(values, targets, loss, penalty) <= report["gap"]


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
@pytest.mark.parametrize("size", [1e-120, 1e-30, 1.0, 1e30, 1e149])
def test_joint_weights_are_finite_for_values_of_any_size(loss, size):
    values, targets = problem(1, 6, 30, False, spread=size)
    values[:, 3] *= 1e3
    played = weigh(
        C.Joint("prequential", horizon=20), values=values, targets=targets, loss=L.BUILT_IN[loss]()
    )
    assert np.isfinite(played.weights).all()
    assert np.abs(played.weights.sum(axis=1) - 1).max() <= 50 * EPS
    if loss == "absolute" or (loss == "squared" and 1e-120 < size < 1e149):
        unit = values / size, targets / size
        plain = weigh(
            C.Joint("prequential", horizon=20),
            values=unit[0],
            targets=unit[1],
            loss=L.BUILT_IN[loss](),
        )
        costs = [
            naive_combiners.joint_cost(
                w,
                unit[0][10:],
                unit[1][10:],
                np.ones(20),
                np.zeros(6),
                lambda f, y: abs(f - y) ** (2 if loss == "squared" else 1),
            )
            for w in (plain.weights[-1], played.weights[-1])
        ]
        assert costs[1] == pytest.approx(costs[0], rel=2e-4)


@pytest.mark.parametrize("power", [4, 8, 12])
def test_a_slot_of_large_values_does_not_keep_the_others_from_their_weights(power):
    values, targets = problem(4, 5, 60, False)
    values[:, 2] *= 10.0**power  # its weight is far below the rounding of the others'
    joint = C.Joint("prequential", horizon=40, ridge=0.1)
    played = weigh(joint, values=values, targets=targets, cuts=one_by_one(60))
    for report in played.reports:
        assert report["gap"] <= joint.tolerance * report["scale"]


def test_joint_beats_its_bound_on_the_papers_stream():
    x, y = naive.ar1(0, 400)
    costs = {}
    for combiner in (C.Simplex(), C.Joint(), C.Joint(tolerance=1e-8)):
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20, spacing="linear"), combiner=combiner)
        bank.run(x, y, record=())
        costs[combiner] = bank.ledger.cumulative_cost
    simplex, joint, exact = costs.values()
    assert 0.98 < joint / simplex < 0.995
    assert joint == pytest.approx(exact, rel=1e-4)


# --- evidence -------------------------------------------------------------------------------------


REPORTS = {
    C.Best: {"cumulative_cost": (4,)},
    C.FixedShare: {"posterior": (4,)},
    C.Hedge: {"loss_above_best": (4,), "learning_rate": (1,)},
    C.Intervals: {"shares": (5,), "loss_above_best": (5, 4), "scale": (1,)},
    C.Joint: {"gap": (), "cost": (), "scale": (), "steps": ()},
    C.OMKR: {"gradient": (4,), "rate": (1,)},
    C.Simplex: {"curvature": (4,), "linear": (4,)},
    C.NewtonStacking: {"gap": (), "cost": (), "scale": (), "steps": (), "mean_loss": ()},
    C.Stacking: {"gap": (), "cost": (), "scale": (), "steps": ()},
    C.Uniform: {"in_play": (4,)},
}


@pytest.mark.parametrize("combiner", [pair[0] for pair in COMBINERS], ids=repr)
def test_every_combiner_reports_its_evidence(combiner, tmp_path):
    X, y = stream(2, 300, 1)
    bank, loop = (kb.KernelBank(kb.gaussian_grid(0.1, 1, 4), combiner=combiner) for _ in range(2))
    shapes = REPORTS[type(combiner)]
    assert {name: array.shape for name, array in bank.evidence().items()} == shapes
    trace = bank.run(X, y)
    evidence = bank.evidence()
    assert {name: array.shape for name, array in evidence.items()} == shapes
    for n in range(300):
        loop.learn_one(X[n], y[n])
    bank.save(tmp_path / "bank.kb")
    for other in (loop, kb.load(tmp_path / "bank.kb")):
        assert all(np.array_equal(evidence[k], other.evidence()[k]) for k in evidence)
    for array in evidence.values():
        array[...] = -1.0
    before, again = bank.evidence(), bank.evidence()
    assert all(np.array_equal(before[k], again[k]) for k in before)
    assert not any((array == -1.0).any() for array in before.values())
    check_evidence(combiner, bank, trace, before)


def check_evidence(combiner, bank, trace, evidence):
    """The figures are those of the last sample."""
    losses = trace.slot_loss.sum(axis=0)
    if isinstance(combiner, C.Simplex):
        assert (evidence["curvature"] == trace.curvature[-1]).all()
        if combiner.evidence == "window":
            assert (evidence["linear"] == trace.window_loss[-1]).all()
        else:
            assert evidence["linear"] == pytest.approx(trace.slot_loss[-7:].sum(axis=0))
        assert (kb.simplex_qp(*evidence.values()) == bank.weights).all()
    elif isinstance(combiner, C.Hedge):
        assert evidence["loss_above_best"] == pytest.approx(losses - losses.min(), rel=1e-9)
        powers = np.exp(-evidence["learning_rate"] * evidence["loss_above_best"])
        assert bank.weights == pytest.approx(powers / powers.sum(), rel=1e-9)
    elif isinstance(combiner, C.Best):
        assert evidence["cumulative_cost"] == pytest.approx(trace.slot_cost.sum(axis=0))
    elif isinstance(combiner, C.FixedShare):
        mixed = (1 - combiner.share) * evidence["posterior"] + combiner.share / 4
        assert bank.weights == pytest.approx(mixed)
    elif isinstance(combiner, C.Intervals):
        assert evidence["shares"].sum() == pytest.approx(1)
        assert evidence["scale"] > 0
    elif isinstance(combiner, (C.Joint, C.Stacking)):
        assert evidence["gap"] <= combiner.tolerance * evidence["scale"]
    elif isinstance(combiner, C.OMKR):
        assert evidence["rate"] == max(8e-4 * 2.0**-6, 1e-5)
    else:
        assert evidence["in_play"].tolist() == [1.0] * 4


# --- presets --------------------------------------------------------------------------------------


def test_raker_is_hedge_over_random_features():
    X, y = stream(4, 200, 2)
    bank = kb.presets.raker(kb.gaussian_grid(0.3, 3, 3), features=10, rate=0.5, seed=3)
    trace = bank.run(X, y)
    slots = kb.learners.FourierSGD(10, 0.1, seed=3)
    alone = kb.KernelBank(
        kb.gaussian_grid(0.3, 3, 3), slots, kb.combiners.Uniform(), window=1, regularization=0.001
    ).run(X, y)
    assert np.array_equal(trace.slot_predictions, alone.slot_predictions)
    totals = np.cumsum(alone.slot_loss, axis=0)[:-1]
    expected = np.exp(-0.5 * (totals - totals.min(axis=1, keepdims=True)))
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(trace.weights[1:], expected, rtol=1e-12)
    assert isinstance(kb.presets.adaraker().combiner, kb.combiners.Intervals)
