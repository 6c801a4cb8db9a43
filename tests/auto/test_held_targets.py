"""Far targets: which are held back, what five of them mean, what is learned."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.config import AutoConfig
from kernelbank.auto.model import NumberModel
from support.column_pair import ColumnPair, hostile_values
from support.marks import slow_unless
from support.naive import auto as naive

LINEAR = (kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS()),)


@pytest.fixture(autouse=True)
def late_restart(monkeypatch):
    """A last restart late enough for quiet statistics."""
    monkeypatch.setattr(AutoConfig, "restarts", (5, 32, 128, 512))


def config(slots, combiner=None, lags=0):
    return AutoConfig(
        lags=lags, size="small", slots=slots, combiner=combiner, scalings=("standard",)
    )


@pytest.mark.parametrize(
    "memory",
    [5, pytest.param(9, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)],
)
def test_statistics_of_held_targets_equal_the_naive_form(memory):
    """Far ones are held back, and others by chance; what five mean is drawn too."""
    meanings = {"scale": 0, "level": 0, "widen": 0}
    for seed in range(40):
        draw = np.random.default_rng(seed)
        values = [v for v in hostile_values(seed) if not np.isnan(v)]
        pair = ColumnPair(memory, target=True)
        pair.fit(values[:32])
        for value in values[32:]:
            far = pair.scaling.outlier_level(value) > 0
            assert far == pair.naive.is_far(value)
            if not pair.feed_target(value, bool(far if draw.random() < 0.9 else not far)):
                continue
            what = str(draw.choice(list(meanings)))
            meanings[what] += 1
            if what == "scale":
                pair.scaling.restart_target()
                pair.naive.change_level()
            elif what == "level":
                shift = float(np.median(pair.naive.values[-5:]) - pair.naive.base)
                pair.size += abs(shift)
                pair.scaling.shift_target(shift)
                pair.naive.new_level(shift)
            else:
                pair.scaling.widen_target()
                pair.naive.widen()
            pair.check_statistics()
    assert min(meanings.values()) > 5


class SpiedBank:
    """A bank as a model sees it, which keeps the targets that it learns."""

    _plain = calls_python = False

    def __init__(self, bank):
        self.bank, self.learned = bank, []

    def __getattr__(self, name):
        return getattr(self.bank, name)

    def _learn_rows(self, X, y, past, trace, delay):
        self.learned += y[:, 0].tolist()
        self.bank._learn_rows(X, y, past, trace)


class ModelPair:
    """A model, and the naive form of its decisions from row 512 on."""

    def __init__(self, X, y, slots=LINEAR):
        self.model = NumberModel(config(slots), X.shape[1])
        for x, target in zip(X[:512], y[:512], strict=True):
            self._learn(x, target)
        columns = [naive.Column(5) for _ in range(X.shape[1])]
        target = naive.Target(5)
        for k, column in enumerate(columns):
            column.begin(X[:512, k])
        target.begin(y[:512])
        self.naive = naive.RegressionSteps(columns, target)
        self.spy = SpiedBank(self.model.banks[0])
        self.learned = self.spy.learned
        self.model.core.use_banks([self.spy])
        self.changes = []

    def _learn(self, x, y):
        model = self.model
        prediction = model.predict_next(x, 0, 0.05)
        mean, sd = model.scaling.statistics.target_scale()
        width = math.sqrt(model.core.track(0)[4])  # the root mean square error so far
        model.update(x[None], np.array([y]), 0.05, earlier=prediction)
        return mean + sd * prediction.scores[0], width

    def feed(self, X, y):
        """How many rows were learned after each."""
        counts = []
        for x, target in zip(X, y, strict=True):
            self.learned.clear()
            notes, samples = len(self.model.changes), self.model.banks[0].samples
            numbers, what = self.naive.take(x, target, *self._learn(x, target))
            assert self.learned == pytest.approx(numbers, rel=1e-9, abs=1e-9)
            assert self.model.banks[0].samples - samples == len(numbers)
            state, held = self.model.core.state(), range(self.model.core.held)
            targets = [state[f"held/row{i}/targets"][0] for i in held]
            assert targets == [v for v, _, _ in self.naive.held]
            believed = [state[f"held/row{i}/believed"][0] for i in held]
            assert believed == pytest.approx([b for _, _, b in self.naive.held], rel=1e-9, abs=1e-9)
            own = self.naive.target
            assert self.model.scaling.statistics.target_scale() == pytest.approx(
                (own.base, own.unit), rel=1e-9
            )
            signalled = "target level" in [c.what for c in self.model.changes[notes:]]
            assert signalled == (what in ("level", "scale"))
            if what:
                self.changes.append(what)
            counts.append(len(numbers))
        return counts


def wide_stream(rows, dimension, noise=0.1):
    draw = np.random.default_rng(2)
    X = draw.normal(size=(rows, dimension))
    return X, 3 * X[:, 0] + noise * draw.normal(size=rows)


def test_five_equal_errors_are_a_new_level():
    X, y = wide_stream(700, 2)
    y[600:] += 200
    pair = ModelPair(X, y)
    assert pair.feed(X[512:], y[512:]) == [1] * 88 + [0] * 4 + [5] + [1] * 95
    assert pair.changes == ["level"]
    mean, sd = pair.model.scaling.statistics.target_scale()
    assert abs(mean - 200) < 2
    assert abs(sd - 3) < 0.6  # as before


def test_five_predicted_far_targets_are_no_change():
    """One of forty inputs is far off: they are not unusual as a whole."""
    X, y = wide_stream(700, 40)
    X[600:605, 0] = [12.0, -13.0, 14.0, 15.0, 12.5]
    y[600:605] = 3 * X[600:605, 0]
    pair = ModelPair(X, y)
    counts = pair.feed(X[512:605], y[512:605])
    assert counts[88:] == [0, 0, 0, 0, 5]
    assert pair.changes == ["predicted"]
    assert not [c for c in pair.model.changes if c.what == "target level"]
    mean, sd = pair.naive.target.mean, pair.naive.target.sd
    assert sd > 3.5  # the five count as they are
    assert abs(mean) < 1


def test_fewer_than_five_far_targets_are_learned_as_usual_errors_and_extreme_ones_never():
    X, y = wide_stream(700, 2)
    y[600:604] = [100.0, 1e7, -100.0, -1e9]
    y[620] = 1e6
    y[650] = -80.0
    pair = ModelPair(X, y)
    counts = pair.feed(X[512:605], y[512:605])
    assert counts[88:] == [0, 0, 0, 0, 3]
    mean, sd = pair.model.scaling.statistics.target_scale()
    errors = mean + sd * np.array(pair.learned[:2]) - 3 * X[[600, 602], 0]
    assert 0.05 < errors[0] < 0.5  # the noise is 0.1
    assert -0.5 < errors[1] < -0.05
    counts = pair.feed(X[605:], y[605:])
    assert counts[15:17] == [0, 1]
    assert counts[45:47] == [0, 2]
    assert pair.changes == []


@pytest.mark.parametrize("seed", slow_unless(lambda seed: seed < 2, range(12)))
def test_hostile_targets_are_learned_as_by_the_naive_form(seed):
    """Levels, scales, extreme values and inputs of every kind, one after the other."""
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
    pair = ModelPair(X, y)
    pair.feed(X[512:], y[512:])
