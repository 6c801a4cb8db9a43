"""Targets of AutoBank that are far off: which wait, what five of them mean, what is learned.

And the rows that are learned again at a new start, with targets that came late.
"""

import numpy as np
import pytest
from test_auto_parts import Pair, hostile

import kernelbank as kb
from kernelbank.auto import (
    auto_serialization as files,
)
from kernelbank.auto import (
    classification,
    regression,
)
from kernelbank.auto import scaling_steps as hot
from kernelbank.auto import (
    task_model as desk,
)
from kernelbank.auto.classification import Classification
from kernelbank.auto.config import Plan
from kernelbank.auto.regression import Regression
from support.naive import auto as naive

LINEAR = (kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS()),)
PAIR = (*LINEAR, kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierRLS(features=8)))


@pytest.fixture(autouse=True)
def long_start(monkeypatch):
    """A last start late enough for quiet figures."""
    for module in (desk, regression, classification, files):
        monkeypatch.setattr(module, "STARTS", (5, 32, 128, 512))


def plan(slots, combiner=None, lags=0):
    return Plan(lags, "small", 0, ("standard",), slots, combiner, kb.AutoBank()._plan.engine)


# --- the figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "memory",
    [5, pytest.param(9, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)],
)
def test_targets_that_wait(memory):
    """Far ones wait, and others by chance; what five mean is drawn too."""
    meanings = {"scale": 0, "level": 0, "wider": 0}
    for seed in range(40):
        draw = np.random.default_rng(seed)
        values = [v for v in hostile(seed) if not np.isnan(v)]
        pair = Pair(memory)
        pair.begin(values[:32])
        for value in values[32:]:
            far = hot.farness(pair.columns[0], value) > 0
            assert far == pair.naive.is_far(value)
            if not pair.feed_target(value, bool(far if draw.random() < 0.9 else not far)):
                continue
            target, ring = pair.columns[0], pair.rings[0]
            what = str(draw.choice(list(meanings)))
            meanings[what] += 1
            if what == "scale":
                hot.new_scale(target, ring)
                pair.naive.change_level()
            elif what == "level":
                shift = float(np.median(pair.naive.values[-5:]) - pair.naive.base)
                pair.size += abs(shift)
                hot.new_level(target, ring, shift)
                pair.naive.new_level(shift)
            else:
                hot.wider(target, ring)
                pair.naive.wider()
            pair.check_figures()
    assert min(meanings.values()) > 5


def usual_target(memory=50):
    pair = Pair(memory)
    pair.begin(np.random.default_rng(5).normal(size=200))
    return pair


def test_waiting_changes_no_mean():
    pair = usual_target()
    before = pair.naive.mean, pair.naive.sd
    for t in range(4):
        assert not pair.feed_target(100.0 + t, True)
    assert (pair.naive.mean, pair.naive.sd) == before
    assert pair.naive.values[-4:] == [100.0, 101.0, 102.0, 103.0]
    assert not pair.feed_target(0.5, False)  # lets in the four, at 10 sd each
    assert pair.naive.weight == 205
    assert before[0] + 0.1 < pair.naive.mean < before[0] + 1.0


def test_what_the_five_do():
    def five():
        pair = usual_target()
        base, unit = (float(v) for v in hot.target_scale(pair.columns[0]))
        older = np.sort(pair.naive.values[5:])
        told = [pair.feed_target(100.0 + t, True) for t in range(5)]
        assert told == [False] * 4 + [True]
        return pair, base, unit, older

    pair, base, unit, older = five()
    hot.new_level(pair.columns[0], pair.rings[0], 102.0)
    assert hot.target_scale(pair.columns[0]) == pytest.approx((base + 102, unit), rel=0.02)
    # All that is kept has moved, but for the five.
    kept = np.sort([*(older + 102)[-45:], *range(100, 105)])
    assert len(older) == 45
    assert np.sort(pair.rings[0]) == pytest.approx(kept, abs=1e-12)
    pair, base, unit, _ = five()
    hot.wider(pair.columns[0], pair.rings[0])
    everything = np.concatenate([np.random.default_rng(5).normal(size=200), np.arange(100, 105)])
    mean, sd = everything.mean(), everything.std(ddof=1)
    # Base and unit are those of the last time that these moved by a tenth.
    assert hot.target_scale(pair.columns[0]) == pytest.approx((mean, sd), rel=0.15)
    pair, base, unit, _ = five()
    hot.new_scale(pair.columns[0], pair.rings[0])
    assert hot.target_scale(pair.columns[0]) == pytest.approx((102, unit), rel=1e-9)


# --- the decisions --------------------------------------------------------------------------------


