"""Sources: the same rows from every kind, from every row on; what is refused, and how."""

import gzip
import json
import math
import os
import socket
import subprocess
import sys
import tracemalloc
from datetime import datetime
from decimal import Decimal
from unittest import mock

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from kernelbank.errors import FileRefused, InvalidArgument, KernelBankWarning, RunRefused
from kernelbank.io import cells
from kernelbank.io import text as io_text
from kernelbank.io.files import check_regular, open_regular
from kernelbank.io.lines import LineSplitter
from kernelbank.io.sources import open_source
from kernelbank.io.text import StandardInput
from support.fuzzed_sources import Reading, attack
from support.source_fixtures import (
    COLUMNS,
    EXPECTED,
    MAKERS,
    ROWS,
    FileFixture,
    PipeFixture,
    as_csv,
    read,
)


@pytest.fixture(params=MAKERS)
def fixture(request, tmp_path):
    return MAKERS[request.param](tmp_path, request.getfixturevalue)


def test_every_source_gives_the_same_rows(fixture):
    with fixture.open() as source:
        rows, bad, positions = read(source)
        assert rows == EXPECTED
        assert bad == []
        assert [position["rows"] for position in positions] == list(range(1, len(ROWS) + 1))
        assert source.columns == COLUMNS
        assert json.loads(json.dumps(source.fingerprint)) == source.fingerprint
        with fixture.open() as later:
            later.verify(source.fingerprint)
            assert later.columns == COLUMNS
            assert read(later, json.loads(json.dumps(source.start)))[0] == EXPECTED


@pytest.mark.slow
def test_every_source_continues_after_every_row(fixture):
    with fixture.open() as source:
        _, _, positions = read(source)
    for done, position in enumerate(positions, start=1):
        with fixture.open() as source:
            rows, bad, later = read(source, position, size=2)
            assert rows == EXPECTED[done:]
            assert bad == []
            assert later == positions[done:]


def test_foreign_positions_and_fingerprints_are_refused(fixture):
    for position in ({}, {"rows": -1}, {"rows": "2"}, {"rows": True}, 3, [1]):
        with fixture.open() as source, pytest.raises(InvalidArgument, match="position"):
            source.blocks(position)
    with fixture.open() as source:
        other = {**source.fingerprint, "address": "elsewhere"}
        with pytest.raises(FileRefused, match="not the source that was read before: its address"):
            source.verify(other)


