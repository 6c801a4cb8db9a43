"""`kb.load`: files of strangers in bounded memory, files of earlier versions, forged ones."""

import gzip
import json
import os
import signal
import socket
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from files import write as kept
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from kernelbank.run.status import RunStatus
from support import every_bank, forged_files
from support.auto_streams import (
    SMALL,
    assert_same_state,
    labelled,
    numbers,
    troubled,
    two_targets,
)
from support.forged_files import (
    CONSTANT,
    PER_BYTE,
    SavedKind,
    SavedRun,
    attack,
    deadline,
    every_kind,
    failures,
    pack,
    run_all,
    unpack,
)
from support.marks import refuses


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(every_kind(tmp_path_factory.mktemp("kinds")))


def load(path):
    kb.load(path, components=every_bank.OWN)


def outcomes(files, folder):
    """How loading ends, with as much memory as `kb.load` may use."""
    length = max(map(len, files))
    item = [(SavedKind("forged", data, load), data) for data in files]
    return run_all(item.__getitem__, len(item), folder, memory=PER_BYTE * length + CONSTANT)


@pytest.mark.slow
def test_no_number_of_a_header_is_believed(kinds, tmp_path):
    """Each is refused, or makes a bank that is not too large; places that are alike count once."""
    seen = Counter()
    for kind in kinds:
        files = list(forged_files.with_each_number(kind.data, seen))
        if files:
            assert not failures(outcomes(files, tmp_path)), kind.name
    assert {("dimension",), ("Norma", "budget"), ("Stacking", "ridge"), ("lags",)} <= set(seen)
    assert len(seen) > 100


def saved(bank, folder):
    bank.save(folder / "saved.kb")
    return (folder / "saved.kb").read_bytes()


