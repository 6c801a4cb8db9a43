"""`make forecasts`: direct forecasts for several horizons, of AutoBank and rivals.

At every row t, when x[t] and y[t] are known, each method forecasts y[t + h] for the horizons h =
1, ..., 24; inputs after t are not known, except those that are known in advance, such as the hour.
The first 4,000 rows of each stream are used, and forecasts are scored from row 500 on. Nothing is
tuned. The streams, their periods and what is known in advance are listed in forecast_streams.py.
Without --data only simulated streams are used. Written are forecasts.md and forecasts.json, anew
after every stream. Runs of rivals are kept in the folder --cache, and found there even where the
library of a rival is not installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import forecast_tables as tables
import numpy as np
from accuracy_tables import TextTable
from forecast_rivals import (
    CHOSEN_EVERY,
    EVERY,
    LAGS,
    Forecaster,
    Forecasts,
    Task,
    direct_rivals,
    naive_rivals,
    statsforecast_rivals,
)
from forecast_streams import ForecastStream, load_streams
from forecast_tables import Score, against_rivals, score, summary

import kernelbank as kb
from kernelbank.research.results import finite

HORIZONS = (1, 6, 12, 24)


# --- AutoBank -------------------------------------------------------------------------------------


def _run_auto(task: Task) -> Forecasts:
    """AutoBank is given lags, horizons, and the periods and known inputs of the stream."""
    stream, horizons = task.stream, task.horizons
    whole = horizons == tuple(range(1, len(horizons) + 1))
    bank = kb.AutoBank(
        lags=LAGS,
        horizons=len(horizons) if whole else horizons,
        seasons=stream.periods or None,
        known=list(stream.known) or None,
    )
    began = time.perf_counter()
    trace = bank.run(stream.X, stream.y)
    seconds = time.perf_counter() - began
    return Forecasts(trace.forecasts, trace.forecast_lower, trace.forecast_upper, seconds)


AUTO = Forecaster(
    "autobank",
    _run_auto,
    f"kernelbank: AutoBank with {LAGS} lags and the periods of the stream",
)


# --- kept runs ------------------------------------------------------------------------------------

_FORMAT = 1
"""To be raised when rivals are run in another way."""
_PARTS = ("values", "lower", "upper")


def installed_versions(libraries: tuple[str, ...]) -> dict[str, str] | None:
    """The versions of these libraries; None if one of them is not installed."""
    try:
        return {name: version(name) for name in libraries}
    except PackageNotFoundError:
        return None


class ForecastCache:
    """A folder with a file for every run of a forecaster that names its libraries.

    Unlike `RunCache`, a kept run is also found where the libraries of the rival are not installed:
    the versions stand inside the file. Where they are installed in other versions the run is not
    used.
    """

    def __init__(self, folder: Path, refresh: bool = False) -> None:
        self.folder = folder
        self.refresh = refresh
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, forecaster: Forecaster, task: Task) -> Path:
        """The file of a run: its name has a hash of the stream and the settings."""
        facts = [
            str(_FORMAT),
            task.stream.fingerprint,
            str(task.horizons),
            str(task.start),
            forecaster.description,
        ]
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
        return self.folder / f"{task.stream.name}-{forecaster.name}-{key}.npz"

    def get(self, forecaster: Forecaster, task: Task) -> Forecasts | None:
        """The kept run; None if there is none, a damaged file, or one of other versions."""
        installed = installed_versions(forecaster.libraries)
        if self.refresh and installed is not None:
            return None
        try:
            with np.load(self.path(forecaster, task), allow_pickle=False) as file:
                versions = json.loads(str(file["versions"]))
                if installed not in (None, versions):
                    return None
                parts = {name: file[name] for name in _PARTS if name in file}
                seconds, note = float(file["seconds"]), str(file["note"]) if "note" in file else ""
                return Forecasts(**parts, seconds=seconds, versions=versions, note=note)
        except Exception:  # of a damaged file zipfile, zlib and NumPy raise errors of many kinds
            return None

    def put(self, forecaster: Forecaster, task: Task, run: Forecasts) -> None:
        """Keep a run."""
        path = self.path(forecaster, task)
        unfinished = path.with_suffix(f".{os.getpid()}.part")  # nobody must find half a file
        parts = {name: getattr(run, name) for name in _PARTS if getattr(run, name) is not None}
        with unfinished.open("wb") as file:
            np.savez_compressed(
                file,
                **parts,
                seconds=run.seconds,
                versions=np.array(json.dumps(run.versions)),
                note=np.array(run.note),
            )
        unfinished.replace(path)


def forecast(forecaster: Forecaster, task: Task, cache: ForecastCache) -> Forecasts | None:
    """A kept run, or a new one; None if there is none and a library is not installed."""
    kept = cache.get(forecaster, task) if forecaster.libraries else None
    if kept is not None:
        return kept
    versions = installed_versions(forecaster.libraries)
    if versions is None:
        return None
    run = replace(forecaster.run(task), versions=versions)
    if forecaster.libraries:
        cache.put(forecaster, task, run)
    return run


# --- the command ----------------------------------------------------------------------------------


@dataclass
class Found:
    """What is known so far."""

    scores: list[Score] = field(default_factory=list)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of .csv.gz files")
    parser.add_argument("--streams", default="", help="names, separated by commas; default all")
    parser.add_argument("--rows", type=_positive, default=4000, help="rows to use of each stream")
    parser.add_argument("--skip", type=_positive, default=500, help="of these not scored")
    parser.add_argument(
        "--rivals",
        default="all",
        help="groups (naive, direct, statsforecast) or names, separated by commas; none for no "
        "rival; by default %(default)s",
    )
    parser.add_argument("--no-bank", action="store_true", help="rivals only")
    parser.add_argument(
        "--horizons", type=_horizons, default=HORIZONS, help="those of the tables of errors"
    )
    parser.add_argument(
        "--refit", type=_positive, default=EVERY, help="rows between fits of direct models"
    )
    parser.add_argument(
        "--choose", type=_positive, default=CHOSEN_EVERY, help="rows between choices of AutoARIMA"
    )
    parser.add_argument("--out", type=Path, default=Path("forecasts"))
    parser.add_argument("--json", type=Path, help="by default forecasts.json in --out")
    parser.add_argument("--cache", type=Path, help="by default the folder rivals in --out")
    parser.add_argument("--fresh", action="store_true", help="run the rivals again")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _horizons(text: str) -> tuple[int, ...]:
    return tuple(sorted({_positive(part) for part in text.split(",")}))


def chosen_rivals(chosen: argparse.Namespace) -> list[Forecaster]:
    """The rivals of the groups or names that are asked for."""
    groups = {
        "naive": naive_rivals(),
        "direct": direct_rivals(chosen.refit),
        "statsforecast": statsforecast_rivals(chosen.choose),
    }
    wanted = _names(chosen.rivals)
    every = [(group, one) for group, members in groups.items() for one in members]
    known = ["all", "none", *groups, *(one.name for _, one in every)]
    for name in wanted:
        if name not in known:
            listed = ", ".join(known)
            raise SystemExit(f"--rivals: there is no {name!r}. There are {listed}.")
    return [one for group, one in every if {"all", group, one.name} & {*wanted}]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def chosen_streams(chosen: argparse.Namespace) -> list[ForecastStream]:
    """Those with rows to score; a line names the others."""
    found = load_streams(chosen.data, chosen.rows, _names(chosen.streams))
    least = chosen.skip + max(chosen.horizons)
    short = [one.name for one in found if len(one) <= least]
    if short:
        print(f"Left out, not more than {least} rows: {', '.join(short)}")
    if len(short) == len(found):
        raise SystemExit(f"No stream has more than {least} rows. Raise --rows or lower --skip.")
    return [one for one in found if one.name not in short]


def run_stream(
    stream: ForecastStream,
    forecasters: list[Forecaster],
    chosen: argparse.Namespace,
    cache: ForecastCache,
    found: Found,
) -> None:
    """Add the scores of all forecasters on one stream."""
    for one in forecasters:
        if not one.accepts(stream):
            continue
        task = one.task(stream, chosen.horizons, chosen.skip)
        run = forecast(one, task, cache)
        if run is None:
            needed = " and ".join(one.libraries)
            key = f"{one.name} on {stream.name}"
            found.left_out[key] = f"needs {needed} (pip install {needed.split()[0]})"
            print(f"Left out: {key} {found.left_out[key]}", flush=True)
            continue
        found.scores += score(one.name, task, run)
        found.seconds[stream.name, one.name] = run.seconds
        found.versions[one.name] = run.versions
        print(f"{stream.name}: {one.name}, {run.seconds:.1f} s", flush=True)
        if run.note:
            found.notes.append(f"{one.name} on {stream.name}: {run.note}")


def all_tables(found: Found, horizons: tuple[int, ...]) -> list[TextTable]:
    every = [
        tables.totals(found.scores, AUTO.name, horizons),
        tables.errors(found.scores, AUTO.name, horizons),
        tables.errors(found.scores, AUTO.name, horizons, "absolute"),
        tables.intervals(found.scores, AUTO.name),
        tables.times(found.seconds),
    ]
    return [table for table in every if table is not None]


def text(found: Found, chosen: argparse.Namespace, forecasters: list[Forecaster]) -> str:
    """The tables and what the names mean, as Markdown."""
    lines = [f"- {one.name}: {one.description}" for one in forecasters]
    lines += [f"- left out: {name} {why}" for name, why in found.left_out.items()]
    lines += [f"- note: {note}" for note in found.notes]
    grids = [table.markdown() for table in all_tables(found, chosen.horizons)]
    return "\n".join([*grids, *lines]) + "\n"


def write(found: Found, chosen: argparse.Namespace, forecasters: list[Forecaster]) -> None:
    """forecasts.md and the JSON file, for the streams that are done."""
    (chosen.out / "forecasts.md").write_text(text(found, chosen, forecasters))
    ranked = against_rivals(found.scores, AUTO.name, chosen.horizons)
    content = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "kernelbank": kb.__version__,
        "rows": chosen.rows,
        "skip": chosen.skip,
        "horizons": chosen.horizons,
        "methods": {one.name: one.description for one in forecasters},
        "versions": found.versions,
        "left_out": found.left_out,
        "notes": found.notes,
        "summary": summary(ranked),
        "best_rivals": [asdict(one) | {"ratio": one.ratio} for one in ranked],
        "scores": [asdict(one) for one in found.scores],
        "seconds": [
            {"stream": stream, "name": name, "seconds": seconds}
            for (stream, name), seconds in found.seconds.items()
        ],
    }
    path = chosen.json or chosen.out / "forecasts.json"
    path.write_text(json.dumps(finite(content), indent=1, allow_nan=False) + "\n")


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    forecasters = chosen_rivals(chosen)
    found = Found()
    if not chosen.no_bank:
        forecasters = [AUTO, *forecasters]
    streams = chosen_streams(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    cache = ForecastCache(chosen.cache or chosen.out / "rivals", refresh=chosen.fresh)
    for stream in streams:
        run_stream(stream, forecasters, chosen, cache, found)
        write(found, chosen, forecasters)
    print()
    print(text(found, chosen, forecasters))


if __name__ == "__main__":
    main()
