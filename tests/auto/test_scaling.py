"""Running statistics and scaled rows against their naive forms; skewed targets."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto import scaling as names
from kernelbank.auto.scaling import (
    CENTER,
    LEAST_ROWS,
    LEAST_SHIFT,
    SCALE,
    Scaling,
    log_shift,
)
from support.column_pair import (
    NAN,
    ColumnPair,
    scaling_of,
    target_scale,
)
from support.core_banks import put_entry
from support.marks import refuses
from support.naive import auto as naive
from support.naive.transforms import shifted_log


def test_input_ranges_are_those_of_the_last_values():
    """Of the last thousand: the median and the ends; those of all where these are one place."""
    draw = np.random.default_rng(4)
    X = np.column_stack([draw.normal(size=3000), np.arange(3000) < 500, np.full(3000, 7.0)])
    scaling = Scaling(3, 0, ("standard", "rank"), targets=0)
    scaling.fit(X[:32], None)
    for x in X[32:]:
        scaling.statistics.add_inputs(x)
    last = X[-scaling.statistics["rings"].shape[1] :]
    actual = scaling.input_ranges()
    assert (actual[:, 0] == np.median(last, axis=0)).all()
    assert (actual[0, 1:] == [last[:, 0].min(), last[:, 0].max()]).all()
    base, unit = scaling.columns[1, [CENTER, SCALE]]
    assert unit > 0
    assert (actual[1, 1:] == base + unit * np.array([-2.5, 2.5])).all()
    assert (actual[2] == 7.0).all()


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("asinh",), ("rank",)])
def test_scaled_row_has_the_scalings_side_by_side(names):
    """Deviations, their asinh, ranks; lagged targets behind them in the target's own figures."""
    draw = np.random.default_rng(4)
    X, y = draw.normal(size=(80, 2)), draw.normal(size=80) * 3
    X[draw.random(X.shape) < 0.1] = NAN
    scaling = Scaling(2, 2, names)
    columns = [naive.Column(scaling.statistics["rings"].shape[1]) for _ in range(2)]
    target = naive.Target(scaling.statistics["target_rings"].shape[1])
    scaling.fit(X[:32], y[:32, None])
    for k in range(2):
        columns[k].begin(X[:32, k])
    target.begin(y[:32])
    lagged = np.array([y[31], NAN])
    for t in range(48):
        row = scaling.statistics.scale_rows(X[32 + t : 33 + t], lagged[None])[0]
        scaled, scale = (
            scaling.statistics.scale_targets(y[32 + t : 33 + t])[0],
            scaling.statistics.target_scale(),
        )
        own = np.array([columns[k].forms(X[32 + t, k]) for k in range(2)])
        late = np.array([np.zeros(3) if math.isnan(v) else target.forms(v) for v in lagged])
        shrunk = late[:, 1] if names == ("asinh",) else []
        parts = {
            "standard": [*own[:, 0], *late[:, 0]],
            "asinh": np.arcsinh([*own[:, 1], *shrunk]),
            "rank": [*own[:, 2], *late[:, 2]],
        }
        expected = np.concatenate([parts[name] for name in names])
        assert np.allclose(row, expected, rtol=0, atol=1e-11)
        assert scale == pytest.approx([target.base, target.unit], rel=1e-12, abs=1e-12)
        assert scaled == pytest.approx(target.deviation(y[32 + t]), abs=1e-12)
        for k in range(2):
            columns[k].take(X[32 + t, k])
        target.take_target(y[32 + t], False)
        scaling.statistics.add_inputs(X[32 + t])
        scaling.statistics.add_target(y[32 + t])
        lagged = np.array([y[32 + t], lagged[0]])


# --- running statistics of a column against their naive form, on ordinary and hostile data --------


COUNTS = (names.STREAK, names.SEEN, names.AGE)
IMPOSSIBLE = [
    *((entry, -1.0) for entry in (names.COUNT, names.SCALE, names.POWER, *COUNTS)),
    *((entry, 0.5) for entry in COUNTS),
    *((entry, 1e308) for entry in (names.MEAN, names.CENTER, names.SCALE, *COUNTS)),
    *((entry, 9.0) for entry in (names.LAST_FIXED, names.LAST_MOVING, names.LAST_RANK)),
    *((entry, value) for entry in range(13) for value in (NAN, math.inf)),
]


def test_impossible_statistics_are_refused():
    own = scaling_of(2, 9)
    own.fit_inputs(np.arange(80.0).reshape(40, 2))
    own.fit_target(np.arange(40.0))
    for entry, value in IMPOSSIBLE:
        refuses(r"\w", put_entry, own, "columns", (0, entry), value)
        refuses(r"\w", put_entry, own, "targets", (0, entry), value)
    for rings in ("rings", "target_rings"):
        refuses("finite", put_entry, own, rings, (0, 0), NAN)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e149])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1e6])
@pytest.mark.parametrize("memory", [5, 50])
def test_ordinary_column_equals_the_naive_form(scale, offset, memory):
    draw = np.random.default_rng(3)
    values = scale * (draw.normal(size=300) + offset) / (1 + abs(offset))
    pair = ColumnPair(memory)
    pair.fit(values[:32])
    pair.feed(values[32:])
    assert pair.levels == 0


def test_column_beyond_its_memory_equals_the_naive_form():
    draw = np.random.default_rng(2)
    pair = ColumnPair(5)
    pair.fit(draw.normal(size=32))
    pair.naive.weight = 9_990
    pair.set(names.COUNT, 9_990)
    pair.naive.squares = 9_989.0
    pair.set(names.SQUARES, 9_989.0)
    pair.feed(draw.normal(size=60) * 2)
    assert pair.naive.weight == 10_000


