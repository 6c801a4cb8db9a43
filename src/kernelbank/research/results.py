"""The results of a comparison: losses, tests, tables, files, figures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from ..losses import Loss
from ..utils.rendering import one_line
from ..utils.validation import Floats
from .competitors import Competitor, CompetitorRun
from .datasets import CLASSIFICATION, Stream
from .significance import diebold_mariano, holm, mean_rank, signed_rank

NORMALISED = "normalised"
"""Scores by the squared error over the variance of the scored targets, or by wrong labels."""


@dataclass(frozen=True)
class Result:
    """One competitor on one stream. Means are over the runs, `deviation` is over the runs too.

    - kind: "bank", "rival" or "baseline"
    - task, inputs, lags: of the stream; lags are counted among the inputs
    - samples: how many were scored
    - seconds_per_sample: after a warm-up
    - note: why it stopped before the end of the stream
    - best: whether its mean loss is the least on the stream
    - p_value: how likely so large a difference from the best is by chance (None for the best
      itself, and where there is too little evidence)
    - losses: of every sample, those not scored included; means over the runs
    - figures: further figures of its first run, if a `Competitor` has such
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
    cumulative_cost: float | None
    seconds_per_sample: float
    note: str
    best: bool
    p_value: float | None
    losses: Floats = field(repr=False, compare=False, default_factory=lambda: np.zeros(0))
    figures: Mapping[str, float] = field(default_factory=dict)

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

    def row(self) -> dict[str, object]:
        """All numbers and texts, without the losses."""
        names = [field.name for field in fields(self) if field.name not in ("losses", "figures")]
        numbers = {name: getattr(self, name) for name in names}
        return {**numbers, **self.figures, "diverged": self.diverged}

    def loss_text(self) -> str:
        """The mean loss and its deviation over the runs, if there are several."""
        if self.diverged:
            return "diverged"
        deviation = self.mean_loss_deviation
        return f"{self.mean_loss:.4g}" + ("" if deviation is None else f" ± {deviation:.2g}")


@dataclass(frozen=True)
class Overall:
    """One competitor over all streams, against the leader (the least mean rank).

    - ratio: geometric mean over the streams of its mean loss over the leader's
    - wilcoxon: p-value of the signed-rank test on the logarithms of these ratios, corrected by
      Holm's rule; None for the leader
    """

    name: str
    kind: str
    mean_rank: float
    first: int
    ratio: float
    wilcoxon: float | None


