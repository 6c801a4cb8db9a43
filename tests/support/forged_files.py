"""Forged files: a stranger's, changed inside, with the right checksum.

`attack` makes them by chance from saved files of every kind, and loads and uses each in a child
process with little memory. A file is refused with a `KernelBankError`, or works; anything else is
a failure. By hand: `python tests/attack.py --forged 20000`.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kernelbank as kb
from kernelbank.errors import FileRefused, KernelBankError
from kernelbank.io import checkpoint
from kernelbank.run.options import RunOptions
from kernelbank.run.report.data import report_text
from kernelbank.run.runner import Runner
from kernelbank.run.status import RunStatus
from support import every_bank
from support.run_command import open_run, run_to_end

_PREFIX = struct.Struct("<IQQ")
_START = len(checkpoint.MAGIC) + _PREFIX.size

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]

PER_BYTE, CONSTANT = 64, 2**28
"""What `kb.load` may use: so many bytes per byte of a file, and so many besides."""

MEMORY = 600 * 2**20
"""Bytes that a child of `attack` may use, for loading and learning, beside what it has at its
start."""

SECONDS = 20
"""Processor time after which a file is said to hang."""

BATCH = 200
"""Files of one child."""

FAILED = "failed"
"""How the names of outcomes begin that must not be."""

NUMBERS = [10**3, 10**6, 10**8, 2**31, 2**63, -1, 0, 1e308, 0.5, True, "7"]
"""What each number of a header is replaced by."""

VALUES = [
    *NUMBERS, None, False, 1, 2, 3, 10**30, 10**400, -(2**63), -0.5, float("nan"), float("inf"), "",
    "\ud800", "x" * 1000, [], [[]], [1], [[[[[1]]]]], [None] * 50, {}, {"type": "Gaussian"},
    {"a": {"b": [1]}},
]  # fmt: skip
"""What any value of a header is replaced by."""

ENTRIES = [
    np.nan, np.inf, -np.inf, 1e308, -1e308, 1e150, -1.0, 0.0, 0.5, 1.0, 4.0, 1e-320, 255.0, 256.0,
    1e6, 2.0**31, 2.0**53, 2.0**63, 1e19,
]  # fmt: skip
"""What a number of an array is replaced by."""


# --- files ------------------------------------------------------------------------------------------


def unpack(data: bytes) -> tuple[Header, bytes]:
    """The header, with its table of arrays, and the bytes of the arrays."""
    _, _, length = _PREFIX.unpack_from(data, len(checkpoint.MAGIC))
    header = json.loads(data[_START : _START + length])
    return header, data[_START + length : -32]


def pack(header: Header, body: bytes) -> bytes:
    """A file with this header and these bytes, and the checksum that belongs to them."""
    text = json.dumps(header).encode()
    total = _START + len(text) + len(body) + 32
    data = checkpoint.MAGIC + _PREFIX.pack(checkpoint.VERSION, total, len(text)) + text + body
    return data + hashlib.sha256(data).digest()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a header, with those of lists and objects themselves."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def at(header: Any, path: tuple[Any, ...]) -> Any:
    """The value at a path."""
    for key in path:
        header = header[key if isinstance(header, list) else str(key)]
    return header


def with_value(header: Header, path: tuple[Any, ...], value: Any) -> Header:
    """A copy of the header with another value at a path."""
    copied: Header = json.loads(json.dumps(header))
    at(copied, path[:-1])[path[-1]] = value
    return copied


def arrays_of(header: Header, body: bytes) -> Arrays:
    """The arrays by name."""
    arrays: Arrays = {}
    offset = 0
    for name, dtype, shape in header["arrays"]:
        size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(body[offset : offset + size], dtype).reshape(shape).copy()
        offset += size
    return arrays


def assert_refused(data: bytes, table: dict[str, list[Any]], **options: Any) -> None:
    """Each change alone makes a file that is refused.

    table : by the path of a value in the header ("model/held", "kernels/0"), other values; by the
        name of an array after a colon, what its last entry becomes.
    """
    header, body = unpack(data)
    for name, values in table.items():
        path = tuple(int(key) if key.isdigit() else key for key in name.split("/"))
        for value in values:
            if name.startswith(":"):
                arrays = arrays_of(header, body)
                arrays[name[1:]].flat[-1] = value
                forged = pack(header, b"".join(array.tobytes() for array in arrays.values()))
            else:
                forged = pack(with_value(header, path, value), body)
            try:
                kb.from_bytes(forged, **options)
            except FileRefused:
                continue
            raise AssertionError(f"a file was loaded with {name} = {value!r}")


def with_each_number(data: bytes, seen: Counter[Any]) -> Iterator[bytes]:
    """The file with each number of its header replaced in turn, at places that are new.

    seen : how often a number stood at such a place; a setting of a component is one place.
    """
    header, body = unpack(data)
    for path in places(header):
        known, inside = at(header, path), at(header, path[:-1])
        if isinstance(known, bool) or not isinstance(known, (int, float)):
            continue
        if isinstance(inside, dict) and inside.get("type") in every_bank.OWN:
            continue  # what a user's part needs is known to no file
        place = tuple("" if isinstance(key, int) else key for key in path)
        if isinstance(inside, dict) and "type" in inside:
            place = (inside["type"], path[-1])
        seen[place] += 1
        if seen[place] == 1:
            for value in NUMBERS:
                if value != known:
                    yield pack(with_value(header, path, value), body)


# --- saved files of every kind, and how each is used ------------------------------------------------

ROWS = 40
"""How many rows the saved banks have learned."""


class SavedKind(NamedTuple):
    """A saved file, and what to do with a forged one of its kind."""

    name: str
    data: bytes
    use: Callable[[Path], None]
    """Load the file at a path and work with it; raises what is wrong."""


def every_kind(folder: Path, cases: dict[str, Any] | None = None) -> Iterator[SavedKind]:
    """A saved file of every kind.

    cases : those of `every_bank`; if None, a bank for each instance of a component.
    """
    path = folder / "saved.kb"
    for name, case in (cases or every_bank.all_cases()).items():
        bank = case.make("serial")
        if not name.startswith("AutoBank"):
            bank.save(path)
            yield SavedKind(f"{name}, empty", path.read_bytes(), _use_bank(case.X, case.y))
        bank.run(case.X[:ROWS], case.y[:ROWS])
        if name.startswith("AutoBank"):
            bank.predict_one(case.X[3])
            bank.predict_one(case.X[4])
        bank.save(path)
        yield SavedKind(name, path.read_bytes(), _use_bank(case.X, case.y))
    yield from _auto_banks()
    for labels in (False, True):
        run = SavedRun(folder / f"run-{labels}", labels=labels)
        yield SavedKind(f"run, labels={labels}", run.state, run.use)


def _use_bank(X: Any, y: Any) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        bank = kb.load(path, components=every_bank.OWN)
        bank.predict_one(X[3])
        for n in range(ROWS, ROWS + 3):
            bank.learn_one(X[n], y[n])
        if isinstance(X, np.ndarray):  # not by names
            bank.run(X[ROWS : ROWS + 6], y[ROWS : ROWS + 6])
            bank.predict(X[:3])
        if getattr(bank, "horizons", ()):
            bank.forecast(X[:3] if bank.config.known else None), bank.ledger.horizons
        repr(bank), bank.status()
        bank.save(path)
        kb.load(path, components=every_bank.OWN)

    return use


def _auto_banks() -> Iterator[SavedKind]:
    """AutoBanks on columns, before their first bank, with far targets, few slots, known inputs."""
    X, y = every_bank.X, every_bank.NUMBERS
    far = np.where(np.arange(len(y)) < ROWS - 2, y, 1e4)
    hours = np.datetime64("2026-01-01") + np.arange(len(X)).astype("timedelta64[h]")
    rows = [
        {"a": float(x[0]), "site": "xyz"[n % 3], "time": hours[n].item()} for n, x in enumerate(X)
    ]
    columns: dict[str, Any] = {"lags": 1, "size": "small", "scalings": "standard"}
    slots = [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierRLS(features=8))]
    few: dict[str, Any] = {"slots": slots, "combiner": kb.combiners.Simplex(), "lower": -1e9}
    labels: dict[str, Any] = {"task": "classification"}
    known: dict[str, Any] = {"size": "small", "horizons": 3, "known": [1], "seasons": "auto"}
    kinds: dict[str, tuple[dict[str, Any], Any, Any, int]] = {
        "on columns": (columns, rows, y, ROWS),
        "on columns, for labels": (columns | labels, rows, [v > 0.5 for v in y.tolist()], ROWS),
        "before its first row": (few, X, far, 0),
        "before its first bank": (few, X, far, 3),
        "with far targets": (few, X, far, ROWS),
        "with few slots": (
            labels | {"slots": slots, "classes": range(3)},
            X,
            every_bank.THREE,
            ROWS,
        ),
        "with known inputs": (known, X, y, ROWS),
    }
    for name, (settings, inputs, targets, count) in kinds.items():
        bank = kb.AutoBank(**settings)
        for n in range(count):
            bank.learn_one(inputs[n], targets[n])
        bank.predict_one(inputs[ROWS])
        yield SavedKind(f"AutoBank {name}", bank.to_bytes(), _use_bank(inputs, targets))


class SavedRun:
    """A run that has done some rows of its source; `use` resumes it and reads the others."""

    def __init__(self, root: Path, *, labels: bool = False, preset: str = "auto") -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.preset = root, preset
        self.task = "classification" if labels else "regression"
        self.source = root / "few.csv"
        rows = [
            f"{n % 7},{'xyz'[n % 3]},2026-01-{1 + n % 28:02d},"
            + ("oh" if n == 11 else ("yes", "no")[n % 2] if labels else str(n % 7 - n % 5))
            for n in range(ROWS + 20)
        ]
        self.source.write_text("\n".join(["a,site,day,y", *rows]) + "\n")
        with self.open(root, max_rows=ROWS) as run:
            run.start()
            run_to_end(run)
        self.state = (root / "state/state.kb").read_bytes()

    def open(self, root: Path, max_rows: int | None = None) -> AbstractContextManager[Runner]:
        """A run with the same options, in a folder."""
        options = RunOptions(
            source="",
            target="y",
            task=self.task,
            categorical=("site",),
            time="day",
            preset=self.preset,
            size="small" if self.preset == "auto" else "default",
            delay=3,
            lags=1,
            max_rows=max_rows,
            on_bad_row="skip",
        )
        return open_run(root, self.source, options)

    def resume_to_end(self, root: Path) -> None:
        """Resume the run in a folder, to the end of its source."""
        with self.open(root) as run:
            assert run.resume()
            run_to_end(run)

    def use(self, path: Path) -> None:
        """Resume from the state at a path, in place, to the end of the source; then report."""
        kept = {
            file: file.read_bytes()
            for file in (self.root / "few-predictions.csv", self.root / "state/bad-rows.jsonl")
        }
        shutil.copyfile(path, self.root / "state/state.kb")
        try:
            with self.open(self.root) as run:
                status = RunStatus.of_state(self.root / "state")
                status.to_json(), report_text(status)
                if run.resume():
                    run_to_end(run)
        finally:
            for file, data in kept.items():
                file.write_bytes(data)


# --- forging ----------------------------------------------------------------------------------------


def _entry(draw, array):
    """A number that does not belong there; a whole one for counts and indices."""
    value = draw.choice(ENTRIES)
    if array.dtype.kind != "i":
        return value
    return int(value) if abs(value) < 2**62 else -1


class Forger:
    """Changes saved files by chance."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def forge(self, data: bytes) -> bytes:
        """A forged file."""
        draw = self._draw
        header, body = unpack(data)
        arrays = arrays_of(header, body)
        del header["arrays"]
        table: dict[str, Any] = {}
        for _ in range(draw.choice([1, 1, 1, 2, 4])):
            if draw.random() < 0.55:
                self._change_header(header)
            else:
                self._change_arrays(arrays, table)
        listed = [
            [name, *table.get(name, (array.dtype.str, list(array.shape)))]
            for name, array in arrays.items()
        ]
        body = b"".join(array.tobytes() for array in arrays.values())
        return pack({**header, "arrays": listed}, body)

    def _change_header(self, header: Header) -> None:
        draw = self._draw
        found = list(places(header))
        if not found:
            return
        path = draw.choice(found)
        inside, key = at(header, path[:-1]), path[-1]
        how = draw.random()
        if how < 0.7:
            inside[key] = deepcopy(draw.choice(VALUES))
        elif how < 0.8:
            del inside[key]
        elif how < 0.9:
            if isinstance(inside, dict):
                inside["extra"] = deepcopy(draw.choice(VALUES))
            else:
                inside.append(deepcopy(draw.choice(VALUES)))
        else:  # something from another place of the header
            inside[key] = deepcopy(at(header, draw.choice(found)))

    def _change_arrays(self, arrays: Arrays, table: dict[str, Any]) -> None:
        draw = self._draw
        if not arrays:
            return
        name = draw.choice(list(arrays))
        array = arrays[name]
        how = draw.random()
        if how < 0.5 and array.size:
            with np.errstate(all="ignore"):
                for _ in range(draw.choice([1, 1, 3])):
                    array.flat[draw.randrange(array.size)] = _entry(draw, array)
        elif how < 0.65:
            with np.errstate(all="ignore"):
                array[...] = _entry(draw, array)
        elif how < 0.7:
            arrays[name] = array[: draw.randrange(len(array) + 1)] if array.ndim else array
        elif how < 0.75:
            arrays[name] = array.reshape(-1) if draw.random() < 0.5 else array.T.copy()
        elif how < 0.8:
            arrays[name] = array.astype("<f4" if array.dtype == "<f8" else "<f8")
        elif how < 0.84:
            del arrays[name]
        elif how < 0.88:
            other = draw.choice(list(arrays))
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif how < 0.92:
            same = [n for n, one in arrays.items() if one.shape == array.shape]
            arrays[name] = arrays[draw.choice(same)].copy()
        elif how < 0.96:
            shape = draw.choice([[0, 10**9], [10**9, 0], [-1], [2**62, 2**62, 0], 3, ["a"], []])
            arrays[name] = np.zeros(0)
            table[name] = ("<f8", shape)
        else:
            arrays[f"{name}x"] = array.copy()


