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
import platform
import time
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import forecast_tables as tables
import numpy as np
from accuracy_competitors import read_arrays, write_arrays
from accuracy_streams import chosen_names
from forecast_rivals import (
    LAGS,
    Forecaster,
    Forecasts,
    Task,
    direct_rivals,
    naive_rivals,
    statsforecast_rivals,
)
from forecast_streams import ForecastStream, load_streams
from forecast_tables import HORIZONS, Score, score

import kernelbank as kb
from kernelbank.research.results import finite

# --- AutoBank -------------------------------------------------------------------------------------


def _run_auto(task: Task) -> Forecasts:
    """AutoBank is given lags, horizons, and the periods and known inputs of the stream."""
    stream = task.stream
    bank = kb.AutoBank(
        lags=LAGS,
        horizons=len(task.horizons),
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


def kept_path(folder: Path, forecaster: Forecaster, task: Task) -> Path:
    """The file of a run: its name has a hash of the stream and the settings."""
    facts = [
        str(_FORMAT),
        task.stream.fingerprint,
        str(task.horizons),
        str(task.start),
        forecaster.description,
    ]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return folder / f"{task.stream.name}-{forecaster.name}-{key}.npz"


def forecast(forecaster: Forecaster, task: Task, folder: Path, fresh: bool) -> Forecasts | None:
    """A kept run, or a new one; None if there is none and a library is not installed.

    A kept run is found where the libraries of the rival are not installed, too: the versions stand
    inside the file. Where they are installed in other versions the run is not used.
    """
    installed = installed_versions(forecaster.libraries)
    path = kept_path(folder, forecaster, task)
    arrays = read_arrays(path) if forecaster.libraries else None
    if arrays is not None and not (fresh and installed is not None):
        versions = json.loads(str(arrays["versions"]))
        if installed in (None, versions):
            parts = {name: arrays[name] for name in _PARTS if name in arrays}
            note = str(arrays.get("note", ""))
            return Forecasts(
                **parts, seconds=float(arrays["seconds"]), versions=versions, note=note
            )
    if installed is None:
        return None
    run = replace(forecaster.run(task), versions=installed)
    if forecaster.libraries:
        parts = {name: getattr(run, name) for name in _PARTS if getattr(run, name) is not None}
        texts = {"versions": np.array(json.dumps(run.versions)), "note": np.array(run.note)}
        write_arrays(path, {**parts, **texts, "seconds": run.seconds})
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
    parser.add_argument("--rows", type=int, default=4000, help="rows to use of each stream")
    parser.add_argument("--skip", type=int, default=500, help="of these not scored")
    parser.add_argument(
        "--rivals",
        default="naive,direct,statsforecast",
        help="groups or names, separated by commas; by default %(default)s",
    )
    parser.add_argument("--out", type=Path, default=Path("forecasts"))
    parser.add_argument("--cache", type=Path, help="by default the folder rivals in --out")
    parser.add_argument("--fresh", action="store_true", help="run the rivals again")
    return parser.parse_args(arguments)


def chosen_rivals(wanted: list[str]) -> list[Forecaster]:
    """The rivals of these groups or names."""
    groups = {
        "naive": naive_rivals(),
        "direct": direct_rivals(),
        "statsforecast": statsforecast_rivals(),
    }
    every = [(group, one) for group, members in groups.items() for one in members]
    wanted = chosen_names([*groups, *(one.name for _, one in every)], wanted, "--rivals")
    return [one for group, one in every if {group, one.name} & {*wanted}]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def chosen_streams(chosen: argparse.Namespace) -> list[ForecastStream]:
    """Those with rows to score; a line names the others."""
    streams = load_streams(chosen.data, chosen.rows, _names(chosen.streams))
    least = chosen.skip + max(HORIZONS)
    short = [one.name for one in streams if len(one) <= least]
    if short:
        print(f"Left out, not more than {least} rows: {', '.join(short)}")
    if len(short) == len(streams):
        raise SystemExit(f"No stream has more than {least} rows. Raise --rows or lower --skip.")
    return [one for one in streams if one.name not in short]


def run_stream(
    stream: ForecastStream,
    forecasters: list[Forecaster],
    chosen: argparse.Namespace,
    found: Found,
) -> None:
    """Add the scores of all forecasters on one stream."""
    for one in forecasters:
        if not one.accepts(stream):
            continue
        task = one.task(stream, HORIZONS, chosen.skip)
        run = forecast(one, task, chosen.cache, chosen.fresh)
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


def text(found: Found, forecasters: list[Forecaster]) -> str:
    """The tables and what the names mean, as Markdown."""
    every = [
        tables.totals(found.scores, AUTO.name),
        tables.errors(found.scores, AUTO.name),
        tables.intervals(found.scores, AUTO.name),
        tables.times(found.seconds),
    ]
    lines = [f"- {one.name}: {one.description}" for one in forecasters]
    lines += [f"- left out: {name} {why}" for name, why in found.left_out.items()]
    lines += [f"- note: {note}" for note in found.notes]
    return "\n".join([*(table.markdown() for table in every if table is not None), *lines]) + "\n"


def write(found: Found, chosen: argparse.Namespace, forecasters: list[Forecaster]) -> None:
    """forecasts.md and forecasts.json, for the streams that are done."""
    (chosen.out / "forecasts.md").write_text(text(found, forecasters))
    content = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "kernelbank": kb.__version__,
        "rows": chosen.rows,
        "skip": chosen.skip,
        "methods": {one.name: one.description for one in forecasters},
        "versions": found.versions,
        "left_out": found.left_out,
        "notes": found.notes,
        "scores": [asdict(one) for one in found.scores],
        "seconds": {f"{name} on {stream}": t for (stream, name), t in found.seconds.items()},
    }
    path = chosen.out / "forecasts.json"
    path.write_text(json.dumps(finite(content), indent=1, allow_nan=False) + "\n")


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    forecasters = [AUTO, *chosen_rivals(_names(chosen.rivals))]
    streams = chosen_streams(chosen)
    chosen.cache = chosen.cache or chosen.out / "rivals"
    for folder in (chosen.out, chosen.cache):
        folder.mkdir(parents=True, exist_ok=True)
    found = Found()
    for stream in streams:
        run_stream(stream, forecasters, chosen, found)
        write(found, chosen, forecasters)
    print(f"\n{text(found, forecasters)}")


if __name__ == "__main__":
    main()
