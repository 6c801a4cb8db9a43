"""`kernelbank reproduce`: run the paper's experiment, print its tables, write files.

Tables fit a terminal of 80 columns.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..research import paper
from ..research.paper import (
    BEST,
    COMBINERS,
    EXACT,
    LENGTHS,
    READINGS,
    RIVALS,
    PaperRun,
    Standing,
    number_of_seeds,
    standings,
)
from ..research.plots import save

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
    with console.status("Drawing the figures ..."):
        estimates = paper.estimates_at(runs[0])
        files = save(paper.cumulative_cost(runs[0]), out, "cumulative_cost")
        files += save(paper.reconstruction(runs[0], estimates), out, "reconstruction")
    files += _write_tables(out, runs, verdict)
    place = f"[bold]{escape(str(out.resolve()))}[/bold]"
    if summary:
        _print_summary(console, verdict, seeds, seconds)
        console.print(f"Figures and tables are in {place}.", soft_wrap=True)
        return
    _print_all(console, runs, verdict, noise)
    console.print(
        f"\n{number_of_seeds(seeds)} of {lengths[-1]} samples in both readings, each run by the "
        f"scheme and by OMKR in both forms, in {seconds:.1f} s."
    )
    console.print(f"Written to {place}:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


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


# --- what is printed ------------------------------------------------------------------------------


def _print_summary(console: Console, verdict: Verdict, seeds: int, seconds: float) -> None:
    """The paper's first claim at several lengths, in a few lines."""
    console.print(
        "The paper's experiment (arXiv:2308.10101): twenty Gaussian kernels follow a\n"
        "noisy signal. Does the scheme's cumulative cost end below that of a rival?\n"
        f"On how many of {number_of_seeds(seeds)}, and the mean margin, after so many samples:\n"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("0.71519837 is", "rival"):
        table.add_column(name, no_wrap=True)
    for standing in _against(verdict["variance"], BEST):
        table.add_column(f"{standing.samples:,}", justify="right", no_wrap=True)
    for reading, name in (("variance", "a variance"), ("std", "a deviation")):
        for rival in (BEST, EXACT):
            cells = [
                f"{standing.below} {100 * standing.margin:+.0f} %"
                for standing in _against(verdict[reading], rival)
            ]
            table.add_row(name, rival, *cells)
    console.print(Padding(table, (0, 0, 0, 4)))
    console.print(
        "\nThe paper says neither how many samples it ran, nor whether the 0.715 of its\n"
        "noise is a variance or a standard deviation. On most seeds the scheme is below\n"
        "the best single kernel (NORMA) up to "
        f"{_last_below(verdict, BEST, seeds)} samples, and below\n"
        f"OMKR up to {_last_below(verdict, EXACT, seeds)}, in the two readings.\n"
        f"Run in {seconds:.0f} s. All tables: kernelbank reproduce; what they say: docs/paper.md."
    )


def _against(group: Sequence[Standing], rival: str) -> list[Standing]:
    return [standing for standing in group if standing.rival == rival]


def _last_below(verdict: Verdict, rival: str, seeds: int) -> str:
    """After how many samples the scheme is still below a rival on most seeds, by reading."""
    lengths = [
        [s.samples for s in _against(verdict[reading], rival) if 2 * s.below > seeds]
        for reading in READINGS
    ]
    return " and ".join(f"{max(most, default=0):,}" for most in lengths)


def _print_all(console: Console, runs: Sequence[PaperRun], verdict: Verdict, noise: str) -> None:
    seeds = number_of_seeds(len(runs))
    # Costs, steps and errors of the scheme, OMKR and NORMA.
    title = f"{seeds}, {len(runs[0].x)} samples, noise as {noise}"
    table = Table(title=title, title_justify="left")
    table.add_column("", overflow="fold")
    for name in ("seed 0", "mean", "least", "most"):
        table.add_column(name, justify="right")
    for section, rows in paper.table(runs):
        table.add_section()
        table.add_row(f"[bold]{section}[/bold]")
        for name, *cells in (row.cells() for row in rows):
            table.add_row(f"  {name}", *cells)
    console.print(table)
    console.print()
    # Against each rival: on how many seeds the scheme is below, and by how much on average.
    table = Table(
        title=f"On how many of {seeds} the scheme's cumulative cost ends below a rival's,\n"
        "and the mean margin in percent of the rival's cost",
        title_justify="left",
    )
    table.add_column("0.71519837 is", max_width=18)
    for name in ("samples", *RIVALS):
        table.add_column(name, justify="right", max_width=15)
    for reading, group in verdict.items():
        counted = reading != "generator"  # which is one signal
        lengths = "\n".join(str(standing.samples) for standing in _against(group, BEST))
        table.add_section()
        table.add_row(
            READING_NAMES[reading],
            lengths,
            *("\n".join(_cell(s, counted) for s in _against(group, rival)) for rival in RIVALS),
        )
    console.print(table)
    console.print(
        "* Drawn by the authors' public generator (emrumo/VARdatagenerator) with seed 0. It draws "
        "the paper's coefficient and 0.71518937 as a variance: so this may be the paper's signal."
    )
    titles = ("What the paper claims besides", "What it does not say")
    for title, claims in zip(titles, paper.claims(runs), strict=True):
        console.print(f"\n[bold]{title}[/bold]")
        for claim in claims:
            console.print(Padding(claim.text(), (0, 0, 0, 2)))


def _cell(standing: Standing, counted: bool) -> str:
    margin = f"{100 * standing.margin:+.1f} %"
    return f"{standing.below} {margin:>8}" if counted else margin


# --- what is written ------------------------------------------------------------------------------


def _write_tables(out: Path, runs: Sequence[PaperRun], verdict: Verdict) -> list[Path]:
    """The curves of seed 0, one row per step; the table, one column per seed; the verdict."""
    run = runs[0]
    steps = np.arange(1, len(run.x) + 1)
    costs = [run.cumulative_cost[name] for name in COMBINERS]
    columns = [run.y, *costs, float(paper.WINDOW) * steps, *run.slot_cumulative_cost.T]
    norma = [f"norma_{slot + 1}" for slot in range(run.slot_cumulative_cost.shape[1])]
    curves = zip(steps.tolist(), *(column.tolist() for column in columns), strict=True)
    table = [
        [section, row.name, *("" if value is None else value for value in row.values)]
        for section, rows in paper.table(runs)
        for row in rows
    ]
    below = [
        [reading, standing.samples, standing.rival, standing.below, standing.margin]
        for reading, group in verdict.items()
        for standing in group
    ]
    contents: dict[str, tuple[list[str], Iterable[Sequence[object]]]] = {
        "curves": (["n", "y", "scheme", "omkr", "omkr_printed", "reference", *norma], curves),
        "table": (["quantity", "of", *(f"seed_{run.seed}" for run in runs)], table),
        "verdict": (["noise", "samples", "rival", "seeds_below", "mean_margin"], below),
    }
    for name, (header, rows) in contents.items():
        with (out / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return [out / f"{name}.csv" for name in contents]
