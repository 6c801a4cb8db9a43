"""`kernelbank reproduce`: run the paper's experiment, print its tables, write files.

Tables fit a terminal of 80 columns.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..research import paper
from ..research.paper import BEST, LENGTHS, READINGS, RIVALS, PaperRun, Standing, standings
from ..research.plots import save
from ..research.results import finite
from .compare import print_files

Verdict = Mapping[str, Sequence[Standing]]
"""By the reading of the noise: the scheme compared with its rivals."""

READING_NAMES = {
    "variance": "the variance",
    "std": "the standard deviation",
    "generator": "the variance, on one signal *",
}


def reproduce(out: Path, seeds: int, samples: int, noise: str, summary: bool) -> None:
    """The whole experiment, with progress on the terminal."""
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    lengths = sorted({*LENGTHS, samples})
    start = time.perf_counter()
    long_runs = _run_signals(console, seeds, lengths[-1])
    seconds = time.perf_counter() - start
    runs = [run.until(samples) for run in long_runs[noise]]
    signal = paper.run_signal(0, *paper.generator_stream(lengths[-1]))
    verdict = {reading: standings(long_runs[reading], lengths) for reading in READINGS}
    verdict["generator"] = standings([signal], lengths)
    with console.status("Drawing the figure ..."):
        files = save(paper.cumulative_cost(runs[0]), out, "cumulative_cost")
    content = {
        "seeds": [run.seed for run in runs],
        "table": {heading: dict(rows) for heading, _, rows in paper.table(runs)},
        "verdict": {reading: list(map(asdict, group)) for reading, group in verdict.items()},
    }
    files.append(out / "tables.json")
    files[-1].write_text(json.dumps(finite(content), indent=1) + "\n")
    if not summary:
        _print_table(console, runs, noise)
    _print_verdict(console, verdict, _seeds(seeds))
    if not summary:
        console.print(f"\nWhat holds for the scheme, and on how many of {_seeds(seeds)}:")
        for statement, count in paper.claims(runs).items():
            console.print(f"{count:4}  {statement}")
    console.print(
        f"\n{_seeds(seeds)} of {lengths[-1]} samples in both readings, each run by the scheme and "
        f"by OMKR in both forms, in {seconds:.1f} s."
    )
    print_files(console, out, files)


def _seeds(count: int) -> str:
    return f"{count} seed" + ("" if count == 1 else "s")


def _run_signals(console: Console, seeds: int, samples: int) -> dict[str, list[PaperRun]]:
    """The runs of all seeds, by the reading of the noise."""
    runs: dict[str, list[PaperRun]] = {reading: [] for reading in READINGS}
    counted = TextColumn("{task.completed} of {task.total} signals")
    columns = (TextColumn("Running"), BarColumn(), counted, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=seeds * len(READINGS))
        for reading, finished in runs.items():
            for run in paper.run_seeds(seeds, samples, reading):
                finished.append(run)
                progress.update(task, advance=1)
    return runs


def _print_table(console: Console, runs: Sequence[PaperRun], noise: str) -> None:
    """Costs, steps and errors of the scheme, OMKR and NORMA."""
    title = f"{_seeds(len(runs))}, {len(runs[0].x)} samples, noise as {noise}"
    table = Table(title=title, title_justify="left")
    table.add_column("", overflow="fold")
    for name in ("seed 0", "mean", "least", "most"):
        table.add_column(name, justify="right")
    for heading, digits, rows in paper.table(runs):
        table.add_section()
        table.add_row(f"[bold]{heading}[/bold]")
        for name, values in rows:
            table.add_row(f"  {name}", *_cells(values, digits))
    console.print(table)
    console.print()


def _cells(values: Sequence[float], digits: int) -> list[str]:
    """Seed 0, mean, least and most; `never` for an infinite step, which no mean counts."""
    numbers = [value for value in values if value < math.inf] or [math.inf]
    figures = (values[0], sum(numbers) / len(numbers), min(numbers), max(numbers))
    texts = ["never" if value == math.inf else f"{value:.{digits}f}" for value in figures]
    never = len(values) - len(numbers)
    texts[1] += f" ({never} never)" if never else ""
    return texts


def _print_verdict(console: Console, verdict: Verdict, seeds: str) -> None:
    """Against each rival: on how many seeds the scheme is below, and by how much on average."""
    table = Table(
        title=f"On how many of {seeds} the scheme's cumulative cost ends below a rival's,\n"
        "and the mean margin in percent of the rival's cost",
        title_justify="left",
    )
    table.add_column("0.71519837 is", max_width=18)
    for name in ("samples", *RIVALS):
        table.add_column(name, justify="right", max_width=15)
    for reading, group in verdict.items():
        columns = {
            rival: [standing for standing in group if standing.rival == rival] for rival in RIVALS
        }
        counted = reading != "generator"  # which is one signal
        table.add_section()
        table.add_row(
            READING_NAMES[reading],
            "\n".join(str(standing.samples) for standing in columns[BEST]),
            *("\n".join(_margin(s, counted) for s in column) for column in columns.values()),
        )
    console.print(table)
    console.print(
        "* Drawn by the authors' public generator (emrumo/VARdatagenerator) with seed 0. It draws "
        "the paper's coefficient and 0.71518937 as a variance: so this may be the paper's signal. "
        "The paper says neither how many samples it ran, nor what its number is."
    )


def _margin(standing: Standing, counted: bool) -> str:
    margin = f"{100 * standing.margin:+.1f} %"
    return f"{standing.below} {margin:>8}" if counted else margin
