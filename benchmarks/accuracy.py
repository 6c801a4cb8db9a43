"""`make accuracy`: AutoBank and rivals on the same streams, one pass, nothing tuned.

Every row is predicted before its target is learned. The first 4,000 rows of each stream are used
and scored from row 101 on; regression streams twice, as they are given and with the last three
targets as further inputs. With --rows 40000 only streams of 10,000 rows and more are used, and the
error is also given by quarter of the stream. Written are tables (accuracy.md), everything in
accuracy.json, both anew after every stream, and at the end critical-difference diagrams of the mean
ranks over the streams as given. The runs of the rivals are kept in rivals/.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import accuracy_tables as tables
from accuracy_competitors import (
    AUTO,
    BANKS,
    LONG,
    USUAL,
    RunCache,
    auto_bank,
    competes,
    installed_version,
    library,
    rival_groups,
)
from accuracy_streams import LONG_STREAM, RowRange, benchmarks, bundled, from_folder, long_ones
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import kernelbank as kb
from kernelbank.research.competitors import PERSISTENCE, RIVAL, Competitor
from kernelbank.research.datasets.tables import CLASSIFICATION, REGRESSION, Stream
from kernelbank.research.results import NORMALISED, finite

TASKS = (REGRESSION, CLASSIFICATION)


# --- options, which `make ablation` has too -------------------------------------------------------


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """Which rows of which streams are used, and where results go."""
    parser.add_argument(
        "--data", type=Path, help="folder of .csv.gz files; by default what River and sklearn bring"
    )
    parser.add_argument(
        "--set",
        choices=("seen", "unseen"),
        help="named benchmarks with which AutoBank's default slots were chosen, or all others, "
        "from --data and from installed packages",
    )
    parser.add_argument("--out", type=Path, default=Path("accuracy"))
    parser.add_argument("--only", default="", help="streams, separated by commas")
    parser.add_argument("--start", type=_count(0), default=0, help="rows to leave out before")
    parser.add_argument("--rows", type=_count(2), default=4000, help="rows to use")
    parser.add_argument("--skip", type=_count(0), default=100, help="of these not scored")


def add_rival_options(parser: argparse.ArgumentParser) -> None:
    """Which rivals take part."""
    parser.add_argument(
        "--rivals",
        default="online,refitted",
        help="groups of rivals, separated by commas: online (they learn row by row), refitted "
        "(LightGBM and ExtraTrees, fitted anew on all past rows); by default %(default)s",
    )


def _count(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return parse


def row_range(chosen: argparse.Namespace) -> RowRange:
    return RowRange(chosen.start, chosen.rows, chosen.skip)


def _groups(chosen: argparse.Namespace) -> dict[str, list[Competitor]]:
    return rival_groups(LONG if row_range(chosen).long else USUAL)


def chosen_rivals(chosen: argparse.Namespace) -> list[Competitor]:
    """The rivals of the groups that are asked for."""
    groups = _groups(chosen)
    wanted = _names(chosen.rivals)
    for name in wanted:
        if name not in groups:
            listed = ", ".join(groups)
            raise SystemExit(f"--rivals: there is no group {name!r}. There are {listed}.")
    return [one for name, group in groups.items() if name in wanted for one in group]


def chosen_competitors(chosen: argparse.Namespace) -> list[Competitor]:
    """AutoBank, rivals and banks of the literature, or those that are asked for by name."""
    if chosen.competitors is None:
        return [auto_bank(chosen.skip), *chosen_rivals(chosen), *BANKS]
    rivals = [one for group in _groups(chosen).values() for one in group]
    every = [auto_bank(chosen.skip), *rivals, *BANKS]
    known = [*(one.name for one in every), PERSISTENCE]
    wanted = _names(chosen.competitors)
    for name in wanted:
        if name not in known:
            listed = ", ".join(known)
            raise SystemExit(f"--competitors: there is no {name!r}. There are {listed}.")
    return [one for one in every if one.name in wanted]


def check_installed(competitors: list[Competitor]) -> None:
    """Stop before anything runs if a competitor needs something that is not installed."""
    for one in competitors:
        if one.kind == RIVAL and installed_version(library(one)) is None:
            raise SystemExit(
                f"{one.name} needs {library(one)}, which is not installed. Install it (pip install "
                f"{library(one)}), or choose other rivals (--rivals online)."
            )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def chosen_streams(chosen: argparse.Namespace) -> dict[str, Stream]:
    """What the options of `add_stream_options` ask for."""
    used = row_range(chosen)
    only = _names(chosen.only)
    if chosen.set is not None:
        found = benchmarks(chosen.set == "seen", chosen.data, used, only)
    elif chosen.data is None:
        found = bundled(used, only)
    else:
        found = from_folder(chosen.data, used, only)
    if found and used.long:
        found = long_ones(found)
        if not found:
            raise SystemExit(
                f"--rows: more than {LONG_STREAM:,} rows are for long streams, and there is none. "
                "Give streams that are longer, or fewer rows."
            )
    if not found:
        last = used.start + used.skip
        raise SystemExit(f"No stream has more than {last} rows. Lower --start or --skip.")
    return found


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_stream_options(parser)
    add_rival_options(parser)
    parser.add_argument("--competitors", help="names, separated by commas, instead of groups")
    parser.add_argument("--fresh", action="store_true", help="run the rivals again")
    return parser.parse_args(arguments)


# --- what is written ------------------------------------------------------------------------------


def facts(chosen: argparse.Namespace) -> dict[str, object]:
    """What the figures depend on besides the streams."""
    libraries = ("river", "scikit-learn", "lightgbm", "numpy")
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
        *((tables.by_quarter(found), tables.verdicts(found)) if long else ()),
        tables.goals(found),
    ]
    return [table for table in every if table is not None]


def explanations(found: kb.Comparison, competitors: list[Competitor]) -> list[str]:
    ran = {one.name for one in found.results}
    descriptions = {one.name: one.description for one in competitors if one.name in ran}
    descriptions[PERSISTENCE] = "the last target again"
    return [*tables.legend(descriptions), *tables.notes(found)]


def write(found: kb.Comparison, chosen: argparse.Namespace, competitors: list[Competitor]) -> None:
    """The files, for the streams that are done."""
    grids = [grid.markdown() for grid in all_tables(found, row_range(chosen).long)]
    text = "\n".join([*grids, *(f"- {line}" for line in explanations(found, competitors))])
    (chosen.out / "accuracy.md").write_text(text + "\n")
    content = facts(chosen) | {
        "competitors": {one.name: one.description for one in competitors},
        "results": found.table(),
        "best_rivals": [asdict(one) for one in tables.best_rivals(found, AUTO, competes)],
        "summary": tables.summary(found),
    }
    if row_range(chosen).long:
        content["quarters"] = tables.quarters(found)
    text = json.dumps(finite(content), indent=1, allow_nan=False)
    (chosen.out / "accuracy.json").write_text(text + "\n")


def draw_ranks(found: kb.Comparison, folder: Path) -> list[Path]:
    """A critical-difference diagram for each task, if there are several streams of it."""
    files: list[Path] = []
    for task in TASKS:
        own = tables.as_given(found, task)
        if own.overall:
            files += own.plot_ranks(folder / f"ranks_{task}.png")
    return files


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    competitors = chosen_competitors(chosen)
    check_installed(competitors)
    streams = chosen_streams(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    cache = RunCache(chosen.out / "rivals", refresh=chosen.fresh)
    ran = [cache.cached(one) if one.kind == RIVAL else one for one in competitors]
    with progress_bar() as progress:
        found = kb.compare(
            {one.name: one for one in ran},
            streams,
            loss=NORMALISED,
            skip=chosen.skip,
            progress=progress,
            report=lambda so_far: write(so_far, chosen, competitors),
        )
    draw_ranks(found, chosen.out)
    show(all_tables(found, row_range(chosen).long), explanations(found, competitors), chosen.out)


if __name__ == "__main__":
    main()
