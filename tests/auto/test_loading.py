"""`kb.load` on files of strangers: bounded memory, the documented error, nothing waited for."""

import os
import signal
import socket
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from support import every_bank, forged_files
from support.forged_files import (
    CONSTANT,
    PER_BYTE,
    SavedKind,
    attack,
    deadline,
    every_kind,
    failures,
    pack,
    run_all,
    unpack,
)


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
        for kernel in ({"type": "Spline"}, {"type": "Gaussian", "width": 1.0}):
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


@pytest.mark.slow
def test_many_forged_files_are_refused_or_work(tmp_path):
    assert not failures(attack(600, seed=1))


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
    arrays["pending/inputs"] = arrays["pending/inputs"].astype(np.float32)
    checkpoint.write(tmp_path / "bank.kb", header, arrays)
    with pytest.raises(FileRefused, match="pending/inputs is not in double precision"):
        kb.load(tmp_path / "bank.kb")


# --- what is no file --------------------------------------------------------------------------------


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def unix_socket(folder):
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(folder)  # the address of a socket must be short
        try:
            made.bind("socket")
        finally:
            os.chdir(here)
    return folder / "socket"


NO_FILES = {
    "pipe": pipe,
    "folder": lambda folder: folder,
    "device": lambda _: Path("/dev/zero"),
    "socket": unix_socket,
}


@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_is_refused_at_once(tmp_path, what):
    path = NO_FILES[what](tmp_path)
    with deadline(30), pytest.raises(FileRefused, match="is not a file"):
        kb.load(path)


def test_link_to_a_file_is_followed(tmp_path):
    bank = kb.KernelBank(kb.kernels.Gaussian(1.0))
    bank.save(tmp_path / "bank.kb")
    (tmp_path / "link").symlink_to(tmp_path / "bank.kb")
    assert kb.load(tmp_path / "link").slots == bank.slots


def test_classes_that_are_one_label_are_refused(tmp_path):
    bank = kb.AutoBank("classification", size="small", classes=[0, 1, 2])
    bank.run(np.arange(30.0)[:, None], np.arange(30) % 3)
    path = tmp_path / "bank.kb"
    bank.save(path)
    header, body = unpack(path.read_bytes())
    path.write_bytes(pack({**header, "classes": [0, False, 2]}, body))
    with pytest.raises(FileRefused, match="its classes are not different labels"):
        kb.load(path)
