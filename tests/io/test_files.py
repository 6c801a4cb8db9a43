"""Files that are read: errors have the file's name."""

import os
import socket

import pytest

from kernelbank.errors import RunRefused
from kernelbank.io.files import check_regular, open_for_reading, open_regular


def test_failed_read_names_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.touch()
    for read in (lambda file: file.read(), lambda file: file.read(3)):
        # What is open for writing only cannot be read.
        file = open_for_reading(path, lambda path, _: os.open(path, os.O_WRONLY))
        with file, pytest.raises(OSError, match=r"rows\.csv"):
            read(file)


def test_folder_is_refused_by_name(tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        open_for_reading(tmp_path)


def test_close_never_fails(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b")
    with open_for_reading(path) as file:
        assert file.read() == b"a,b"
        os.close(file.fileno())
    assert file.closed


FLAGS = {
    "reading": os.O_RDONLY,
    "appending": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "writing": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "lock": os.O_RDWR | os.O_CREAT,
}


def make(kind, path):
    """What is no regular file, at a path."""
    if kind == "a link":
        (path.parent / "other").write_text("kept")
        path.symlink_to("other")
    elif kind == "a link to nothing":
        path.symlink_to("nothing")
    elif kind == "a link to a link":
        (path.parent / "second").symlink_to("other")
        path.symlink_to("second")
    elif kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)  # names of sockets are short: the folder is the present one
    return path


KINDS = ["a link", "a link to nothing", "a link to a link", "a FIFO", "a folder", "a socket"]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_refused(kind, flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = make(kind, tmp_path / "file")
    before = sorted(os.listdir(tmp_path))
    word = "a link" if "link" in kind else kind
    with pytest.raises(RunRefused, match=f"file is {word}, not a file"):
        open_regular(path, FLAGS[flags])
    with pytest.raises(RunRefused, match=f"file is {word}, not a file"):
        check_regular(path)
    assert sorted(os.listdir(tmp_path)) == before
    if (tmp_path / "other").exists():
        assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("flags", FLAGS)
def test_devices_are_refused(flags):
    with pytest.raises(RunRefused, match="/dev/null is a device, not a file"):
        open_regular("/dev/null", FLAGS[flags])


def test_regular_files_are_opened_made_and_emptied(tmp_path):
    path = tmp_path / "file"
    assert not check_regular(path)
    with pytest.raises(FileNotFoundError):
        open_regular(path, os.O_RDONLY)
    with open(path, "wb", opener=open_regular) as file:
        file.write(b"long")
    with open(path, "ab", opener=open_regular) as file:
        file.write(b"er")
    assert path.read_bytes() == b"longer"
    with open(path, "wb", opener=open_regular) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert check_regular(path)


def test_folder_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with open(tmp_path / "link" / "file", "wb", opener=open_regular) as file:
        file.write(b"x")
    assert (tmp_path / "real" / "file").read_bytes() == b"x"
