"""Saved banks: what is refused and why, and that a file is always whole."""

import hashlib
import math
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
from support.second_order import PrototypeRLS

K = kb.kernels
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 2, 3), kb.learners.Norma(0.05, 4), window=3)
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


def test_foreign_file_is_refused(tmp_path):
    for data in (b"PK\x03\x04 a zip file", b"\x80\x04\x95 a pickle", b"KERNELBANG\n" + bytes(100)):
        with pytest.raises(FileRefused, match="not a kernelbank file"):
            load_bytes(tmp_path, data)
    with pytest.raises(FileRefused, match="truncated"):
        load_bytes(tmp_path, b"")
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
    with pytest.raises(FileRefused, match=words):
        load_bytes(tmp_path, bytes(data))


def test_file_with_bytes_added_is_refused(saved, tmp_path):
    with pytest.raises(FileRefused, match="damaged"):
        load_bytes(tmp_path, saved + b"more")


def forge(saved, change):
    """A stranger's file: changed inside, with a valid checksum."""
    header, body = forged_files.unpack(saved)
    body = change(header, body) or body
    return forged_files.pack(header, body)


def put(*path, value):
    def change(header, body):
        place = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("window", value=10**12),
        put("window", value="3"),
        put("regularization", value=-1),
        put("method_of", 0, value=float("inf")),
        put("dimension", value=None),
        put("dimension", value=10**15),
        put("kernels", value=[]),
        put("kernels", 0, value={"type": "Gaussian", "width": -1}),
        put("kernels", 0, value={"type": "Gaussian", "height": 1}),
        put("kernels", 0, value={"type": "system", "width": 1}),
        put("kernels", 0, value={"width": 1}),
        put("methods", 0, "learner", value={"type": "Norma", "budget": 10**12}),
        put("methods", 0, "loss", value={"type": "Hinge"}),
        put("method_of", 0, value=7),
        put("residual_of", 0, value=0),
        put("combiner", value={"type": "Simplex", "evidence": "prequential", "horizon": 10**12}),
        put("combiner", value={"type": "Uniform", "extra": 1}),
        put("loss", value={"type": "__import__"}),
        put("arrays", 0, value=["weights", "|O", [3]]),
        put("arrays", 0, value=["weights", "<f8", [10**15]]),
        put("arrays", 0, value=["weights", "<i8", [3]]),
        put("arrays", 0, value=["wights", "<f8", [3]]),
        put("arrays", value=None),
        put("warned", value=5),
        lambda header, body: header.pop("combiner") and None,
        lambda header, body: body + bytes(8),
    ],
)
def test_forged_header_is_refused(saved, tmp_path, change):
    with pytest.raises(FileRefused):
        load_bytes(tmp_path, forge(saved, change))


@pytest.mark.parametrize("samples", [-1, 0, 2**53, -(2**63)])
def test_forged_number_of_samples_is_refused(saved, tmp_path, samples):
    def change(header, body):
        sizes = {name: 8 * math.prod(shape) for name, _, shape in header["arrays"]}
        names = list(sizes)
        place = sum(sizes[name] for name in names[: names.index("seen")])
        assert struct.unpack_from("<q", body, place) == (20,)
        return body[:place] + struct.pack("<q", samples) + body[place + 8 :]

    with pytest.raises(FileRefused, match="samples"):
        load_bytes(tmp_path, forge(saved, change))


def test_small_file_that_claims_much_memory_is_refused(saved, tmp_path):
    def many(header, body):
        spec = {"type": "Periodic", "period": 1.0, "width": 1.0}
        for k in range(200):
            other = {"type": "Periodic", "period": 2.0 + k, "width": 1.0}
            spec = {"type": "Sum", "left": spec, "right": other}
        header["kernels"][0] = spec

    with pytest.raises(FileRefused):
        load_bytes(tmp_path, forge(saved, many))
    empty = tmp_path / "empty.kb"
    kb.KernelBank(kb.gaussian_grid(0.1, 2, 3)).save(empty)

    def wide(header, body):
        header["window"] = 2000
        header["methods"][0]["learner"]["budget"] = 4000

    # Nothing is learned yet, so the file has no arrays. The first sample would allocate them.
    with pytest.raises(FileRefused, match="Raise most_memory if you trust the file"):
        load_bytes(tmp_path, forge(empty.read_bytes(), wide))
    assert load_bytes(tmp_path, forge(empty.read_bytes(), wide), most_memory=2**30).samples == 0


