"""Texts that nobody should write, read in every way: the rows of a simple reader, or a refusal.

`attack(count, seed)` makes sources and checks each of them. By hand, for as long as you like:

    python -c "from support.fuzzed_sources import attack; print(attack(100_000, 1))"
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from kernelbank.errors import FileRefused
from kernelbank.io import followed_file
from kernelbank.io import text as io_text
from kernelbank.io.lines import LineSplitter
from kernelbank.io.sources import open_source
from kernelbank.io.text import StandardInput

KINDS = ("csv", "csv", "jsonl", "csv.gz", "jsonl.gz")
TOKENS = [
    *(b'"', b'""', b'","', b'",', b',"', b'\n"', b'"\n', b"\n", b"\r", b"\r\n", b",", b";", b"\t"),
    *(b"\0", b"\xff", b"\xc3", "é".encode(), b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x85", b"{", b"}"),
    *(b"[", b"]", b":", b"\\", b"\\ud800", b"1e999", b"NaN", b"-0", b"1" * 400, b"null", b" "),
    *(b"true", b"0x1", b"1_0", b"'", b'{"a": 1}', b'a",",\n', b'"a\nb"', b"x" * 70, b"a,b\n"),
]


def attack(count: int, seed: int) -> Counter[str]:
    """Read `count` fuzzed sources; returns how many ended in which way.

    An `AssertionError` names the seed, the number, the kind and the bytes of a source that breaks a
    rule.
    """
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        patches.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for module, name, value in (
            (io_text, "SETTLE_SECONDS", 0.0),
            (followed_file, "POLL_SECONDS", 0.0),
            (io_text, "_PIECES_PER_SIGN", 1 << 30),
        ):
            patches.enter_context(mock.patch.object(module, name, value))
        for number in range(count):
            draw = random.Random(f"{seed} {number}")
            kind, data = fuzzed_source(draw)
            path = Path(folder, f"rows.{kind}")
            path.write_bytes(data)
            longest = draw.choice([1 << 18, 1 << 18, 1 << 18, 60, 9])
            try:
                with mock.patch.object(LineSplitter, "max_row_bytes", longest):
                    outcomes[f"{kind}: {check_source(path, data, draw)}"] += 1
            except Exception as error:
                raise AssertionError(
                    f"attack seed {seed}, source {number}, {kind}, rows of {longest} bytes: "
                    f"{data[:2000]!r}"
                ) from error
    return outcomes


# --- sources --------------------------------------------------------------------------------------


def fuzzed_source(draw: random.Random) -> tuple[str, bytes]:
    """The kind of a source, and its bytes."""
    kind = draw.choice(KINDS)
    form = kind.removesuffix(".gz")
    data = draw.choice([good_text, good_text, good_text, token_text])(draw, form)
    for _ in range(draw.choice([0, 1, 1, 2, 5])):
        data = mutated(draw, data)
    if draw.random() < 0.002:
        at = draw.randint(0, len(data))
        token = draw.choice([b"x", b'"', b'a",",\n', b"1,", b"\n", b"\0"])
        data = data[:at] + token * (300_000 // len(token)) + data[at:]
    if draw.random() < 0.04:
        encoding = draw.choice(["utf-16", "utf-16-le", "latin-1", "utf-32"])
        data = data.decode("utf-8", "replace").encode(encoding, "replace")
    if kind.endswith(".gz"):
        data = compressed(draw, data)
    return kind, data


def good_text(draw: random.Random, form: str) -> bytes:
    end = draw.choice(["\n", "\n", "\r\n"])
    rows = [
        (draw.choice(["", "1", "-2.5", "1e3", "7"]), draw.choice(["x", "a, b", 'say "so"', "l\nm"]))
        for _ in range(draw.randint(0, 12))
    ]
    if form == "csv":
        lines = ["a,b", *(f'{a},"{b.replace(chr(34), chr(34) * 2)}"' for a, b in rows)]
    else:
        lines = [json.dumps({"a": float(a or "nan"), "b": b}) for a, b in rows]
    text = end.join([*lines, ""]).encode()
    return text if draw.random() < 0.7 else text[: draw.randint(0, len(text))]


def token_text(draw: random.Random, form: str) -> bytes:
    start = b"a,b\n" if form == "csv" else b'{"a": 1, "b": "x"}\n'
    return start + b"".join(draw.choices(TOKENS, k=draw.randint(0, 25)))


def mutated(draw: random.Random, data: bytes) -> bytes:
    """The text with a piece changed, removed, repeated or put in."""
    first, last = sorted(draw.randint(0, len(data)) for _ in range(2))
    token = draw.choice(TOKENS)
    many = token * draw.randint(1, 8)
    middle = draw.choice([b"", token, draw.randbytes(2), data[first:last] * 2, many])
    return data[:first] + middle + data[last if draw.random() < 0.5 else first :]


def compressed(draw: random.Random, data: bytes) -> bytes:
    cut = draw.randint(0, len(data))
    packed = gzip.compress(data[:cut], 1, mtime=0) + gzip.compress(data[cut:], 1, mtime=0)
    what = draw.random()
    if what < 0.6:
        return packed + bytes(draw.choice([0, 0, 5]))
    return packed[: draw.randint(0, len(packed))] if what < 0.8 else mutated(draw, packed)


# --- rules ----------------------------------------------------------------------------------------


def check_source(path: Path, data: bytes, draw: random.Random) -> str:
    """Read a source in several ways; returns how it ended."""
    plain = Reading(path)
    is_packed = data[:2] == io_text.GZIP_MAGIC
    sizes = [draw.choice([1, 2, 7]), draw.choice([1, 3, 50])]
    if len(data) < 2000:
        with mock.patch.object(io_text, "CHUNK_BYTES", sizes[0]):
            again = Reading(path, size=sizes[1])
        # Where damage of a gzip file is noticed depends on the pieces; rows before it do not.
        shorter = min(len(plain.rows), len(again.rows)) if is_packed and plain.refusal else None
        assert again.rows[:shorter] == plain.rows[:shorter]
        assert bool(again.refusal) == bool(plain.refusal)
    if plain.rows and len(data) < 20_000:
        check_resumed(path, plain, draw)
    if not is_packed and len(data) < 2000:
        if not plain.refusal:
            check_simple(data, plain, path.suffix == ".csv")
        check_growing(path, data, draw)
        check_piped(path, data, plain)
    if plain.refusal:
        return "rows, then refused" if plain.rows else "refused"
    bad = sum(isinstance(row, str) for row in plain.rows)
    return "no rows" if not plain.rows else "good rows" if not bad else "some bad rows"


def simple_csv(data: bytes, longest: int) -> Iterator[tuple[int, list[str] | None]]:
    """The line of each row and its cells, None for broken ones."""
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n") if data else [], start=1):
        line = raw.decode("utf-8", "surrogateescape")
        line = line.removeprefix("\ufeff") if number == 1 else line
        row = None
        with suppress(csv.Error):
            row = next(csv.reader([line + "\n"], strict=True)) if len(raw) <= longest else None
        if row != []:
            yield number, row


def simple_json(data: bytes, longest: int) -> Iterator[tuple[int, list[Any] | None]]:
    """The line of each row and its values, those of the first object before all."""
    keys: list[str] | None = None
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n") if data else [], start=1):
        line = raw.decode("utf-8", "surrogateescape")
        line = line.removeprefix("\ufeff") if number == 1 else line
        if len(raw) <= longest and not line.strip():
            continue
        row = None
        with suppress(ValueError, RecursionError):
            row = json.loads(line) if len(raw) <= longest else None
        is_object = isinstance(row, dict)
        if keys is None and is_object:
            keys = list(row)
        yield number, [row.get(key) for key in keys or ()] if is_object else None


def check_simple(data: bytes, plain: Reading, is_csv: bool) -> None:
    """The rows are those of a simple reader; values that it does not judge may be rejected."""
    reader = simple_csv if is_csv else simple_json
    rows = list(reader(data, LineSplitter.max_row_bytes))
    header = rows.pop(0)[1] if is_csv else None
    assert len(plain.rows) == len(rows)
    for row, (line, values) in zip(plain.rows, rows, strict=True):
        assert f", line {line}" in (row if isinstance(row, str) else f"{row[0]}:")
        is_row = values is not None and (header is None or len(values) == len(header))
        if isinstance(row, str):
            assert is_row == (f", line {line}:" not in row), row
        else:
            assert is_row, row
            texts = [value for value in values[1:] if isinstance(value, str | None)]
            if len(texts) == len(values) - 1:
                assert row[2] == [value or None for value in texts]


class Reading:
    """The rows of a source, with the position after each, up to a refusal if there is one."""

    def __init__(
        self,
        source: Any,
        position: Any = None,
        size: int = 1024,
        fingerprint: Any = None,
        **options: Any,
    ) -> None:
        self.rows: list[Any] = []
        self.positions: list[Any] = []
        self.provisional = 0
        self.refusal = ""
        self.fingerprint = fingerprint
        try:
            if isinstance(source, Path):
                source = open_source(source, **options)
                if fingerprint is not None:
                    source.verify(json.loads(json.dumps(fingerprint)))
            first = 0 if position is None else position["rows"]
            for block in source.blocks(position, size):
                assert block.first == first + len(self.rows)
                self._take(block, source.columns)
            self.fingerprint = source.fingerprint
        except FileRefused as error:
            self.refusal = str(error)
            assert self.refusal.isprintable(), self.refusal

    def _take(self, block: Any, columns: tuple[str, ...] | None) -> None:
        assert not self.provisional or block.provisional, "rows after a provisional block"
        names = list(columns or ())
        parsed = block.parse(names[:1], names[1:], allow_missing=True)
        rows: dict[int, Any] = {one.row: f"{block.first} {one}" for one in parsed.rejected}
        for index, row in enumerate(parsed.rows.tolist()):
            numbers = [None if math.isnan(n) else n for n in parsed.numbers[index].tolist()]
            rows[row] = (block.where(row), numbers, [t[index] for t in parsed.texts.values()])
        rows |= {row: text.partition(" ")[2] for row, text in rows.items() if type(text) is str}
        assert sorted(rows) == list(range(len(block))), "rows + rejected = all"
        self.rows += [rows[row] for row in range(len(block))]
        self.positions += [block.position(row) for row in range(len(block))]
        self.provisional += block.provisional


def check_resumed(path: Path, plain: Reading, draw: random.Random) -> None:
    """From any position on, the rows are the others; it is JSON data."""
    at = draw.randrange(len(plain.rows))
    position = json.loads(json.dumps(plain.positions[at]))
    rest = Reading(path, position, draw.choice([1, 5, 1024]), plain.fingerprint)
    assert rest.rows == plain.rows[at + 1 :]
    assert rest.positions == plain.positions[at + 1 :]
    assert bool(rest.refusal) == bool(plain.refusal)


def check_growing(path: Path, data: bytes, draw: random.Random) -> None:
    """A text that is written bit by bit gives the rows that have an end, each once."""
    whole = Reading(path, complete=False)
    if whole.refusal:
        return
    kept = provisional_from(path, None) if whole.provisional else len(whole.rows)
    rows: list[Any] = []
    position = fingerprint = None
    grown = path.with_name(f"grown-{path.name}")
    for cut in sorted([draw.randint(0, len(data)), draw.randint(0, len(data)), len(data)]):
        grown.write_bytes(data[:cut])
        follow = draw.random() < 0.5
        how: dict[str, Any] = {"follow": True, "idle": 1e-9} if follow else {"complete": False}
        if not follow and not cut:
            continue
        part = Reading(grown, position, fingerprint=fingerprint, **how)
        if part.refusal:
            assert (follow, rows) == (False, []), part.refusal
            assert "header" in part.refusal
            continue
        count = len(part.rows)
        if part.provisional:
            count = provisional_from(grown, position)
        if count:
            rows += part.rows[:count]
            position, fingerprint = part.positions[count - 1], part.fingerprint
    named = [_named(row, grown.name, path.name) for row in rows]
    assert named == whole.rows[:kept]


def provisional_from(path: Path, position: Any) -> int:
    """How many rows come before the provisional ones."""
    blocks = open_source(path, complete=False).blocks(position)
    return sum(len(block) for block in blocks if not block.provisional)


def _named(row: Any, name: str, other: str) -> Any:
    """A row as if its file had another name."""
    whole = isinstance(row, str)
    return row.replace(name, other, 1) if whole else (row[0].replace(name, other, 1), *row[1:])


def check_piped(path: Path, data: bytes, plain: Reading) -> None:
    """Standard input gives the same rows."""
    is_object = data.strip(b" \t\r\n\xef\xbb\xbf")[:1] == b"{"
    if plain.refusal or is_object != (path.suffix == ".jsonl") or not plain.rows:
        return
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        piped = Reading(StandardInput(descriptor=reading))
    finally:
        os.close(reading)
    assert piped.refusal == ""
    assert [_named(row, "standard input", path.name) for row in piped.rows] == plain.rows