def test_deep_json_and_bombs_of_numbers_are_broken_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": ' + "1" * 5000 + "}\n" + "[" * 100_000 + '\n{"a": 2}\n')
    rows, bad, _ = read(open_source(path), numeric="a", text=())
    assert rows == [(1,), (2,)]
    assert ["is broken JSON" in text for text in bad] == [True, True]


def test_columns_without_a_name_and_tabs(tmp_path):
    path = tmp_path / "some.csv"
    path.write_bytes(b",a, \n0,1,2\n")
    with pytest.warns(
        KernelBankWarning, match="line 1: column 3 has no name; here it is 'column 3'"
    ):
        source = open_source(path)
    assert source.columns == ("column 1", "a", "column 3")
    [block] = source.blocks()
    assert block.parse(numeric=["column 3", "column 1"]).numbers.tolist() == [[2, 0]]
    path.write_bytes(b'a\tb\n1,5\t"x\ty"\n')
    for word in ("tab", "\\t", "\t"):
        [block] = open_source(path, delimiter=word, decimal=",").blocks()
        parsed = block.parse(numeric=["a"], text=["b"])
        assert (parsed.numbers.tolist(), parsed.texts) == ([[1.5]], {"b": ["x\ty"]})


REFUSED = [
    ("some.csv", b"\n\n", "there is no header"),
    ("some.csv", b"\n a ,b,a\n", "line 2: more than one column is called 'a'"),
    ("some.csv", b"a,\xff\n1,2\n", "column 2 is not UTF-8"),
    ("some.csv", b'a,"b\n1,2\n', "line 1: the header .* has a quote that is not closed"),
    ("some.csv", "a,b\n".encode("utf-16"), "UTF-16"),
    ("some.csv.gz", b"a,b\n", "not a gzip file"),
    ("some.parquet", b"PAR1 and no more", "not a complete Parquet file"),
    *((f"some.{kind}", b"", "the file is empty") for kind in ("csv", "csv.gz", "jsonl", "parquet")),
]


def test_files_that_cannot_be_read_are_refused(tmp_path):
    for name, data, match in REFUSED:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(FileRefused, match=match):
            read(open_source(path), numeric=(), text=())
        path.unlink()
        with pytest.raises(FileRefused, match="there is no such file"):
            open_source(path)
        path.mkdir()
        with pytest.raises(FileRefused, match="this is a folder"):
            open_source(path)
        path.rmdir()
    with pytest.raises(FileRefused, match=r"^table\.xlsx: this kind .* ends with \.csv, \.jsonl"):
        open_source("table.xlsx")
    with pytest.raises(FileRefused, match=r"^https://somewhere/table\.csv: this kind"):
        open_source("https://me:secret@somewhere/table.csv")
    for option, rule, values in (
        ("decimal", r"'decimal' must be '\.' or ','", ("", ";", ",,", None)),
        ("delimiter", "'delimiter' must be one character", ("", ";;", '"', "\n", "comma")),
    ):
        for value in values:
            with pytest.raises(InvalidArgument, match=rule):
                open_source(tmp_path / "some.csv", **{option: value})
    if os.getuid():
        (tmp_path / "mine.csv").touch(0)
        with pytest.raises(FileRefused, match="may not be read"):
            open_source(tmp_path / "mine.csv")


def rows_until_refused(source, reason):
    rows = []
    blocks = source.blocks(size=100)

    def take_all():
        for block in blocks:
            rows.extend(block.parse(numeric="a").numbers[:, 0].tolist())

    with pytest.raises(FileRefused, match=reason):
        take_all()
    return rows


def test_damaged_gzip_file_gives_the_rows_before_the_damage(tmp_path):
    expected = [float(number * number) for number in range(4_000)]
    packed = gzip.compress("\n".join(["a", *map(repr, expected), ""]).encode())
    harmed = bytearray(packed)
    harmed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    path = tmp_path / "harmed.csv.gz"
    for data, reason, least, most in (
        (packed[: len(packed) // 2], "ends too early", 1_800, 2_200),
        (bytes(harmed), "is damaged", 1_800, 3_999),  # gzip notices late
        (packed[:-8] + bytes(8), "is damaged", 4_000, 4_000),
        (packed + b"rest", "is damaged", 4_000, 4_000),
    ):
        path.write_bytes(data)
        rows = rows_until_refused(open_source(path), reason)
        assert rows[:least] == expected[:least]
        assert least <= len(rows) <= most
    path.write_bytes(packed + bytes(100))  # padding is no damage
    assert len(read(open_source(path), numeric="a", text=())[0]) == 4_000


def test_file_whose_read_rows_have_changed_is_refused(tmp_path):
    whole = as_csv(ROWS)
    fixture = FileFixture(tmp_path / "rows.csv", whole[:-1])
    early = fixture.open()
    positions = read(early)[2]
    fixture.path.write_bytes(whole)
    assert read(fixture.open(), positions[-1])[0] == []  # the line end was all that lacked
    for position, other, message in (
        (positions[-1], whole[:-1] + b"0\n", "is longer now"),
        (positions[2], whole[:60], "fewer than the 90 bytes of the first 3 rows"),
        (positions[2], whole.replace(b"0.1", b"0.11"), "the first 3 rows are not those"),
        (positions[2], whole.replace(b"0.1", b"0.7"), "the first 3 rows are not those"),
    ):
        fixture.path.write_bytes(other)
        with pytest.raises(FileRefused, match=message):
            read(fixture.open(), position)
    fixture.path.write_bytes(whole.replace(b"wind", b"wand"))
    with pytest.raises(FileRefused, match=r"its columns: \(wind, .*\) before, \(wand, .*\) now\."):
        fixture.open().verify(early.fingerprint)


class Clock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self):
        self.now = 1e9

    def time(self):
        return self.now

    monotonic = time

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    ("age", "signs"), [(1000, 0), (1.1, 5), (-1000, 10)]
)  # the last one: a file server whose clock is ahead
def test_file_settles_when_it_has_not_changed_for_two_seconds(tmp_path, monkeypatch, age, signs):
    clock = Clock()
    monkeypatch.setattr(io_text, "time", clock)
    path = tmp_path / "rows.csv"
    path.write_text("a\n1\n2")
    os.utime(path, (clock.now - age, clock.now - age))
    blocks = list(open_source(path, complete=False).blocks())
    assert [len(block) for block in blocks] == [1, *([0] * signs), 1]
    assert [block.provisional for block in blocks] == [*([False] * (signs + 1)), True]
    assert not any(block.provisional for block in open_source(path).blocks())
    # A file that grows while it settles is read on.
    os.utime(path, (clock.now, clock.now))
    rows = []
    for block in open_source(path, complete=False).blocks():
        assert not block.provisional
        rows += block.parse(numeric=["a"]).numbers[:, 0].tolist()
        if not len(block):
            with path.open("a") as file:
                file.write("5\n7\n")
    assert rows == [1, 25, 7]


def test_parquet_file_that_was_rewritten_is_refused(tmp_path):
    """Also if nothing but values in its middle have changed."""
    path = tmp_path / "rows.parquet"
    values = np.arange(6_000.0)
    options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pyarrow.parquet.write_table(pyarrow.table({"a": values}), path, **options)
    fingerprint = open_source(path).fingerprint
    open_source(path).verify(fingerprint)
    values[3_000] = 0.5
    pyarrow.parquet.write_table(pyarrow.table({"a": values}), path, **options)
    with pytest.raises(FileRefused, match="its rows have changed"):
        open_source(path).verify(fingerprint)


@pytest.mark.parametrize("kind", ["csv", "csv.gz of two members", "parquet"])
def test_file_that_has_become_a_fifo_is_refused(tmp_path, kind):
    """Whenever that happens, and without waiting for a writer."""
    path = MAKERS[kind](tmp_path, None).path
    source = open_source(path)
    path.unlink()
    os.mkfifo(path)
    regular = os.stat_result(os.stat(__file__))
    for read_it in (lambda: open_source(path), lambda: list(source.blocks())):
        with pytest.raises(FileRefused, match="not a regular file"):
            read_it()
        # Between a look at the name and the opening, it may be replaced.
        with (
            mock.patch.object(os, "stat", return_value=regular),
            pytest.raises(FileRefused, match="not a regular file"),
        ):
            read_it()


NOON, NAN = datetime(2024, 1, 1, 12), math.nan
TYPES = {  # by column: values, its numbers, its texts, and why others are rejected as numbers
    "whole": ([1, None, 2**60], [1, NAN, 2.0**60], ["1", None, str(2**60)], []),
    "truth": ([True, False, None], [1, 0, NAN], ["true", "false", None], []),
    "small": ([0.5, NAN, math.inf], [0.5, NAN], ["0.5", None, "inf"], [cells.TOO_LARGE]),
    "decimal": (
        [Decimal("0.10"), None, Decimal("7.00")],
        [0.1, NAN, 7],
        ["0.10", None, "7.00"],
        [],
    ),
    "kind": (["x", None, "2"], [NAN, 2], ["x", None, "2"], [cells.NOT_A_NUMBER]),
    "list": ([[1], None, []], [NAN], [None], [cells.NESTED] * 2),
    "time": (
        pyarrow.array([NOON, None], pyarrow.timestamp("ns")),
        [1704110400, NAN],
        ["2024-01-01T12:00:00", None],
        [],
    ),
    "ancient": (
        pyarrow.array([0, 2**53], pyarrow.timestamp("s")),
        [0],
        ["1970-01-01T00:00:00"],
        [cells.NOT_A_NUMBER],
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_parquet_types_are_parsed_as_numbers_and_texts(tmp_path, name):
    values, numbers, texts, reasons = TYPES[name]
    path = tmp_path / "types.parquet"
    pyarrow.parquet.write_table(pyarrow.table({name: values}), path)
    [block] = open_source(path).blocks(columns=[name])
    table = block.parse(numeric=[name], allow_missing=True)
    assert table.numbers[:, 0].tolist() == pytest.approx(numbers, nan_ok=True)
    assert [bad.reason for bad in table.rejected] == reasons
    assert block.parse(text=[name], allow_missing=True).texts[name] == texts


def test_parquet_file_with_other_columns_or_fewer_rows_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2, 3]}), path)
    source = open_source(path)
    with pytest.raises(InvalidArgument, match=r"'column' must be a column .* 'nothing'"):
        next(source.blocks(columns=["nothing"]))
    [block] = source.blocks()
    assert block.where(2) == "rows.parquet, row 3"
    with pytest.raises(FileRefused, match="3 rows, but 4 had been read"):
        source.blocks({"rows": 4})
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2]}), path)
    with pytest.raises(FileRefused, match="not the source that was read before"):
        open_source(path).verify(source.fingerprint)


