"""A run in this process, without the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelbank.io.sinks import CsvSink, JsonLinesSink
from kernelbank.io.sources import open_source
from kernelbank.run.checkpoint import CheckpointDir
from kernelbank.run.options import RunOptions, prediction_columns
from kernelbank.run.runner import Runner


@contextmanager
def open_run(root: Path, source: Path, options: RunOptions) -> Iterator[Runner]:
    """A run whose predictions and state are in a folder; it ends as after an error."""
    checkpoints = CheckpointDir(root / "state")
    predictions = CsvSink(root / "few-predictions.csv", prediction_columns(options))
    bad_rows = JsonLinesSink(checkpoints.folder / "bad-rows.jsonl")
    run = Runner(options, open_source(source), [predictions], bad_rows, checkpoints)
    try:
        yield run
    finally:
        run.close(complete=False)
        checkpoints.close()


def run_to_end(run: Runner) -> None:
    """Predict and learn all rows of the source, and commit."""
    run.run(lambda: False, lambda _: None)
    run.commit()
