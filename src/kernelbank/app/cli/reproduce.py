"""`kernelbank reproduce`: play the seeds, draw the figures, print the table and the claims."""

from __future__ import annotations

import csv
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ...evaluation.experiments import claims, figures, paper
from ...evaluation.experiments.paper import EXACT, PRINTED, SCHEME, Game
from ...evaluation.plots import save


def reproduce(out: Path, seeds: int, samples: int, noise: str) -> None:
    """The whole experiment, with progress on the terminal."""
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    games = _play(console, seeds, samples, noise)
    played = time.perf_counter() - start
    with console.status("Drawing the figures ..."):
        files = _write(out, games)
    console.print(_table(games, samples, noise))
    _say_claims(console, games)
    console.print(
        f"\n{claims.number_of_seeds(seeds)} of {samples} samples, each played by the scheme and by "
        f"OMKR in both forms, in {played:.1f} s."
    )
    console.print(f"Written to [bold]{escape(str(out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def _play(console: Console, seeds: int, samples: int, noise: str) -> list[Game]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} seeds"),
        TimeRemainingColumn(),
    )
    games: list[Game] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Compiling and playing", total=seeds)
        for game in paper.play_all(seeds, samples, noise):
            games.append(game)
            progress.update(task, advance=1, description="Playing")
    return games


def _write(out: Path, games: list[Game]) -> list[Path]:
    first = games[0]
    files = save(figures.cumulative_cost(first), out, "cumulative_cost")
    files += save(figures.reconstruction(first, paper.snapshot(first)), out, "reconstruction")
    files += save(figures.online_setting(), out, "online_setting")
    files.append(_write_curves(out / "curves.csv", first))
    files.append(_write_table(out / "table.csv", games))
    return files


def _write_curves(path: Path, game: Game) -> Path:
    """The curves of the figure, a row a step."""
    norma = [f"norma_{slot + 1}" for slot in range(game.slot_cumulative_cost.shape[1])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "y", "scheme", "omkr", "omkr_printed", "reference", *norma])
        for n in range(len(game.x)):
            own = [game.cumulative_cost[name][n] for name in (SCHEME, EXACT, PRINTED)]
            row = [game.y[n], *own, paper.WINDOW * (n + 1), *game.slot_cumulative_cost[n]]
            writer.writerow([n + 1, *map(float, row)])
    return path


def _write_table(path: Path, games: list[Game]) -> Path:
    """The table, a row a quantity and a column a seed."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "of", *(f"seed_{game.seed}" for game in games)])
        for section, rows in claims.table(games):
            for row in rows:
                writer.writerow([section, row.name, *("" if v is None else v for v in row.values)])
    return path


def _table(games: list[Game], samples: int, noise: str) -> Table:
    result = Table(
        title=f"{claims.number_of_seeds(len(games))}, {samples} samples, noise as {noise}",
        title_justify="left",
    )
    result.add_column("")
    for name in ("seed 0", "mean", "least", "most"):
        result.add_column(name, justify="right")
    for section, rows in claims.table(games):
        result.add_section()
        result.add_row(f"[bold]{section}[/bold]")
        for row in rows:
            name, *cells = row.cells()
            result.add_row(f"  {name}", *cells)
    return result


def _say_claims(console: Console, games: list[Game]) -> None:
    titles = ("What the paper claims", "What it does not say")
    for title, group in zip(titles, claims.claims(games), strict=True):
        console.print(f"\n[bold]{title}[/bold]")
        for claim in group:
            console.print(Padding(claim.words(), (0, 0, 0, 2)))
