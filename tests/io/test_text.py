"""CSV and JSON lines, whatever stands in them, against simple readers; slow pipes."""

import contextlib
import csv
import os
from unittest import mock

import pytest

from kernelbank.io import text as io_text
from kernelbank.io.lines import LineSplitter
from kernelbank.io.sources import open_source
from kernelbank.io.text import StandardInput
from support.fuzzed_sources import CountedReader, Reading, attack
from support.source_fixtures import PipeFixture


def in_pieces(piece, longest=1 << 18):
    """Files are read in pieces of so many bytes, and longer rows are rejected."""
    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.object(io_text, "CHUNK_BYTES", piece))
    patches.enter_context(mock.patch.object(LineSplitter, "max_row_bytes", longest))
    return patches


def test_fuzzed_texts_are_read_as_by_a_simple_reader():
    assert sum(attack(60, seed=1).values()) == 60


MISFITS = {
    "quotes that never fit": 'a",",\n',
    "quotes that never close": '1,"2\n',
    "quotes in every cell that never fit": '"1","2",a","\n',
    "an escaped quote before every opening one": '""",\n',
    "text after a closing quote": '"a"b,2\n',
}


@pytest.mark.parametrize("line", MISFITS.values(), ids=MISFITS)
def test_quotes_that_never_fit_take_linear_time(tmp_path, line):
    """Each character is parsed a few times, however many rows are tried and rejected."""
    path = tmp_path / "misfits.csv"
    for end in ("", "a" * 2_000 + '"\n1,2\n'):
        path.write_text("a,b\n" + line * (12_000 // len(line)) + end)
        for piece in (1 << 12, 1 << 9):
            CountedReader.parsed = 0
            with mock.patch.object(csv, "reader", CountedReader), in_pieces(piece, 1 << 12):
                assert sum(map(len, open_source(path).blocks()))
            assert CountedReader.parsed < 10 * path.stat().st_size


@pytest.mark.parametrize(
    ("name", "data", "longest", "expected"),
    [
        (
            "rows.csv",
            b'a,b\n1,"2\n' + b"3,4\n" * 20 + b'5,"6"\n',
            30,
            "line 2: '1,\"2' has a quote that is not closed within 262144 bytes.",
        ),
        (
            "rows.jsonl",
            b"\xef\xbb\xbf" + b"x" * 50 + b"\n",
            9,
            "line 1: 'xxxxxx' is the beginning of a row longer than 262144 bytes.",
        ),
    ],
)
def test_too_long_row_is_shown_alike_in_all_pieces(tmp_path, name, data, longest, expected):
    path = tmp_path / name
    path.write_bytes(data)
    for piece in (1, 3, 13, 50, 1000):
        with in_pieces(piece, longest):
            blocks = open_source(path).blocks()
            shown = [str(one) for block in blocks for one in block.parse(text=("a",)).rejected]
        assert shown == [f"{name}, {expected}"]


def test_row_before_a_blank_line_without_end_has_its_end(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n1,"2\n\r', newline="")  # the open quote keeps both lines until the end
    source = open_source(path, complete=True)
    (block,) = [one for one in source.blocks() if len(one)]
    position = block.position(0)
    assert "open" not in position
    again = open_source(path, complete=True)
    again.verify(source.fingerprint, position)
    assert sum(len(one) for one in again.blocks(position)) == 0


@pytest.mark.parametrize("end", [b"", b"\n", b"\n9\n"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_row_of_the_maximum_length_is_accepted(tmp_path, form, end):
    path = tmp_path / f"rows.{form}"
    for size, good in ((20, True), (21, False)):
        row = b"1" * size if form == "csv" else b'{"a": %s}' % (b"1" * (size - 7))
        assert len(row) == size
        path.write_bytes((b"a\n" if form == "csv" else b'{"a": 1}\n') + row + end)
        for piece in (1, 8, 1000):
            with in_pieces(piece, 20):
                row = Reading(path).rows[0 if form == "csv" else 1]
            assert (type(row) is tuple) == good, (size, piece)
            assert f"rows.{form}, line 2" in (row[0] if good else row)


def test_slow_pipe_yields_rows_as_they_come():
    """And an empty block as a sign of life while nothing comes: then the next piece is sent."""
    reading, writing = os.pipe()
    unsent = [b"a,b\n", b"1,", b"2\n3,4\n", b"5,6"]
    seen = []
    for block in StandardInput(descriptor=reading).blocks():
        if len(block):
            seen.append((len(block), len(unsent)))
        elif unsent:
            os.write(writing, unsent.pop(0))
        else:
            os.close(writing)
    os.close(reading)
    assert seen == [(2, 1), (1, 0)]  # as soon as the rows are whole


def test_idle_pipe_ends_without_its_incomplete_row():
    reading, writing = os.pipe()
    os.write(writing, b"a,b\n1,2\n3,")
    blocks = list(StandardInput(descriptor=reading, idle=0.3).blocks())
    assert sum(map(len, blocks)) == 1
    os.close(writing)
    os.close(reading)


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n \r\n"])
def test_standard_input_detects_its_format(begin):
    source = PipeFixture(begin + b'{"a": 1}\n').open()
    line = 1 + begin.count(b"\n")
    assert Reading(source).rows == [(f"standard input, line {line}", [1.0], [])]
    assert source.columns == ("a",)
    if b" " not in begin:  # a line of blanks is a header without a name
        source = PipeFixture(begin + b"a\n1\n").open()
        assert Reading(source).rows == [(f"standard input, line {line + 1}", [1.0], [])]
