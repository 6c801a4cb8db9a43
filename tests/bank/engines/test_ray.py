"""The engine Ray on a real local cluster: the bits of Serial, whatever is cut, killed or moved."""

import copy
import os
import pickle
import re
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.engines import as_engine
from kernelbank.bank.engines.ray import cluster as ray_link
from kernelbank.bank.engines.ray import executor as ray_crew
from support import instances, ray_rig
from support.ray_rig import play_both, same_banks, same_traces

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")

K, M, C = kb.kernels, kb.learners, kb.combiners
Ray = kb.engines.Ray


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """What the engine starts by itself."""
    with ray_rig.own_token(tmp_path_factory) as token:
        bank = kb.KernelBank(kb.gaussian_grid(0.5, 1, 2), engine=Ray(shards=2))
        bank.learn_one(0.0, 1.0)
        import ray

        del bank
        yield token
        ray.shutdown()


@pytest.fixture(autouse=True)
def tidy():
    yield
    ray_rig.tidy()


def small(**settings):
    given = {"dictionary": kb.gaussian_grid(0.1, 3, 9), "window": 6, **settings}
    if "slots" in settings:
        del given["dictionary"]
    return lambda engine: kb.KernelBank(engine=engine, **given)


X, Y = instances.stream(3, 420, 2)
LABELS = instances.stream(3, 420, 2, labels=True)[1]


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_every_learner_has_the_bits_of_serial(cluster):
    make = small(slots=ray_rig.slots_of_all())
    serial, other = play_both(make, Ray(shards=2, block=100), X, Y)
    points = X[:20]
    assert np.array_equal(serial.predict(points), other.predict(points))
    assert np.array_equal(serial.predict_slots(points), other.predict_slots(points))
    variances = [bank.predict_variance_slots(points) for bank in (serial, other)]
    assert np.array_equal(*variances, equal_nan=True)
    assert np.array_equal(serial.ledger.dropped, other.ledger.dropped)
    for x, y in zip(X[:5], Y[:5], strict=True):  # single samples, with late targets among them
        assert serial.predict_one(x) == other.predict_one(x)
        said = [bank.predict_slots_one(x)[1] for bank in (serial, other)]
        assert np.array_equal(*said)
        serial.learn_one(x, y, said[0] + 0.25)
        other.learn_one(x, y, said[1] + 0.25)
    same_banks(serial, other)


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_sums_have_the_bits_too(cluster):
    slots = [kb.Slot(K.Gaussian(w), M.Norma()) for w in np.geomspace(0.05, 5, 40)]
    slots[7] = kb.Slot(K.Linear(3.0), M.Norma(learning_rate=9.0))  # goes out at once
    slots += ray_rig.slots_of_all()[6:12]
    light, engine = small(slots=slots), Ray(shards=2, block=100, exchange="sums")
    serial, other = play_both(light, engine, X, Y, record="light")
    assert serial.quarantined == (7,)
    both = [bank.run(X, Y) for bank in (serial, other)]  # by slot: gathered
    same_traces(*both)
    same_traces(serial.run(X, Y, record="light"), other.run(X, Y, record="light"))
    same_banks(serial, other)
    assert np.array_equal(serial.evidence()["linear"], other.evidence()["linear"])


@pytest.mark.slow
def test_a_state_goes_on_elsewhere(cluster, tmp_path):
    serial, two = play_both(small(), Ray(shards=2), X[:300], Y[:300])
    two.save(tmp_path / "two.kb")
    for engine in (Ray(shards=1, block=64), "serial"):
        bank = kb.load(tmp_path / "two.kb", engine=engine)
        same_traces(bank.run(X[300:], Y[300:]), kb.load(tmp_path / "two.kb").run(X[300:], Y[300:]))
    serial.reset()
    two.reset()
    same_traces(serial.run(X, Y, record="light"), two.run(X, Y, record="light"))
    same_banks(serial, two)


def test_a_function_that_fails_undoes_its_block(cluster):
    def fragile(A, B):
        if abs(A[0, 0] - 77.0) < 1e-9:
            raise ZeroDivisionError("no kernel here")
        return instances.cauchy(A, B)

    slots = [kb.Slot(K.Custom(fragile), M.Norma()), kb.Slot(K.Gaussian(1.0), M.Norma())]
    bad = X[:200].copy()
    bad[150, 0] = 77.0
    banks = [small(slots=slots)(engine) for engine in ("serial", Ray(shards=2, block=40))]
    for bank in banks:
        with pytest.raises(ZeroDivisionError, match="no kernel here"):
            bank.run(bad, Y[:200])
    serial, other = banks
    assert (serial.samples, other.samples) == (0, 120)  # a block of Serial is longer
    serial.run(X[:120], Y[:120])
    same_banks(serial, other)
    same_traces(serial.run(X[120:], Y[120:]), other.run(X[120:], Y[120:]))


