"""Runs of forecasters, kept on disk, so that rivals run once and wherever they are installed.

Unlike `RunCache`, a kept run is also found where the libraries of the rival are not installed: the
versions stand inside the file. Where they are installed in other versions the run is not used.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from forecasters import Forecaster, Forecasts, Task

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
    """A folder with a file for every run of a forecaster that names its libraries."""

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
    from dataclasses import replace

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
