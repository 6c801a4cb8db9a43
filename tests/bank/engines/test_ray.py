"""The engine Ray on a real local cluster: the same bits as Serial, whatever is cut, killed or moved."""

import copy
import os
import pickle
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.engines import ray as ray_engine
from kernelbank.bank.engines import ray_worker
from support import instances, output_banks, ray_cluster
from support.every_bank import few_cases
from support.ray_cluster import assert_same_banks, assert_same_traces, run_both
from support.same_bits import assert_same_bits, run_whole

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")

K, M, C = kb.kernels, kb.learners, kb.combiners
Ray = kb.engines.Ray


@pytest.fixture(scope="module")
def cluster():
    """The cluster that the engine starts by itself."""
    ray_cluster.share_test_modules()
    before = signal.signal(signal.SIGTERM, on_sigterm)
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 1, 2), engine=Ray(shards=2))
    bank.learn_one(0.0, 1.0)
    after = signal.signal(signal.SIGTERM, before)
    import ray

    del bank
    yield after
    ray.shutdown()


def on_sigterm(*_):
    """A handler of the program's own."""


@pytest.fixture(autouse=True)
def release_processes():
    yield
    ray_cluster.release_processes()


def bank_maker(**settings):
    given = {"dictionary": kb.gaussian_grid(0.1, 3, 9), "window": 6, **settings}
    if "slots" in settings:
        del given["dictionary"]
    return lambda engine: kb.KernelBank(engine=engine, **given)


X, Y = instances.stream(3, 420, 2)


def test_bank_saved_on_ray_continues_on_any_engine(cluster, tmp_path):
    serial, two = run_both(bank_maker(), Ray(shards=2), X[:300], Y[:300])
    two.save(tmp_path / "two.kb")
    for engine in (Ray(shards=1, block=64), "serial"):
        bank = kb.load(tmp_path / "two.kb", engine=engine)
        assert_same_traces(
            bank.run(X[300:], Y[300:]), kb.load(tmp_path / "two.kb").run(X[300:], Y[300:])
        )
    serial, two = serial.fresh(), two.fresh()
    assert_same_traces(serial.run(X, Y, record="light"), two.run(X, Y, record="light"))
    assert_same_banks(serial, two)


def test_kernel_that_raises_on_ray_undoes_its_block(cluster):
    def fragile(A, B):
        if abs(A[0, 0] - 77.0) < 1e-9:
            raise ZeroDivisionError("no kernel here")
        return instances.cauchy(A, B)

    slots = [kb.Slot(K.Custom(fragile), M.Norma()), kb.Slot(K.Gaussian(1.0), M.Norma())]
    bad = X[:200].copy()
    bad[150, 0] = 77.0
    banks = [bank_maker(slots=slots)(engine) for engine in ("serial", Ray(shards=2, block=40))]
    for bank in banks:
        with pytest.raises(ZeroDivisionError, match="no kernel here"):
            bank.run(bad, Y[:200])
    serial, on_ray = banks
    assert (serial.samples, on_ray.samples) == (0, 120)  # a block of Serial is longer
    serial.run(X[:120], Y[:120])
    assert_same_banks(serial, on_ray)
    assert_same_traces(serial.run(X[120:], Y[120:]), on_ray.run(X[120:], Y[120:]))


def test_cluster_started_by_engine_has_safe_defaults(cluster):
    import ray

    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert "RAY_AUTH_TOKEN_PATH" in os.environ or len(os.environ["RAY_AUTH_TOKEN"]) == 64
    assert not ray._private.worker.global_worker.node.webui_url
    assert cluster is on_sigterm  # Ray has left the handler of SIGTERM as it was


def test_cluster_that_requires_no_token_is_refused(cluster, monkeypatch):
    """Its head says so in a process of its own, as in `test_ray_clusters.py`."""
    monkeypatch.setattr(os, "getenv", ray_cluster.no_token)
    with pytest.raises(kb.errors.InvalidArgument, match="'address' of Ray must be") as told:
        bank_maker()(Ray(shards=1)).learn_one([0.0, 0.0], 1.0)
    message = str(told.value)
    assert "RAY_AUTH_MODE is disabled" in message
    assert "allow_unauthenticated=True" in message
    assert "\n" not in message
    bank_maker()(Ray(shards=1, allow_unauthenticated=True)).learn_one([0.0, 0.0], 1.0)


