"""`kernelbank demo`: write a simulated stream, run on it, show what came out and what to try.

The stream is a heat pump. No sensor has measured it; the same lines are written every time.
"""

from __future__ import annotations

import csv
import json
import math
import random
import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import click

from ..errors import RunRefused
from .run import run

COLUMNS = ("time", "outdoor", "mode", "power")
ROWS = 4800
"""100 days, two rows per hour."""

CHANGE_ROW = 3000
CHANGE_KW = 0.6
"""From this row on the pump takes more power: a valve does not close any more."""

_SEED = 1
_START = datetime(2025, 1, 6)


def write_stream(path: Path) -> None:
    """Write the stream as CSV, with the power in kW as the last column."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(_rows(random.Random(_SEED)))


def _rows(draw: random.Random) -> Iterator[tuple[str, str, str, str]]:
    """Times, outdoor temperatures, of which one in a hundred is missing, modes and powers."""
    weather = 0.0
    for n in range(1, ROWS + 1):
        time = _START + timedelta(minutes=30 * (n - 1))
        hour = time.hour + time.minute / 60
        weather = 0.99 * weather + 0.4 * draw.gauss(0, 1)
        spring = 12 * n / ROWS
        outdoor = spring + 3 * math.sin(2 * math.pi * (hour - 9) / 24) + weather
        # Hot water is wanted most of all in the morning and in the evening.
        busy = 6 <= hour < 9 or 18 <= hour < 22
        mode = "hot water" if draw.random() < (0.35 if busy else 0.1) else "heating"
        # The heat that is lost, by how well the pump works, in kW.
        efficiency = 2.2 + 0.08 * max(min(outdoor, 20.0), -10.0)
        room = 21.0 if 6 <= hour < 22 else 17.0
        power = 0.2 + 0.34 * max(room - outdoor, 0.0) / efficiency
        power = 7.5 / efficiency if mode == "hot water" else power
        power += 0.08 * draw.gauss(0, 1) + CHANGE_KW * (n >= CHANGE_ROW)
        temperature = "" if draw.random() < 0.01 else f"{outdoor:.1f}"
        yield f"{time:%Y-%m-%dT%H:%M}", temperature, mode, f"{power:.2f}"


# --- the demo ---

STREAM_OPTIONS = "--target power --time time \\\n        --categorical mode --allow-missing"
"""The options that the stream needs, as they are typed, on two lines."""


def demo(out: Path) -> int:
    """The whole demo, in the folder `out`; returns the exit code of the run."""
    names = ("heat_pump.csv", "predictions.csv", "report.html")
    stream, predictions, report = (out / name for name in names)
    _remove_earlier_demo(stream, predictions, report)
    out.mkdir(parents=True, exist_ok=True)
    write_stream(stream)
    _introduce(stream)
    results = [("--predictions", str(predictions)), ("--report", str(report))]
    click.echo(f"    {_command(stream, *(f'{flag} {shlex.quote(v)}' for flag, v in results))}\n")
    code = run(
        {
            "source": str(stream),
            "target": "power",
            "time": "time",
            "categorical": ("mode",),
            "allow_missing": True,
            "predictions": str(predictions),
            "report": report,
        }
    )
    if code == 0:
        _say_what_next(out, stream, predictions, report)
    return code


def _remove_earlier_demo(stream: Path, *results: Path) -> None:
    """Make room for the results of this demo, and refuse to remove anything else."""
    is_demo = False
    if stream.is_file():
        with stream.open(encoding="utf-8", errors="replace") as file:
            is_demo = file.readline().rstrip("\n") == ",".join(COLUMNS)
    for path in (stream, *results):
        if path.exists() and not is_demo:
            raise RunRefused(
                f"{path} exists, and is not from an earlier demo. Give another folder: --out NAME."
            )
    for path in results:
        path.unlink(missing_ok=True)


# --- what is printed ------------------------------------------------------------------------------


def _introduce(stream: Path) -> None:
    with stream.open(encoding="utf-8") as file:
        first = [file.readline().rstrip("\n") for _ in range(4)]
    click.echo(
        f"A heat pump and its sensors, simulated (nothing here was measured): {stream}\n"
        f"{ROWS:,} rows, one every half hour for {ROWS // 48} days:\n"
    )
    for line in first:
        click.echo(f"    {line}")
    click.echo(
        "\nThe power (kW) is to be predicted, each row before its power is known. The outdoor\n"
        "sensor is silent now and then. This is the command:\n"
    )


def _command(source: Path | str, *results: str) -> str:
    """A command on the stream as it is typed, on several lines; the first is not indented."""
    first = f"kernelbank run {shlex.quote(str(source))} {STREAM_OPTIONS}"
    return " \\\n        ".join([first, " ".join(results)] if results else [first])


def _say_what_next(out: Path, stream: Path, predictions: Path, report: Path) -> None:
    again, state = (shlex.quote(str(out / name)) for name in ("again.csv", "state"))
    resumable = _command(stream, f"--predictions {again}", f"--state {state}")
    model = f"print(kb.load({json.dumps(str(out / 'state' / 'state.kb'))}))"
    click.echo(
        f"""
RMSE is the typical error, here in kW; the baseline repeats the last power. From row
{CHANGE_ROW:,} on a valve does not close any more, which takes {CHANGE_KW} kW: nothing told
kernelbank so.

Look at
    {report}    in a browser: errors, weights, intervals, changes
    {predictions}

Try next
  A run that can be killed: stop it with Ctrl-C, then give the same command again.
    {resumable}
  Its model, in Python:
    python -c {shlex.quote(f"import kernelbank as kb; {model}")}
  The page during a run, with rows that come slowly:
    while read -r row; do echo "$row"; sleep 0.05; done < {shlex.quote(str(stream))} |
      {_command("-", "--live")}
  A file of your own, where --categorical names columns of text and --time one of times:
    kernelbank run FILE.csv --target COLUMN --predictions out.csv --report page.html
  All options:
    kernelbank run --help"""
    )