def test_damaged_parquet_file_gives_the_rows_before_the_damage(tmp_path):
    path = tmp_path / "rows.parquet"
    values = np.random.default_rng(0).normal(size=5000)
    table = pyarrow.table({"a": values})
    pyarrow.parquet.write_table(table, path, row_group_size=1000, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    rows = rows_until_refused(open_source(path), "damaged after row")
    assert rows == values[: len(rows)].tolist()
    assert len(rows) >= 1000


def test_line_without_end_takes_constant_memory(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(b"a,b\n1,2\n" + b"x" * 8_000_000 + b"\n3,4\n" + b'5,"' + b"y" * 2_000_000)
    tracemalloc.start()
    rows, bad, _ = read(open_source(path), numeric="ab", text=())
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()
    assert rows == [(1, 2), (3, 4)]
    assert [text.split(":")[0] for text in bad] == ["odd.csv, line 3", "odd.csv, line 5"]


def test_a_line_is_a_row_so_a_quote_ends_with_its_line(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(b'a,b\n1,"2\n3,"4"\n5,"6\n7"\n8,9\n')
    rows, bad, _ = read(open_source(path), numeric="ab", text=())
    assert rows == [(3, 4), (8, 9)]
    assert [text.split(":")[0] for text in bad] == [f"odd.csv, line {n}" for n in (2, 4, 5)]
    assert "'1,\"2' has a quote that is not closed in its line" in bad[0]


def test_csv_on_standard_input_needs_no_optional_package():
    code = (
        "import sys, kernelbank, kernelbank.io.sources\n"
        "heavy = {'pyarrow', 'polars', 'pandas', 'redis', 'confluent_kafka'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "for name in ('pyarrow', 'redis', 'confluent_kafka'): sys.modules[name] = None\n"
        "from kernelbank.io.sources import open_source\n"
        "for address in ('a.parquet', 'redis://h/s', 'kafka://h/t'):\n"
        "    try: open_source(address)\n"
        "    except ModuleNotFoundError as error: print(error)\n"
        "for block in open_source('-').blocks():\n"
        "    if len(block): print(block.parse(numeric=['a']).numbers)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input="a\n1\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install 'kernelbank[") == 3
    for extra in ("[files]", "[redis]", "[kafka]", "[[1.]]"):
        assert extra in done.stdout


def test_standard_input_sent_again_is_compared_and_skipped():
    data = as_csv(ROWS)
    _, _, positions = read(PipeFixture(data).open())
    with pytest.raises(FileRefused, match="first 3 rows are not those"):
        read(PipeFixture(data.replace(b"0.1", b"0.3")).open(), positions[2])
    assert read(PipeFixture(data.replace(b"0.5", b"0.9")).open(), positions[2])[0][0] == EXPECTED[3]
    with pytest.raises(FileRefused, match="fewer than the 90 bytes of the first 3 rows"):
        read(PipeFixture(data[:60]).open(), positions[2])
    source = PipeFixture(data).open()
    read(source)
    with pytest.raises(InvalidArgument, match="once"):
        source.blocks()
    for nothing in (b"", b"\n \n"):
        with pytest.raises(FileRefused, match="nothing came"):
            read(PipeFixture(nothing).open())
    with pytest.raises(FileRefused, match="compressed"):
        read(PipeFixture(gzip.compress(data)).open())


# --- opening files ---------------------------------------------------------------------------------


FLAGS = [
    os.O_RDONLY,
    os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    os.O_RDWR | os.O_CREAT,
]


@pytest.mark.parametrize("kind", ["a link", "a link to nothing", "a FIFO", "a folder", "a socket"])
def test_what_is_no_regular_file_is_refused(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").write_text("kept")
    path = tmp_path / "file"
    if "link" in kind:
        path.symlink_to("other" if kind == "a link" else "nothing")
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path.name)  # names of sockets are short: the folder is the present one
    else:
        {"a FIFO": os.mkfifo, "a folder": os.mkdir}[kind](path)
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


# --- CSV and JSON lines, whatever stands in them ---------------------------------------------------


def test_fuzzed_texts_are_read_as_by_a_simple_reader():
    outcomes = attack(230, seed=1)
    assert sum(outcomes.values()) == 230
    assert outcomes["csv: good rows"]
    assert outcomes["csv.gz: some bad rows"]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n9\n"])
@pytest.mark.parametrize(
    ("form", "begin", "close"),
    [("csv", b"", b""), ("quoted.csv", b'"', b'"'), ("jsonl", b'{"a": ', b"}")],
)
def test_row_of_the_maximum_length_is_accepted(tmp_path, form, begin, close, end, monkeypatch):
    monkeypatch.setattr(LineSplitter, "max_row_bytes", 20)
    path = tmp_path / f"rows.{form}"
    header = b'{"a": 1}\n' if form == "jsonl" else b"a\n"
    for size, is_accepted in ((20, True), (21, False)):
        digits = b"1" * (size - len(begin + close))
        path.write_bytes(header + begin + digits + close + end)
        for piece in (1, 8, 1000):
            monkeypatch.setattr(io_text, "CHUNK_BYTES", piece)
            row = str(Reading(path).rows[form == "jsonl"])
            assert f"rows.{form}, line 2" in row
            assert (" 262144 bytes" in row) != is_accepted, (size, piece)


def test_slow_pipe_yields_rows_as_they_come():
    """And an empty block as a sign of life while nothing comes: then the next piece is sent."""
    reading, writing = os.pipe()
    unsent = [b"a,b\n", b"1,", b"2\n3,4\n", b"5,6"]
    seen = []
    for block in StandardInput(descriptor=reading, idle=0.5).blocks():
        if len(block):
            seen.append((len(block), len(unsent)))
        elif unsent:
            os.write(writing, unsent.pop(0))
    os.close(writing)
    os.close(reading)
    assert seen == [(2, 1)]  # as soon as the rows are whole; the last one may be longer
