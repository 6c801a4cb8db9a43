"""Files that are read: errors have the file's name; what is written is a regular file."""

import os
import socket

import pytest

from kernelbank.errors import RunRefused
from kernelbank.io.files import check_regular, open_for_reading, open_regular


def test_failed_read_names_the_file_and_close_never_fails(tmp_path):
    path = tmp_path / "rows.csv"
    path.touch()
    for read in (lambda file: file.read(), lambda file: file.read(3)):
        # What is open for writing only cannot be read.
        file = open_for_reading(path, lambda path, _: os.open(path, os.O_WRONLY))
        with file, pytest.raises(OSError, match=r"rows\.csv"):
            read(file)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        open_for_reading(tmp_path)
    with open_for_reading(path) as file:
        os.close(file.fileno())
    assert file.closed


FLAGS = [
    os.O_RDONLY,
    os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    os.O_RDWR | os.O_CREAT,
]


def make(kind, path):
    """What is no regular file, at a path."""
    if kind == "a link":
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


@pytest.mark.parametrize(
    "kind", ["a link", "a link to nothing", "a link to a link", "a FIFO", "a folder", "a socket"]
)
def test_what_is_no_regular_file_is_refused(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").write_text("kept")
    path = tmp_path / "file"
    make(kind, path)
    before = sorted(os.listdir(tmp_path))
    refused = f"file is {'a link' if 'link' in kind else kind}, not a file"
    for flags in FLAGS:
        with pytest.raises(RunRefused, match=refused):
            open_regular(path, flags)
        with pytest.raises(RunRefused, match="/dev/null is a device, not a file"):
            open_regular("/dev/null", flags)
    with pytest.raises(RunRefused, match=refused):
        check_regular(path)
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "other").read_text() == "kept"


def test_regular_files_are_opened_made_and_emptied(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")  # the folder may be a link
    path = tmp_path / "link" / "file"
    assert not check_regular(path)
    with pytest.raises(FileNotFoundError):
        open_regular(path, os.O_RDONLY)
    for mode, text, content in (
        ("wb", b"long", b"long"),
        ("ab", b"er", b"longer"),
        ("wb", b"new", b"new"),
    ):
        with open(path, mode, opener=open_regular) as file:
            file.write(text)
        assert (tmp_path / "real" / "file").read_bytes() == content
    assert check_regular(path)
