"""Files that are read: errors have the file's name."""

import os

import pytest

from kernelbank.io.files import open_for_reading


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
