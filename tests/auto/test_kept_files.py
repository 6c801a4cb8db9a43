"""Files of earlier versions are read: each bank predicts what it did, and learns on as it did."""

import gzip
import json

import pytest

import kernelbank as kb
from files import write as kept
from kernelbank.run.status import RunStatus
from support import forged_files
from support.saved_kinds import SavedRun

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
    found = kept.predictions(bank, first)
    assert [found] == [[same(one) for one in expected["now"]]]
    for x, target in zip(first, y[kept.LEARNED :], strict=True):
        bank.learn_one(x, target)
    found = kept.predictions(bank, later)
    assert [found] == [[same(one) for one in expected["later"]]]


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
    run.resume_to_end(run.root)
    found = (run.root / "few-predictions.csv").read_text().splitlines()
    expected = (folder / "run.csv").read_text().splitlines()
    assert len(found) == len(expected) > header["rows"] + 10
    for line, other in zip(found[1:], expected[1:], strict=True):
        assert _numbers(line) == same(_numbers(other))


def _numbers(line):
    return [float(cell or "nan") if cell else 0.0 for cell in line.split(",")]


def test_older_version_is_converted_step_by_step(tmp_path, monkeypatch):
    """A reader of a later version turns a file of this one into its own by `CONVERTERS`."""
    bank = kb.KernelBank(kb.kernels.Gaussian(1.0), window=3)
    bank.save(tmp_path / "bank.kb")
    version = kb.io.checkpoint.VERSION
    monkeypatch.setattr(kb.io.checkpoint, "VERSION", version + 2)
    with pytest.raises(kb.errors.FileRefused, match=f"from version {version + 2} on"):
        kb.load(tmp_path / "bank.kb")
    steps = []

    def convert(header, arrays):
        steps.append(header["window"])
        return {**header, "window": header["window"] + 1}, arrays

    converters = {version: convert, version + 1: convert}
    monkeypatch.setattr(kb.io.checkpoint, "CONVERTERS", converters)
    assert kb.load(tmp_path / "bank.kb").window == 5
    assert steps == [3, 4]