def level_of(values, changes):
    pair = ColumnPair(50)
    pair.fit(np.random.default_rng(5).normal(size=1000))  # five far values must not make the sd
    pair.feed(values)
    assert pair.levels == changes
    return target_scale(pair.column), pair


def test_five_far_values_in_a_row_are_a_new_level():
    usual = target_scale(level_of([], 0)[1].column)[1]
    (mean, sd), _ = level_of([100.0, 101.0, NAN, 100.5, 102.0, 99.0], 1)
    assert mean == pytest.approx(100.5)
    assert usual < sd < 2 * usual  # that after the five have entered at 10 sd each
    (mean, sd), _ = level_of([100.0, -300.0, 500.0, -900.0, 70.0], 1)  # a new scale, on any side
    assert sd == pytest.approx(np.std([100.0, -300.0, 500.0, -900.0, 70.0], ddof=1))
    assert mean == pytest.approx(-106)
    (mean, sd), pair = level_of([64.0] * 5, 1)
    assert mean + sd == pytest.approx(64)
    assert sorted(pair.ring[:5]) == [64.0] * 5
    assert pair.column[names.SEEN] == 5
    level_of([100.0, 101.0, 100.5, 102.0, 0.0, 99.0], 0)
    level_of([1e9, 2e9, 1e10, 1e9], 0)  # glitches count
    level_of([1e9, 2e9, 1e10, 1e9, 3e9], 1)


@pytest.mark.parametrize("memory", [5, 1000])
def test_column_that_steps_through_a_few_values_has_no_new_level(memory):
    pair = ColumnPair(memory)
    pair.fit([0.0] * 128)
    pair.feed([0.0] * 500 + [1.0] * 20 + [0.0] * 900 + [1.0] * 50 + [2.0] * 50)
    assert pair.levels == 0
    pair = ColumnPair(1000)
    pair.fit(np.arange(128.0) % 6)
    pair.feed([1000.0] * 6)  # six different values before: a sensor that is stuck
    assert pair.levels == 1


T = kb.transforms


def skewed(rows, seed=0):
    """A target whose effects multiply."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 3))
    return X, np.exp(1.2 * X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.05 * draw.normal(size=rows))


def standard(y):
    return (y - y.mean()) / y.std()


def test_shift_of_a_skewed_target_puts_the_pole_below_its_low_end():
    z = standard(np.random.default_rng(0).exponential(size=400))
    shift = log_shift(z)
    low, middle = np.quantile(z, [0.02, 0.5])
    assert shift == pytest.approx(middle - 2 * low, rel=1e-12)
    assert -shift < z.min()
    assert log_shift(-z) == -shift
    assert shift == 0.0 or LEAST_SHIFT <= abs(shift) <= 30.0
    even = T.ShiftedLog(shift).forward(z)
    assert abs((standard(even) ** 3).mean()) < 0.5 * (z**3).mean()


def test_even_short_and_constant_targets_have_no_shift():
    draw = np.random.default_rng(0)
    z = draw.exponential(size=LEAST_ROWS)
    assert log_shift(standard(z)) != 0
    assert log_shift(standard(z)[:-1]) == 0
    assert log_shift(standard(draw.normal(size=400))) == 0
    assert log_shift(np.zeros(400)) == 0


# --- who uses it ----------------------------------------------------------------------------------


def test_past_targets_among_the_relevant_columns_are_transformed():
    X, y = skewed(60)
    scaling = Scaling(3, 1, ("standard",), remembered=3, previous=3)
    scaling.fit(X, y[:, None])
    shift = scaling.statistics.target_shift()
    assert shift > 0
    scaling.relevance = np.linspace(0.5, 2.0, len(scaling.relevance))
    lagged = np.hstack([np.tile(y[:3], (5, 1)), X[:5]])
    rows = scaling.statistics.scale_rows(X[5:10], lagged)
    sources = rows[:, [*scaling.columns_of["standard"], *scaling.past_columns]]
    actual = rows[:, list(scaling.relevant_columns)] / scaling.relevance
    targets = [3, 4, 5]  # after three inputs: one lagged target, two remembered ones
    for k in range(sources.shape[1]):
        expected = sources[:, k]
        if k in targets:
            expected = [shifted_log(z, shift) for z in expected]
        assert actual[:, k] == pytest.approx(expected, rel=1e-14, abs=1e-15)


def slots_by_transform(bank):
    actual = {}
    for index, name in enumerate(bank.names):
        actual.setdefault(bank._model.pool.slots[index].transform, set()).add(name.split(":")[0])
    return actual


def test_slots_on_ranks_and_relevant_columns_learn_the_logarithm_of_a_skewed_target():
    X, y = skewed(140)
    bank = kb.AutoBank()
    bank.run(X, y)
    by_transform = slots_by_transform(bank)
    (transform,) = set(by_transform) - {None}
    assert transform == T.ShiftedLog(bank._model.scaling.statistics.target_shift())
    assert {name.split(" + ")[0] for name in by_transform[transform]} == {"rank", "relevant"}
    for index, slot in zip(bank._model.members, bank.bank.slots, strict=True):
        uses = bank.names[index].startswith(("rank", "relevant"))
        assert slot.transform == (transform if uses else None)


def test_labels_and_several_targets_have_no_transform():
    X, y = skewed(140)
    for bank, target in (
        (kb.AutoBank("classification"), y > np.median(y)),
        (kb.AutoBank(), np.column_stack([y, y])),
    ):
        bank.run(X, target)
        assert set(slots_by_transform(bank)) == {None}
