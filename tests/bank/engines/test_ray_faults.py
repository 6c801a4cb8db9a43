"""Shards on Ray whose processes or nodes are lost: the result is the serial one, to the bit."""

import os
import random
import secrets
import signal
import threading
from contextlib import suppress

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.engines import ray as ray_engine
from support import every_bank, instances, ray_cluster
from support.ray_cluster import (
    assert_same_banks,
    assert_same_traces,
    kill_process,
    process_ids,
    ray_bank,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters"),
]

K, M, C = kb.kernels, kb.learners, kb.combiners
Ray = kb.engines.Ray
X, Y = instances.stream(5, 600, 2)


@pytest.fixture(scope="module")
def nodes():
    """A cluster of a head node with one processor; tests add and remove nodes."""
    ray_cluster.share_test_modules()
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray = ray_engine.import_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(autouse=True)
def release_processes():
    yield
    ray_cluster.release_processes()


def bank_on(engine, combiner=None, slots=None):
    own = {"slots": slots} if slots else {"dictionary": kb.gaussian_grid(0.1, 3, 12)}
    return kb.KernelBank(engine=engine, window=6, combiner=combiner, **own)


def kill_at(monkeypatch, bank, method, call, shard, after):
    """Kill a shard's process before, or after, the `call`-th call of a method of the bank on Ray.

    Returns a list with the number of calls.
    """
    target, calls = ray_bank(bank), [0]
    original = getattr(target, method)

    def wrapped(*given, **named):
        calls[0] += 1
        if calls[0] == call and not after:
            kill_process(bank, shard)
        result = original(*given, **named)
        if calls[0] == call and after:
            kill_process(bank, shard)
        return result

    monkeypatch.setattr(target, method, wrapped)
    return calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("method", ["_send", "_collect", "_finish", "_begin_with"])
def test_process_killed_at_any_step_of_a_block_is_replaced_with_the_same_bits(
    nodes, monkeypatch, method, after
):
    engine = Ray(shards=2, block=60, replay=150)
    serial, on_ray = bank_on("serial"), bank_on(engine)
    for bank in (serial, on_ray):
        bank.run(X[:60], Y[:60])
    before = process_ids(on_ray)
    calls = kill_at(monkeypatch, on_ray, method, 2, 1, after)
    assert_same_traces(serial.run(X[60:], Y[60:]), on_ray.run(X[60:], Y[60:]))
    assert calls[0] >= 2
    assert_same_banks(serial, on_ray)
    assert process_ids(on_ray)[0] == before[0]
    assert process_ids(on_ray)[1] != before[1]


def test_process_killed_before_any_query_is_replaced(nodes, tmp_path):
    serial, on_ray = bank_on("serial"), bank_on(Ray(shards=2, block=60))
    for bank in (serial, on_ray):
        bank.run(X[:200], Y[:200])
    queries = [
        lambda bank: bank.predict_one(X[0]),
        lambda bank: bank.predict(X[:10]),
        lambda bank: bank.predict_slots(X[:10]),
        lambda bank: np.nan_to_num(bank.predict_variance_slots(X[:10])),
        lambda bank: bank.ledger.dropped,
        lambda bank: bank.learn_one(X[0], Y[0]),
        lambda bank: bank.learn_one(X[0], Y[0], np.zeros(12)),
        lambda bank: bank.state()["samples/inputs"],
    ]
    for number, query in enumerate(queries):
        kill_process(on_ray, number % 2)
        expected = query(serial)
        assert np.array_equal(expected, query(on_ray)) or expected is None
    assert_same_banks(serial, on_ray)


@pytest.mark.parametrize("seed", range(4))
def test_processes_killed_at_random_moments_are_replaced_with_the_same_bits(nodes, seed):
    draw = random.Random(seed)
    combiner = [None, C.Simplex(), C.Hedge(), C.Stacking()][seed]
    record = ["all", "light"][seed % 2]
    serial = bank_on("serial", combiner)
    on_ray = bank_on(Ray(shards=3, block=25, replay=200, retries=20), combiner)
    serial.run(X[:1], Y[:1])
    on_ray.run(X[:1], Y[:1])
    over = threading.Event()

    def disturb():
        for _ in range(4):
            if over.wait(draw.uniform(0.0, 0.6)):
                return
            with suppress(ProcessLookupError):  # it has just been killed
                kill_process(on_ray, draw.randrange(3))

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(4):
            one = serial.run(X, Y, record=record)
            assert_same_traces(one, on_ray.run(X, Y, record=record))
    finally:
        over.set()
        thread.join()
    assert_same_banks(serial, on_ray)


