"""The results of a comparison: rows, tests over streams, files, figures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from .datasets.tables import CLASSIFICATION
from .significance import LEVEL, RankTest, diebold_mariano, rank_test

CLOSE = 0.02
"""A loss is close to another one if it is larger by this share or less, or by one standard error of
the mean difference if that is more."""


@dataclass(frozen=True)
class Result:
    """One competitor on one stream. Means are over the runs, `deviation` is over the runs too.

    - kind: "bank", "rival" or "baseline"
    - task, inputs, lags: of the stream; lags are counted among the inputs
    - samples: how many were scored
    - seconds_per_sample: after a warm-up, while `jobs` runs were going on side by side
    - seconds: of all its runs, samples that are not scored included
    - note: why it stopped before the end of the stream
    - best: whether its mean loss is the least on the stream
    - excess_loss: mean loss minus the best's
    - p_value: how likely so large a difference from the best is by chance (None for the best
      itself, and where there is too little evidence)
    - lag: up to which correlations in time were counted
    - best_slot_loss: of the single slot that was best, chosen afterwards; None if not recorded
    - coverage, coverage_error: the share of targets inside their intervals, its standard error
    - interval_width: mean width of the intervals in standard deviations of the target
    - curve: (samples, mean loss so far)
    - losses: of every sample, those not scored included; empty unless compare(keep_losses=True)
    """

    stream: str
    name: str
    kind: str
    task: str
    inputs: int
    lags: int
    samples: int
    runs: int
    mean_loss: float
    mean_loss_deviation: float | None
    root_mean_squared_error: float
    root_mean_squared_error_deviation: float | None
    cumulative_cost: float | None
    seconds_per_sample: float
    seconds: float
    jobs: int
    note: str
    best: bool
    excess_loss: float
    p_value: float | None
    lag: int
    best_slot_loss: float | None = None
    coverage: float | None = None
    coverage_error: float | None = None
    interval_width: float | None = None
    curve: tuple[tuple[int, float], ...] = field(repr=False, default=())
    losses: Floats = field(repr=False, compare=False, default_factory=lambda: np.zeros(0))

    @property
    def key(self) -> tuple[str, str]:
        """Its stream and its name."""
        return self.stream, self.name

    @property
    def diverged(self) -> bool:
        """Whether it stopped making finite predictions."""
        return not math.isfinite(self.mean_loss)

    def ratio(self, loss: float, other: float) -> float:
        """loss / other, two mean losses on this stream; 1 if they are equal.

        In classification a mean loss of 0 counts as half an error, so that no ratio is 0 or
        infinite where one of the two, or neither, erred.
        """
        if self.task == CLASSIFICATION:
            half = 0.5 / self.samples
            loss, other = max(loss, half), max(other, half)
        if loss == other:
            return 1.0
        if math.isinf(other):
            return 0.0
        return loss / other if other > 0 else math.inf

    def figures(self) -> dict[str, object]:
        """All numbers and texts, without curve and losses."""
        names = [field.name for field in fields(self) if field.name not in ("curve", "losses")]
        return {name: getattr(self, name) for name in names} | {"diverged": self.diverged}


@dataclass(frozen=True)
class BestRival:
    """One competitor against the best of its rivals on one stream.

    - ratio: its mean loss over the rival's
    - first: whether its mean loss is the rival's or less
    - close: the same within 2 %, or within one standard error of the difference if that is more
    - standard_error: of the mean difference of the losses, correlations in time counted
    """

    stream: str
    name: str
    rival: str
    mean_loss: float
    rival_loss: float
    ratio: float
    first: bool
    close: bool
    standard_error: float | None


@dataclass(frozen=True)
class TimeShare:
    """The time of one competitor on all streams, and its share of the time of all."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Overall:
    """One competitor over all streams, against the leader (the least mean rank).

    - ratio: geometric mean over the streams of its mean loss over the leader's
    - wilcoxon, sign: p-values of the signed-rank test and of the sign test on the logarithms of
      these ratios, corrected by Holm's rule; None for the leader
    """

    name: str
    kind: str
    mean_rank: float
    first: int
    ratio: float
    wilcoxon: float | None
    sign: float | None


