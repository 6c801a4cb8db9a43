"""Runs of competitors, kept on disk: some take minutes and change with their library alone."""

from __future__ import annotations

import hashlib
import os
import platform
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..errors import KernelBankWarning
from .competitors import Competitor, CompetitorRun
from .datasets.stream import Stream

_VERSION = 2
"""To be raised when competitors are run in another way."""


class RunCache:
    """A folder with a file for every run of a competitor that names its libraries.

    The name of a file contains a hash of everything that the predictions depend on. `refresh`
    ignores what is there, and writes it anew.
    """

    def __init__(self, folder: str | os.PathLike[str], refresh: bool = False) -> None:
        self.folder = Path(folder)
        self.refresh = refresh
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, competitor: Competitor, seed: int, stream: Stream) -> Path:
        from importlib.metadata import version  # slow to import

        facts = [
            str(_VERSION),
            stream.fingerprint,
            str(seed) if competitor.seeded else "",
            competitor.name,
            competitor.description,
            platform.python_version(),
            *(f"{name} {version(name)}" for name in competitor.libraries),
        ]
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]
        return self.folder / f"{competitor.name}-{key}.npz"

    def get(self, competitor: Competitor, seed: int, stream: Stream) -> CompetitorRun | None:
        """The kept run; None if there is none, or only a damaged file."""
        if self.refresh or not competitor.libraries:
            return None
        try:
            with (
                self.path(competitor, seed, stream).open("rb") as data,
                np.load(data, allow_pickle=False) as file,
            ):
                return CompetitorRun(
                    file["predictions"],
                    float(file["seconds_per_sample"]),
                    note=str(file["note"]),
                    jobs=int(file["jobs"]),
                )
        except Exception:  # of a damaged file zipfile, zlib and NumPy raise errors of many kinds
            return None

    def put(self, competitor: Competitor, seed: int, stream: Stream, run: CompetitorRun) -> None:
        """Keep a run; where that fails there is a warning, and the run is not lost."""
        if not competitor.libraries:
            return
        path = self.path(competitor, seed, stream)
        unfinished = path.with_suffix(f".{os.getpid()}.part")  # nobody must find half a file
        try:
            with unfinished.open("wb") as file:
                np.savez_compressed(
                    file,
                    predictions=run.predictions,
                    seconds_per_sample=run.seconds_per_sample,
                    note=np.array(run.note),
                    jobs=run.jobs,
                )
            unfinished.replace(path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            text = f"{path} cannot be written ({error.strerror}): this run is not kept."
            warnings.warn(text, KernelBankWarning, stacklevel=2)
