"""`make accuracy`: AutoBank and rivals on the same streams, one pass, nothing tuned.

Every row is predicted before its target is learned. The first 4,000 rows of each stream are used
and scored from row 101 on; regression streams twice, as they are given and with the last three
targets as further inputs. Written are tables (accuracy.md), everything in accuracy.json, a figure
of each stream, anew after every stream, and at the end critical-difference diagrams of the mean
ranks over the streams as given. The runs of the rivals are kept in rivals/.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import accuracy_figures as figures
import accuracy_tables as tables
from accuracy_competitors import AUTO, COMPETITORS, competes
from accuracy_streams import RowRange, benchmarks, bundled, from_folder
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import kernelbank as kb
from kernelbank.evaluation.competitors import PERSISTENCE, Competitor
from kernelbank.evaluation.datasets import Stream
from kernelbank.evaluation.results import finite
from kernelbank.evaluation.run_cache import RunCache
from kernelbank.evaluation.scores import NORMALISED


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
    parser.add_argument("--jobs", type=_count(1), default=1, help="runs side by side")


def _count(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return parse


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_stream_options(parser)
    parser.add_argument("--competitors", help="competitors, separated by commas; by default all")
    parser.add_argument("--fresh", action="store_true", help="run the rivals again")
    return parser.parse_args(arguments)


def chosen_competitors(names: str | None) -> list[Competitor]:
    if names is None:
        return COMPETITORS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = [*(one.name for one in COMPETITORS), PERSISTENCE]
    for name in wanted:
        if name not in known:
            listed = ", ".join(known)
            raise SystemExit(f"--competitors: there is no {name!r}. There are {listed}.")
    return [one for one in COMPETITORS if one.name in wanted]


def chosen_streams(chosen: argparse.Namespace) -> dict[str, Stream]:
    """What the options of `add_stream_options` ask for."""
    used = RowRange(chosen.start, chosen.rows, chosen.skip)
    only = [name.strip() for name in chosen.only.split(",") if name.strip()]
    if chosen.set is not None:
        found = benchmarks(chosen.set == "seen", chosen.data, used, only)
    elif chosen.data is None:
        found = bundled(used, only)
    else:
        found = from_folder(chosen.data, used, only)
    if not found:
        last = used.start + used.skip
        raise SystemExit(f"No stream has more than {last} rows. Lower --start or --skip.")
    return found


def facts(chosen: argparse.Namespace) -> dict[str, object]:
    """What the figures depend on besides the streams."""
    libraries = ("river", "scikit-learn", "numpy")
    return {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "kernelbank": kb.__version__,
        **{name: version(name) for name in libraries},
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
        console.print(grid.rich())
    for line in lines:
        console.print(line, markup=False)
    console.print(f"Written to {folder.resolve()}", markup=False)


def explanations(found: kb.Comparison) -> list[str]:
    ran = {one.name for one in found.results}
    descriptions = {one.name: one.description for one in COMPETITORS if one.name in ran}
    descriptions[PERSISTENCE] = "the last target again"
    return [*tables.legend(descriptions), *tables.notes(found)]


def write(found: kb.Comparison, chosen: argparse.Namespace) -> None:
    """The files, for the streams that are done, and the figure of the last one."""
    grids = [grid.markdown() for grid in tables.all_tables(found)]
    text = "\n".join([*grids, *(f"- {line}" for line in explanations(found))])
    (chosen.out / "accuracy.md").write_text(text + "\n")
    content = facts(chosen) | {
        "competitors": {one.name: one.description for one in COMPETITORS},
        "results": found.table(),
        "best_rivals": [asdict(one) for one in found.best_rivals(AUTO.name, competes)],
        "summary": tables.summary(found),
    }
    text = json.dumps(finite(content), indent=1, allow_nan=False)
    (chosen.out / "accuracy.json").write_text(text + "\n")
    figures.draw_errors(found, found.streams[-1], chosen.out)


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    competitors = chosen_competitors(chosen.competitors)
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
            report=lambda so_far: write(so_far, chosen),
        )
    figures.draw_ranks(found, chosen.out)
    show(tables.all_tables(found), explanations(found), chosen.out)


if __name__ == "__main__":
    main()
