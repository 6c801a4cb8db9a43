"""The streams of a comparison: from whatever the user gave, by one rule for all of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelBankWarning
from ..utils import validation as check
from . import datasets
from .datasets.stream import CLASSIFICATION, Stream

_LENGTH = 1000
"""Samples of a synthetic stream, unless given."""
_UNUSUAL = 10.0
"""Targets are far from standard units if their mean or deviation is larger than this, or their
deviation smaller than its inverse."""


@dataclass(frozen=True)
class StreamOptions:
    """What `kb.compare` does to every stream.

    - samples: the most to use
    - target, folder: the target's column in files; where the files of benchmarks are
    - standardise: how many first rows give the scale of the targets; 0 for streams as given
    - skip: how many are not scored
    - labels: whether the targets are labels, which are not scaled
    - check_units: whether to warn of streams that are far from standard units
    """

    samples: int | None
    target: str | None
    folder: str | os.PathLike[str] | None
    standardise: int
    skip: int
    labels: bool
    check_units: bool


@dataclass(frozen=True)
class StreamSource:
    """A named stream, and whether another seed makes another one."""

    name: str
    seeded: bool
    make: Callable[[int], Any]
    options: StreamOptions

    @classmethod
    def of(cls, name: str, given: Any, options: StreamOptions) -> StreamSource:
        """The source of what was given; files are read here."""
        if isinstance(given, str) and given in datasets.BUILT_IN:
            maker = datasets.BUILT_IN[given]
            length = _LENGTH if options.samples is None else options.samples
            return cls(name, True, lambda seed: maker(seed, length), options)
        if isinstance(given, str) and given in datasets.BENCHMARKS:
            given = datasets.load(given, options.folder, samples=options.samples)
            if options.labels and given.classes == 2:  # such a loss has labels -1 and 1
                given = (given.X, 2 * given.y - 1)
        elif isinstance(given, (str, os.PathLike)):
            given = datasets.read_csv(_table(name, given), options.target, samples=options.samples)
        if callable(given):
            return cls(name, True, given, options)
        _check_pair(name, given)
        source = cls(name, False, lambda _: given, options)
        source.stream(0, quiet=True)  # what is wrong is refused before anything runs
        return source

    def stream(self, seed: int, quiet: bool = False) -> Stream:
        """The checked stream, in standard units if asked for; something of it is scored."""
        options = self.options
        given = self.make(seed)
        _check_pair(self.name, given)
        stream = given if isinstance(given, Stream) else Stream(*given)
        if options.samples is not None:
            stream = stream.head(options.samples)
        if len(stream) <= options.skip:
            rule = f"be shorter than stream {self.name!r} ({len(stream)} samples)"
            remedy = "Score more samples."
            if options.skip == options.standardise:
                remedy = f"Use a smaller number for standardise, such as {len(stream) // 5}."
            raise check.refuse("skip", rule, options.skip, remedy, "compare")
        labels = options.labels or stream.task == CLASSIFICATION
        if options.standardise:
            X, y = datasets.standardised(stream.X, stream.y, options.standardise)
            return Stream(X, stream.y if labels else y, stream.task, stream.lags)
        if options.check_units and not (labels or self.seeded or quiet):
            _warn_of_units(self.name, stream)
        return stream


def named(streams: Any) -> dict[str, Any]:
    """The streams by name, from a dictionary or a list of names and paths."""
    remedy = 'Give for example {"mine": (X, y)}, or ["ar1", "lorenz"].'
    if isinstance(streams, (str, os.PathLike)):
        streams = [streams]
    if isinstance(streams, Mapping):
        found = {str(name): given for name, given in streams.items()}
    elif isinstance(streams, Iterable):
        listed = list(streams)
        if not all(isinstance(item, (str, os.PathLike)) for item in listed):
            raise check.refuse("streams", "be named", streams, remedy, "compare")
        found = {os.fspath(item): item for item in listed}
    else:
        raise check.refuse("streams", "be a dictionary or a list", streams, remedy, "compare")
    if not found:
        raise check.refuse("streams", "hold at least one stream", streams, remedy, "compare")
    return found


def _table(name: str, given: str | os.PathLike[str]) -> Path:
    path = Path(given)
    if not path.name.endswith((".csv", ".csv.gz")):
        known = f"be a stream's name {sorted(datasets.BUILT_IN)} or a .csv or .csv.gz file"
        remedy = "Correct it; kb.datasets.BENCHMARKS lists the named benchmarks."
        raise check.refuse(f"streams[{name!r}]", known, str(given), remedy)
    return path


def _check_pair(name: str, given: Any) -> None:
    if isinstance(given, Stream) or (isinstance(given, (tuple, list)) and len(given) == 2):
        return
    remedy = "Give (X, y), a kb.datasets.Stream, a function from a seed to it, a name or a path."
    raise check.refuse(f"streams[{name!r}]", "be a pair (X, y)", given, remedy, "compare")


def _warn_of_units(name: str, stream: Stream) -> None:
    mean, deviation = float(np.mean(stream.y)), float(np.std(stream.y))
    if abs(mean) <= _UNUSUAL and 1 / _UNUSUAL <= deviation <= _UNUSUAL:
        return
    if deviation == 0:  # constant: no unit would be better
        return
    warnings.warn(
        f"The targets of {name} have mean {mean:.3g} and standard deviation {deviation:.3g}. "
        "A KernelBank starts at 0, and its widths and steps are made for standard units: "
        "standardise=100 (in the command: --standardise 100) brings all streams to these.",
        KernelBankWarning,
        stacklevel=4,
    )
