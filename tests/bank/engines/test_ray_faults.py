"""Shards on Ray whose processes or nodes end: the result is the serial one, to the bit."""

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.engines.ray import actor_handle as ray_post
from support import instances, ray_rig
from support.ray_rig import executor_of, kill, same_banks, same_traces

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters"),
]

K, M, C = kb.kernels, kb.learners, kb.combiners
Ray = kb.engines.Ray
X, Y = instances.stream(5, 600, 2)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A cluster of a head with one processor; tests add nodes and take them away."""
    with ray_rig.own_token(tmp_path_factory):
        from kernelbank.bank.engines.ray import cluster as ray_link

        ray = ray_link.imported()
        ray_link.ensure_token()
        from ray.cluster_utils import Cluster

        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(autouse=True)
def tidy():
    yield
    ray_rig.tidy()


def bank_on(engine, combiner=None, slots=None):
    own = {"slots": slots} if slots else {"dictionary": kb.gaussian_grid(0.1, 3, 12)}
    return kb.KernelBank(engine=engine, window=6, combiner=combiner, **own)


def kill_at(monkeypatch, bank, method, call, shard, after):
    """Kill a shard's process before, or after, the so-manieth call of a method of the executor."""
    executor, calls = executor_of(bank), [0]
    original = getattr(executor, method)

    def wrapped(*given, **named):
        calls[0] += 1
        if calls[0] == call and not after:
            kill(bank, shard)
        result = original(*given, **named)
        if calls[0] == call and after:
            kill(bank, shard)
        return result

    monkeypatch.setattr(executor, method, wrapped)
    return calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("record", "method"),
    [
        *(("all", name) for name in ("_present", "_send", "_gather", "_mix", "_answers")),
        *(("light", name) for name in ("_send", "_weigh_by_sums", "_answers", "_commit")),
    ],
)
def test_killed_at_every_moment_of_a_block(nodes, monkeypatch, method, after, record):
    exchange = "sums" if record == "light" else "gathered"
    engine = Ray(shards=2, block=60, replay=150, exchange=exchange)
    serial, other = bank_on("serial"), bank_on(engine)
    for bank in (serial, other):
        bank.run(X[:60], Y[:60])
    before = executor_of(other).processes
    calls = kill_at(monkeypatch, other, method, 3, 1, after)
    same_traces(serial.run(X[60:], Y[60:], record=record), other.run(X[60:], Y[60:], record=record))
    assert calls[0] >= 3
    same_banks(serial, other)
    assert executor_of(other).processes[0] == before[0]
    assert executor_of(other).processes[1] != before[1]


def test_killed_before_every_kind_of_question(nodes, tmp_path):
    serial, other = bank_on("serial"), bank_on(Ray(shards=2, block=60))
    for bank in (serial, other):
        bank.run(X[:200], Y[:200])
    questions = [
        lambda bank: bank.predict_one(X[0]),
        lambda bank: bank.predict(X[:10]),
        lambda bank: bank.predict_slots(X[:10]),
        lambda bank: np.nan_to_num(bank.predict_variance_slots(X[:10])),
        lambda bank: bank.ledger.dropped,
        lambda bank: bank.learn_one(X[0], Y[0]),
        lambda bank: bank._state()["slots/inputs"],
    ]
    for place, question in enumerate(questions):
        kill(other, place % 2)
        expected = question(serial)
        assert np.array_equal(expected, question(other)) or expected is None
    same_banks(serial, other)


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_moments(nodes, seed):
    draw = random.Random(seed)
    combiner = [None, C.Simplex(), C.Hedge(), C.Stacking()][seed]
    exchange = "sums" if seed == 1 else "auto"
    record = ["all", "light"][seed % 2]
    serial = bank_on("serial", combiner)
    other = bank_on(Ray(shards=3, block=25, replay=200, retries=20, exchange=exchange), combiner)
    serial.run(X[:1], Y[:1])
    other.run(X[:1], Y[:1])
    over = threading.Event()

    def trouble():
        for _ in range(4):
            if over.wait(draw.uniform(0.0, 0.6)):
                return
            with suppress(ProcessLookupError):  # it has just been killed
                kill(other, draw.randrange(3))

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        for _ in range(4):
            one = serial.run(X, Y, record=record)
            same_traces(one, other.run(X, Y, record=record))
    finally:
        over.set()
        thread.join()
    same_banks(serial, other)


@pytest.mark.parametrize("restart", [True, False])
def test_killed_by_ray(nodes, restart):
    import ray

    serial, other = bank_on("serial"), bank_on(Ray(shards=2, block=60))
    serial.run(X[:200], Y[:200])
    other.run(X[:200], Y[:200])
    ray.kill(executor_of(other)._posts[0].seats[0], no_restart=not restart)
    same_traces(serial.run(X, Y), other.run(X, Y))
    same_banks(serial, other)


