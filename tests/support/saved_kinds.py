"""Small saved files of every kind: banks, AutoBanks and states of runs, and how each is used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kernelbank as kb
from kernelbank.run.options import RunOptions
from kernelbank.run.report.data import ReportData
from kernelbank.run.runner import Runner
from kernelbank.run.status import RunStatus
from support import every_bank
from support.run_command import open_run, run_to_end

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
    yield from _named_columns(path)
    yield from _few_rows(path)
    yield _known_inputs(path)
    for labels in (False, True):
        run = SavedRun(folder / f"run-{labels}", labels=labels)
        yield SavedKind(f"run, labels={labels}", run.state, run.use)


def _use_bank(X: Any, y: Any) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        bank = kb.load(path, components=every_bank.OWN)
        bank.predict_one(X[3])
        for n in range(ROWS, ROWS + 3):
            bank.learn_one(X[n], y[n])
        bank.run(X[ROWS : ROWS + 6], y[ROWS : ROWS + 6])
        bank.predict(X[:3])
        if getattr(bank, "horizons", ()):
            bank.forecast(X[:3] if bank._config.known else None), bank.ledger.horizons
        repr(bank), bank.status()
        bank.save(path)
        kb.load(path, components=every_bank.OWN)

    return use


def _named_columns(path: Path) -> Iterator[SavedKind]:
    """AutoBanks on rows with names: numbers, times and categories."""
    draw = np.random.default_rng(0)

    def row(n: int) -> dict[str, Any]:
        hour = np.datetime64("2026-01-01") + np.timedelta64(n, "h")
        return {"a": float(draw.normal()), "site": "xyz"[n % 3], "time": hour.item()}

    rows = [row(n) for n in range(ROWS + 10)]
    for task, targets in (
        ("regression", [one["a"] + (one["site"] == "x") for one in rows]),
        ("classification", [one["site"] == "x" for one in rows]),
    ):
        bank = kb.AutoBank(task, lags=1, size="small", scalings="standard")
        for one, target in zip(rows[:ROWS], targets, strict=False):
            bank.learn_one(one, target)
        bank.predict_one(rows[ROWS])
        bank.save(path)

        def use(path: Path, targets: list[Any] = targets) -> None:
            bank = kb.load(path)
            bank.predict_one(rows[ROWS + 1])
            for one, target in zip(rows[ROWS:], targets[ROWS:], strict=True):
                bank.learn_one(one, target)
            repr(bank), bank.status()
            bank.save(path)
            kb.load(path)

        yield SavedKind(f"AutoBank on columns, {task}", path.read_bytes(), use)


def _few_rows(path: Path) -> Iterator[SavedKind]:
    """AutoBanks before their first bank, with slots of the user's own, with far targets."""
    X, y = every_bank.X, every_bank.NUMBERS
    own = [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierRLS(features=8))]
    for rows in (0, 3, ROWS):
        bank = kb.AutoBank(slots=own, lags=2, combiner=kb.combiners.Simplex(), lower=-1e9)
        for n in range(rows):
            bank.learn_one(X[n], y[n] if n < ROWS - 2 else 1e4)
        bank.save(path)
        yield SavedKind(f"AutoBank after {rows} rows", path.read_bytes(), _use_bank(X, y))
    three = every_bank.THREE
    bank = kb.AutoBank("classification", slots=own, classes=[0, 1, 2])
    bank.run(X[:ROWS], three[:ROWS])
    bank.predict_one(X[0])
    bank.save(path)
    yield SavedKind("AutoBank, three classes, few slots", path.read_bytes(), _use_bank(X, three))


def _known_inputs(path: Path) -> SavedKind:
    """An AutoBank whose forecasts know an input in advance, and start anew with found periods."""
    X, y = every_bank.X, every_bank.NUMBERS
    bank = kb.AutoBank(size="small", horizons=3, known=[1], seasons="auto")
    bank.run(X[:ROWS], y[:ROWS])
    bank.save(path)
    return SavedKind("AutoBank with known inputs", path.read_bytes(), _use_bank(X, y))


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
                status.to_json(), ReportData().parts(status)
                if run.resume():
                    run_to_end(run)
        finally:
            for file, data in kept.items():
                file.write_bytes(data)
