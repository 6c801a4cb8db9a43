"""Saved banks: what is refused and why, and that a file is always whole."""

import hashlib
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from support import forged_files
from support.instances import FOURTH, cauchy, stream
from support.marks import refuses
from support.python_learner import Gradient
from support.same_bits import assert_same_state

K, Norma = kb.kernels, kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    bank = gaussians()
    bank.run(*stream(0, 20, 2))
    path = tmp_path_factory.mktemp("saved") / "bank.kb"
    bank.save(path)
    return path.read_bytes()


def load_bytes(folder, data, **options):
    path = folder / "file.kb"
    path.write_bytes(data)
    return kb.load(path, **options)


@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_file_is_refused(saved, tmp_path_factory, share):
    with pytest.raises(FileRefused, match="truncated"):
        load_bytes(tmp_path_factory.mktemp("t"), saved[: int(share * len(saved))])


@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_file_with_a_flipped_bit_is_refused(saved, tmp_path_factory, share, bit):
    data = bytearray(saved)
    data[int(share * len(data))] ^= 1 << bit
    with pytest.raises(FileRefused, match=r"damaged|truncated|version|not a kernelbank"):
        load_bytes(tmp_path_factory.mktemp("f"), bytes(data))


def test_foreign_file_is_refused(saved, tmp_path):
    refuses("damaged", load_bytes, tmp_path, saved + b"more")
    for data in (b"PK\x03\x04 a zip file", b"\x80\x04\x95 a pickle", b"KERNELBANG\n" + bytes(100)):
        refuses("not a kernelbank file", load_bytes, tmp_path, data)
    refuses("truncated", load_bytes, tmp_path, b"")
    with pytest.raises(FileNotFoundError):
        kb.load(tmp_path / "nowhere.kb")


@pytest.mark.parametrize(
    ("difference", "words"),
    [(1, r"version 4; .* up to 3. Upgrade kernelbank"), (-1, r"version 2; .* from version 3 on")],
)
def test_file_of_another_version_is_refused(saved, tmp_path, difference, words):
    data = bytearray(saved)
    version = struct.pack("<I", checkpoint.VERSION + difference)
    data[len(checkpoint.MAGIC) : len(checkpoint.MAGIC) + 4] = version
    refuses(words, lambda: load_bytes(tmp_path, bytes(data)))


def gaussians():
    return kb.KernelBank(kb.gaussian_grid(0.1, 2, 3), kb.learners.Norma(0.05, 4), window=3)


def changed():
    """A bank with other slots than at its start."""
    bank = gaussians()
    bank.run(*stream(0, 20, 2))
    return bank.with_slots(
        [*bank.slots[:2], kb.Slot(K.Gaussian(0.3), Norma(0.05, 4))], [0, 1, None]
    )


def adaptive():
    pool = kb.AdaptiveDictionary(kb.gaussian_grid(0.05, 5, 30), 6, every=60, threshold=0.5)
    return kb.KernelBank(pool, Norma(0.05, 30), window=5)


