"""`kb.compare`: banks, rivals and baselines on the same streams, prequentially, in one table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from ..errors import KernelBankWarning
from ..losses import as_loss
from ..utils import validation as check
from . import datasets
from .competitors import Competitor, CompetitorRun, as_competitor, baselines
from .datasets import CLASSIFICATION, Stream
from .results import NORMALISED, Comparison, Result, overall, results_on


def compare(
    banks: Mapping[str, object],
    streams: Mapping[str, object] | Iterable[str],
    seeds: int | Iterable[int] = 1,
    *,
    loss: object = "squared",
    skip: int = 0,
    samples: int | None = None,
    progress: Callable[[int, int, str], object] | None = None,
    report: Callable[[Comparison], object] | None = None,
) -> Comparison:
    """Run every bank on every stream, sample by sample: predict first, then learn.

    Persistence (the last target) and the running mean of the targets always stand in the table.
    On every stream each competitor is compared with the best one by the test of Diebold and Mariano
    on the differences of their losses, sample by sample. Losses of a stream are correlated in time;
    the variance is Newey and West's, which counts that, and the p-values of a stream are corrected
    by Holm's rule. Over several streams, see `Comparison.overall`.

    Every competitor first runs over the first 200 rows of a stream. Then it starts from nothing
    and is timed: so no time contains what is done once, such as compiling.

    Parameters
    ----------
    banks : by name, a bank that has learned nothing, or a function from a seed to a new bank.
        Rivals may stand among them: anything with predict_one and learn_one. River's models are
        given dictionaries, all others (d,) arrays. A `kernelbank.research.competitors.Competitor`
        says itself how it runs.
    streams : by name, a pair (X, y), a `kb.datasets.Stream`, a function from a seed to one of
        these, or the name of a synthetic stream of `kb.datasets`; or a list of such names.
    seeds : how many (0, 1, 2, ...), or which. What cannot depend on a seed is run once.
    loss : a loss or its name, by which all predictions are scored, whatever the banks minimise; or
        "normalised": the squared error over the variance of the targets, 1 for a wrong label.
    skip : how many first samples of a stream are learned but not scored, such as those that gave
        the scale to `kb.datasets.standardised`.
    samples : run at most this many; synthetic streams have 1000 by default.
    progress : called with (done, total, what) after each run; `what` says how long it took.
    report : called with the comparison so far after each stream.

    Cost: one pass over the stream, and 200 rows, for each bank, stream and seed. Memory: the
    samples of one stream for all seeds, and one number for each competitor and sample.

    >>> import kernelbank as kb
    >>> comparison = kb.compare({"scheme": kb.KernelBank()}, ["ar1"], seeds=2, samples=200)
    >>> comparison.table()[0]["name"]
    'scheme'
    >>> sorted(row["name"] for row in comparison.table())
    ['persistence', 'running mean', 'scheme']
    """
    if not isinstance(banks, Mapping) or not banks:
        remedy = 'Give for example {"mine": kb.KernelBank()}.'
        raise check.refuse("banks", "be a dictionary of names and banks", banks, remedy, "compare")
    competitors = [as_competitor(str(name), bank) for name, bank in banks.items()] + baselines()
    scoring = None if isinstance(loss, str) and loss == NORMALISED else as_loss(loss)
    remedy = "Give 0 or a number such as 100."
    unscored = check.count("skip", skip, "compare", remedy, least=0)
    if samples is not None:
        samples = check.count("samples", samples, "compare", "Give a number such as 1000, or None.")
    seed_list = _seed_list(seeds)
    lengths = samples, unscored
    opened = {name: _opened(name, entry, *lengths) for name, entry in _named(streams).items()}
    if any(competitor.needs_standard_units for competitor in competitors):
        for name, source in opened.items():
            has_labels = scoring is not None and scoring.labels
            if isinstance(source, Stream) and source.task != CLASSIFICATION and not has_labels:
                _warn_of_units(name, source)
    comparison = Comparison(
        loss="normalised error" if scoring is None else repr(scoring),
        skip=unscored,
        seeds=tuple(seed_list),
        results=(),
        overall=(),
    )
    results: list[Result] = []
    done, total = 0, len(opened) * len(seed_list) * len(competitors)
    for name, source in opened.items():
        runs: dict[Competitor, list[tuple[Stream, CompetitorRun]]] = {}
        for seed in seed_list:
            stream = source if isinstance(source, Stream) else _stream(name, source(seed), *lengths)
            if scoring is not None:
                scoring.check_targets(stream.y)
            for competitor in competitors:
                what = f"{competitor.name} on {name}"
                again = callable(source) or competitor.seeded or seed == seed_list[0]
                if again and competitor.accepts(stream):
                    run = competitor.run_warmed(seed, stream)
                    runs.setdefault(competitor, []).append((stream, run))
                    what += f": {run.seconds_per_sample * len(stream):.2g} s"
                done += 1
                if progress is not None:
                    progress(done, total, what)
        results += results_on(name, runs, scoring, unscored, callable(source))
        comparison = replace(comparison, results=tuple(results), overall=overall(results))
        if report is not None:
            report(comparison)
    return comparison


# --- arguments ------------------------------------------------------------------------------------


def _seed_list(seeds: object) -> list[int]:
    remedy = "Give how many seeds to run, such as 5, or a list of them."
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = [check.count("seeds", seed, "compare", remedy, least=0) for seed in seeds]
        if not numbers or len(set(numbers)) < len(numbers):
            raise check.refuse("seeds", "be different, at least one", numbers, remedy, "compare")
        return numbers
    return list(range(check.count("seeds", seeds, "compare", remedy)))


_LENGTH = 1000  # samples of a synthetic stream, by default
_UNUSUAL = 10.0
"""Targets are far from standard units if their mean or deviation is larger than this, or their
deviation smaller than its inverse."""


def _opened(
    name: str, entry: object, samples: int | None, skip: int
) -> Stream | Callable[[int], object]:
    """The stream, or the function from a seed to it, of what the user gave."""
    if isinstance(entry, str):
        if entry not in datasets.BUILT_IN:
            remedy = "Correct it, or give arrays: (X, y); kb.datasets.read_csv reads a file."
            rule = f"be a stream's name {sorted(datasets.BUILT_IN)}"
            raise check.refuse(f"streams[{name!r}]", rule, entry, remedy)
        maker, length = datasets.BUILT_IN[entry], samples or _LENGTH
        return lambda seed: maker(seed, length)
    return entry if callable(entry) else _stream(name, entry, samples, skip)


def _stream(name: str, entry: object, samples: int | None, skip: int) -> Stream:
    """At most so many samples of what the user gave as a stream, of which some are scored."""
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        entry = Stream(*entry)
    if not isinstance(entry, Stream):
        remedy = "Give (X, y), a kb.datasets.Stream, a function from a seed to it, or a name."
        raise check.refuse(f"streams[{name!r}]", "be a pair (X, y)", entry, remedy, "compare")
    stream = entry if samples is None else entry.head(samples)
    if len(stream) <= skip:
        rule = f"be shorter than stream {name!r} ({len(stream)} samples)"
        remedy = f"Score more samples: skip could be {len(stream) // 5}."
        raise check.refuse("skip", rule, skip, remedy, "compare")
    return stream


def _named(streams: object) -> dict[str, object]:
    """The streams by name, from a dictionary or a list of names."""
    listed = streams if isinstance(streams, Iterable) and not isinstance(streams, str) else ()
    by_name = {str(name): name for name in listed}
    if isinstance(streams, Mapping):
        by_name = {str(name): stream for name, stream in streams.items()}
    elif not all(isinstance(name, str) for name in by_name.values()):
        by_name = {}
    if not by_name:
        remedy = 'Give for example {"mine": (X, y)}, or ["ar1", "sine"].'
        rule = "be a dictionary, or a list of names, of at least one stream"
        raise check.refuse("streams", rule, streams, remedy, "compare")
    return by_name


def _warn_of_units(name: str, stream: Stream) -> None:
    mean, deviation = float(np.mean(stream.y)), float(np.std(stream.y))
    usual = abs(mean) <= _UNUSUAL and 1 / _UNUSUAL <= deviation <= _UNUSUAL
    if usual or deviation == 0:  # if it is constant, no unit would be better
        return
    warnings.warn(
        f"The targets of {name} have mean {mean:.3g} and standard deviation {deviation:.3g}. "
        "A KernelBank starts at 0, and its widths and steps are made for standard units: "
        "kb.datasets.standardised (in the command: --standardise 100) brings a stream to these.",
        KernelBankWarning,
        stacklevel=3,
    )
