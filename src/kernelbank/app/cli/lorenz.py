"""`kernelbank lorenz`: play the learners, print the table, draw the curves."""

from __future__ import annotations

import csv
import math
import warnings
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from ...errors import KernelBankWarning
from ...evaluation.experiments import lorenz as experiment
from ...evaluation.experiments.lorenz import Entry
from ...evaluation.plots import save


def lorenz(out: Path, points: int) -> None:
    """The whole experiment, with progress on the terminal."""
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBankWarning)  # a poor learner shows in the table
        entries = sorted(_play(console, points), key=lambda entry: entry.decibels)
    with console.status("Drawing the curves ..."):
        files = save(experiment.learning_curves(entries), out, "lorenz")
    console.print(_table(entries, points))
    files.append(_write(out / "lorenz.csv", entries))
    console.print(f"Written to [bold]{escape(str(out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def _play(console: Console, points: int) -> list[Entry]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} learners"),
    )
    entries: list[Entry] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Compiling and playing", total=len(experiment.setups()))
        for entry in experiment.play_all(points):
            entries.append(entry)
            progress.update(task, advance=1, description="Playing")
    return entries


def _table(entries: list[Entry], points: int) -> Table:
    table = Table(
        title=f"Lorenz, one step ahead, {points} points: mean squared error after the first "
        f"{min(experiment.LEARNED, (points - 1) // 2)} samples",
        title_justify="left",
    )
    table.add_column("learner", overflow="fold")
    for name in ("dB", "toolbox, dB", "us a sample"):
        table.add_column(name, justify="right")
    for entry in entries:
        table.add_row(
            escape(experiment.settings_of(entry.learner)),
            f"{entry.decibels:.2f}" if math.isfinite(entry.decibels) else "diverged",
            "" if entry.published is None else f"{entry.published:.2f}",
            f"{entry.seconds_per_sample * 1e6:.1f}",
        )
    return table


def _write(path: Path, entries: list[Entry]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["learner", "decibels", "published_decibels"])
        for entry in entries:
            published = "" if entry.published is None else entry.published
            writer.writerow([experiment.settings_of(entry.learner), entry.decibels, published])
    return path
