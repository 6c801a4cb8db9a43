"""What was changed between two processes of a run is refused in one line, and nothing is touched."""

from __future__ import annotations

import os
import shutil
import struct
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelbank.errors import FileRefused, RunRefused
from kernelbank.io import checkpoint
from kernelbank.run.options import RunOptions
from kernelbank.run.runner import Runner
from support import forged_files
from support.crash_scenarios import SCENARIOS, ScenarioRunner, check_one_line, read_files
from support.fault_injection import Fault
from support.run_in_process import open_run, run_to_end


@pytest.fixture(scope="module")
def halfway(scenarios: ScenarioRunner) -> dict[str, Path]:
    """Runs that were killed in the middle."""
    found = {}
    for name in ("messy", "parts"):
        found[name] = scenarios.folder()
        ended = scenarios.run(name, found[name], Fault("replace:state", 4, "after"))
        assert ended.killed
    return found


@pytest.fixture
def interrupted_run(scenarios: ScenarioRunner, halfway: dict[str, Path]) -> Any:
    """The folder of such a run, to tamper with; it is restored afterwards."""
    kept = []

    def copy(name: str) -> Path:
        kept.append((halfway[name], halfway[name].with_name(f"{halfway[name].name}-kept")))
        shutil.copytree(*kept[-1])
        return halfway[name]

    yield copy
    for folder, copied in kept:
        shutil.rmtree(folder)
        copied.rename(folder)


def refuses(
    scenarios: ScenarioRunner, name: str, folder: Path, *words: str, more: str = ""
) -> None:
    before = read_files(folder)
    check_one_line(scenarios.run(name, folder, more=more), *words)
    assert read_files(folder) == before


OTHER_OPTIONS = {
    "--lags 3": ["--lags was 2, now 3"],
    "--coverage 0.5 --delay 1": ["--delay was 0, now 1", "--coverage was 0.9, now 0.5"],
    "--features a": ["--features was none, now a"],
    "--preset paper": ["--preset was auto, now paper"],
    "--predictions other.csv": ["--predictions was", "predictions.csv, now", "other.csv"],
    "--predictions other.parquet": ["--predictions was", "other.parquet"],
}


@pytest.mark.parametrize(
    "more",
    [
        more if more == "--lags 3" else pytest.param(more, marks=pytest.mark.slow)
        for more in OTHER_OPTIONS
    ],
)
def test_resuming_with_other_options_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any, more: str
) -> None:
    folder = interrupted_run("messy")
    (folder / "other.csv").write_text("somebody's\n")
    refuses(scenarios, "messy", folder, *OTHER_OPTIONS[more], more=more)


def test_resuming_with_another_source_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any
) -> None:
    folder = interrupted_run("messy")
    args = SCENARIOS["messy"].args(folder, None)
    before = read_files(folder)
    args[1] = "../labels.csv"
    check_one_line(
        scenarios.forks.run(args, folder), "not the source that was read before", "address"
    )
    assert read_files(folder) == before


def test_resuming_after_the_source_was_rewritten_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any
) -> None:
    folder = interrupted_run("messy")
    source = scenarios.root / "messy.csv"
    kept = source.read_bytes()
    try:
        source.write_bytes(kept.replace(b"oh", b"no"))
        refuses(scenarios, "messy", folder, "rows are not those that were read before")
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
    "changed": (changed_first_byte, "predictions.csv was changed"),
    "cut": (cut, "predictions.csv was cut: 100 of "),
    "removed": (Path.unlink, "predictions.csv is gone"),
    "foreign": (foreign, "predictions.csv was changed"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_resuming_after_predictions_were_changed_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any, how: str
) -> None:
    folder = interrupted_run("messy")
    tamper, words = TAMPERED[how]
    tamper(folder / "predictions.csv")
    refuses(scenarios, "messy", folder, words)