@pytest.mark.slow
def test_version_of_ray_without_authentication_is_refused(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "__version__", "2.51.1")
    with pytest.raises(kb.errors.KernelBankError, match=r"2\.52 or newer.* Installed: 2\.51\.1"):
        ray_engine.import_ray()
    monkeypatch.setattr(ray, "__version__", "3.0.0.dev0")
    assert ray_engine.import_ray() is ray


def test_example_in_docs_runs(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "ray.md").read_text()
    (block,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "block", "exec"), {})


def test_node_with_other_build_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(ray_engine, "build_fingerprint", lambda: "kernelbank 9, of the future")
    bank = bank_maker()(Ray(shards=1))
    with pytest.raises(kb.errors.KernelBankError, match="Install the same versions"):
        bank.learn_one([0.0, 0.0], 1.0)


def test_ray_engine_without_package_says_how_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(kb.errors.KernelBankError, match=r"pip install -U 'kernelbank\[ray\]'"):
        kb.KernelBank(engine="ray").learn_one(0.0, 1.0)


CASES = few_cases()
"""Processes of a bank on Ray take seconds to start, so kernels and learners share banks."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_every_instance_on_ray_has_the_same_bits(name, cluster):
    case = CASES[name]
    bank = case.make(Ray(shards=2, block=101))
    traces = [bank.run(case.X, case.y, record="all")]
    assert_same_bits(run_whole(case), bank, traces)


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_copied_and_widened_banks_on_ray_have_the_bits_of_serial(cluster):
    lines = [kb.Slot(K.Linear(0.5), M.LinearRLS()), kb.Slot(K.Gaussian(1.0), M.Norma())]
    serial, on_ray = run_both(bank_maker(slots=lines), Ray(shards=2), X, Y)
    assert_same_banks(serial, copy.deepcopy(on_ray))
    assert_same_banks(serial, pickle.loads(pickle.dumps(on_ray)))
    wide = np.column_stack([X, Y])
    pair = [bank.with_inputs(3) for bank in (serial, on_ray)]
    assert_same_traces(*[bank.run(wide, Y) for bank in pair])
    assert_same_banks(*pair)


def test_processes_of_deleted_banks_are_used_again(cluster):
    def process_ids():
        bank = bank_maker()(Ray(shards=2))
        bank.run(X[:20], Y[:20])
        return set(ray_cluster.process_ids(bank))

    assert process_ids() == process_ids() == process_ids()


def test_output_and_slots_are_added_on_ray_with_the_bits_of_serial(cluster):
    serial, on_ray = run_both(bank_maker(), Ray(shards=2, block=90), X, Y)
    alone = serial.new_output(len(Y) - 50)
    alone.run(X[-50:], X[-50:, 0])
    pair = [bank.with_output(1, alone) for bank in (serial, on_ray)]
    more = output_banks.columns(Y)[:, :2]
    assert_same_traces(*[bank.run(X, more) for bank in pair])
    assert_same_banks(*pair)
    new = [*serial.slots[:4], kb.Slot(K.Gaussian(0.7), M.Norma()), *serial.slots[5:]]
    kept = [0, 1, 2, 3, None, 5, 6, 7, 8]
    pair = [bank.with_slots(new, kept) for bank in (serial, on_ray)]
    assert_same_traces(*[bank.run(X, Y) for bank in pair])
    assert_same_banks(*pair)


@pytest.mark.slow
def test_c_function_is_refused_on_ray_in_one_line():
    address = 4096  # nobody calls it
    parts = [
        {"dictionary": [K.Gaussian(1.0) + K.Custom(address, name="own")]},
        {"loss": kb.losses.Custom(address, address, name="own")},
    ]
    for own in parts:
        bank = kb.KernelBank(engine=Ray(shards=1), **own)
        with pytest.raises(kb.errors.InvalidArgument, match="in this process only") as told:
            bank.learn_one(0.0, 1.0)
        assert "\n" not in str(told.value)
        assert bank.samples == 0


def test_fingerprint_of_build_depends_on_the_compiled_core(monkeypatch, tmp_path):
    other = tmp_path / "core.so"
    other.write_bytes(Path(ray_worker._core.__file__).read_bytes() + b"more")
    before = ray_worker.build_fingerprint.__wrapped__()
    assert before == ray_worker.build_fingerprint.__wrapped__()
    monkeypatch.setattr(ray_worker._core, "__file__", str(other))
    assert before != ray_worker.build_fingerprint.__wrapped__()
