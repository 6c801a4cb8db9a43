"""Weights from sums over shards: the same bits as the whole program."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.bank.engines.ray import distributed_qp
from kernelbank.bank.engines.ray.distributed_qp import CandidateSlots, solve_weights
from kernelbank.bank.engines.ray.wire import pack_weights, unpack_weights
from kernelbank.combiners import simplex_qp


def solve_on_shards(a, b, shards):
    """Weights by sums on shards that own these columns, and the methods that were called."""
    candidates = [CandidateSlots(a[:, own].copy(), b[:, own].copy()) for own in shards]
    called = []

    def ask(method, threshold):
        called.append(method)
        return [getattr(each, method)(threshold.copy()) for each in candidates]

    found = solve_weights(ask, [each.bounds() for each in candidates], shards, len(a))
    weights = np.zeros_like(a)
    weights[found.samples, found.slots] = found.values
    return weights, called


def solve_whole(a, b):
    return simplex_qp.solve_rows(a.copy(), b.copy(), simplex_qp.AUTO)


def partition(draw, slots, shards):
    owner = draw.integers(0, shards, slots)
    owner[:shards] = np.arange(shards)[: len(owner[:shards])]
    return [np.flatnonzero(owner == k) for k in range(shards) if (owner == k).any()]


numbers = st.one_of(
    st.floats(0, 10),
    st.sampled_from([0.0, 1.0, 2.0, 1e-300, 5e-324, 1e300, 1e-12, 1e12, 1e305, 1.7e308]),
)


@given(st.data(), st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**32))
def test_weights_by_sums_have_the_bits_of_the_whole_program(data, slots, shards, seed):
    draw = np.random.default_rng(seed)
    rows = st.lists(numbers, min_size=slots, max_size=slots)
    a = np.array([data.draw(rows), data.draw(rows)])
    linear = st.lists(
        st.one_of(st.floats(-10, 10), numbers, st.just(np.inf)), min_size=slots, max_size=slots
    )
    b = np.array([data.draw(linear), data.draw(linear)])
    found, _ = solve_on_shards(a, b, partition(draw, slots, min(shards, slots)))
    assert np.array_equal(found, solve_whole(a, b))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("slots", [50, 3000])
def test_weights_by_sums_of_many_slots_need_no_second_search(slots, scale):
    draw = np.random.default_rng(slots)
    a, b = scale * draw.exponential(size=(40, slots)), draw.normal(size=(40, slots))
    b[3], a[4], b[5, ::3], a[6, ::5] = np.inf, 0.0, np.inf, 0.0
    b[7, 0], b[8] = 2.0**1010, b[8, 0]
    found, called = solve_on_shards(a, b, partition(draw, slots, 5))
    assert np.array_equal(found, solve_whole(a, b))
    assert "collect_all" not in called


def test_search_misled_by_rounding_collects_all_slots(monkeypatch):
    draw = np.random.default_rng(0)
    a, b = 1e3 * draw.exponential(size=(30, 200)), draw.normal(size=(30, 200))

    def too_low(threshold, mass, slope):
        return np.where(np.arange(len(threshold)) % 2, -1.0, threshold)

    monkeypatch.setattr(distributed_qp, "_step_down", too_low)
    found, called = solve_on_shards(a, b, partition(draw, 200, 3))
    assert np.array_equal(found, solve_whole(a, b))
    assert "collect_all" in called


def test_packed_weights_are_unpacked_without_change():
    draw = np.random.default_rng(0)
    for share in (0.0, 0.01, 0.9, 1.0):
        array = np.where(draw.random((30, 5)) < share, draw.normal(size=(30, 5)), 0.0)
        shape, indices, values = unpack_weights(pack_weights(array))
        back = np.zeros(shape)
        back.reshape(-1)[indices] = values
        assert np.array_equal(back, array)
        assert not (values == 0).any()


def test_exchange_sums_with_other_combiners_is_refused():
    engine = kb.engines.Ray(exchange="sums")
    kb.KernelBank(engine=engine)
    for combiner in (kb.combiners.Hedge(), kb.combiners.Simplex(evidence="prequential")):
        with pytest.raises(kb.errors.InvalidArgument, match="'exchange' of Ray"):
            kb.KernelBank(engine=engine, combiner=combiner)