class Shadow:
    """A desk, and the naive form of its decisions beside it from row 512 on."""

    def __init__(self, X, y, slots=LINEAR):
        self.desk = Regression(plan(slots), X.shape[1])
        self.learned = []
        for x, target in zip(X[:512], y[:512], strict=True):
            self._tell(x, target)
        columns = [naive.Column(5) for _ in range(X.shape[1])]
        target = naive.Target(5)
        for k, column in enumerate(columns):
            column.begin(X[:512, k])
        target.begin(y[:512])
        self.teller = naive.Teller(columns, target)
        inner = self.desk._learn

        def learn(inputs, targets, said=None):
            self.learned += targets.tolist()
            inner(inputs, targets, said)

        self.desk._learn = learn
        self.changes = []

    def _tell(self, x, y):
        desk = self.desk
        said = desk.ask(x[None], desk.lagged[None], 0.05)[0]
        mean, sd = desk.scaling.scale
        desk.tell(x, said, y)
        return mean + sd * said.scores[0]

    def feed(self, X, y):
        """How many rows were learned after each."""
        counts = []
        for x, target in zip(X, y, strict=True):
            self.learned.clear()
            notes, samples = len(self.desk.changes), self.desk.banks[0].samples
            expected = self._tell(x, target)
            numbers, what = self.teller.take(x, target, expected)
            assert self.learned == pytest.approx(numbers, rel=1e-9, abs=1e-9)
            assert self.desk.banks[0].samples - samples == len(numbers)
            assert [row.target for row in self.desk.held] == [v for v, _ in self.teller.held]
            own = self.teller.target
            assert self.desk.scaling.scale == pytest.approx((own.base, own.unit), rel=1e-9)
            told = "target level" in [c.what for c in self.desk.changes[notes:]]
            assert told == (what in ("level", "scale"))
            if what:
                self.changes.append(what)
            counts.append(len(numbers))
        return counts


def wide_stream(rows, dimension, noise=0.1):
    draw = np.random.default_rng(2)
    X = draw.normal(size=(rows, dimension))
    return X, 3 * X[:, 0] + noise * draw.normal(size=rows)


def test_usual_targets_are_learned_at_once():
    X, y = wide_stream(700, 2)
    assert Shadow(X, y).feed(X[512:], y[512:]) == [1] * 188


def test_a_new_level():
    X, y = wide_stream(700, 2)
    y[600:] += 200
    shadow = Shadow(X, y)
    assert shadow.feed(X[512:], y[512:]) == [1] * 88 + [0] * 4 + [5] + [1] * 95
    assert shadow.changes == ["level"]
    mean, sd = shadow.desk.scaling.scale
    assert abs(mean - 200) < 2
    assert abs(sd - 3) < 0.6  # as before


def test_a_new_scale():
    """Off by something else each time, both ways."""
    X, y = wide_stream(700, 2)
    y[600:] *= 100
    y[600:605] = [-300.0, 700.0, 150.0, -900.0, 400.0]
    shadow = Shadow(X, y)
    counts = shadow.feed(X[512:], y[512:])
    assert counts[88:93] == [0, 0, 0, 0, 5]
    assert shadow.changes == ["scale"]
    assert 100 < shadow.desk.scaling.scale[1] < 1000


def test_what_the_bank_has_foreseen_is_no_change():
    """One of forty inputs is far off: they are not unusual as a whole."""
    X, y = wide_stream(700, 40)
    X[600:605, 0] = [12.0, -13.0, 14.0, 15.0, 12.5]
    y[600:605] = 3 * X[600:605, 0]
    shadow = Shadow(X, y)
    counts = shadow.feed(X[512:605], y[512:605])
    assert counts[88:] == [0, 0, 0, 0, 5]
    assert shadow.changes == ["foreseen"]
    assert not [c for c in shadow.desk.changes if c.what == "target level"]
    mean, sd = shadow.teller.target.mean, shadow.teller.target.sd
    assert sd > 3.5  # the five count as they are
    assert abs(mean) < 1


def test_unusual_inputs_may_explain_a_far_target():
    X, y = wide_stream(700, 2)
    X[600:604, 0] = 12.0
    y[600:604] = 36.0
    shadow = Shadow(X, y)
    assert shadow.feed(X[512:], y[512:]) == [1] * 188
    assert shadow.changes == []


def test_where_inputs_begin_to_be_unusual():
    """At a root mean square of three, in their deviations."""
    for size, counts in [(2.7, [0, 2]), (3.4, [1, 1])]:
        X, y = wide_stream(602, 2)
        X[600] = np.sqrt(2) * size, 0.0
        y[600] = 60.0
        assert Shadow(X, y).feed(X[512:], y[512:])[88:] == counts


