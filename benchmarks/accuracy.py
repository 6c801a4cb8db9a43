"""`make accuracy`: AutoBank and rivals on the same streams, one pass, nothing tuned.

Every row is predicted before its target is learned. The first 4,000 rows of each stream are used
and scored from row 101 on; regression streams twice, as they are given and with the last three
targets as further inputs. With --rows 40000 only streams of 10,000 rows and more are used, and the
error of the last half of the stream is given too. Written are tables (accuracy.md), everything in
accuracy.json, both anew after every stream. The runs of the rivals are kept in rivals/.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import accuracy_tables as tables
from accuracy_competitors import (
    BANKS,
    LONG,
    USUAL,
    RunCache,
    auto_bank,
    installed_version,
    library,
    rival_groups,
)
from accuracy_streams import (
    LONG_STREAM,
    RowRange,
    benchmarks,
    bundled,
    chosen_names,
    from_folder,
    long_ones,
)
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import kernelbank as kb
from kernelbank.research.competitors import PERSISTENCE, RIVAL, Competitor
from kernelbank.research.datasets import CLASSIFICATION, REGRESSION, Stream
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


def _count(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return parse


def row_range(chosen: argparse.Namespace) -> RowRange:
    return RowRange(chosen.start, chosen.rows, chosen.skip)


def chosen_competitors(chosen: argparse.Namespace) -> list[Competitor]:
    """AutoBank, rivals and banks of the literature: groups, or those that are asked for by name."""
    groups = rival_groups(LONG if row_range(chosen).long else USUAL)
    if chosen.competitors is None:
        wanted = chosen_names(list(groups), _names(chosen.rivals), "--rivals")
        rivals = [one for name in wanted for one in groups[name]]
        return [auto_bank(chosen.skip), *rivals, *BANKS]
    every = [auto_bank(chosen.skip), *(one for group in groups.values() for one in group), *BANKS]
    known = [*(one.name for one in every), PERSISTENCE]
    wanted = chosen_names(known, _names(chosen.competitors), "--competitors")
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
    used, only = row_range(chosen), _names(chosen.only)
    if chosen.set is not None:
        streams = benchmarks(chosen.set == "seen", chosen.data, used, only)
    elif chosen.data is None:
        streams = bundled(used, only)
    else:
        streams = from_folder(chosen.data, used, only)
    if used.long:
        streams = long_ones(streams)
    if not streams:
        least = LONG_STREAM if used.long else used.start + used.skip + 1
        raise SystemExit(f"No stream has {least:,} rows. Lower --rows, --start or --skip.")
    return streams


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_stream_options(parser)
    parser.add_argument(
        "--rivals",
        default="online,refitted",
        help="groups of rivals, separated by commas: online (they learn row by row), refitted "
        "(LightGBM and ExtraTrees, fitted anew on all past rows); by default %(default)s",
    )
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


def all_tables(comparison: kb.Comparison, long: bool) -> list[tables.TextTable]:
    every = [
        tables.per_stream(comparison),
        *(tables.ranks(comparison, task) for task in TASKS),
        tables.last_halves(comparison) if long else None,
        tables.times(comparison),
        tables.totals(comparison),
    ]
    return [table for table in every if table is not None]


def explanations(comparison: kb.Comparison, competitors: list[Competitor]) -> list[str]:
    named = [f"{one.name}: {one.description}" for one in competitors]
    return [*named, *tables.notes(comparison)]


def write(
    comparison: kb.Comparison, chosen: argparse.Namespace, competitors: list[Competitor]
) -> None:
    """The files, for the streams that are done."""
    grids = [grid.markdown() for grid in all_tables(comparison, row_range(chosen).long)]
    text = "\n".join([*grids, *(f"- {line}" for line in explanations(comparison, competitors))])
    (chosen.out / "accuracy.md").write_text(text + "\n")
    content = facts(chosen) | {
        "competitors": {one.name: one.description for one in competitors},
        "results": comparison.table(),
        "summary": tables.summary(comparison),
    }
    text = json.dumps(finite(content), indent=1, allow_nan=False)
    (chosen.out / "accuracy.json").write_text(text + "\n")


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    competitors = chosen_competitors(chosen)
    check_installed(competitors)
    streams = chosen_streams(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    cache = RunCache(chosen.out / "rivals", refresh=chosen.fresh)
    ran = [cache.cached(one) if one.kind == RIVAL else one for one in competitors]
    with progress_bar() as progress:
        comparison = kb.compare(
            {one.name: one for one in ran},
            streams,
            loss=NORMALISED,
            skip=chosen.skip,
            progress=progress,
            report=lambda so_far: write(so_far, chosen, competitors),
        )
    grids = all_tables(comparison, row_range(chosen).long)
    show(grids, explanations(comparison, competitors), chosen.out)


if __name__ == "__main__":
    main()
