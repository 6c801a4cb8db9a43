"""A bank that is divided into shards, here all in one process: the same bits as the whole."""

from types import SimpleNamespace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank import _core
from kernelbank.bank.engines.ray_worker import (
    OutOfOrder,
    ShardWorker,
    describe_driver,
    describe_shard,
    partition,
    renumbered,
)
from support import output_banks, ray_cluster
from support.every_bank import few_cases
from support.marks import slow_unless

K, M = kb.kernels, kb.learners


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("bases", [[None], [None] * 64, [None, 0, 1, None, None, 3, None, 4, 0]])
def test_partition_gives_every_pack_to_one_shard_with_its_base(bases, shards):
    packs = [{"base": None if base is None else [base, 0]} for base in bases]
    parts = partition(packs, shards)
    assert len(parts) == min(shards, bases.count(None))
    assert all(parts)
    assert sorted(pack for part in parts for pack in part) == list(range(len(bases)))
    for pack, base in enumerate(bases):
        assert base is None or any({pack, base} <= set(part) for part in parts)


def test_block_of_ray_is_its_setting_or_what_fits_the_memory():
    small = kb.KernelBank()._settings.describe(1)
    large = {**small, "slots": 10_000, "losses": small["losses"] * 3}
    assert kb.engines.Ray(block=5000).block_length(large) == 5000
    assert kb.engines.Ray().block_length(small) == 1024
    assert 8 <= kb.engines.Ray().block_length(large) < 64
    assert kb.engines.Ray().block_length({**large, "slots": 10**6}) == 8


class Divided:
    """A bank whose shards are in this process."""

    def __init__(self, settings, dimension, shards):
        self.whole = settings.describe(dimension)
        self.parts = partition(self.whole["packs"], shards)
        self.driver = _core.Bank(describe_driver(self.whole))
        self.workers = [ShardWorker() for _ in self.parts]
        for worker, packs in zip(self.workers, self.parts, strict=True):
            worker.open(describe_shard(self.whole, packs, 50), None, None)

    def learn(self, X, y, trace):
        first = self.driver.samples
        self.driver.learn(X, y, None, trace, 0.0, self.records(first, X, y))

    def records(self, first, X, y):
        """What the slots leave behind, in their order in the bank."""
        packs, count = self.whole["packs"], self.whole["slots"]
        whole = {}
        for worker, part in zip(self.workers, self.parts, strict=True):
            slots = np.concatenate([packs[number]["slots"] for number in part])
            for name, array in worker.learn(first, (X, y), False)[0].items():
                shape = (*array.shape[:-1], count)
                whole.setdefault(name, np.empty(shape))[..., slots] = array
        return {name: whole[name] for name in set(whole) - {"dropped", "step_ratio"}}

    def state(self):
        arrays = {n: a for n, a in self.driver.state().items() if not n.startswith("pack")}
        for worker, packs in zip(self.workers, self.parts, strict=True):
            arrays |= renumbered(worker.snapshot()[0], dict(enumerate(packs)))
        return arrays


CASES = {
    name: case
    for name, case in few_cases().items()
    if name.startswith(("kernels", "learners", "loss", "combiner"))
}


NUMBERED = [(name, outputs) for name in CASES for outputs in (1, 3)]
QUICK = set(NUMBERED[::4] + NUMBERED[3::4])  # every case once, with one output or three


@pytest.mark.parametrize(("name", "outputs"), slow_unless(QUICK.__contains__, NUMBERED))
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_divided_bank_has_the_bits_of_the_whole(name, outputs):
    case = CASES[name]
    bank = case.make("serial", outputs=outputs)
    divided = Divided(bank._settings, case.X.shape[1], 3)
    y = case.y if outputs == 1 else output_banks.columns(case.y)
    for start in range(0, len(case.X), 110):
        rows = slice(start, start + 110)
        trace = bank.run(case.X[rows], y[rows])
        expected = {field: getattr(trace, field) for field in trace.fields}
        if bank.outputs == 1:  # with an axis of outputs
            expected = {field: array[:, None] for field, array in expected.items()}
        found = {field: np.zeros_like(array) for field, array in expected.items()}
        divided.learn(case.X[rows], y[rows].reshape(-1, outputs), found)
        for field in set(trace.fields) - {"bound_gap"}:  # NaN without a simplex
            assert np.array_equal(found[field], expected[field], equal_nan=True), field
    ray_cluster.assert_same_arrays(dict(sorted(divided.state().items())), bank.state())


def test_records_that_do_not_fit_are_refused_and_nothing_is_learned():
    case = CASES["kernels"]
    divided = Divided(case.make("serial")._settings, 2, 2)
    X, y = case.X[:5], case.y[:5, None]
    records = divided.records(0, X, y)
    for wrong in (
        {},
        {"norms": records["norms"]},
        {name: array[..., :1].copy() for name, array in records.items()},
        {**records, "values": records["values"][..., :1].copy()},
        {**records, "values": records["values"][:, :, ::-1]},
    ):
        with pytest.raises((ValueError, RuntimeError)):
            divided.driver.learn(X, y, None, {}, 0.0, wrong)
        assert divided.driver.samples == 0
    divided.driver.learn(X, y, None, {}, 0.0, records)
    with pytest.raises(RuntimeError, match="not handed over"):
        divided.driver.learn(X, y, None, {})
    with pytest.raises(RuntimeError, match="asked there"):
        divided.driver.predict(X)


def test_worker_refuses_blocks_out_of_order():
    divided = Divided(kb.KernelBank()._settings, 1, 1)
    worker, block = divided.workers[0], (np.zeros((5, 1)), np.zeros((5, 1)))
    _, snapshot = worker.learn(0, block, True)
    with pytest.raises(OutOfOrder, match="expects sample 5, and got 0"):
        worker.learn(0, block, False)
    worker.open(describe_shard(divided.whole, [*divided.parts[0]], 50), snapshot, block)
    worker.learn(10, block, False)


def test_threads_by_default_are_the_cores_of_this_process(monkeypatch):
    fake = SimpleNamespace(sched_getaffinity=lambda _: {0, 3, 4}, cpu_count=lambda: 8)
    monkeypatch.setattr("kernelbank.bank.engines.base.os", fake)
    assert kb.engines.Threads().local_options()["threads"] == 3
    assert kb.engines.Threads(5).local_options()["threads"] == 5
    del fake.sched_getaffinity
    assert kb.engines.Threads().local_options()["threads"] == 8
