"""CSV and JSON lines, whatever stands in them, against simple readers; slow pipes."""

import contextlib
import csv
import json
import os
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelbank.io import text as io_text
from kernelbank.io.lines import LineSplitter
from kernelbank.io.sources import open_source
from kernelbank.io.text import StandardInput
from support.fuzzed_sources import CountedReader
from support.source_fixtures import PipeFixture

HEADER = b"a,b\n"


def simple_lines(data):
    found = data.decode("utf-8", "surrogateescape").split("\n")
    return found[:-1] if found[-1] == "" else found


def simple_csv(data, longest=1 << 18):
    """(line, cells or None) of every row below the header, by reading ever more lines."""
    rest = simple_lines(data)
    at = 1
    while at < len(rest):
        row, count = None, 1
        for end in range(at + 1, len(rest) + 1):
            text = [line + "\n" for line in rest[at:end]]
            fits = len("".join(text).encode("utf-8", "surrogateescape")) - 1 <= longest
            try:
                cells = next(csv.reader(text, strict=True))
            except csv.Error as error:
                if fits and "unexpected end" in str(error):
                    continue
            else:
                if fits:
                    row, count = cells, end - at
            break
        if row != []:
            yield at + 1, row if row is not None and len(row) == 2 else None
        at += count


def simple_json(data):
    for number, line in enumerate(simple_lines(data), start=1):
        if not line or line.isspace():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        yield number, row if isinstance(row, dict) else None


def is_text(cells):
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def readings(source, position=None, size=5, names=("a", "b")):
    """(line, values or None) of every row, and the position after each."""
    found, positions = [], []
    for block in source.blocks(position, size):
        table = block.parse(text=names, allow_missing=True)
        values = dict(
            zip(table.rows.tolist(), zip(*table.texts.values(), strict=True), strict=True)
        )
        for row in range(len(block)):
            line = int(block.where(row).rpartition(" ")[2])
            found.append((line, values.get(row)))
            positions.append(block.position(row))
        assert {one.row for one in table.rejected} == set(range(len(block))) - set(values)
        assert [one.where for one in table.rejected] == [
            block.where(one.row) for one in table.rejected
        ]
        assert all(str(one).encode() for one in table.rejected)
    return found, positions


odd_text = st.text(alphabet='a1.,"\n\r;é {}\ufeff\x00\x85\u2028', max_size=40).map(str.encode)
odd_bytes = st.binary(max_size=20)
tame_line = st.sampled_from([b"1,2\n", b'"x, ""y""\nz",3\n', b"\n", b"4\n", b'5,"6"\r\n', b",\n"])
csv_data = st.lists(st.one_of(odd_text, odd_bytes, tame_line, tame_line), max_size=12).map(b"".join)


def in_pieces(piece, longest=1 << 18):
    """Files are read in pieces of so many bytes, and longer rows are rejected."""
    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.object(io_text, "CHUNK_BYTES", piece))
    patches.enter_context(mock.patch.object(LineSplitter, "max_row_bytes", longest))
    return patches


pieces = st.integers(1, 30)
limits = st.sampled_from([1 << 18, 1 << 18, 3, 7, 12])


@settings(max_examples=50)
@given(csv_data, pieces, limits, st.data())
def test_random_csv_is_read_as_by_a_simple_reader(tmp_path_factory, data, piece, longest, draw):
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    path.write_bytes(HEADER + data)
    expected = []
    for line, row in simple_csv(HEADER + data, longest):
        good = row is not None and is_text(row)
        expected.append((line, tuple(cell or None for cell in row) if good else None))
    with in_pieces(piece, longest):
        source = open_source(path)
        found, positions = readings(source)
        assert found == expected
        done = draw.draw(st.integers(1, len(found))) if found else 0
        if found:
            later, after = readings(source, positions[done - 1], size=2)
            assert later == expected[done:]
            assert after == positions[done:]
        sent, sealed = readings(PipeFixture(HEADER + data).open())
        assert sent == expected
        if found:
            again = PipeFixture(HEADER + data).open()
            assert readings(again, sealed[done - 1])[0] == expected[done:]


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


json_line = st.one_of(
    st.dictionaries(
        st.sampled_from("abc"),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        max_size=3,
    ).map(lambda row: json.dumps(row).encode() + b"\n"),
    st.sampled_from(
        [b"\n", b"[1]\n", b'{"a": 1}\r\n', b'{"a": "\\ud800"}\n', b'{"a": [1]}\n', b"{"]
    ),
    odd_text,
    odd_bytes,
)


@settings(max_examples=30)
@given(st.lists(json_line, max_size=12).map(b"".join), pieces, st.data())
def test_random_json_lines_are_read_as_by_a_simple_reader(tmp_path_factory, data, piece, draw):
    path = tmp_path_factory.getbasetemp() / "fuzzed.jsonl"
    path.write_bytes(b'{"a": 0}\n' + data)
    expected = list(simple_json(path.read_bytes()))
    with in_pieces(piece):
        source = open_source(path)
        found, positions = readings(source, names=("a",))
        assert [line for line, _ in found] == [line for line, _ in expected]
        for (_, values), (_, row) in zip(found, expected, strict=True):
            if row is None:
                assert values is None
            elif values is not None and isinstance(row.get("a"), str):
                assert values[0] == (row["a"] or None)
            elif values is None:
                assert isinstance(row["a"], list) or not is_text(row["a"])
        done = draw.draw(st.integers(1, len(found)))
        assert readings(source, positions[done - 1], names=("a",))[0] == found[done:]
    fixture = PipeFixture(path.read_bytes())
    sent, sealed = readings(fixture.open(), names=("a",))
    assert sent == found
    assert readings(fixture.open(), sealed[done - 1], names=("a",))[0] == found[done:]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n9\n"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_row_of_the_maximum_length_is_accepted(tmp_path, form, end):
    path = tmp_path / f"rows.{form}"
    for size, good in ((20, True), (21, False)):
        row = b"x" * size if form == "csv" else b'{"a": "%s"}' % (b"x" * (size - 9))
        assert len(row) == size
        path.write_bytes((b"a\n" if form == "csv" else b'{"a": 1}\n') + row + end)
        for piece in (1, 8, 1000):
            with in_pieces(piece, 20):
                found, _ = readings(open_source(path), names=("a",))
            line, values = found[0 if form == "csv" else 1]
            assert (line, values is not None) == (2, good), (size, piece)


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
    assert readings(source, names=("a",))[0] == [(1 + begin.count(b"\n"), ("1",))]
    assert source.columns == ("a",)
    if b" " not in begin:  # a line of blanks is a header without a name
        source = PipeFixture(begin + b"a\n1\n").open()
        assert readings(source, names=("a",))[0] == [(2, ("1",))]