# --- children ---------------------------------------------------------------------------------------


def attack(count: int, seed: int, cases: dict[str, Any] | None = None) -> Counter[str]:
    """Make `count` forged files, load and use each; how often each outcome came.

    cases : the banks to forge, as for `every_kind`.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = list(every_kind(Path(folder), cases))

        groups = [  # the most intricate files most often: there are two, some ten and two hundred
            [kind for kind in kinds if kind.name.startswith("run")],
            [kind for kind in kinds if kind.name.startswith("AutoBank")],
            [kind for kind in kinds if not kind.name.startswith(("run", "AutoBank"))],
        ]

        def item(number: int) -> tuple[SavedKind, bytes]:
            draw = random.Random(f"{seed}:{number}")
            kind = draw.choice(draw.choices(groups, [1, 3, 16])[0])
            return kind, Forger(draw).forge(kind.data)

        return run_all(item, count, Path(folder))


def run_all(
    item: Callable[[int], tuple[SavedKind, bytes]],
    count: int,
    folder: Path,
    memory: int = MEMORY,
) -> Counter[str]:
    """Use files number 0 to `count` - 1 in child processes; how often each outcome came."""
    outcomes: Counter[str] = Counter()
    done = 0
    while done < count:
        last = min(count, done + BATCH)
        found, status = _run_child(item, range(done, last), folder, memory)
        if len(found) < last - done:  # it died
            kind = item(done + len(found))[0]
            found.append(
                f"{FAILED}: process ended by {os.waitstatus_to_exitcode(status)}: {kind.name}"
            )
        outcomes += Counter(found)
        done += len(found)
    return outcomes


def failures(outcomes: Counter[str]) -> dict[str, int]:
    """The outcomes that must not be."""
    return {name: n for name, n in outcomes.items() if name.startswith(FAILED)}


def _run_child(
    item: Callable[[int], tuple[SavedKind, bytes]], numbers: range, folder: Path, memory: int
) -> tuple[list[str], int]:
    """The outcomes of files, as many as a child process could tell, and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            os.fsync = lambda _: None  # type: ignore[assignment]
            faulthandler.disable()
            own = folder / f"child-{os.getpid()}.kb"
            for number in numbers:
                kind, data = item(number)
                own.write_bytes(data)
                signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the signal ends the process
                outcome = _outcome(kind, own)
                signal.setitimer(signal.ITIMER_PROF, 0)
                os.write(writing, outcome.replace("\n", " ")[:300].encode(errors="replace") + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        found = pipe.read().decode(errors="replace").splitlines()
    return found, os.waitpid(child, 0)[1]


def _outcome(kind: SavedKind, path: Path) -> str:
    try:
        with np.errstate(all="ignore"):
            kind.use(path)
    except KernelBankError as error:
        line = str(error)
        before: BaseException | None = error
        while before is not None:  # refused, but after the memory was used up
            if isinstance(before, MemoryError):
                return f"{FAILED}: too much memory: {line}"
            before = before.__context__
        return "refused" if "\n" not in line else f"{FAILED}: an error of several lines: {line}"
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [f for f in frames if "kernelbank" in f.filename] or frames
        where = f"{Path(inside[-1].filename).name}:{inside[-1].lineno}"
        return f"{FAILED}: {type(error).__name__} at {where}: {str(error)[:60]}"
    return "used"


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what waits for ever."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
