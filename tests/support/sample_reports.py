"""Reports of short runs, for the tests of the page."""

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from kernelbank.run.report.data import report_text
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, succeed, write_csv

KINDS = {
    "numbers": "--target load --lags 1 --horizon 4 --seasons 24",
    "labels": "--target label --task classification",
    "targets": "--target load,price",
}
"""By kind of report: the options of its run."""

ROWS, CHANGE = 700, 400
"""Hourly rows, and after how many of them the level of the target is another."""


def write_rows(path):
    """Rows from 2024 on with three bad ones; the load has a new level, the label is rare."""
    X, load = make_rows(ROWS)
    load[CHANGE:] += 100
    times = np.datetime64("2024-01-01T00:00") + np.arange(ROWS) * np.timedelta64(1, "h")
    sites = np.array(["north", "south", "hill"])[np.arange(ROWS) // 40 % 3]
    labels = np.where(X[:, 0] * X[:, 1] > 1, "spam", "ham")
    rows = np.column_stack([times.astype(str), X.astype(object), sites, load, 9 - load, labels])
    rows[[30, 31, 500], 1] = "n/a?"
    columns = ["when", "wind", "sun", "site", "load", "price", "label"]
    return write_csv(path, columns, rows)


@cache
def _text(kind):
    with tempfile.TemporaryDirectory() as folder:
        source, state = write_rows(Path(folder, "sensors.csv")), Path(folder, "state")
        options = f"{KINDS[kind]} --features wind,sun --categorical site --time when"
        succeed(source, *options.split(), "--on-bad-row", "skip", "--state", state)
        return report_text(RunStatus.of_state(state))


def sample_report(kind="numbers"):
    """All parts of the report of such a run, as Python values by name; it may be changed."""
    return json.loads(_text(kind))