@pytest.mark.parametrize("replay", [100, 10_000])
def test_models_in_adapters_survive_killed_processes(nodes, replay):
    slots = [
        kb.Slot(K.NoKernel(), M.Adapter(ray_cluster.MeanModel())),
        *every_bank.mixed_slots()[:5],
    ]
    serial = bank_on("serial", slots=slots)
    on_ray = bank_on(Ray(shards=2, block=60, replay=replay), slots=slots)
    for start in (0, 200, 400):
        if start:
            kill_process(on_ray, 0)
            kill_process(on_ray, 1)
        some = slice(start, start + 200)
        assert_same_traces(serial.run(X[some], Y[some]), on_ray.run(X[some], Y[some]))
    assert_same_banks(serial, on_ray)


def test_bank_with_lost_shard_can_be_saved_and_continues(nodes, monkeypatch, tmp_path):
    serial, on_ray = bank_on("serial"), bank_on(Ray(shards=2, block=60, retries=2, replay=100))
    on_ray.run(X[:60], Y[:60])
    start, started = ray_engine.Shard.start, []

    def doomed(process):
        import ray

        start(process)
        started.append(process.actor)
        ray.kill(process.actor)

    kill_at(monkeypatch, on_ray, "_collect", 4, 1, False)
    with monkeypatch.context() as patch:
        patch.setattr(ray_engine.Shard, "start", doomed)
        with pytest.raises(kb.errors.ShardLost, match=r"Shard 1 of 2 .* ended 3 times"):
            on_ray.run(X[60:], Y[60:])
        assert len(started) == 2
        done = on_ray.samples
        assert done in (240, 300, 360)  # the process was up to two blocks ahead
        on_ray.save(tmp_path / "bank.kb")
    serial.run(X[:done], Y[:done])
    assert_same_banks(serial, kb.load(tmp_path / "bank.kb"))
    assert_same_traces(serial.run(X[done:], Y[done:]), on_ray.run(X[done:], Y[done:]))
    assert_same_banks(serial, on_ray)


def test_shard_without_room_raises_after_patience(nodes):
    bank = bank_on(Ray(shards=1, cpus=1000, patience=0.5))
    with (
        pytest.warns(kb.errors.KernelBankWarning, match="waits for a process"),
        pytest.raises(kb.errors.ShardLost, match=r"its patience of 0\.5 seconds.* RAY_AUTH_MODE"),
    ):
        bank.run(X, Y)
    assert bank.samples == 0


def test_ctrl_c_at_random_moments_loses_nothing(nodes):
    running = False  # an interrupt between two runs would be lost, or end the test

    def interrupt(*_):
        nonlocal running
        if running:
            running = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    long, targets = np.tile(X, (20, 1)), np.tile(Y, 20)
    serial = bank_on("serial")
    on_ray = bank_on(Ray(shards=2, block=50, replay=1000))
    serial.run(long, targets, record="light")
    on_ray.run(long[:1], targets[:1])
    draw, over, interrupts = random.Random(7), threading.Event(), 0

    def disturb():
        for _ in range(8):
            if over.wait(draw.uniform(0.02, 0.2)):
                return
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=disturb)
    thread.start()
    while on_ray.samples < len(long):
        try:
            running = True
            on_ray.run(long[on_ray.samples :], targets[on_ray.samples :], record="light")
            running = False
        except KeyboardInterrupt:
            interrupts += 1
    over.set()
    thread.join()
    signal.signal(signal.SIGINT, before)
    assert interrupts
    assert_same_banks(serial, on_ray)


def test_lost_node_without_replacement_raises_and_bank_can_be_saved(nodes, tmp_path):
    node = nodes.add_node(num_cpus=1)
    serial = bank_on("serial")
    on_ray = bank_on(Ray(shards=2, block=60, cpus=1, replay=100, patience=20))
    for bank in (serial, on_ray):
        bank.run(X[:200], Y[:200])
    ray_cluster.remove_node(nodes, node, on_ray)
    with (
        pytest.warns(kb.errors.KernelBankWarning, match="waits for a process"),
        pytest.raises(kb.errors.ShardLost, match="its patience of 20 seconds"),
    ):
        on_ray.run(X, Y)
    more = on_ray.samples - 200  # a process may outlive its node by some blocks
    assert more % 60 == 0
    on_ray.save(tmp_path / "bank.kb")
    if more:
        serial.run(X[:more], Y[:more])
    assert_same_banks(serial, kb.load(tmp_path / "bank.kb"))
    node = nodes.add_node(num_cpus=1)
    assert_same_traces(serial.run(X, Y), on_ray.run(X, Y))
    assert_same_banks(serial, on_ray)
    del bank, on_ray
    ray_cluster.release_processes()
    nodes.remove_node(node)
