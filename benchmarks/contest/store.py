"""Passes of the peers, kept on disk: they take minutes and change with their library alone."""

from __future__ import annotations

import hashlib
import os
import platform
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .entries import Entry
from .players import Played, Player

_EDITION = 1
"""To be raised when a peer is played in another way."""


class Store:
    """A folder with a file for every pass. The name of a file has everything that it depends on."""

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder = folder
        self.fresh = fresh
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, entry: Entry, player: Player) -> Path:
        facts = [
            str(_EDITION),
            entry.digest,
            player.name,
            player.words,
            platform.python_version(),
            *(f"{name} {version(name)}" for name in player.libraries),
        ]
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:20]
        return self.folder / f"{entry.stream}-{entry.view}-{player.name}-{key}.npz"

    def get(self, entry: Entry, player: Player) -> Played | None:
        path = self.path(entry, player)
        if self.fresh or not player.libraries or not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                return Played(
                    file["predictions"],
                    float(file["seconds"]),
                    str(file["note"]),
                    int(file["jobs"]),
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # broken: it is played and written anew

    def put(self, entry: Entry, player: Player, played: Played) -> None:
        if not player.libraries:
            return
        path = self.path(entry, player)
        half = path.with_suffix(f".{os.getpid()}.part")  # nobody must find half a file
        with half.open("wb") as file:
            np.savez_compressed(
                file,
                predictions=played.predictions,
                seconds=played.seconds,
                note=np.array(played.note),
                jobs=played.jobs,
            )
        half.replace(path)