def test_file_written_again_without_change_is_loaded(saved, tmp_path):
    assert load_bytes(tmp_path, forge(saved, lambda header, body: None)).samples == 20


def test_deeply_nested_header_is_refused(saved, tmp_path):
    spec = {"type": "Linear", "offset": 1.0}
    for _ in range(300):
        spec = {"type": "Scaled", "kernel": spec, "factor": 1.0}
    data = forge(saved, put("kernels", 0, value=spec))
    with pytest.raises(FileRefused):
        load_bytes(tmp_path, data)
    text = b'{"arrays": ' + b"[" * 200_000
    total = len(checkpoint.MAGIC) + 20 + len(text) + 32
    prefix = struct.Struct("<IQQ").pack(checkpoint.VERSION, total, len(text))
    data = checkpoint.MAGIC + prefix + text
    with pytest.raises(FileRefused):
        load_bytes(tmp_path, data + hashlib.sha256(data).digest())


def test_user_made_components_are_given_back_by_name(tmp_path):
    path = tmp_path / "bank.kb"
    kernel = 2.0 * K.Custom(cauchy) + K.Gaussian(1.0)
    slots = [kb.Slot(kernel, kb.learners.Norma()), kb.Slot(K.Gaussian(1.0), PrototypeRLS(6))]
    bank = kb.KernelBank(slots=slots, loss=FOURTH)
    X, y = stream(0, 50, 1)
    bank.run(X, y)
    bank.save(path)
    given_back = {"cauchy": K.Custom(cauchy), "fourth": FOURTH, "PrototypeRLS": PrototypeRLS}
    for missing in given_back:
        rest = {name: part for name, part in given_back.items() if name != missing}
        with pytest.raises(FileRefused, match=f"user-made component '{missing}'.*components="):
            kb.load(path, components=rest)
    again = kb.load(path, components=given_back)
    assert (again.predict(X) == bank.predict(X)).all()
    assert again.slots[1].learner == PrototypeRLS(6)


def test_components_of_one_name_are_distinguished_or_refused(tmp_path):
    path = tmp_path / "bank.kb"
    same = [K.Custom(cauchy) * K.Gaussian(1.0), K.Custom(cauchy) * K.Gaussian(2.0)]
    bank = kb.KernelBank(same)
    bank.run(*stream(0, 20, 1))
    bank.save(path)
    again = kb.load(path, components={"cauchy": K.Custom(cauchy)})
    assert again.predict_one(0.5) == bank.predict_one(0.5)
    two = [K.Custom(lambda X, Z: X @ Z.T), K.Custom(lambda X, Z: X @ Z.T + 1)]
    with pytest.raises(ValueError, match="'name' must be different"):
        kb.KernelBank(two).save(path)
    with pytest.raises(ValueError, match="'name' must be different"):
        kb.KernelBank([K.Custom(cauchy, name="fourth")], loss=FOURTH).save(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "warp"}, "'engine' must"),
        ({"components": [1]}, "'components' must be a dictionary"),
        ({"components": {"cauchy": cauchy}}, r"components\['cauchy'\]' must be a Custom component"),
    ],
)
def test_wrong_arguments_of_load_are_not_reported_as_damage(tmp_path, options, message):
    path = tmp_path / "bank.kb"
    kb.KernelBank([K.Custom(cauchy)]).save(path)
    with pytest.raises(ValueError, match=message) as caught:
        kb.load(path, **options)
    assert "damaged" not in str(caught.value)


def test_warning_is_not_repeated_after_loading(tmp_path, recwarn):
    x = np.linspace(0, 1, 60)
    bank = kb.KernelBank([K.Gaussian(5.0)], kb.learners.Norma(0.5, 20), window=10)
    bank.run(x, x)
    assert len(recwarn) == 1
    bank.save(tmp_path / "bank.kb")
    kb.load(tmp_path / "bank.kb").run(x, x)
    assert len(recwarn) == 1


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
