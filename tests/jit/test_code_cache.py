"""Machine code that Numba keeps on disk: damaged files are compiled again, full disks are told."""

import errno
import os
from pathlib import Path

import pytest

import kernelbank as kb
from kernelbank.native.llvm import code_cache


@pytest.fixture
def formula(tmp_path, monkeypatch):
    """A function that compiles one formula and keeps it in an empty folder; the folder."""
    from numba.core import config

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def compile():
        return kb.losses.Squared._value.compile()

    return compile, tmp_path


def files(folder):
    return [file for file in folder.rglob("*") if file.is_file()]


def test_intact_code_is_used_again(formula):
    compile, folder = formula
    compile()
    assert {file.suffix for file in files(folder)} == {".nbi", ".nbc"}
    assert compile().cache_hits == 1


DAMAGE = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "a changed bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}


def flipped(data):
    place = len(data) * 3 // 4
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_is_compiled_again(formula, suffix, damage):
    compile, folder = formula
    compile()
    (path,) = [file for file in files(folder) if file.suffix == suffix]
    DAMAGE[damage](path)
    assert compile().cache_hits == 0
    assert compile().cache_hits == 1


def test_full_disk_is_told_once_by_name_and_costs_only_time(formula, monkeypatch, capsys):
    compile, folder = formula

    def full(self, path, value):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(code_cache._HashedFiles, "_write", full)
    monkeypatch.setattr(code_cache, "_told", set())
    assert compile().address
    assert compile().address
    told = [line for line in capsys.readouterr().err.splitlines() if "cannot be written" in line]
    assert len(told) == 1
    assert str(folder) in told[0]
    assert "No space left on device" in told[0]


def test_folder_in_place_of_a_file_costs_only_time(formula):
    compile, folder = formula
    compile()
    for path in files(folder):
        path.unlink()
        Path(path).mkdir()
    assert compile().address