BANKS = {
    "bank": gaussians,
    "three outputs": lambda: kb.KernelBank(kb.gaussian_grid(0.1, 2, 3), outputs=3),
    "changed": changed,
    "adaptive": adaptive,
}
CHANGE = {"sample": 1, "kind": "added", "index": 0, "name": "a", "reason": ""}
FORGED = {
    "bank": {
        "window": [10**12, "3"],
        "regularization": [-1],
        "method_of/0": [float("inf"), 7],
        "dimension": [None, 10**15],
        "kernels": [[]],
        "kernels/0": [
            {"type": "Gaussian", "width": -1},
            {"type": "Gaussian", "height": 1},
            {"type": "system", "width": 1},
            {"width": 1},
        ],
        "methods/0/learner": [{"type": "Norma", "budget": 10**12}],
        "methods/0/loss": [{"type": "Hinge"}],
        "residual_of/0": [0],
        "combiner": [
            None,
            {"type": "Simplex", "evidence": "prequential", "horizon": 10**12},
            {"type": "Uniform", "extra": 1},
        ],
        "loss": [{"type": "__import__"}],
        "arrays": [None],
        "arrays/0": [
            ["weights", "|O", [3]],
            ["weights", "<f8", [10**15]],
            ["weights", "<i8", [3]],
            ["wights", "<f8", [3]],
        ],
        "warned": [5],
        ":seen": [-1, 0, 2**53, -(2**63)],
    },
    "three outputs": {"outputs": [2, 4, -1, 0, 2.5, "3", None, 10**6]},
    "changed": {
        "slot_history/identities": [[0, 0, 1], [0, 1], [0, 1, 2**60]],
        "slot_history/next_identity": [1],
        "slot_history/since": [[0, 0, 999], [0, 0, -1], [0, 0, True]],
        "slot_history/held_from": [999],
        "slot_history/changes": [
            [{"sample": 1}],
            [CHANGE | {"kind": 3}],
            [CHANGE | {"sample": 999}],
            7,
        ],
        "slot_history/other": [1],
    },
    "adaptive": {
        "selection": [[1]],
        "selection/running": [
            [0, 1, 2, 3, 4, 30],
            [0, 1],
            [0, 0, 1, 2, 3, 4],
            [-1, 1, 2, 3, 4, 5],
            [0.0, 1, 2, 3, 4, 5],
            5,
        ],
        "selection/tries": [[0], [2**53] * 30],
        "selection/retired": [[-1] * 30],
        "selection/idle": [[-2] * 30],
        "selection/revised": [True],
        "selection/other": [1],
    },
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_values_are_refused(name):
    bank = BANKS[name]()
    X, y = stream(0, 100, 2)
    bank.run(X, y if bank.outputs == 1 else np.column_stack([y] * bank.outputs))
    again = kb.from_bytes(bank.to_bytes())
    assert_same_state(again, bank)
    assert again.ledger.slot_changes == bank.ledger.slot_changes
    forged_files.assert_refused(bank.to_bytes(), FORGED[name])


def test_small_file_that_claims_much_memory_is_refused(saved):
    spec = {"type": "Periodic", "period": 1.0, "width": 1.0}
    for k in range(200):
        other = {"type": "Periodic", "period": 2.0 + k, "width": 1.0}
        spec = {"type": "Sum", "left": spec, "right": other}
    forged_files.assert_refused(saved, {"kernels/0": [spec]})
    # Nothing is learned yet, so the file has no arrays. The first sample would allocate them.
    header, body = forged_files.unpack(kb.KernelBank(kb.gaussian_grid(0.1, 2, 3)).to_bytes())
    header["window"] = 2000
    header["methods"][0]["learner"]["budget"] = 4000
    wide = forged_files.pack(header, body)
    refuses("Raise most_memory if you trust the file", kb.from_bytes, wide)
    assert kb.from_bytes(wide, most_memory=2**30).samples == 0


def test_deeply_nested_header_is_refused(saved, tmp_path):
    spec = {"type": "Linear", "offset": 1.0}
    for _ in range(300):
        spec = {"type": "Scaled", "kernel": spec, "factor": 1.0}
    forged_files.assert_refused(saved, {"kernels/0": [spec]})
    text = b'{"arrays": ' + b"[" * 200_000
    total = len(checkpoint.MAGIC) + 20 + len(text) + 32
    prefix = struct.Struct("<IQQ").pack(checkpoint.VERSION, total, len(text))
    data = checkpoint.MAGIC + prefix + text
    with pytest.raises(FileRefused):
        load_bytes(tmp_path, data + hashlib.sha256(data).digest())


def test_user_made_components_are_given_back_by_name():
    kernel = 2.0 * K.Custom(cauchy) + K.Gaussian(1.0)
    slots = [kb.Slot(kernel, kb.learners.Norma()), kb.Slot(K.Gaussian(1.0), Gradient(budget=6))]
    bank = kb.KernelBank(slots=slots, loss=FOURTH)
    X, y = stream(0, 50, 1)
    bank.run(X, y)
    given_back = {"cauchy": K.Custom(cauchy), "fourth": FOURTH, "Gradient": Gradient}
    for missing in given_back:
        rest = {name: part for name, part in given_back.items() if name != missing}
        with pytest.raises(FileRefused, match=f"user-made component '{missing}'.*components="):
            kb.from_bytes(bank.to_bytes(), components=rest)
    again = kb.from_bytes(bank.to_bytes(), components=given_back)
    assert (again.predict(X) == bank.predict(X)).all()
    assert again.slots[1].learner == Gradient(budget=6)


def test_components_of_one_name_are_distinguished_or_refused():
    same = [K.Custom(cauchy) * K.Gaussian(1.0), K.Custom(cauchy) * K.Gaussian(2.0)]
    bank = kb.KernelBank(same)
    bank.run(*stream(0, 20, 1))
    again = kb.from_bytes(bank.to_bytes(), components={"cauchy": K.Custom(cauchy)})
    assert again.predict_one(0.5) == bank.predict_one(0.5)
    two = [K.Custom(lambda X, Z: X @ Z.T), K.Custom(lambda X, Z: X @ Z.T + 1)]
    refuses("'name' must be different", lambda: kb.KernelBank(two).to_bytes())
    with pytest.raises(ValueError, match="'name' must be different"):
        kb.KernelBank([K.Custom(cauchy, name="fourth")], loss=FOURTH).to_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "warp"}, "'engine' must"),
        ({"components": [1]}, "'components' must be a dictionary"),
        ({"components": {"cauchy": cauchy}}, r"components\['cauchy'\]' must be a Custom component"),
    ],
)
def test_wrong_arguments_of_load_are_not_reported_as_damage(options, message):
    data = kb.KernelBank([K.Custom(cauchy)]).to_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        kb.from_bytes(data, **options)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "bank.kb"
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 2, 3))
    bank.learn_one(0.0, 1.0)
    bank.save(path)
    old = path.read_bytes()
    bank.learn_one(1.0, 1.0)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    if moment == "write":
        monkeypatch.setattr(checkpoint.hashlib, "sha256", full)
    else:
        monkeypatch.setattr(checkpoint.os, moment, full)
    with pytest.raises(OSError, match="No space"):
        bank.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["bank.kb"]
    bank.save(path)
    assert kb.load(path).samples == 2


def test_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    events = []
    replace, fsync = os.replace, os.fsync

    def spy_fsync(number):
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{number}") else "file")
        fsync(number)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", lambda *a: (events.append("rename"), replace(*a)))
    kb.KernelBank().save(tmp_path / "bank.kb")
    assert events == ["file", "rename", "folder"]
