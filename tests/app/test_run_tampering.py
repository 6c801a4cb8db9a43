"""What was changed between two processes of a run is refused in one line, and nothing is touched."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelbank.app.runner.checkpoint_dir import CheckpointDir
from kernelbank.app.runner.model_session import prediction_columns
from kernelbank.app.runner.options import RunOptions
from kernelbank.app.runner.runner import Runner
from kernelbank.errors import FileRefused, RunRefused
from kernelbank.io import checkpoint
from kernelbank.io.sinks.csv import CsvSink, JsonLinesSink
from kernelbank.io.sources import open_source
from support.run_cases import CASES, Bench, disk, one_line, opened
from support.run_faults import Fault


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with opened(tmp_path_factory.mktemp("tampering")) as found:
        yield found


@pytest.fixture(scope="module")
def halfway(bench: Bench) -> dict[str, Path]:
    """Runs that were killed in the middle."""
    found = {}
    for name in ("messy", "parts"):
        found[name] = bench.folder()
        ended = bench.run(name, found[name], Fault("replace:state", 4, "after"))
        assert ended.killed
    return found


@pytest.fixture
def broken_off(bench: Bench, halfway: dict[str, Path]) -> Any:
    """A copy of such a run's folder, to tamper with. (RowLocations are absolute: the same name again.)"""
    kept = []

    def copy(name: str) -> Path:
        kept.append((halfway[name], halfway[name].with_name(f"{halfway[name].name}-kept")))
        shutil.copytree(*kept[-1])
        return halfway[name]

    yield copy
    for folder, copied in kept:
        shutil.rmtree(folder)
        copied.rename(folder)


def refuses(bench: Bench, name: str, folder: Path, *words: str, more: str = "") -> None:
    before = disk(folder)
    one_line(bench.run(name, folder, more=more), *words)
    assert disk(folder) == before


OTHER_OPTIONS = {
    "--lags 3": ["--lags was 2, now 3"],
    "--coverage 0.5 --delay 1": ["--delay was 0, now 1", "--coverage was 0.9, now 0.5"],
    "--features a": ["--features was none, now a"],
    "--preset paper": ["--preset was auto, now paper"],
    "--predictions other.csv": ["--predictions was", "answers.csv, now", "other.csv"],
    "--predictions other.parquet": ["--predictions was", "other.parquet"],
}


@pytest.mark.parametrize(
    "more",
    [
        more if more == "--lags 3" else pytest.param(more, marks=pytest.mark.slow)
        for more in OTHER_OPTIONS
    ],
)
def test_other_settings(bench: Bench, broken_off: Any, more: str) -> None:
    folder = broken_off("messy")
    (folder / "other.csv").write_text("somebody's\n")
    refuses(bench, "messy", folder, *OTHER_OPTIONS[more], more=more)


def test_another_source(bench: Bench, broken_off: Any) -> None:
    folder = broken_off("messy")
    args = CASES["messy"].args(folder, None)
    before = disk(folder)
    args[1] = "../labels.csv"
    one_line(bench.stable.run(args, folder), "not the source that was read before", "address")
    assert disk(folder) == before


def test_rewritten_source(bench: Bench, broken_off: Any) -> None:
    folder = broken_off("messy")
    source = bench.root / "messy.csv"
    kept = source.read_bytes()
    try:
        source.write_bytes(kept.replace(b"oh", b"no"))
        refuses(bench, "messy", folder, "not the source that was read before", "head")
    finally:
        source.write_bytes(kept)


def changed_first_byte(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"R" + data[1:])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def foreign(path: Path) -> None:
    path.write_bytes(b"all,about,me\n" * 2000)