def test_resuming_after_bad_rows_were_cut_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any
) -> None:
    """The predictions are valid and have rows after the checkpoint: these must stay, too."""
    folder = interrupted_run("messy")
    with (folder / "predictions.csv").open("ab") as file:
        file.write(b"12")
    cut(folder / "state/bad-rows.jsonl")
    refuses(scenarios, "messy", folder, "bad-rows.jsonl was cut")


def test_resuming_after_a_part_was_changed_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any
) -> None:
    folder = interrupted_run("parts")
    part = folder / "predictions.parquet/part-000000.parquet"
    kept = part.read_bytes()
    changed_first_byte(part)
    refuses(scenarios, "parts", folder, "a part was changed")
    part.unlink()
    refuses(scenarios, "parts", folder, "part-000000.parquet is gone")
    part.write_bytes(kept)
    assert scenarios.run("parts", folder).code == 0


def test_existing_output_is_refused(scenarios: ScenarioRunner) -> None:
    for name, output in (("messy", "predictions.csv"), ("parts", "predictions.parquet/mine.txt")):
        folder = scenarios.folder()
        (folder / output).parent.mkdir(exist_ok=True)
        (folder / output).write_text("mine\n")
        check_one_line(
            scenarios.run(name, folder), "exists, and belongs to no run with this --state"
        )
        assert read_files(folder) == {output: b"mine\n"}


def test_foreign_file_in_place_of_new_predictions_is_refused(scenarios: ScenarioRunner) -> None:
    folder = scenarios.folder()
    assert scenarios.run("messy", folder, Fault("write:predictions", 2)).killed  # 1: the header
    (folder / "predictions.csv").write_text("somebody's\n" * 9)
    refuses(scenarios, "messy", folder, "predictions.csv was changed")


def test_redis_stream_that_was_deleted_is_refused(scenarios: ScenarioRunner) -> None:
    if scenarios.redis is None:
        pytest.skip("there is no redis-server")
    folder = scenarios.folder()
    assert scenarios.run("redis", folder, Fault("replace:state", 4, "after")).killed
    scenarios.redis.client.delete(f"{folder.parent.name}-{folder.name}")
    refuses(scenarios, "redis", folder, "has lost rows")


# --- the state --------------------------------------------------------------------------------------


def test_damaged_checkpoint_is_refused(scenarios: ScenarioRunner, interrupted_run: Any) -> None:
    folder = interrupted_run("messy")
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
        refuses(scenarios, "messy", folder, "state.kb", words)


def test_saved_bank_in_place_of_a_checkpoint_is_refused(
    scenarios: ScenarioRunner, interrupted_run: Any
) -> None:
    folder = interrupted_run("messy")
    (folder / "state/state.kb").unlink()
    checkpoint.write(folder / "state/state.kb", {"kind": "AutoBank"}, {})
    refuses(scenarios, "messy", folder, "is not the state of a run")


