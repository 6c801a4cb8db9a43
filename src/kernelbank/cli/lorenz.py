"""`kernelbank lorenz`: run the learners, print the table, draw the curves."""

from __future__ import annotations

import csv
import math
import warnings
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from ..errors import KernelBankWarning
from ..research import lorenz as experiment
from ..research.lorenz import LearnerResult
from ..research.plots import save


def lorenz(out: Path, points: int) -> None:
    """The whole experiment, with progress on the terminal."""
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBankWarning)  # a poor learner shows in the table
        results = sorted(_run(console, points), key=lambda result: result.decibels)
    with console.status("Drawing the curves ..."):
        files = save(experiment.learning_curves(results), out, "lorenz")
    console.print(_table(results, points))
    files.append(_write(out / "lorenz.csv", results))
    console.print(f"Written to [bold]{escape(str(out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def _run(console: Console, points: int) -> list[LearnerResult]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} learners"),
    )
    results: list[LearnerResult] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Running", total=len(experiment.setups()))
        for result in experiment.run_learners(points):
            results.append(result)
            progress.update(task, advance=1, description="Running")
    return results


def _table(results: list[LearnerResult], points: int) -> Table:
    table = Table(
        title=f"Lorenz, one step ahead, {points} points: mean squared error after the first "
        f"{min(experiment.UNSCORED, (points - 1) // 2)} samples",
        title_justify="left",
    )
    table.add_column("learner", overflow="fold")
    for name in ("dB", "toolbox, dB", "us per sample"):
        table.add_column(name, justify="right")
    for result in results:
        table.add_row(
            escape(repr(result.learner)),
            f"{result.decibels:.2f}" if math.isfinite(result.decibels) else "diverged",
            "" if result.published is None else f"{result.published:.2f}",
            f"{result.seconds_per_sample * 1e6:.1f}",
        )
    return table


def _write(path: Path, results: list[LearnerResult]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["learner", "decibels", "published_decibels"])
        for result in results:
            published = "" if result.published is None else result.published
            writer.writerow([repr(result.learner), result.decibels, published])
    return path
