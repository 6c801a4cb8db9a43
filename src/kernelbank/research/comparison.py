"""`kb.compare`: banks, rivals and baselines on the same streams, prequentially, in one table."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import KernelBankWarning
from ..losses import Loss, as_loss
from ..utils import validation as check
from . import datasets
from .competitors import (
    BASELINE,
    Competitor,
    CompetitorRun,
    RunCache,
    as_competitor,
    baselines,
    run_warmed,
)
from .datasets.tables import CLASSIFICATION, Stream
from .results import Comparison, Result
from .scores import NORMALISED, overall, results_on
from .significance import scipy_stats

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


Progress = Callable[[int, int, str], object]
Report = Callable[[Comparison], object]


def compare(
    banks: Mapping[str, object],
    streams: Mapping[str, object] | Iterable[str],
    seeds: int | Iterable[int] = 1,
    *,
    loss: object = "squared",
    standardise: int = 0,
    skip: int | None = None,
    samples: int | None = None,
    target: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    keep_losses: bool = False,
    cache: str | os.PathLike[str] | RunCache | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    report: Report | None = None,
) -> Comparison:
    """Run every bank on every stream, sample by sample: predict first, then learn.

    Persistence (the last target) and the running mean of the targets always stand in the table.
    On every stream each competitor is compared with the best one by the test of Diebold and Mariano
    on the differences of their losses, sample by sample. Losses of a stream are correlated in time;
    the variance is Newey and West's, which counts that, and the p-values of a stream are corrected
    by Holm's rule. Over several streams, see `Comparison.overall` and `Comparison.rank_test`,
    which need SciPy: pip install 'kernelbank[research]'.

    Every competitor first runs over the first 200 rows of a stream. Then it starts from nothing
    and is timed: so no time contains what is done once, such as compiling.

    Parameters
    ----------
    banks : by name, a bank that has learned nothing, or a function from a seed to a new bank.
        Rivals may stand among them: anything with predict_one and learn_one. River's models are
        given dictionaries, all others (d,) arrays. A `kernelbank.research.competitors.Competitor`
        says itself how it runs.
    streams : by name, a pair (X, y), a `kb.datasets.Stream`, a function from a seed to one of
        these, the name of a stream in `kb.datasets` (made up, or a benchmark of
        `kb.datasets.BENCHMARKS`), or a path to a .csv or .csv.gz file; or a list of names and
        paths.
    seeds : how many (0, 1, 2, ...), or which. What cannot depend on a seed is run once.
    loss : a loss or its name, by which all predictions are scored, whatever the banks minimise; or
        "normalised": the squared error over the variance of the targets, 1 for a wrong label.
    standardise : 0 leaves all streams as they are. Otherwise every stream, wherever it comes
        from, is brought to standard units by `kb.datasets.standardised`, the targets by this many
        first rows, such as 100; labels are not scaled.
    skip : how many first samples of a stream are learned but not scored; by default those that
        gave the scale of the targets, `standardise`.
    samples : run at most this many; the streams in `kb.datasets` have 1000 by default.
    target : the target's column in files; by default the last one.
    folder : where the files of benchmarks are, see `kb.datasets.load`.
    keep_losses : keep the loss of every sample, which `Comparison.best_rivals` needs.
    cache : a folder, in which runs of competitors that name their libraries are kept.
    jobs : how many processes run competitors side by side. Times are then less reliable.
    progress : called with (done, total, what) after each run; `what` says how long it took.
    report : called with the comparison so far after each stream.

    Cost: one pass over the stream, and 200 rows, for each bank, stream and seed. Memory: the
    samples of one stream for all seeds, and one number for each competitor, seed and sample of it.

    >>> import kernelbank as kb
    >>> found = kb.compare({"scheme": kb.KernelBank()}, ["ar1"], seeds=2, samples=200)
    >>> found.table()[0]["name"]
    'scheme'
    >>> sorted(row["name"] for row in found.table())
    ['persistence', 'running mean', 'scheme']
    """
    if not isinstance(banks, Mapping) or not banks:
        remedy = 'Give for example {"mine": kb.KernelBank()}.'
        raise check.refuse("banks", "be a dictionary of names and banks", banks, remedy, "compare")
    competitors = [as_competitor(str(name), bank) for name, bank in banks.items()] + baselines()
    scoring = None if isinstance(loss, str) and loss == NORMALISED else as_loss(loss)
    remedy = "Give 0, or how many first rows give the scale of the targets, such as 100."
    scale = check.count("standardise", standardise, "compare", remedy, least=0)
    if scale == 1:
        raise check.refuse("standardise", "be 0 or >= 2", standardise, remedy, "compare")
    remedy = "Give 0 or a number such as 100."
    unscored = scale if skip is None else check.count("skip", skip, "compare", remedy, least=0)
    if samples is not None:
        samples = check.count("samples", samples, "compare", "Give a number such as 1000, or None.")
    processes = check.count("jobs", jobs, "compare", "Give how many processes to use, such as 2.")
    seed_list = _seed_list(seeds)
    options = StreamOptions(
        samples=samples,
        target=target,
        folder=folder,
        standardise=scale,
        skip=unscored,
        labels=scoring is not None and scoring.labels,
        check_units=any(competitor.needs_standard_units for competitor in competitors),
    )
    sources = [StreamSource.of(name, stream, options) for name, stream in named(streams).items()]
    if len(sources) > 1:
        scipy_stats()  # refused before the work, not after it
    run_cache = RunCache(cache) if isinstance(cache, (str, os.PathLike)) else cache
    comparison = Comparison(
        loss="normalised error" if scoring is None else repr(scoring),
        skip=unscored,
        standardise=scale,
        seeds=tuple(seed_list),
        results=(),
        overall=(),
    )
    results: list[Result] = []
    with ExitStack() as stack:
        runner = _Runner(run_cache, processes, stack)
        plans: Iterable[_Plan] = (
            _planned(source, competitors, seed_list, scoring, runner) for source in sources
        )
        if processes > 1:
            plans = list(plans)  # everything is handed out at once
        done, total = 0, len(sources) * len(seed_list) * len(competitors)
        for plan in plans:
            for pending in plan.pending:
                what = f"{pending.competitor.name} on {plan.name}"
                if pending.needed:
                    run = pending.get()
                    plan.runs[pending.competitor.name].append((pending.stream, run))
                    what += f": {run.seconds_per_sample * len(pending.stream):.2g} s"
                done += 1
                if progress is not None:
                    progress(done, total, what)
            results += results_on(
                plan.name, plan.runs, competitors, scoring, unscored, plan.seeded, keep_losses
            )
            comparison = replace(comparison, results=tuple(results), overall=overall(results))
            if report is not None:
                report(comparison)
    return comparison


# --- planning and running -------------------------------------------------------------------------


@dataclass(frozen=True)
class _PendingRun:
    """One competitor with one seed on one stream. `needed` is false where it would be a repeat."""

    competitor: Competitor
    stream: Stream
    needed: bool
    get: Callable[[], CompetitorRun]


@dataclass(frozen=True)
class _Plan:
    """All runs on one stream; `runs` collects those that are done, by competitor."""

    name: str
    seeded: bool
    pending: list[_PendingRun]
    runs: dict[str, list[tuple[Stream, CompetitorRun]]]


def _planned(
    source: StreamSource,
    competitors: list[Competitor],
    seeds: list[int],
    loss: Loss | None,
    runner: _Runner,
) -> _Plan:
    pending: list[_PendingRun] = []
    stream: Stream | None = None
    for seed in seeds:
        if stream is None or source.seeded:
            stream = source.stream(seed)
            if loss is not None:
                loss.check_targets(stream.y)
        for competitor in competitors:
            again = source.seeded or competitor.seeded or seed == seeds[0]
            needed = again and competitor.takes(stream)
            get = runner.submit(competitor, seed, stream) if needed else _nothing
            pending.append(_PendingRun(competitor, stream, needed, get))
    return _Plan(source.name, source.seeded, pending, {rival.name: [] for rival in competitors})


def _nothing() -> CompetitorRun:
    raise AssertionError("only runs that are needed are asked for")


class _Runner:
    """Runs competitors here or in other processes, and keeps their runs."""

    def __init__(self, cache: RunCache | None, jobs: int, stack: ExitStack) -> None:
        self._cache = cache
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            from concurrent.futures import ProcessPoolExecutor  # slow to import
            from multiprocessing import get_context

            pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
            stack.callback(pool.shutdown, cancel_futures=True)
            self._pool = pool

    def submit(
        self, competitor: Competitor, seed: int, stream: Stream
    ) -> Callable[[], CompetitorRun]:
        """A function that returns the run; the work begins at once if there are processes."""
        cached = None if self._cache is None else self._cache.get(competitor, seed, stream)
        if cached is not None:
            return lambda: cached
        if self._pool is None or competitor.kind == BASELINE:
            return lambda: self._put(
                competitor, seed, stream, run_warmed(competitor.name, competitor.run, seed, stream)
            )
        try:
            pickle.dumps(competitor.run)
        except (pickle.PicklingError, AttributeError, TypeError):
            rule = f"be 1, because {competitor.name!r} cannot be sent to another process"
            remedy = "Give a function that is defined in a module, or jobs=1."
            raise check.refuse("jobs", rule, self._jobs, remedy, "compare") from None
        future = self._pool.submit(run_warmed, competitor.name, competitor.run, seed, stream)
        return lambda: self._put(
            competitor, seed, stream, replace(future.result(), jobs=self._jobs)
        )

    def _put(
        self, competitor: Competitor, seed: int, stream: Stream, run: CompetitorRun
    ) -> CompetitorRun:
        if self._cache is not None:
            self._cache.put(competitor, seed, stream, run)
        return run


# --- arguments ------------------------------------------------------------------------------------


def _seed_list(seeds: object) -> list[int]:
    remedy = "Give how many seeds to run, such as 5, or a list of them."
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = [check.count("seeds", seed, "compare", remedy, least=0) for seed in seeds]
        if not numbers or len(set(numbers)) < len(numbers):
            raise check.refuse("seeds", "be different, at least one", numbers, remedy, "compare")
        return numbers
    return list(range(check.count("seeds", seeds, "compare", remedy)))


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
    make: Callable[[int], object]
    options: StreamOptions

    @classmethod
    def of(cls, name: str, stream: object, options: StreamOptions) -> StreamSource:
        """The source of what the user gave; files are read here."""
        if isinstance(stream, str) and stream in datasets.BUILT_IN:
            maker = datasets.BUILT_IN[stream]
            length = _LENGTH if options.samples is None else options.samples
            return cls(name, True, lambda seed: maker(seed, length), options)
        if isinstance(stream, str) and stream in datasets.BENCHMARKS:
            benchmark = datasets.load(stream, options.folder, samples=options.samples)
            stream = benchmark
            if options.labels and benchmark.classes == 2:  # such a loss has labels -1 and 1
                stream = (benchmark.X, 2 * benchmark.y - 1)
        elif isinstance(stream, (str, os.PathLike)):
            table = _table(name, stream)
            stream = datasets.read_csv(table, options.target, samples=options.samples)
        if callable(stream):
            return cls(name, True, stream, options)
        _checked_stream(name, stream)
        source = cls(name, False, lambda _: stream, options)
        source.stream(0, quiet=True)  # what is wrong is refused before anything runs
        return source

    def stream(self, seed: int, quiet: bool = False) -> Stream:
        """The checked stream, in standard units if asked for; something of it is scored."""
        options = self.options
        stream = _checked_stream(self.name, self.make(seed))
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


def named(streams: object) -> dict[str, object]:
    """The streams by name, from a dictionary or a list of names and paths."""
    remedy = 'Give for example {"mine": (X, y)}, or ["ar1", "lorenz"].'
    if isinstance(streams, (str, os.PathLike)):
        streams = [streams]
    if isinstance(streams, Mapping):
        by_name = {str(name): stream for name, stream in streams.items()}
    elif isinstance(streams, Iterable):
        listed = list(streams)
        if not all(isinstance(item, (str, os.PathLike)) for item in listed):
            raise check.refuse("streams", "be named", streams, remedy, "compare")
        by_name = {os.fspath(item): item for item in listed}
    else:
        raise check.refuse("streams", "be a dictionary or a list", streams, remedy, "compare")
    if not by_name:
        raise check.refuse("streams", "hold at least one stream", streams, remedy, "compare")
    return by_name


def _table(name: str, file: str | os.PathLike[str]) -> Path:
    path = Path(file)
    if not path.name.endswith((".csv", ".csv.gz")):
        rule = f"be a stream's name {sorted(datasets.BUILT_IN)} or a .csv or .csv.gz file"
        remedy = "Correct it; kb.datasets.BENCHMARKS lists the named benchmarks."
        raise check.refuse(f"streams[{name!r}]", rule, str(file), remedy)
    return path


def _checked_stream(name: str, stream: object) -> Stream:
    if isinstance(stream, Stream):
        return stream
    if isinstance(stream, (tuple, list)) and len(stream) == 2:
        return Stream(*stream)
    remedy = "Give (X, y), a kb.datasets.Stream, a function from a seed to it, a name or a path."
    raise check.refuse(f"streams[{name!r}]", "be a pair (X, y)", stream, remedy, "compare")


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