class SavedRun:
    """A run of a few rows whose state is read again, in this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "few.csv"
        rows = [f"{n % 7},{n % 5},{n % 7 - n % 5}" for n in range(40)]
        self.source.write_text("\n".join(["a,b,y", *rows]) + "\n")
        with self.open() as run:
            run.start()
            run_to_end(run)
        self.state = (root / "state/state.kb").read_bytes()
        self.files = read_files(root)

    def open(self) -> AbstractContextManager[Runner]:
        options = RunOptions(source="", target="y", size="small", delay=3)
        return open_run(self.root, self.source, options)

    def resumes(self) -> bool:
        with self.open() as run:
            return run.resume()

    def refused(self, data: bytes) -> None:
        path = self.root / "state/state.kb"
        path.write_bytes(data)
        try:
            with pytest.raises((FileRefused, RunRefused)) as error:
                self.resumes()
            assert "\n" not in str(error.value)
            assert read_files(self.root) == {**self.files, "state/state.kb": data}
        finally:
            path.write_bytes(self.state)


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory: pytest.TempPathFactory) -> SavedRun:
    return SavedRun(tmp_path_factory.mktemp("kept"))


@settings(max_examples=40)
@given(st.data())
def test_checkpoint_with_flipped_or_missing_bytes_is_refused(
    saved_run: SavedRun, data: st.DataObject
) -> None:
    length = len(saved_run.state)
    if data.draw(st.booleans()):
        saved_run.refused(saved_run.state[: data.draw(st.integers(0, length - 1))])
        return
    damaged = bytearray(saved_run.state)
    for place in data.draw(
        st.lists(st.integers(0, length - 1), min_size=1, max_size=3, unique=True)
    ):
        damaged[place] ^= data.draw(st.integers(1, 255))
    saved_run.refused(bytes(damaged))


STRANGE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


EDITS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "length of an output as text": (("sinks", 0, "bytes"), "31"),
    "length of an output as a fraction": (("sinks", 0, "bytes"), 31.5),
    "negative length of an output": (("sinks", 0, "bytes"), -1),
    "last target as text": (("last_target",), "7"),
    "last target that is no number": (("last_target",), float("nan")),
    "waiting target as a list": (("pending_targets", 0), [1.0]),
    "rows as text": (("rows",), "40"),
    "negative rows without target": (("rows_without_target",), -7),
    "model of another task": (("bank", "task"), "classification"),
    "model with other lags": (("bank", "lags"), 1),
    "model with other seasons": (("bank", "seasons"), [24]),
    "model with horizons": (("bank", "horizons"), [1, 2]),
    "model with known columns": (("bank", "known"), ["a"]),
    "tentative columns": (("bank", "columns", "tentative"), True),
    "no model": (("bank",), []),
    "model of 10**8 inputs": (("bank", "dimension"), 10**8),
    "history of 10**8 slots": (("history", "slots"), 10**8),
    "bad rows that are no text": (("rejected_rows",), {"count": 1, "first": [{}], "last": []}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_checkpoint_is_refused(saved_run: SavedRun, edit: str) -> None:
    path, value = EDITS[edit]
    header, body = forged_files.unpack(saved_run.state)
    saved_run.refused(forged_files.pack(forged_files.with_value(header, path, value), body))


def test_ranges_of_more_inputs_than_there_are_are_refused(saved_run: SavedRun) -> None:
    header, body = forged_files.unpack(saved_run.state)
    offset = 0
    for entry in header["arrays"]:
        size = int(np.prod(entry[2])) * 8
        if entry[0] == "history/seen_ranges":
            entry[2][0] += 3
            body = body[:offset] + bytes(48) + body[offset:]
        offset += size
    saved_run.refused(forged_files.pack(header, body))


def test_pipe_in_place_of_a_checkpoint_is_refused(saved_run: SavedRun) -> None:
    path = saved_run.root / "state/state.kb"
    path.unlink()
    os.mkfifo(path)
    try:
        with (
            forged_files.deadline(30),
            pytest.raises((FileRefused, RunRefused), match="not a file"),
        ):
            saved_run.resumes()
    finally:
        path.unlink()
        path.write_bytes(saved_run.state)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_checkpoint_with_a_forged_header_is_refused_or_resumed(
    saved_run: SavedRun, data: st.DataObject
) -> None:
    """A file whose checksum is right and whose contents are not: refused, or as good as before."""
    path = saved_run.root / "state/state.kb"
    header, arrays = checkpoint.read(path)
    name = data.draw(st.sampled_from(sorted(set(header) - {"kind", "version", "features"})))
    header[name] = data.draw(STRANGE)
    checkpoint.write(path, header, arrays)
    try:
        saved_run.resumes()
    except (FileRefused, RunRefused):
        assert {**read_files(saved_run.root), "state/state.kb": saved_run.state} == saved_run.files
    finally:
        path.write_bytes(saved_run.state)
        for name, bytes_ in saved_run.files.items():
            (saved_run.root / name).write_bytes(bytes_)
