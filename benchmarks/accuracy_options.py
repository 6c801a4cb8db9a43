"""The options of `make accuracy` and `make ablation`: which streams, rows and competitors."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from accuracy_competitors import AUTO, BANKS, USUAL_GROUPS, rival_groups
from accuracy_streams import (
    LONG_STREAM,
    RowRange,
    benchmarks,
    bundled,
    from_folder,
    long_ones,
)
from capymoa_rivals import CAPYMOA, check_capymoa
from refitted_rivals import LONG, USUAL

from kernelbank.research.competitors import PERSISTENCE, Competitor
from kernelbank.research.datasets import Stream


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


def add_rival_options(parser: argparse.ArgumentParser) -> None:
    """Which rivals take part."""
    parser.add_argument(
        "--rivals",
        default=",".join(USUAL_GROUPS),
        help="groups of rivals, separated by commas: online (they learn row by row), refitted "
        "(LightGBM and ExtraTrees, fitted anew on all past rows), large (forests of 100 trees and "
        "other slow models of River), or all; by default %(default)s",
    )
    parser.add_argument(
        "--capymoa", action="store_true", help="CapyMOA's rivals too, which need Java"
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
        if name not in (*groups, "all"):
            listed = ", ".join([*groups, "all"])
            raise SystemExit(f"--rivals: there is no group {name!r}. There are {listed}.")
    own = [one for name, group in groups.items() if {name, "all"} & {*wanted} for one in group]
    return [*own, *(CAPYMOA if chosen.capymoa else [])]


def chosen_competitors(chosen: argparse.Namespace) -> list[Competitor]:
    """AutoBank, rivals and banks of the literature, or those that are asked for by name."""
    if chosen.competitors is None:
        return [AUTO, *chosen_rivals(chosen), *BANKS]
    rivals = [one for group in _groups(chosen).values() for one in group]
    every = [AUTO, *rivals, *CAPYMOA, *BANKS]
    known = [*(one.name for one in every), PERSISTENCE]
    wanted = _names(chosen.competitors)
    for name in wanted:
        if name not in known:
            listed = ", ".join(known)
            raise SystemExit(f"--competitors: there is no {name!r}. There are {listed}.")
    return [one for one in every if one.name in wanted]


def check_installed(competitors: list[Competitor]) -> None:
    """Stop before anything runs if a competitor needs something that is not installed."""
    if any(one in CAPYMOA for one in competitors):
        check_capymoa()
    for one in competitors:
        for library in one.libraries:
            if installed_version(library) is None:
                raise SystemExit(
                    f"{one.name} needs {library}, which is not installed. Install it (pip install "
                    f"{library}), or choose other rivals (--rivals online)."
                )


def installed_version(library: str) -> str | None:
    """The version of an installed library; None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


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