class Mean:
    """A model that is no array."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def predict_one(self, x):
        return self.total / max(1, self.count)

    def learn_one(self, x, y):
        self.total += y
        self.count += 1


@pytest.mark.parametrize("replay", [100, 10_000])
def test_models_behind_adapters_come_back(nodes, replay):
    slots = [kb.Slot(K.NoKernel(), M.Adapter(Mean())), *ray_rig.slots_of_all()[:5]]
    serial = bank_on("serial", slots=slots)
    other = bank_on(Ray(shards=2, block=60, replay=replay), slots=slots)
    for start in (0, 200, 400):
        if start:
            kill(other, 0)
            kill(other, 1)
        some = slice(start, start + 200)
        same_traces(serial.run(X[some], Y[some]), other.run(X[some], Y[some]))
    same_banks(serial, other)


def test_given_up_the_bank_can_be_saved_and_goes_on(nodes, monkeypatch, tmp_path):
    serial, other = bank_on("serial"), bank_on(Ray(shards=2, block=60, retries=2, replay=100))
    other.run(X[:60], Y[:60])
    new_seat, seats = ray_post.ray_link.new_seat, []

    def doomed(cpus):
        seats.append(new_seat(cpus))
        import ray

        ray.kill(seats[-1])
        return seats[-1]

    kill_at(monkeypatch, other, "_mix", 4, 1, False)
    with monkeypatch.context() as patch:
        patch.setattr(ray_post.ray_link, "new_seat", doomed)
        with pytest.raises(kb.errors.ShardLost, match=r"Shard 1 of 2 .* after 3 tries"):
            other.run(X[60:], Y[60:])
        assert len(seats) == 2
        assert other.samples == 240
        other.save(tmp_path / "bank.kb")
    serial.run(X[:240], Y[:240])
    same_banks(serial, kb.load(tmp_path / "bank.kb"))
    same_traces(serial.run(X[240:], Y[240:]), other.run(X[240:], Y[240:]))
    same_banks(serial, other)


def test_no_place_for_a_shard(nodes):
    bank = bank_on(Ray(shards=1, cpus=1000, patience=0.5))
    with (
        pytest.warns(kb.errors.KernelBankWarning, match="waits for a process"),
        pytest.raises(kb.errors.ShardLost, match="no process within"),
    ):
        bank.run(X, Y)
    assert bank.samples == 0


def test_interrupted(nodes, monkeypatch):
    serial, other = bank_on("serial"), bank_on(Ray(shards=2, block=60))
    other.run(X[:60], Y[:60])
    calls = []
    original = executor_of(other)._mix

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(executor_of(other), "_mix", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.run(X[60:], Y[60:])
    assert other.samples == 180
    serial.run(X[:180], Y[:180])
    assert np.array_equal(serial.predict(X[:5]), other.predict(X[:5]))
    same_traces(serial.run(X, Y), other.run(X, Y))
    same_banks(serial, other)


@pytest.mark.parametrize("exchange", ["gathered", "sums"])
def test_ctrl_c_at_random_moments(nodes, exchange):
    long, targets = np.tile(X, (20, 1)), np.tile(Y, 20)
    serial = bank_on("serial")
    other = bank_on(Ray(shards=2, block=50, replay=1000, exchange=exchange))
    serial.run(long, targets, record="light")
    other.run(long[:1], targets[:1])
    draw, over, interrupts = random.Random(7), threading.Event(), 0

    def trouble():
        for _ in range(8):
            if over.wait(draw.uniform(0.02, 0.2)):
                return
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=trouble)
    thread.start()
    while thread.is_alive() or other.samples < len(long):
        with suppress(KeyboardInterrupt):
            try:
                if other.samples < len(long):
                    other.run(long[other.samples :], targets[other.samples :], record="light")
                over.set()
                thread.join()
            except KeyboardInterrupt:
                interrupts += 1
    assert interrupts
    same_banks(serial, other)


# --- nodes ----------------------------------------------------------------------------------------


def test_a_node_is_lost_and_another_joins(nodes):
    node = nodes.add_node(num_cpus=1)
    serial = bank_on("serial")
    other = bank_on(Ray(shards=2, block=60, cpus=1, replay=100, patience=60))
    for bank in (serial, other):
        bank.run(X[:200], Y[:200])
    ray_rig.lose(nodes, node, other)
    began = time.monotonic()
    with (  # noqa: PT031
        ThreadPoolExecutor(1) as pool,  # Ray adds nodes in the main thread only
        pytest.warns(kb.errors.KernelBankWarning, match="waits for a process"),
    ):
        running = pool.submit(other.run, X, Y)
        time.sleep(8.0)
        node = nodes.add_node(num_cpus=1)
        trace = running.result()
    assert time.monotonic() - began < 60
    same_traces(serial.run(X, Y), trace)
    same_banks(serial, other)
    del bank, other
    ray_rig.tidy()
    nodes.remove_node(node)


def test_a_node_is_lost_and_none_joins(nodes, tmp_path):
    node = nodes.add_node(num_cpus=1)
    serial = bank_on("serial")
    other = bank_on(Ray(shards=2, block=60, cpus=1, replay=100, patience=10))
    for bank in (serial, other):
        bank.run(X[:200], Y[:200])
    ray_rig.lose(nodes, node, other)
    with (
        pytest.warns(kb.errors.KernelBankWarning, match="waits for a process"),
        pytest.raises(kb.errors.ShardLost, match="patience=10"),
    ):
        other.run(X, Y)
    more = other.samples - 200  # a process may outlive its node by some blocks
    assert more % 60 == 0
    other.save(tmp_path / "bank.kb")
    if more:
        serial.run(X[:more], Y[:more])
    same_banks(serial, kb.load(tmp_path / "bank.kb"))
    node = nodes.add_node(num_cpus=1)
    same_traces(serial.run(X, Y), other.run(X, Y))
    same_banks(serial, other)
    del bank, other
    ray_rig.tidy()
    nodes.remove_node(node)