def what_is_no_file(folder):
    """A pipe, a folder, a device and a socket."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as unix, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # the address of a socket must be short
        unix.bind("socket")
    return [folder / "pipe", folder, Path("/dev/zero"), folder / "socket"]


def test_what_is_no_file_is_refused_at_once(tmp_path):
    for path in what_is_no_file(tmp_path):
        with deadline(30), pytest.raises(FileRefused, match="is not a file"):
            kb.load(path)


def claims(folder):
    """Files whose description is short and whose bank would be large."""
    X, y = every_bank.X[:20], every_bank.NUMBERS[:20]
    empty = kb.KernelBank(kb.kernels.Gaussian(1.0))
    learned = empty.fresh()
    learned.run(X, y)
    auto = kb.AutoBank(size="small")
    auto.run(X, y)
    for bank in (empty, learned):
        header, body = unpack(saved(bank, folder))
        for kernel in ({"type": "NoKernel"}, {"type": "Gaussian", "width": 1.0}):
            many = {"kernels": [kernel] * 40_000, "method_of": [0] * 40_000}
            many["residual_of"] = [None] * 40_000
            yield pack({**header, **many}, body)
        nested = {"type": "Additive", "base": {"type": "Gaussian", "width": 1.0}, "order": 2}
        for k in range(150):
            part = {"type": "Additive", "base": {"type": "Periodic", "period": 2.0 + k}, "order": 2}
            nested = {"type": "Sum", "left": nested, "right": part}
        yield pack({**header, "kernels": [nested]}, body)
        for filler in ([], {}, [[]], "ab", "\U0001f600"):
            yield pack({**header, "warned": [filler] * 200_000}, body)
            yield pack({**header, "extra": [filler] * 200_000}, body)
    header, body = unpack(saved(auto, folder))
    wide = 10**6
    table = [one for one in header["arrays"] if one[0] != "model/replay_inputs"]
    table.append(["model/replay_inputs", "<f8", [0, wide]])
    yield pack({**header, "dimension": wide, "core": wide, "arrays": table}, body)
    one = [["model/replay_inputs", "<f8", [1, wide]], ["model/scaling/columns", "<f8", [0, wide]]]
    yield pack({**header, "dimension": wide, "core": wide, "arrays": one}, bytes(8 * wide))
    yield pack({**header, "classes": list(range(300_000)), "task": "classification"}, body)
    yield pack({**header, "slots": [{"type": "Slot"}] * 100_000}, body)


@pytest.mark.slow
def test_short_description_of_a_large_bank_is_refused_in_little_memory(tmp_path):
    for data in claims(tmp_path):
        assert not failures(outcomes([data], tmp_path))


def test_loading_keeps_within_its_limit_with_many_slots(tmp_path):
    """The limit is generous to what is true: a file of many slots and few terms is loaded."""
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 2000), kb.learners.KLMS(budget=20))
    bank.learn_one([0.0, 1.0], 1.0)
    assert outcomes([saved(bank, tmp_path)], tmp_path) == {"used": 1}


def test_forged_files_are_refused_or_work(tmp_path):
    actual = attack(20, seed=0, cases=every_bank.few_cases())
    assert not failures(actual)
    assert actual["refused"] > 5
    assert actual["used"] > 2


def test_attack_notices_what_it_must(tmp_path):
    """Errors, memory, crashes and loops of a reader are failures."""

    def error(path):
        {}["missing"]

    def hungry(path):
        np.ones(10**9)

    def crash(path):
        os.kill(os.getpid(), signal.SIGSEGV)

    def loop(path):
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        while True:
            pass

    for use in (error, hungry, crash, loop):
        kind = SavedKind(use.__name__, b"", use)
        actual = run_all(lambda n, kind=kind: (kind, b""), 2, tmp_path)
        assert sum(failures(actual).values()) == 2


def test_pending_inputs_in_single_precision_are_refused(tmp_path):
    bank = kb.AutoBank(slots=[kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS())])
    bank.run(every_bank.X[:20], every_bank.NUMBERS[:20])
    bank.predict_one(every_bank.X[20])
    bank.save(tmp_path / "bank.kb")
    header, arrays = checkpoint.read(tmp_path / "bank.kb")
    arrays["pending/values"] = arrays["pending/values"].astype(np.float32)
    checkpoint.write(tmp_path / "bank.kb", header, arrays)
    refuses("pending/values is not in double precision", kb.load, tmp_path / "bank.kb")


# --- files of AutoBank -----------------------------------------------------------------------------


def skewed():
    """A target whose effects multiply."""
    X, y = numbers(150)
    return X, np.exp(1.2 * X[:, 0] + 0.5 * np.sin(y))


def named():
    """Rows with a category of which two values have inputs of their own."""
    sites = ["u", "v", "u", "v", "u", "v", "w"] * 6
    return pd.DataFrame({"site": sites}), np.arange(42.0) % 7


LINE = {"slots": [kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS())]}
BANKS = {
    "numbers": lambda: (kb.AutoBank(lags=1, **SMALL), *troubled(122)),
    "two classes": lambda: (kb.AutoBank("classification", **LINE), *labelled(40, "two")),
    "three classes": lambda: (kb.AutoBank("classification", **LINE), *labelled(40, "three")),
    "targets": lambda: (kb.AutoBank(**LINE), *two_targets(40)),
    "forecasts": lambda: (
        kb.AutoBank(lags=3, horizons=(1, 3, 8), known=[0], **LINE, **SMALL),
        *numbers(60),
    ),
    "skewed": lambda: (kb.AutoBank(**SMALL), *skewed()),
    "columns": lambda: (kb.AutoBank(**LINE), *named()),
}
"""Banks with their streams; "numbers" holds two far rows."""

FORGED = {
    "numbers": {
        "task": ["ranking"],
        "lags": [2, -1],
        "size": ["large"],
        "seed": [1],
        "scalings": ["standard"],
        "classes": [[{}], None],
        "dimension": [None, 4, -1, 10**12],
        "combiner": [{"type": "Path"}],
        "slots": [[[{"type": "Gaussian", "width": 1.0}, {"type": "KLMS"}]]],
        "model": [None],
        "model/changes": [[1]],
        "model/periods": [[24]],
        "model/previous": [1],
        "model/first_inputs": [9],
        "model/outputs": [[], [2]],
        "model/bank0": [None],
        "model/selection": [{}, [1]],
        "model/selection/running": [[], [1, 0], [0, 10**6]],
        "pending/expired": [-1, 2, 0.5, None],
        ":pending/sizes": [-1, 0, 24, 10**15],
        "model/slot_changes": [5, [{"sample": 1, "kind": "added", "index": 0.5, "name": ""}]],
    },
    "two classes": {"model/bank0/outputs": [2, 3], "model/outputs": [[2], [1, 1]]},
    "three classes": {
        "classes": [[0, False, 2]],  # 0 and False are one label
        "model/outputs": [[], [1], [3, 3], [1, 1, 1], 3],
        "model/bank0/outputs": [1, 2, 4, 10**9, 0, -1, 1.5, "3", None, True],
    },
    "targets": {
        "targets": [["load"], ["a", "b", "c"], ["a", "a"], None, [1, 2]],
        "task": ["classification"],
        "seasons": [[5]],
        "model/outputs": [[], [1]],
        "model/bank0/outputs": [1],
    },
    "forecasts": {
        "horizons": [[1, 3, 9], []],
        "forecaster": [None],
        "forecaster/samples": [-1, 10**6],
        "forecaster/known_rows": [10],
        "forecaster/first_inputs": [0],
        "forecaster/periods": [[7]],
        "forecaster/bank": [None],
        "forecaster/bank/outputs": [10**6],
        "forecaster/line": [None],
        "forecaster/line/outputs": [9],
        "forecaster/known/lags": [4],
        ":forecaster/intervals/ends": [np.inf],
        ":forecaster/intervals/corrections": [np.nan],
        ":forecaster/intervals/stats": [np.nan],
        ":forecaster/newest": [np.nan],
        ":forecaster/first_targets": [np.nan],
        ":forecaster/scores": [np.nan],
        ":forecaster/known_waiting": [np.nan],
        ":forecaster/stacking/made": [np.nan],
        ":forecaster/stacking/weights": [-1.0, 2.0],
        ":forecaster/stacking/sums": [-1.0],
        ":forecaster/stacking/counts": [-1.0],
    },
    "columns": {
        "columns/columns": [[["site", "colour"]], []],
        "columns/0/names": [["u"]],
        "columns/inputs": [[[0, 5.0]]],
        ":columns/0/table": [np.nan],
    },
    "skewed": {
        # The last one does not fit the bank's slots.
        ":model/core/scaling/target_shift": [1e-300, -1.0, np.nan, 1e9, 2.5],
        ":model/core/scaling/relevance": [0.0, -1.0, np.nan, 1e9],
    },
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_values_are_refused(name):
    bank, X, y = BANKS[name]()
    bank.run(X, y)
    bank.predict_one(X[3] if isinstance(X, np.ndarray) else X.iloc[3])
    again = kb.from_bytes(bank.to_bytes())
    assert_same_state(again, bank)
    assert name != "numbers" or again.model.core.held == 2
    forged_files.assert_refused(bank.to_bytes(), FORGED[name])


def test_a_file_without_the_base_of_a_running_slot_is_refused():
    bank = kb.AutoBank(**SMALL)
    bank.run(*numbers(40))
    groups, running = bank._model.pool.groups, bank._model.selection.running
    child = next(n for n in running if groups[n].base is not None)
    rest = [n for n in running if n != groups[child].base]
    forged_files.assert_refused(bank.to_bytes(), {"model/selection/running": [rest]})


# --- files of earlier versions are read -----------------------------------------------------------


VERSIONS = sorted(path for path in kept.HERE.iterdir() if (path / "run.csv").exists())


def same(predictions):
    return pytest.approx(predictions, rel=1e-9, abs=1e-12)


def extract(packed, path):
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def test_there_are_files_of_this_version():
    """After a new minor version: python tests/files/write.py, and keep the folder before it."""
    major, minor = map(int, kb.__version__.split(".")[:2])
    needed = {f"{major}.{minor}", f"{major}.{max(minor - 1, 1)}"}
    assert needed <= {path.name for path in VERSIONS}
    for folder in VERSIONS:
        names = {path.name.partition(".")[0] for path in folder.glob("*.gz")}
        assert names == {*kept.streams(), "run"}
        assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000


@pytest.mark.parametrize("name", kept.streams())
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_kept_bank_predicts_and_learns_as_it_did(folder, name, tmp_path):
    expected = json.loads((folder / f"{name}.json").read_text())
    bank = kb.load(extract(folder / f"{name}.kb.gz", tmp_path / "bank.kb"))
    _, X, y = kept.streams()[name]
    first, later = X[kept.LEARNED :], X[: kept.LATER]
    actual = kept.predictions(bank, first)
    assert [actual] == [[same(one) for one in expected["now"]]]
    for x, target in zip(first, y[kept.LEARNED :], strict=True):
        bank.learn_one(x, target)
    actual = kept.predictions(bank, later)
    assert [actual] == [[same(one) for one in expected["later"]]]


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_kept_run_is_resumed_and_predicts_as_it_did(folder, tmp_path):
    run = SavedRun(tmp_path / "run", preset="paper")
    header, body = forged_files.unpack(gzip.decompress((folder / "run.kb.gz").read_bytes()))
    now, _ = forged_files.unpack(run.state)
    # The run was in another folder: only the addresses change.
    header["source"]["address"] = now["source"]["address"]
    header["predictions"] = now["predictions"]
    (run.root / "state/state.kb").write_bytes(forged_files.pack(header, body))
    assert RunStatus.of_state(run.root / "state").rows == header["rows"]
    # The rows so far are those that this run wrote then.
    written = (folder / "run.csv").read_bytes()[: header["sinks"][0]["bytes"]]
    (run.root / "few-predictions.csv").write_bytes(written)
    run.resume_to_end(run.root)
    actual = (run.root / "few-predictions.csv").read_text().splitlines()
    expected = (folder / "run.csv").read_text().splitlines()
    assert len(actual) == len(expected) > header["rows"] + 10
    for line, other in zip(actual[1:], expected[1:], strict=True):
        assert _numbers(line) == same(_numbers(other))


def _numbers(line):
    return [float(cell or "nan") if cell else 0.0 for cell in line.split(",")]


def test_older_version_is_converted_step_by_step(tmp_path, monkeypatch):
    """A reader of a later version turns a file of this one into its own by `CONVERTERS`."""
    bank = kb.KernelBank(kb.kernels.Gaussian(1.0), window=3)
    bank.save(tmp_path / "bank.kb")
    version = kb.io.checkpoint.VERSION
    monkeypatch.setattr(kb.io.checkpoint, "VERSION", version + 2)
    refuses(f"from version {version + 2} on", kb.load, tmp_path / "bank.kb")
    steps = []

    def convert(header, arrays):
        steps.append(header["window"])
        return {**header, "window": header["window"] + 1}, arrays

    converters = {version: convert, version + 1: convert}
    monkeypatch.setattr(kb.io.checkpoint, "CONVERTERS", converters)
    assert kb.load(tmp_path / "bank.kb").window == 5
    assert steps == [3, 4]