TAMPERED = {
    "changed": (changed_first_byte, "answers.csv was changed"),
    "cut": (cut, "answers.csv was cut: 100 of "),
    "removed": (Path.unlink, "answers.csv is gone"),
    "foreign": (foreign, "answers.csv was changed"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampered_answers(bench: Bench, broken_off: Any, how: str) -> None:
    folder = broken_off("messy")
    tamper, words = TAMPERED[how]
    tamper(folder / "answers.csv")
    refuses(bench, "messy", folder, words)


def test_tampered_bad_rows(bench: Bench, broken_off: Any) -> None:
    """The answers are as they should be and have rows too many: these must stay, too."""
    folder = broken_off("messy")
    with (folder / "answers.csv").open("ab") as file:
        file.write(b"12")
    cut(folder / "state/bad-rows.jsonl")
    refuses(bench, "messy", folder, "bad-rows.jsonl was cut")


def test_tampered_parts(bench: Bench, broken_off: Any) -> None:
    folder = broken_off("parts")
    part = folder / "answers.parquet/part-000000.parquet"
    kept = part.read_bytes()
    changed_first_byte(part)
    refuses(bench, "parts", folder, "a part was changed")
    part.unlink()
    refuses(bench, "parts", folder, "part-000000.parquet is gone")
    part.write_bytes(kept)
    assert bench.run("parts", folder).code == 0


def test_a_file_that_was_there_before(bench: Bench) -> None:
    for name, output in (("messy", "answers.csv"), ("parts", "answers.parquet/mine.txt")):
        folder = bench.folder()
        (folder / output).parent.mkdir(exist_ok=True)
        (folder / output).write_text("mine\n")
        one_line(bench.run(name, folder), "exists, and belongs to no run with this --state")
        assert disk(folder) == {output: b"mine\n"}


def test_a_strangers_file_in_place_of_one_just_begun(bench: Bench) -> None:
    folder = bench.folder()
    assert bench.run("messy", folder, Fault("write:predictions", 1)).killed
    (folder / "answers.csv").write_text("somebody's\n")
    refuses(bench, "messy", folder, "answers.csv was changed")


def test_a_lost_stream(bench: Bench) -> None:
    if bench.server is None:
        pytest.skip("there is no redis-server")
    folder = bench.folder()
    assert bench.run("redis", folder, Fault("replace:state", 4, "after")).killed
    bench.server.client.delete(f"{folder.parent.name}-{folder.name}")
    refuses(bench, "redis", folder, "has lost rows")


# --- the state --------------------------------------------------------------------------------------


def test_damaged_states(bench: Bench, broken_off: Any) -> None:
    folder = broken_off("messy")
    state = folder / "state/state.kb"
    kept = state.read_bytes()
    newer = checkpoint.MAGIC + struct.pack("<I", 99) + kept[len(checkpoint.MAGIC) + 4 :]
    for data, words in (
        (kept[:1000], "is truncated"),
        (b"", "is truncated"),
        (kept[:-1] + bytes([kept[-1] ^ 1]), "is damaged"),
        (b"PK\x03\x04 something else", "is not a kernelbank file"),
        (newer, "has format version 99"),
    ):
        state.write_bytes(data)
        refuses(bench, "messy", folder, "state.kb", words)


def test_a_bank_is_not_a_run(bench: Bench, broken_off: Any) -> None:
    folder = broken_off("messy")
    (folder / "state/state.kb").unlink()
    checkpoint.write(folder / "state/state.kb", {"kind": "AutoBank"}, {})
    refuses(bench, "messy", folder, "is not the state of a run")


class Kept:
    """A run of a few rows whose state is read again, in this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "few.csv"
        rows = [f"{n % 7},{n % 5},{n % 7 - n % 5}" for n in range(40)]
        self.source.write_text("\n".join(["a,b,y", *rows]) + "\n")
        run, journal = self.opened()
        run.start()
        run.run(lambda: False, lambda _: None)
        run.commit()
        self.close(run, journal)
        self.state = (root / "state/state.kb").read_bytes()
        self.disk = disk(root)

    def opened(self) -> tuple[Runner, CheckpointDir]:
        journal = CheckpointDir(self.root / "state")
        answers = CsvSink(self.root / "few-answers.csv", prediction_columns("regression"))
        run = Runner(
            RunOptions(source="", target="y", size="small", delay=3),
            open_source(self.source),
            [answers],
            JsonLinesSink(journal.folder / "bad-rows.jsonl"),
            journal,
        )
        return run, journal

    def close(self, run: Runner, journal: CheckpointDir) -> None:
        for output in run._all_sinks():
            output.close(complete=False)
        journal.close()

    def resumes(self) -> bool:
        run, journal = self.opened()
        try:
            return run.resume()
        finally:
            self.close(run, journal)

    def refused(self, data: bytes) -> None:
        path = self.root / "state/state.kb"
        path.write_bytes(data)
        try:
            with pytest.raises((FileRefused, RunRefused)) as error:
                self.resumes()
            assert "\n" not in str(error.value)
            assert disk(self.root) == {**self.disk, "state/state.kb": data}
        finally:
            path.write_bytes(self.state)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("kept"))


@settings(max_examples=40)
@given(st.data())
def test_flipped_bytes_and_cuts(kept: Kept, data: st.DataObject) -> None:
    length = len(kept.state)
    if data.draw(st.booleans()):
        kept.refused(kept.state[: data.draw(st.integers(0, length - 1))])
        return
    damaged = bytearray(kept.state)
    for place in data.draw(
        st.lists(st.integers(0, length - 1), min_size=1, max_size=3, unique=True)
    ):
        damaged[place] ^= data.draw(st.integers(1, 255))
    kept.refused(bytes(damaged))


STRANGE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_forged_headers(kept: Kept, data: st.DataObject) -> None:
    """A file whose checksum is right and whose contents are not: refused, or as good as before."""
    path = kept.root / "state/state.kb"
    header, arrays = checkpoint.read(path)
    name = data.draw(st.sampled_from(sorted(set(header) - {"kind", "version", "features"})))
    header[name] = data.draw(STRANGE)
    checkpoint.write(path, header, arrays)
    try:
        kept.resumes()
    except (FileRefused, RunRefused):
        assert {**disk(kept.root), "state/state.kb": kept.state} == kept.disk
    finally:
        path.write_bytes(kept.state)
        for name, bytes_ in kept.disk.items():
            (kept.root / name).write_bytes(bytes_)