def test_a_killed_process_is_not_missed(cluster):
    serial, other = small()("serial"), small()(Ray(shards=2, block=50))
    for start in (0, 140, 280):
        if start:
            ray_rig.kill(other, start // 140 % 2)
        some = slice(start, start + 140)
        own = X[some].copy()
        same_traces(serial.run(X[some], Y[some]), other.run(own, Y[some]))
        own[:] = 0.0  # what is learned again is what was learned
    same_banks(serial, other)


def test_safe_defaults(cluster):
    import ray

    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert stat.S_IMODE(cluster.stat().st_mode) == 0o600
    assert len(cluster.read_text()) == 64
    assert not ray._private.worker.global_worker.node.webui_url


@pytest.mark.slow
def test_the_example_of_the_page(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "ray.md").read_text()
    (block,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "block", "exec"), {})


def test_another_edition_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(ray_link, "edition", lambda: "kernelbank 9, of the future")
    bank = small()(Ray(shards=1))
    with pytest.raises(kb.errors.KernelBankError, match="Install the same versions"):
        bank.learn_one([0.0, 0.0], 1.0)


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(kb.errors.KernelBankError, match=r"pip install 'kernelbank\[ray\]'"):
        kb.KernelBank(engine="ray").learn_one(0.0, 1.0)


def test_settings_are_checked():
    assert as_engine("ray") == Ray()
    for name, value in [
        ("shards", 0),
        ("address", 7),
        ("block", 0),
        ("retries", -1),
        ("patience", 0),
        ("replay", 0),
        ("cpus", -1),
        ("exchange", "some"),
    ]:
        with pytest.raises(kb.errors.InvalidArgument, match=f"'{name}' of Ray"):
            Ray(**{name: value})


# --- the long form --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("combiner", [c for c, _ in instances.COMBINERS], ids=instances.name_of)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_every_combiner_on_any_number_of_shards(cluster, combiner, shards):
    make = small(dictionary=kb.gaussian_grid(0.1, 3, 30), combiner=combiner)
    play_both(make, Ray(shards=shards, block=90), X, Y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_copies_and_wider_banks(cluster):
    lines = [kb.Slot(K.Linear(0.5), M.LinearRLS()), kb.Slot(K.Gaussian(1.0), M.Norma())]
    serial, other = play_both(small(slots=lines), Ray(shards=2), X, Y)
    same_banks(serial, copy.deepcopy(other))
    same_banks(serial, pickle.loads(pickle.dumps(other)))
    wide = np.column_stack([X, Y])
    pair = [bank.with_inputs(3) for bank in (serial, other)]
    same_traces(*[bank.run(wide, Y) for bank in pair])
    same_banks(*pair)


@pytest.mark.slow
def test_a_bank_of_one_slot_and_an_autobank(cluster):
    play_both(small(dictionary=kb.gaussian_grid(1, 2, 1)), Ray(shards=5), X, Y)
    banks = [kb.AutoBank(engine=engine, size="small") for engine in ("serial", Ray(shards=2))]
    traces = [bank.run(X, Y) for bank in banks]
    assert np.array_equal(traces[0].predictions, traces[1].predictions)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [loss for loss, _ in instances.LOSSES], ids=instances.name_of)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_every_loss(cluster, loss):
    play_both(small(loss=loss), Ray(shards=3, block=90), X, LABELS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_every_learner_of_labels(cluster, loss):
    make = small(slots=ray_rig.slots_of_all(loss), loss=loss)
    play_both(make, Ray(shards=3, block=33), X, LABELS)


def test_banks_that_are_gone_leave_their_processes_to_the_next(cluster):
    def processes():
        bank = small()(Ray(shards=2))
        bank.run(X[:20], Y[:20])
        return set(bank._work.executor.processes)

    assert processes() == processes() == processes()


def test_a_shard_that_never_answers_says_what_may_be_wrong(cluster):
    bank = small()(Ray(shards=1, cpus=1000, patience=0.5))
    with (
        pytest.warns(kb.errors.KernelBankWarning, match="another one may join"),
        pytest.raises(kb.errors.ShardLost, match="same RAY_AUTH_MODE and token"),
    ):
        bank.learn_one(0.0, 1.0)


def test_many_slots_are_weighed_by_sums_if_nothing_else_is_said(cluster, monkeypatch):
    monkeypatch.setattr(ray_crew, "SUMS_PAY", 9)

    def questions(slots):
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 3, slots), engine=Ray(shards=1))
        bank.run(X[:20], Y[:20], record="light")
        return bank._work.executor.traffic.calls

    assert questions(8) == 2
    assert questions(9) > 2
