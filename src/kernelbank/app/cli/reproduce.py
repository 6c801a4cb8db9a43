"""`kernelbank reproduce`: run the seeds, draw the figures, print the table and the paper_claims."""

from __future__ import annotations

import csv
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ...evaluation.experiments import paper, paper_claims, paper_figures
from ...evaluation.experiments.paper import EXACT, PRINTED, SCHEME, PaperRun
from ...evaluation.plots import save


def reproduce(out: Path, seeds: int, samples: int, noise: str) -> None:
    """The whole experiment, with progress on the terminal."""
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    runs = _run(console, seeds, samples, noise)
    seconds = time.perf_counter() - start
    with console.status("Drawing the figures ..."):
        files = _write(out, runs)
    console.print(_table(runs, samples, noise))
    _print_claims(console, runs)
    console.print(
        f"\n{paper_claims.number_of_seeds(seeds)} of {samples} samples, each run by the scheme and "
        f"by OMKR in both forms, in {seconds:.1f} s."
    )
    console.print(f"Written to [bold]{escape(str(out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def _run(console: Console, seeds: int, samples: int, noise: str) -> list[PaperRun]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} seeds"),
        TimeRemainingColumn(),
    )
    runs: list[PaperRun] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Running", total=seeds)
        for run in paper.run_seeds(seeds, samples, noise):
            runs.append(run)
            progress.update(task, advance=1, description="Running")
    return runs


def _write(out: Path, runs: list[PaperRun]) -> list[Path]:
    first = runs[0]
    files = save(paper_figures.cumulative_cost(first), out, "cumulative_cost")
    files += save(
        paper_figures.reconstruction(first, paper.estimates_at(first)), out, "reconstruction"
    )
    files += save(paper_figures.online_setting(), out, "online_setting")
    files.append(_write_curves(out / "curves.csv", first))
    files.append(_write_table(out / "table.csv", runs))
    return files


def _write_curves(path: Path, run: PaperRun) -> Path:
    """The curves of the figure, one row per step."""
    norma = [f"norma_{slot + 1}" for slot in range(run.slot_cumulative_cost.shape[1])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "y", "scheme", "omkr", "omkr_printed", "reference", *norma])
        for n in range(len(run.x)):
            own = [run.cumulative_cost[name][n] for name in (SCHEME, EXACT, PRINTED)]
            row = [run.y[n], *own, paper.WINDOW * (n + 1), *run.slot_cumulative_cost[n]]
            writer.writerow([n + 1, *map(float, row)])
    return path


def _write_table(path: Path, runs: list[PaperRun]) -> Path:
    """The table, one row per quantity and one column per seed."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "of", *(f"seed_{run.seed}" for run in runs)])
        for section, rows in paper_claims.table(runs):
            for row in rows:
                writer.writerow([section, row.name, *("" if v is None else v for v in row.values)])
    return path


def _table(runs: list[PaperRun], samples: int, noise: str) -> Table:
    result = Table(
        title=f"{paper_claims.number_of_seeds(len(runs))}, {samples} samples, noise as {noise}",
        title_justify="left",
    )
    result.add_column("")
    for name in ("seed 0", "mean", "least", "most"):
        result.add_column(name, justify="right")
    for section, rows in paper_claims.table(runs):
        result.add_section()
        result.add_row(f"[bold]{section}[/bold]")
        for row in rows:
            name, *cells = row.cells()
            result.add_row(f"  {name}", *cells)
    return result


def _print_claims(console: Console, runs: list[PaperRun]) -> None:
    titles = ("What the paper claims", "What it does not say")
    for title, group in zip(titles, paper_claims.claims(runs), strict=True):
        console.print(f"\n[bold]{title}[/bold]")
        for claim in group:
            console.print(Padding(claim.text(), (0, 0, 0, 2)))
