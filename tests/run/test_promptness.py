"""Predictions of rows that come slowly can be read soon after their row."""

import pytest

from kernelbank.run import runner
from support import run_command
from support.run_command import open_run, options_of, read_csv

folder, source = run_command.folder, run_command.source


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.mark.parametrize(("seconds", "most"), [(0, 0), (1, 3), (1000, 50)])
def test_predictions_are_in_their_file_a_second_after_their_row(
    source, tmp_path, monkeypatch, seconds, most
):
    """One row comes every 0.3 seconds: at most three of them are waiting."""
    clock = Clock()
    monkeypatch.setattr(runner, "time", clock)
    monkeypatch.setattr(runner, "BLOCK_ROWS", 1)
    waiting = []

    def after_row(run):
        waiting.append(run.rows - len(read_csv(tmp_path / "few-predictions.csv")[1]))
        clock.now += 0.3

    with open_run(tmp_path, source, options_of(flush_every=seconds)) as run:
        run.run(lambda: False, after_row)
    assert min(waiting) == 0
    assert max(waiting) >= most if seconds == 1000 else max(waiting) <= most
