"""`kb.compare`: banks, rivals and baselines on the same streams, prequentially, in one table."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..losses import Loss, as_loss
from ..utils import validation as check
from .competitors import (
    BASELINE,
    Competitor,
    CompetitorRun,
    as_competitor,
    baselines,
    run_warmed,
)
from .datasets import Stream
from .rank_tests import scipy_stats
from .results import Comparison, Result
from .run_cache import RunCache
from .scores import NORMALISED, overall, results_on
from .stream_sources import StreamOptions, StreamSource, named

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Progress = Callable[[int, int, str], object]
Report = Callable[[Comparison], object]


def compare(
    banks: Mapping[str, Any],
    streams: Mapping[str, Any] | Iterable[str],
    seeds: int | Iterable[int] = 1,
    *,
    loss: Any = "squared",
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
    competitors = [as_competitor(str(name), given) for name, given in banks.items()]
    competitors += baselines()
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
    sources = [StreamSource.of(name, given, options) for name, given in named(streams).items()]
    if len(sources) > 1:
        scipy_stats()  # refused before the work, not after it
    kept = RunCache(cache) if isinstance(cache, (str, os.PathLike)) else cache
    found = Comparison(
        loss="normalised error" if scoring is None else repr(scoring),
        skip=unscored,
        standardise=scale,
        seeds=tuple(seed_list),
        results=(),
        overall=(),
    )
    results: list[Result] = []
    with ExitStack() as stack:
        runner = _Runner(kept, processes, stack)
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
            found = replace(found, results=tuple(results), overall=overall(results))
            if report is not None:
                report(found)
    return found


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
    return _Plan(source.name, source.seeded, pending, {one.name: [] for one in competitors})


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
        kept = None if self._cache is None else self._cache.get(competitor, seed, stream)
        if kept is not None:
            return lambda: kept
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


def _seed_list(seeds: Any) -> list[int]:
    remedy = "Give how many seeds to run, such as 5, or a list of them."
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = [check.count("seeds", seed, "compare", remedy, least=0) for seed in seeds]
        if not numbers or len(set(numbers)) < len(numbers):
            raise check.refuse("seeds", "be different, at least one", numbers, remedy, "compare")
        return numbers
    return list(range(check.count("seeds", seeds, "compare", remedy)))
