"""`make accuracy`: AutoBank and rivals on the same streams, one pass, nothing tuned.

Every row is predicted before its target is learned. The first 4,000 rows of each stream are used
and scored from row 101 on; regression streams twice, as they are given and with the last three
targets as further inputs. With --rows 40000 only streams of 10,000 rows and more are used, and the
error is also given by quarter of the stream. Written are tables (accuracy.md), everything in
accuracy.json, a figure of each stream, anew after every stream, and at the end critical-difference
diagrams of the mean ranks over the streams as given. The runs of the rivals are kept in rivals/.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import accuracy_figures as figures
import accuracy_goals as goals
import accuracy_quarters as quarters
import accuracy_tables as tables
from accuracy_competitors import AUTO, competes
from accuracy_options import (
    add_rival_options,
    add_stream_options,
    check_installed,
    chosen_competitors,
    chosen_streams,
    installed_version,
    row_range,
)
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import kernelbank as kb
from kernelbank.research.competitors import PERSISTENCE, Competitor
from kernelbank.research.datasets.stream import CLASSIFICATION, REGRESSION
from kernelbank.research.results import finite
from kernelbank.research.run_cache import RunCache
from kernelbank.research.scores import NORMALISED

TASKS = (REGRESSION, CLASSIFICATION)


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_stream_options(parser)
    add_rival_options(parser)
    parser.add_argument("--competitors", help="names, separated by commas, instead of groups")
    parser.add_argument("--fresh", action="store_true", help="run the rivals again")
    return parser.parse_args(arguments)


def facts(chosen: argparse.Namespace) -> dict[str, object]:
    """What the figures depend on besides the streams."""
    libraries = ("river", "scikit-learn", "lightgbm", "capymoa", "numpy")
    return {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "kernelbank": kb.__version__,
        **{name: installed_version(name) for name in libraries},
        "data": None if chosen.data is None else chosen.data.name,
        "set": chosen.set,
        "start": chosen.start,
        "rows": chosen.rows,
        "skip": chosen.skip,
        "jobs": chosen.jobs,
    }


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    """A bar on the error stream, for `kb.compare`."""
    columns = (TextColumn("{task.description:50}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total, what: progress.update(
            task, completed=done, total=total, description=what
        )


def show(grids: list[tables.TextTable], lines: list[str], folder: Path) -> None:
    """Tables and explanations on the terminal."""
    console = Console(width=None if Console().is_terminal else 100, highlight=False)
    for grid in grids:
        for part in grid.parts():
            console.print(part.rich())
    for line in lines:
        console.print(line, markup=False)
    console.print(f"Written to {folder.resolve()}", markup=False)


def all_tables(found: kb.Comparison, long: bool) -> list[tables.TextTable]:
    """Every table; streams that AutoBank loses stand first."""
    found = tables.losing_first(found)
    every = [
        tables.per_stream(found),
        *(tables.everybody(found, task) for task in TASKS),
        *(tables.ranks(found, task) for task in TASKS),
        tables.intervals(found),
        *((quarters.by_quarter(found), quarters.verdicts(found)) if long else ()),
        goals.goals(found),
    ]
    return [table for table in every if table is not None]


def explanations(found: kb.Comparison, competitors: list[Competitor]) -> list[str]:
    ran = {one.name for one in found.results}
    descriptions = {one.name: one.description for one in competitors if one.name in ran}
    descriptions[PERSISTENCE] = "the last target again"
    return [*tables.legend(descriptions), *tables.notes(found)]


def write(found: kb.Comparison, chosen: argparse.Namespace, competitors: list[Competitor]) -> None:
    """The files, for the streams that are done, and the figure of the last one."""
    grids = [grid.markdown() for grid in all_tables(found, row_range(chosen).long)]
    text = "\n".join([*grids, *(f"- {line}" for line in explanations(found, competitors))])
    (chosen.out / "accuracy.md").write_text(text + "\n")
    content = facts(chosen) | {
        "competitors": {one.name: one.description for one in competitors},
        "results": found.table(),
        "best_rivals": [asdict(one) for one in found.best_rivals(AUTO.name, competes)],
        "summary": goals.summary(found),
    }
    if row_range(chosen).long:
        content["quarters"] = quarters.figures(found)
    text = json.dumps(finite(content), indent=1, allow_nan=False)
    (chosen.out / "accuracy.json").write_text(text + "\n")
    figures.draw_errors(found, found.streams[-1], chosen.out)


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    competitors = chosen_competitors(chosen)
    check_installed(competitors)
    streams = chosen_streams(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        found = kb.compare(
            {one.name: one for one in competitors},
            streams,
            loss=NORMALISED,
            skip=chosen.skip,
            keep_losses=True,
            cache=RunCache(chosen.out / "rivals", refresh=chosen.fresh),
            jobs=chosen.jobs,
            progress=progress,
            report=lambda so_far: write(so_far, chosen, competitors),
        )
    figures.draw_ranks(found, chosen.out)
    show(all_tables(found, row_range(chosen).long), explanations(found, competitors), chosen.out)


if __name__ == "__main__":
    main()