def test_fewer_than_five_are_learned_at_ten_and_wild_ones_never():
    X, y = wide_stream(700, 2)
    y[600:604] = [100.0, 1e7, -100.0, -1e9]
    y[620] = 1e6
    y[650] = -80.0
    shadow = Shadow(X, y)
    counts = shadow.feed(X[512:605], y[512:605])
    assert counts[88:] == [0, 0, 0, 0, 3]
    assert shadow.learned[:2] == [10.0, -10.0]
    counts = shadow.feed(X[605:], y[605:])
    assert counts[15:17] == [0, 1]
    assert counts[45:47] == [0, 2]
    assert shadow.changes == []


def test_a_constant_target_that_moves():
    X, y = wide_stream(700, 2)
    y[:] = 7.0
    y[600:] = 9.0
    shadow = Shadow(X, y)
    assert shadow.feed(X[512:], y[512:])[88:93] == [0, 0, 0, 0, 5]
    assert shadow.changes == ["scale"]


@pytest.mark.parametrize("seed", range(12))
def test_hostile_targets(seed):
    """Levels, scales, glitches and inputs of every kind, one after the other."""
    draw = np.random.default_rng(seed)
    X, y = wide_stream(900, 3)
    start = 512
    while start < 880:
        end = start + int(draw.integers(1, 60))
        kind = draw.integers(0, 5)
        if kind == 0:
            y[start:] += 10.0 ** draw.integers(1, 5) * draw.choice([-1, 1])
        elif kind == 1:
            y[start:] *= 10.0 ** draw.integers(-2, 3)
        elif kind == 2:
            y[start : start + draw.integers(1, 8)] += 10.0 ** draw.integers(2, 9)
        elif kind == 3:
            X[start : start + draw.integers(1, 8)] *= 10.0 ** draw.integers(1, 6)
        else:
            X[start : start + draw.integers(1, 8), 0] = np.nan
        start = end
    shadow = Shadow(X, y)
    shadow.feed(X[512:], y[512:])


# --- learning again -------------------------------------------------------------------------------


def replayed_plainly(bank, rows, targets, first, asked, chosen):
    """Moment n is when n rows had been learned: questions first, then the target of row n."""
    said = {}
    place = {first + number: i for i, number in enumerate(chosen)}
    for moment in range(first + len(asked)):
        for number, i in place.items():
            if asked[number - first] == moment and number > moment:
                said[number] = bank.predict_slots_one(rows[i])[1]
        if moment in place:
            i = place[moment]
            bank.learn_one(rows[i], float(targets[i]), said.get(moment))


@pytest.mark.parametrize("kind", ["delay", "mixed", "none", "some rows"])
@pytest.mark.parametrize("before", [0, 700])
def test_late_rows_are_learned_again_as_they_came(kind, before):
    """All rows are kept, or only the last 512 of them, some asked for before the first of these."""
    draw = np.random.default_rng(1)
    own = plan(PAIR, kb.combiners.Stacking(0.95, 0.1))
    desk = Classification(own, 2, 2) if before else Regression(own, 2)
    count = before + 90
    X, y = wide_stream(count, 2)
    late = {"none": np.zeros(count), "delay": np.full(count, 6)}.get(kind)
    if late is None:
        late = draw.integers(0, 12, size=count) * (draw.random(count) < 0.6)
    numbers = np.arange(count)
    asked = np.maximum(numbers - late, 0).astype(int)
    for t in range(count):
        desk.rows += 1
        desk.keep(X[t : t + 1], np.zeros((1, 0)), y[t : t + 1], [asked[t]])
    kept_X, _, kept_y = desk.kept()
    first = count - len(kept_y)
    np.testing.assert_array_equal(kept_y, y[first:])
    chosen = np.arange(len(kept_y))
    if kind == "some rows":
        chosen = np.flatnonzero(draw.random(len(kept_y)) < 0.8)
    again, plain = own.bank(desk.scaling), own.bank(desk.scaling)
    rows, targets = kept_X[chosen], kept_y[chosen]
    desk.replay(again, rows, targets, None if kind == "delay" else chosen)
    replayed_plainly(plain, rows, targets, first, asked[first:], chosen.tolist())
    one, other = again._state(), plain._state()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    on_time = own.bank(desk.scaling)
    on_time.run(rows, targets)
    losses = on_time.ledger.slot_loss, again.ledger.slot_loss
    assert (kind == "none") == np.array_equal(*losses)


def test_nothing_to_learn_again():
    own = plan(LINEAR)
    desk = Regression(own, 2)
    bank = own.bank(desk.scaling)
    desk.replay(bank, np.zeros((0, 1)), np.zeros(0))
    assert bank.samples == 0
