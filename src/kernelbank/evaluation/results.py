"""What a comparison leaves: rows, a file, a picture, and words."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .significance import holm, mean_ranks, sign_test, wilcoxon


@dataclass(frozen=True)
class Result:
    """One player on one stream. Means are over the runs; `deviation` is their standard deviation.

    - best: whether its mean loss is the least on the stream
    - excess_loss: mean loss minus the best's
    - p_value: how likely so large a difference from the best is by luck (None for the best itself,
      and where there is too little to tell)
    - lag: up to where correlations in time were counted
    - curve: (samples, mean loss so far)
    """

    stream: str
    name: str
    kind: str
    samples: int
    runs: int
    mean_loss: float
    mean_loss_deviation: float | None
    root_mean_squared_error: float
    root_mean_squared_error_deviation: float | None
    cumulative_cost: float | None
    seconds_per_sample: float
    best: bool
    excess_loss: float
    p_value: float | None
    lag: int
    curve: tuple[tuple[int, float], ...] = field(repr=False, default=())

    @property
    def diverged(self) -> bool:
        """Whether it stopped making finite predictions."""
        return not math.isfinite(self.mean_loss)


@dataclass(frozen=True)
class Overall:
    """One player over all streams, against the leader (the least mean rank).

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

    - results: a `Result` for every stream and player, in the order in which they were given
    - overall: an `Overall` for every player if there are several streams, best mean rank first

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
    seeds: tuple[int, ...]
    results: tuple[Result, ...]
    overall: tuple[Overall, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(dict.fromkeys(result.stream for result in self.results))

    def of(self, stream: str) -> list[Result]:
        """The results on one stream, the least mean loss first."""
        own = [result for result in self.results if result.stream == stream]
        return sorted(own, key=lambda result: result.mean_loss)

    def table(self) -> list[dict[str, Any]]:
        """One dictionary a row: stream by stream, the least mean loss first, without curves."""
        rows = []
        for stream in self.streams:
            for result in self.of(stream):
                row = asdict(result) | {"diverged": result.diverged}
                del row["curve"]
                rows.append(row)
        return rows

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write everything, curves included, to a file. Numbers that are not finite become null."""
        file = Path(path)
        content = asdict(self)
        for row, result in zip(content["results"], self.results, strict=True):
            row["diverged"] = result.diverged
        file.write_text(json.dumps(_plain(content), indent=1, allow_nan=False) + "\n")
        return file

    def plot(self, path: str | os.PathLike[str]) -> list[Path]:
        """Draw the mean loss so far, a panel for each stream. Writes PNG and SVG beside each other.

        `path` names the picture, with or without a suffix.
        """
        from . import plots

        file = Path(path)
        name = file.stem if file.suffix in (".png", ".svg") else file.name
        panels = {
            stream: {result.name: result.curve for result in self.of(stream)}
            for stream in self.streams
        }
        players = [r.name for r in self.results if r.stream == self.streams[0]]
        plain = [r.name for r in self.results if r.kind == "baseline"]
        figure = plots.running_means(panels, players, plain, f"mean loss so far, {self.loss}")
        return plots.save(figure, file.parent, name)

    def __repr__(self) -> str:
        players = len({result.name for result in self.results})
        lines = [
            f"Comparison({_count(self.streams, 'stream')}, {players} players, "
            f"{_count(self.seeds, 'seed')}, {self.loss})"
        ]
        width = max(len(result.name) for result in self.results)
        for stream in self.streams:
            own = self.of(stream)
            lines.append(f"{stream}: {own[0].samples} samples")
            lines.append(f"  {'':{width}}  {'mean loss':>21}  {'rmse':>9}  {'cost':>9}  us   p")
            for row in own:
                cells = words(row)
                lines.append(
                    f"  {row.name:{width}}  {cells['mean loss']:>21}  {cells['rmse']:>9}  "
                    f"{cells['cost']:>9}  {cells['us a sample']:>7}  {cells['p']}"
                )
        for each in self.overall:
            lines.append(f"  {each.name:{width}}  mean rank {each.mean_rank:.2f}")
        return "\n".join(lines)


def words(result: Result) -> dict[str, str]:
    """A row's figures as a reader wants them."""
    spread = result.mean_loss_deviation
    chance = "best" if result.best else ""
    if result.p_value is not None:
        chance = "< 0.001" if result.p_value < 0.001 else f"{result.p_value:.3f}"
    return {
        "mean loss": "diverged"
        if result.diverged
        else f"{result.mean_loss:.4g}" + ("" if spread is None else f" ± {spread:.2g}"),
        "rmse": "" if result.diverged else f"{result.root_mean_squared_error:.4g}",
        "cost": "" if result.cumulative_cost is None else f"{result.cumulative_cost:.5g}",
        "us a sample": f"{result.seconds_per_sample * 1e6:.3g}",
        "p": chance,
    }


def overall(results: Sequence[Result]) -> tuple[Overall, ...]:
    """Ranks and tests over the streams; nothing for a single one."""
    streams = list(dict.fromkeys(result.stream for result in results))
    if len(streams) < 2:
        return ()
    kinds = {result.name: result.kind for result in results}
    names = list(kinds)
    loss = {(result.stream, result.name): result.mean_loss for result in results}
    ranks = [mean_ranks([loss[stream, name] for name in names]) for stream in streams]
    mean_rank = {
        name: math.fsum(row[place] for row in ranks) / len(streams)
        for place, name in enumerate(names)
    }
    leader = min(names, key=lambda name: mean_rank[name])
    ratios = {
        name: [_log_ratio(loss[stream, name], loss[stream, leader]) for stream in streams]
        for name in names
    }
    others = [name for name in names if name != leader]
    ranked = dict(zip(others, holm([wilcoxon(ratios[name]) for name in others]), strict=True))
    signed = dict(zip(others, holm([sign_test(ratios[name]) for name in others]), strict=True))
    rows = [
        Overall(
            name,
            kinds[name],
            mean_rank[name],
            sum(row[place] == min(row) for row in ranks),
            _exponential_of_mean(ratios[name]),
            ranked.get(name),
            signed.get(name),
        )
        for place, name in enumerate(names)
    ]
    return tuple(sorted(rows, key=lambda row: row.mean_rank))


def _log_ratio(own: float, other: float) -> float:
    """log(own / other) for losses of 0 and infinity too; equals give 0."""
    if own == other:
        return 0.0
    if own == 0 or math.isinf(other):
        return -math.inf
    if other == 0 or math.isinf(own):
        return math.inf
    return math.log(own) - math.log(other) if own > 0 and other > 0 else math.nan


def _exponential_of_mean(logarithms: list[float]) -> float:
    mean = sum(logarithms) / len(logarithms)
    return math.exp(mean) if mean < 700 else math.inf


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
