"""Weights from sums over shards: the bits of the whole program, with and without Ray."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.bank.engines.ray import candidate_slots as below
from kernelbank.bank.engines.ray import distributed_qp as sums
from kernelbank.bank.engines.ray.wire import pack, singles
from kernelbank.combiners import qp


def spread(a, b, hands):
    """`sums.solved` on shards that own the columns `hands`."""
    parts = [(a[:, own].copy(), b[:, own].copy()) for own in hands]
    lists = [below.Below(*part) for part in parts]
    asked = []

    def ask(name, level):
        asked.append(name)
        return [getattr(each, name)(level.copy()) for each in lists]

    rows = sums.solved(ask, [below.outline(*part) for part in parts], hands, len(a))
    dense = np.zeros_like(a)
    dense[rows.samples, rows.places] = rows.weights
    return dense, asked


def whole(a, b):
    weights = np.zeros_like(a)
    qp.solve_rows(a.copy(), b.copy(), qp.AUTO, weights)
    return weights


def dealt(draw, slots, shards):
    owner = draw.integers(0, shards, slots)
    owner[:shards] = np.arange(shards)[: len(owner[:shards])]
    return [np.flatnonzero(owner == k) for k in range(shards) if (owner == k).any()]


numbers = st.one_of(
    st.floats(0, 10),
    st.sampled_from([0.0, 1.0, 2.0, 1e-300, 5e-324, 1e300, 1e-12, 1e12, 1e305, 1.7e308]),
)


@given(st.data(), st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**32))
def test_same_bits_as_the_whole_program(data, slots, shards, seed):
    draw = np.random.default_rng(seed)
    rows = st.lists(numbers, min_size=slots, max_size=slots)
    a = np.array([data.draw(rows), data.draw(rows)])
    linear = st.lists(
        st.one_of(st.floats(-10, 10), numbers, st.just(np.inf)), min_size=slots, max_size=slots
    )
    b = np.array([data.draw(linear), data.draw(linear)])
    found, _ = spread(a, b, dealt(draw, slots, min(shards, slots)))
    assert np.array_equal(found, whole(a, b))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("slots", [50, 3000])
def test_many_slots(slots, scale):
    draw = np.random.default_rng(slots)
    a, b = scale * draw.exponential(size=(40, slots)), draw.normal(size=(40, slots))
    b[3], a[4], b[5, ::3], a[6, ::5] = np.inf, 0.0, np.inf, 0.0
    b[7, 0], b[8] = 2.0**1010, b[8, 0]
    found, asked = spread(a, b, dealt(draw, slots, 5))
    assert np.array_equal(found, whole(a, b))
    assert "take_anew" not in asked


def test_a_search_that_was_misled_is_noticed(monkeypatch):
    draw = np.random.default_rng(0)
    a, b = 1e3 * draw.exponential(size=(30, 200)), draw.normal(size=(30, 200))

    def too_low(level, mass, slope):
        return np.where(np.arange(len(level)) % 2, -1.0, level)

    monkeypatch.setattr(sums.hot, "step_down", too_low)
    found, asked = spread(a, b, dealt(draw, 200, 3))
    assert np.array_equal(found, whole(a, b))
    assert "take_anew" in asked


def test_what_is_packed_comes_back():
    draw = np.random.default_rng(0)
    for share in (0.0, 0.01, 0.9, 1.0):
        array = np.where(draw.random((30, 5)) < share, draw.normal(size=(30, 5)), 0.0)
        shape, places, values = singles(pack(array))
        back = np.zeros(shape)
        back.reshape(-1)[places] = values
        assert np.array_equal(back, array)
        assert not (values == 0).any()


def test_sums_are_refused_where_they_cannot_be():
    engine = kb.engines.Ray(exchange="sums")
    kb.KernelBank(engine=engine)
    for combiner in (kb.combiners.Hedge(), kb.combiners.Simplex(evidence="prequential")):
        with pytest.raises(kb.errors.InvalidArgument, match="'exchange' of Ray"):
            kb.KernelBank(engine=engine, combiner=combiner)
