"""`kernelbank reproduce`: run the seeds, draw the figures, print the tables and the claims."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..research import paper, paper_figures
from ..research.paper import LENGTHS, READINGS, PaperRun, number_of_seeds, standings
from ..research.plots import save
from . import reproduce_files, reproduce_tables


def reproduce(out: Path, seeds: int, samples: int, noise: str, combiners: bool) -> None:
    """The whole experiment, with progress on the terminal."""
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    lengths = sorted({*LENGTHS, samples})
    start = time.perf_counter()
    long_runs = _run(console, seeds, lengths[-1])
    seconds = time.perf_counter() - start
    runs = [run.until(samples) for run in long_runs[noise]]
    signal = paper.run_signal(0, *paper.generator_stream(lengths[-1]))
    verdict = {reading: standings(long_runs[reading], lengths) for reading in READINGS}
    verdict["generator"] = standings([signal], lengths)
    with console.status("Drawing the figures ..."):
        files = _draw(out, runs[0])
        files.append(reproduce_files.write_curves(out / "curves.csv", runs[0]))
        files.append(reproduce_files.write_table(out / "table.csv", runs))
        files.append(reproduce_files.write_verdict(out / "verdict.csv", verdict))
    console.print(reproduce_tables.quantities(runs, samples, noise))
    console.print()
    console.print(reproduce_tables.verdict(verdict, seeds))
    _print_generator(console)
    _print_claims(console, runs)
    if combiners:
        results = _run_rules(console, runs)
        console.print()
        console.print(reproduce_tables.combiners(results, samples, noise))
        files.append(reproduce_files.write_combiners(out / "combiners.csv", results))
    console.print(
        f"\n{number_of_seeds(seeds)} of {lengths[-1]} samples in both readings, each run by the "
        f"scheme and by OMKR in both forms, in {seconds:.1f} s."
    )
    console.print(f"Written to [bold]{escape(str(out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def _run(console: Console, seeds: int, samples: int) -> dict[str, list[PaperRun]]:
    """The runs of all seeds, by the reading of the noise."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} signals"),
        TimeRemainingColumn(),
    )
    runs: dict[str, list[PaperRun]] = {reading: [] for reading in READINGS}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Running", total=seeds * len(READINGS))
        for reading, own in runs.items():
            for run in paper.run_seeds(seeds, samples, reading):
                own.append(run)
                progress.update(task, advance=1, description="Running")
    return runs


def _run_rules(console: Console, runs: Sequence[PaperRun]) -> list[paper.RuleResult]:
    """Every rule and the single slots, the least mean cost first."""
    with console.status("Running every rule of kb.combiners ..."):
        results = [*paper.run_rules(runs), *paper.single_slots(runs)]
    return sorted(results, key=lambda result: result.mean_cost)


def _draw(out: Path, run: PaperRun) -> list[Path]:
    files = save(paper_figures.cumulative_cost(run), out, "cumulative_cost")
    files += save(paper_figures.reconstruction(run, paper.estimates_at(run)), out, "reconstruction")
    return files + save(paper_figures.online_setting(), out, "online_setting")


def _print_generator(console: Console) -> None:
    console.print(
        "* Drawn by the authors' public generator (emrumo/VARdatagenerator) with seed 0. It draws "
        "the paper's coefficient and 0.71518937 as a variance: so this may be the paper's signal."
    )


def _print_claims(console: Console, runs: Sequence[PaperRun]) -> None:
    titles = ("What the paper claims besides", "What it does not say")
    for title, group in zip(titles, paper.claims(runs), strict=True):
        console.print(f"\n[bold]{title}[/bold]")
        for claim in group:
            console.print(Padding(claim.text(), (0, 0, 0, 2)))