@dataclass(frozen=True)
class Comparison:
    """What `kb.compare` found.

    - results: a `Result` for every stream and competitor, in the order in which they were given
    - overall: an `Overall` for every competitor if there are several streams, best mean rank first

    The p-values have two limits. The best was chosen by the same data, so a small p-value against
    it is a little too easy. And a stream shorter than some hundred times its correlation time gives
    p-values that are too small. With fewer than six streams no test over streams can reach 0.05.

    >>> import kernelbank as kb
    >>> found = kb.compare({"one": kb.KernelBank()}, ["sine"], samples=100)
    >>> found.table()[0]["best"]
    True
    """

    loss: str
    skip: int
    standardise: int
    seeds: tuple[int, ...]
    results: tuple[Result, ...]
    overall: tuple[Overall, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(dict.fromkeys(result.stream for result in self.results))

    def of(self, stream: str) -> list[Result]:
        """The results on one stream, the least mean loss first."""
        results = (result for result in self.results if result.stream == stream)
        return sorted(results, key=lambda result: result.mean_loss)

    def table(self) -> list[dict[str, object]]:
        """One dictionary per row: stream by stream, the least mean loss first, without curves."""
        return [result.figures() for stream in self.streams for result in self.of(stream)]

    def result(self, stream: str, name: str) -> Result | None:
        """One competitor on one stream; None if it did not run there."""
        return next((result for result in self.results if result.key == (stream, name)), None)

    def best_rivals(
        self, name: str, among: Callable[[Result], bool] | None = None
    ) -> list[BestRival]:
        """One competitor against the best of its rivals, on each stream on which there are some.

        Parameters
        ----------
        name : the competitor.
        among : whether a result counts as a rival's; by default all others do.

        >>> import kernelbank as kb
        >>> found = kb.compare({"a": kb.KernelBank()}, ["sine"], samples=100, keep_losses=True)
        >>> found.best_rivals("a")[0].rival
        'running mean'
        """
        rows = []
        for stream in self.streams:
            result = self.result(stream, name)
            others = [other for other in self.of(stream) if other.name != name]
            rivals = [other for other in others if among is None or among(other)]
            if result is not None and rivals:
                rows.append(self._against(result, rivals[0]))  # the least mean loss first
        return rows

    def _against(self, result: Result, rival: Result) -> BestRival:
        if not (result.losses.size and rival.losses.size):
            remedy = "Call kb.compare(..., keep_losses=True)."
            raise check.refuse("keep_losses", "have been True", False, remedy, "compare")
        with np.errstate(invalid="ignore"):
            difference = diebold_mariano([(result.losses - rival.losses)[self.skip :]])
        error = difference.standard_error
        allowed = max(CLOSE * rival.mean_loss, 0.0 if math.isnan(error) else error)
        return BestRival(
            stream=result.stream,
            name=result.name,
            rival=rival.name,
            mean_loss=result.mean_loss,
            rival_loss=rival.mean_loss,
            ratio=result.ratio(result.mean_loss, rival.mean_loss),
            first=result.mean_loss <= rival.mean_loss and not result.diverged,
            close=result.mean_loss <= rival.mean_loss + allowed and not result.diverged,
            standard_error=None if math.isnan(error) else error,
        )

    def times(self) -> list[TimeShare]:
        """The time that each competitor took, the slowest first.

        >>> import kernelbank as kb
        >>> found = kb.compare({"a": kb.KernelBank()}, ["sine"], samples=90)
        >>> found.times()[0].name
        'a'
        """
        total = math.fsum(result.seconds for result in self.results)
        by_name: dict[str, float] = {}
        for result in self.results:
            by_name[result.name] = by_name.get(result.name, 0.0) + result.seconds
        slowest = sorted(by_name.items(), key=lambda item: -item[1])
        return [TimeShare(name, took, took / total if total else 0.0) for name, took in slowest]

    def rank_test(self, level: float = LEVEL, names: Sequence[str] | None = None) -> RankTest:
        """Friedman's test that all competitors are equal, and Nemenyi's critical difference.

        See `kernelbank.research.significance.rank_test` for the formulas. Only competitors that
        ran on all streams take part. The streams must be independent of each other.

        Parameters
        ----------
        level : of the critical difference.
        names : of the competitors to rank; by default all, the baselines too.

        >>> import kernelbank as kb
        >>> banks = {"a": kb.KernelBank(), "b": kb.KernelBank(window=5)}
        >>> found = kb.compare(banks, ["sine", "ar1", "friedman"], samples=100)
        >>> sorted(found.rank_test(names=["a", "b"]).mean_ranks)
        ['a', 'b']
        """
        competitors = list(dict.fromkeys(result.name for result in self.results))
        ranked = competitors if names is None else list(names)
        for name in ranked:
            if name not in competitors:
                rule = f"be of competitors ({', '.join(competitors)})"
                raise check.refuse("names", rule, name, "Correct it.", "rank_test")
        losses = {result.key: result.mean_loss for result in self.results}
        return rank_test(
            {
                name: [losses[stream, name] for stream in self.streams]
                for name in ranked
                if all((stream, name) in losses for stream in self.streams)
            },
            level,
        )

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write everything but the losses to a file. Numbers that are not finite become null."""
        file = Path(path)
        content = {
            "loss": self.loss,
            "skip": self.skip,
            "standardise": self.standardise,
            "seeds": self.seeds,
            "results": [result.figures() | {"curve": result.curve} for result in self.results],
            "overall": [asdict(row) for row in self.overall],
            "times": [asdict(row) for row in self.times()],
        }
        file.write_text(json.dumps(finite(content), indent=1, allow_nan=False) + "\n")
        return file

    def to_markdown(
        self, path: str | os.PathLike[str] | None = None, rows: str | None = None
    ) -> str:
        """The mean losses and mean ranks as a Markdown table; written to `path` if given.

        The best of each stream is bold. An asterisk says that a loss is not larger than the best
        at a level of 5 %: its p-value is 0.05 or more.

        Parameters
        ----------
        path : of the file, such as "table.md".
        rows : "streams" or "competitors", the others are columns; by default the more numerous.

        >>> import kernelbank as kb
        >>> found = kb.compare({"a": kb.KernelBank()}, ["sine"], samples=100)
        >>> print(found.to_markdown(rows="streams").splitlines()[0])
        | stream | a | persistence | running mean |
        """
        from .result_tables import as_markdown, loss_table

        return _written(as_markdown(loss_table(self, rows)), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None, rows: str | None = None) -> str:
        """The same table for LaTeX with the package booktabs; written to `path` if given.

        >>> import kernelbank as kb
        >>> found = kb.compare({"a_1": kb.KernelBank()}, ["sine"], samples=100)
        >>> print(found.to_latex(rows="streams").splitlines()[6])
        stream & a\\_1 & persistence & running mean \\\\
        """
        from .result_tables import as_latex, loss_table

        return _written(as_latex(loss_table(self, rows)), path)

    def plot(self, path: str | os.PathLike[str]) -> list[Path]:
        """Draw the mean loss so far, one panel per stream, and write it as PNG and SVG.

        `path` names the files, with or without a suffix.
        """
        from . import plots

        panels = {
            stream: {result.name: result.curve for result in self.of(stream)}
            for stream in self.streams
        }
        names = list(dict.fromkeys(result.name for result in self.results))
        plain = [result.name for result in self.results if result.kind == "baseline"]
        figure = plots.running_means(panels, names, plain, f"mean loss so far, {self.loss}")
        return plots.save(figure, *_folder_and_name(path))

    def plot_ranks(self, path: str | os.PathLike[str], level: float = LEVEL) -> list[Path]:
        """Draw the critical-difference diagram of `rank_test`, and write it as PNG and SVG."""
        from . import plots

        test = self.rank_test(level)
        figure = plots.critical_difference(test.mean_ranks, test.streams, level)
        return plots.save(figure, *_folder_and_name(path))

    def __repr__(self) -> str:
        from .result_tables import as_text

        return as_text(self)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text)
    return text


def _folder_and_name(path: str | os.PathLike[str]) -> tuple[Path, str]:
    file = Path(path)
    return file.parent, file.stem if file.suffix in (".png", ".svg") else file.name


def finite(value: object) -> object:
    """For JSON: tuples become lists, numbers that are not finite become None."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