@dataclass(frozen=True)
class Comparison:
    """What `kb.compare` found.

    - results: a `Result` for every stream and competitor, in the order in which they were given
    - overall: an `Overall` for every competitor if there are several streams, best mean rank first

    The p-values have two limits. The best was chosen by the same data, so a small p-value against
    it is a little too easy. And a stream shorter than some hundred times its correlation time gives
    p-values that are too small. With fewer than six streams no test over streams can reach 0.05.

    >>> import kernelbank as kb
    >>> comparison = kb.compare({"mine": kb.KernelBank()}, ["sine"], samples=100)
    >>> comparison.table()[0]["best"]
    True
    """

    loss: str
    skip: int
    seeds: tuple[int, ...]
    results: tuple[Result, ...]
    overall: tuple[Overall, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(dict.fromkeys(result.stream for result in self.results))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the competitors."""
        return tuple(dict.fromkeys(result.name for result in self.results))

    def of(self, stream: str) -> list[Result]:
        """The results on one stream, the least mean loss first."""
        results = (result for result in self.results if result.stream == stream)
        return sorted(results, key=lambda result: result.mean_loss)

    def table(self) -> list[dict[str, object]]:
        """One dictionary per row: stream by stream, the least mean loss first, without losses."""
        return [result.row() for stream in self.streams for result in self.of(stream)]

    def result(self, stream: str, name: str) -> Result | None:
        """One competitor on one stream; None if it did not run there."""
        return next((result for result in self.of(stream) if result.name == name), None)

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write everything but the losses to a file. Numbers that are not finite become null."""
        file = Path(path)
        content = {
            "loss": self.loss,
            "skip": self.skip,
            "seeds": self.seeds,
            "results": [result.row() for result in self.results],
            "overall": [asdict(row) for row in self.overall],
        }
        file.write_text(json.dumps(finite(content), indent=1, allow_nan=False) + "\n")
        return file

    def to_markdown(self) -> str:
        """What `print` shows: a Markdown table per stream, the best first, and one of mean ranks.

        >>> import kernelbank as kb
        >>> comparison = kb.compare({"a": kb.KernelBank()}, ["sine"], samples=100)
        >>> [cell.strip() for cell in comparison.to_markdown().split("|")[1:4]]
        ['sine, 100 samples', 'mean loss', 'cost']
        """
        over = f", means over {len(self.seeds)} seeds (± deviation)" if len(self.seeds) > 1 else ""
        lines = [
            f"Loss one step ahead: {self.loss}{over}.",
            "p: how likely so large a difference from the best is by chance (Diebold-Mariano, with",
            "correlations in time and Holm's correction).",
        ]
        for stream in self.streams:
            results = self.of(stream)
            heading = f"{_escaped(stream)}, {results[0].samples} samples"
            rows = [[heading, "mean loss", "cost", "µs", "p"]]
            lines += ["", *_aligned(rows + [_cells(result) for result in results])]
        if self.overall:
            heading = f"all {len(self.streams)} streams"
            rows = [[heading, "mean rank", "first on", "loss / leader's", "p (Wilcoxon)"]]
            for row in self.overall:
                figures = (f"{row.mean_rank:.2f}", str(row.first), f"{row.ratio:.3g}")
                rows.append([_escaped(row.name), *figures, _chance(row.wilcoxon)])
            lines += ["", *_aligned(rows)]
        return "\n".join(lines)

    __repr__ = to_markdown


def _aligned(rows: list[list[str]]) -> list[str]:
    """The lines of a Markdown table; the first row is its heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [
        f"| {row[0]:{widths[0]}} | {' | '.join(map(str.rjust, row[1:], widths[1:]))} |"
        for row in (rows[0], rule, *rows[1:])
    ]


def _cells(result: Result) -> list[str]:
    """A row of the table of a stream."""
    cost = "" if result.cumulative_cost is None else f"{result.cumulative_cost:.5g}"
    chance = "best" if result.best else _chance(result.p_value)
    time = f"{result.seconds_per_sample * 1e6:.3g}"
    return [_escaped(result.name), result.loss_text(), cost, time, chance]


def _chance(p_value: float | None) -> str:
    """A p-value as text."""
    if p_value is None:
        return ""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _escaped(text: str) -> str:
    return one_line(text).replace("|", "\\|").replace("*", "\\*")


def finite(value: object) -> object:
    """For JSON: tuples become lists, numbers that are not finite become None."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- from runs to results -------------------------------------------------------------------------


def sample_losses(loss: Loss | None, stream: Stream, predictions: Floats, skip: int = 0) -> Floats:
    """(n,): the loss of every prediction, infinite where there is none. No loss: normalised."""
    y = stream.y
    there = np.isfinite(predictions)
    values = np.full(len(y), math.inf)
    with np.errstate(over="ignore"):
        if loss is not None:
            values[there] = loss.value(predictions[there], y[there])
        elif stream.task == CLASSIFICATION:
            values[there] = predictions[there] != y[there]
        else:
            variance = float(y[skip:].var()) or 1.0
            values[there] = (predictions[there] - y[there]) ** 2 / variance
    return np.where(np.isnan(values), math.inf, values)


Runs = Sequence[tuple[Stream, CompetitorRun]]
"""The runs of one competitor, and their streams: one for each seed, or one."""


def results_on(
    name: str, runs: Mapping[Competitor, Runs], loss: Loss | None, skip: int, seeded: bool
) -> list[Result]:
    """The results of all competitors that ran on one stream.

    `seeded`: whether the runs of one competitor are on different streams, one for each seed.
    """
    losses = {
        competitor: [sample_losses(loss, s, run.predictions, skip) for s, run in pairs]
        for competitor, pairs in runs.items()
    }
    scored = {key: [series[skip:] for series in every] for key, every in losses.items()}
    means = {key: [float(series.mean()) for series in every] for key, every in scored.items()}
    best = min(means, key=lambda key: _mean(means[key]))
    chances = holm(
        [
            math.nan if key == best else diebold_mariano(_differences(series, scored[best], seeded))
            for key, series in scored.items()
        ]
    )
    results = []
    for (key, pairs), p_value in zip(runs.items(), chances, strict=True):
        stream, first = pairs[0]
        costs = [run.cumulative_cost for _, run in pairs if run.cumulative_cost is not None]
        results.append(
            Result(
                stream=name,
                name=key.name,
                kind=key.kind,
                task=stream.task,
                inputs=stream.inputs.shape[1],
                lags=stream.lags,
                samples=len(scored[key][0]),
                runs=len(pairs),
                mean_loss=_mean(means[key]),
                mean_loss_deviation=_deviation(means[key]),
                cumulative_cost=_mean(costs) if costs else None,
                seconds_per_sample=_mean([run.seconds_per_sample for _, run in pairs]),
                note=next((run.note for _, run in pairs if run.note), ""),
                best=key == best,
                p_value=None if math.isnan(p_value) else p_value,
                losses=_mean_series(losses[key]),
                figures=first.figures,
            )
        )
    return results


def _differences(losses: list[Floats], best: list[Floats], independent: bool) -> list[Floats]:
    """Losses minus the best's. Runs on one and the same stream are not independent evidence:
    their differences are averaged, sample by sample, into one series."""
    runs = max(len(losses), len(best))
    with np.errstate(invalid="ignore"):
        series = [losses[n % len(losses)] - best[n % len(best)] for n in range(runs)]
        return series if independent else [_mean_series(series)]


def _mean_series(series: list[Floats]) -> Floats:
    """The mean over the runs, up to the end of the shortest."""
    shortest = min(map(len, series))
    return np.asarray(np.mean([run[:shortest] for run in series], axis=0))


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _deviation(values: list[float]) -> float | None:
    """The standard deviation over the runs; nothing for one run or for infinite values."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(np.std(values, ddof=1))


# --- over several streams -------------------------------------------------------------------------


def _on_every_stream(results: Sequence[Result]) -> dict[str, list[Result]]:
    """By name, stream by stream, the results of the competitors that ran on all streams."""
    streams = {result.stream for result in results}
    by_name: dict[str, list[Result]] = {}
    for result in results:
        by_name.setdefault(result.name, []).append(result)
    return {name: rows for name, rows in by_name.items() if len(rows) == len(streams)}


def _ratio(result: Result, other: Result) -> float:
    return result.ratio(result.mean_loss, other.mean_loss)


def overall(results: Sequence[Result]) -> tuple[Overall, ...]:
    """Ranks and tests of those that ran on all streams; nothing for a single stream."""
    if len({result.stream for result in results}) < 2:
        return ()
    by_name = _on_every_stream(results)
    losses = np.array([[result.mean_loss for result in rows] for rows in by_name.values()])
    ranks = mean_rank(losses)  # (names, streams)
    mean_ranks = dict(zip(by_name, ranks.mean(axis=1).tolist(), strict=True))
    first = dict(zip(by_name, (ranks == ranks.min(axis=0)).sum(axis=1).tolist(), strict=True))
    best = min(mean_ranks, key=lambda name: mean_ranks[name])
    with np.errstate(divide="ignore", over="ignore"):  # losses of 0 and infinity
        logs = {
            name: np.log([_ratio(*pair) for pair in zip(rows, by_name[best], strict=True)])
            for name, rows in by_name.items()
        }
        ratios = {name: float(np.exp(np.mean(values))) for name, values in logs.items()}
    others = [name for name in by_name if name != best]
    tests = holm([signed_rank(logs[name].tolist()) for name in others])
    chances = dict(zip(others, tests, strict=True))
    table = [
        Overall(name, rows[0].kind, mean_ranks[name], first[name], ratios[name], chances.get(name))
        for name, rows in by_name.items()
    ]
    return tuple(sorted(table, key=lambda row: row.mean_rank))
