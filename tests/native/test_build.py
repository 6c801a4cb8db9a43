"""The command that builds the compiled library."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelbank.native import build


def test_build_on_a_processor_without_library_says_so_and_succeeds(monkeypatch, capsys):
    monkeypatch.setattr(build, "processor_level", lambda: None)
    monkeypatch.setattr("sys.argv", ["build"])
    build.main()
    assert "compiles just in time" in capsys.readouterr().out


def test_build_for_an_unknown_level_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("sys.argv", ["build", "--level", "x86-64-v9"])
    with pytest.raises(SystemExit, match=r"--level must be x86-64-v3, .*; got x86-64-v9"):
        build.main()


@pytest.fixture
def objects(monkeypatch, tmp_path):
    """The folder of the library and that of object files, both empty."""
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    monkeypatch.setattr(build, "OBJECTS", tmp_path / "objects")
    (tmp_path / "objects").mkdir()
    return tmp_path / "objects"


def test_object_file_that_is_damaged_is_as_if_it_were_not_there(objects):
    path = objects / "one.o"
    build._write_object(path, b"machine code")
    assert build._read_object(path) == b"machine code"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert build._read_object(path) is None
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert build._read_object(path) is None


def test_file_put_in_place_replaces_whatever_is_there(objects):
    path = objects / "one.o"
    (path / "inner").mkdir(parents=True)
    assert build._read_object(path) is None
    build._write_object(path, b"first")
    build._write_object(path, b"second")
    assert build._read_object(path) == b"second"
    assert os.listdir(objects) == ["one.o"]


def test_file_that_cannot_be_written_is_told_by_name_and_leaves_nothing(objects, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = objects / "one.so"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit, match=r"objects/one\.so cannot be written: No space left"):
        build._put(path, b"new", durable=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(objects) == ["one.so"]


def test_second_builder_waits_and_finds_the_library_of_the_first(objects, monkeypatch):
    built = []
    monkeypatch.setattr(build, "_build", lambda *_: built.append(1))
    monkeypatch.setattr(build, "problem", lambda _: None if built else "there is none")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: build.build("x86-64-v3", if_needed=True), range(4)))
    assert built == [1]
    build.build("x86-64-v3")  # the command builds in any case
    assert built == [1, 1]


def test_lock_that_is_a_link_is_not_followed(objects, tmp_path):
    (tmp_path / "other").write_text("kept")
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"lock"), build._locked():
        pass
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("said", ["ld: final link failed: No space left on device", ""])
def test_linker_that_fails_is_told_with_its_reason(objects, tmp_path, monkeypatch, said):
    more = f"echo '{said}' >&2; echo 'it failed' >&2" if said else "true"
    monkeypatch.setattr(build, "_linker", lambda: ["sh", "-c", f"{more}; exit 1"])
    build._write_object(objects / "one.o", b"machine code")
    (tmp_path / "run").mkdir()
    with pytest.raises(SystemExit, match=rf"library\.so cannot be linked: {said or 1}$"):
        build._link(tmp_path / "run", [objects / "one.o"])


def test_temporary_folder_without_room_is_told_by_name(objects, tmp_path, monkeypatch):
    build._write_object(objects / "one.o", b"machine code")
    (tmp_path / "run").mkdir()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(build, "open", full, raising=False)
    with pytest.raises(SystemExit, match=r"run/objects/one\.o cannot be written: No space left"):
        build._link(tmp_path / "run", [objects / "one.o"])
