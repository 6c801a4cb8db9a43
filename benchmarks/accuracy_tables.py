"""Tables of `make accuracy` and `make ablation`, and the goals set for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from accuracy_competitors import AUTO, COVERAGE, ONLINE, competes
from rich import box
from rich.table import Table

import kernelbank as kb
from kernelbank.research.competitors import PERSISTENCE, RUNNING_MEAN
from kernelbank.research.datasets.benchmarks import BENCHMARKS
from kernelbank.research.datasets.tables import REGRESSION
from kernelbank.research.results import Result, overall
from kernelbank.research.significance import diebold_mariano

CLOSE = 0.02
"""A loss is close to another one if it is larger by this share or less, or by one standard error of
the mean difference if that is more."""

NARROW = 20
"""The goal for the time counts streams with at most this many inputs."""

TOLERANCE = 0.01
"""How far the coverage of intervals may be from the requested one."""

RIVAL_NAME = "lightgbm-500"
"""Whose last half AutoBank's is divided by on long streams."""

LONG_GOALS = {"time": 1.0, "iid": 1.15}
"""The largest ratio that is good enough on a long stream, by its order."""

QUARTERS = ("q1", "q2", "q3", "q4")
LAST_HALF = "last half"

_ONLINE = {one.name for one in ONLINE}

_SHORT = {
    "autobank": "ours",
    "bayesian-linear": "bayes",
    "rbf-sgd": "rbf",
    "persistence": "last",
    "lightgbm-100": "lgb100",
    "lightgbm-500": "lgb500",
    "extratrees": "extra",
}


@dataclass(frozen=True)
class TextTable:
    """A title, columns, and rows of text; the first column is a name."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def rich(self) -> Table:
        table = Table(
            title=self.title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
        )
        for index, name in enumerate(self.columns):
            table.add_column(name, justify="right" if index else "left", no_wrap=index > 0)
        for row in self.rows:
            table.add_row(*row)
        return table

    def parts(self, most: int = 10) -> list[TextTable]:
        """The same as tables of similar width, `most` columns beside the name at most."""
        count = len(self.columns) - 1
        width = math.ceil(count / math.ceil(count / most))
        return [
            TextTable(self.title, *_cut([self.columns, *self.rows], slice(at, at + width)))
            for at in range(1, count + 1, width)
        ]

    def markdown(self) -> str:
        rule = "|".join(["---"] + ["---:"] * (len(self.columns) - 1))
        lines = [f"**{self.title}**", "", _line(self.columns), f"|{rule}|"]
        return "\n".join([*lines, *map(_line, self.rows)]) + "\n"


def _cut(rows: list[list[str]], columns: slice) -> tuple[list[str], list[list[str]]]:
    """The head and the other rows with their first cell and these cells."""
    head, *others = [[row[0], *row[columns]] for row in rows]
    return head, others


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


# --- the best rival -------------------------------------------------------------------------------


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


def best_rivals(
    found: kb.Comparison, name: str, among: Callable[[Result], bool]
) -> list[BestRival]:
    """One competitor against the best of its rivals, on each stream on which there are some.

    `among` says whether a result counts as a rival's.
    """
    rows = []
    for stream in found.streams:
        result = found.result(stream, name)
        rivals = [other for other in found.of(stream) if other.name != name and among(other)]
        if result is not None and rivals:
            rows.append(_against(result, rivals[0], found.skip))  # the least mean loss first
    return rows


def _against(result: Result, rival: Result, skip: int) -> BestRival:
    with np.errstate(invalid="ignore"):
        error = diebold_mariano([(result.losses - rival.losses)[skip:]]).standard_error
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


# --- tables ---------------------------------------------------------------------------------------


def losing_first(found: kb.Comparison) -> kb.Comparison:
    """The same with its streams sorted by the ratio of ours to the best rival, largest first."""
    ratio = {one.stream: one.ratio for one in best_rivals(found, AUTO, competes)}
    results = sorted(found.results, key=lambda one: -ratio.get(one.stream, 0.0))
    return replace(found, results=tuple(results))


def is_close(one: BestRival) -> bool:
    """Whether ours is first, or behind by no more than 2 %."""
    return one.first or (one.ratio <= 1 + CLOSE and math.isfinite(one.mean_loss))


def per_stream(found: kb.Comparison) -> TextTable:
    """One row per stream: ours, the best rival, and what else is worth knowing."""
    columns = ["stream", "ours", "best", "rival", "ratio", "first", "last y", "slot", "to slot"]
    beside = {one.stream: one for one in best_rivals(found, AUTO, competes)}
    rows = []
    for stream in found.streams:
        own = found.result(stream, AUTO)
        last = found.result(stream, PERSISTENCE)
        rivals = [one for one in found.of(stream) if competes(one)]
        against = beside.get(stream)
        slot = None if own is None else own.figures.get("best_slot_loss")
        rows.append(
            [
                stream,
                long(None if own is None else own.mean_loss),
                long(rivals[0].mean_loss if rivals else None),
                rivals[0].name if rivals else "",
                "" if against is None else f"{against.ratio:.2f}",
                "" if against is None else _rank(against),
                long(None if last is None else last.mean_loss),
                long(slot),
                "" if own is None or slot is None else f"{own.ratio(own.mean_loss, slot):.2f}",
                "" if own is None else _time([own]),
            ]
        )
    title = "prequential error: MSE / variance of the target, or error rate"
    return TextTable(title, [*columns, "us"], rows)


def everybody(found: kb.Comparison, task: str) -> TextTable | None:
    """One row per stream, one column per competitor, and their times below."""
    own = [one for one in found.results if one.task == task and one.name != RUNNING_MEAN]
    if not own:
        return None
    names = list(dict.fromkeys(one.name for one in own))
    names.sort(key=lambda name: name in ("paper", "omkr", "raker"))  # shown, not competing
    streams = dict.fromkeys(one.stream for one in own)
    rows = []
    for stream in streams:
        cells = [found.result(stream, name) for name in names]
        rows.append([stream, *(brief(None if c is None else c.mean_loss) for c in cells)])
    for label, summarise in (("us per sample, median", median), ("us per sample, largest", max)):
        times = [_time([one for one in own if one.name == name], summarise) for name in names]
        rows.append([label, *times])
    what = "MSE / variance of the target" if task == REGRESSION else "error rate"
    columns = ["stream", *(_SHORT.get(name, name) for name in names)]
    return TextTable(f"everybody, {task}: {what}", columns, rows)


def ranks(found: kb.Comparison, task: str) -> TextTable | None:
    """Mean ranks over the streams of a task as given, and tests against the leader."""
    own = as_given(found, task)
    rows = [
        [
            _SHORT.get(one.name, one.name),
            f"{one.mean_rank:.2f}",
            str(one.first),
            long(one.ratio),
            "" if one.wilcoxon is None else f"{one.wilcoxon:.3f}",
        ]
        for one in own.overall
    ]
    if not rows:
        return None
    test = own.rank_test()
    title = (
        f"mean ranks on {test.streams} streams as given, {task}: Friedman's "
        f"p = {test.p_value:.2g}, critical difference {test.difference:.2f}"
    )
    columns = ["method", "mean rank", "first on", "loss / leader's", "p (Wilcoxon, Holm)"]
    return TextTable(title, columns, rows)


def as_given(found: kb.Comparison, task: str) -> kb.Comparison:
    """The streams of a task without those with lags, which are no further evidence."""
    own = [one for one in found.results if one.task == task and not one.lags]
    return replace(found, results=tuple(own), overall=overall(own))


def intervals(found: kb.Comparison) -> TextTable | None:
    """How often AutoBank's intervals hold the target, and how wide they are."""
    rows = [
        [
            one.stream,
            f"{one.figures['coverage']:.3f}",
            f"{one.figures['coverage_error']:.3f}",
            f"{one.figures['interval_width']:.3g}",
        ]
        for one in found.results
        if one.name == AUTO and "coverage" in one.figures
    ]
    columns = ["stream", "coverage", "standard error", "width / sd of y"]
    return TextTable(f"intervals meant to hold {COVERAGE:.0%}", columns, rows) if rows else None


# --- over all streams -----------------------------------------------------------------------------


def summary(found: kb.Comparison) -> dict[str, Any] | None:
    """AutoBank over all streams; None if it did not run."""
    beside = best_rivals(found, AUTO, competes)
    if not beside:
        return None
    online = best_rivals(found, AUTO, lambda one: one.name in _ONLINE)
    own = [found.result(one.stream, AUTO) for one in beside]
    worst = max(beside, key=lambda one: one.ratio)
    with_slots = [one for one in own if "best_slot_loss" in one.figures]
    coverages = {one.stream: one.figures["coverage"] for one in own if "coverage" in one.figures}
    farthest = max(coverages, key=lambda name: abs(coverages[name] - COVERAGE), default=None)
    narrow = [one.seconds_per_sample * 1e6 for one in own if one.inputs <= NARROW]
    return {
        "streams": len(beside),
        "first": sum(one.first for one in beside),
        "close": sum(is_close(one) for one in beside),
        "geometric_mean": geometric_mean([one.ratio for one in beside]),
        "online_streams": len(online),
        "online_geometric_mean": geometric_mean([o.ratio for o in online]) if online else None,
        "worst": worst.ratio,
        "worst_stream": worst.stream,
        "with_intervals": len(coverages),
        "intervals_held": sum(
            abs(share - COVERAGE) <= TOLERANCE + 1e-12 for share in coverages.values()
        ),
        "farthest_coverage": coverages.get(farthest),
        "farthest_stream": farthest,
        "with_slots": len(with_slots),
        "at_or_below_slot": sum(
            one.ratio(one.mean_loss, one.figures["best_slot_loss"]) <= 1 for one in with_slots
        ),
        "microseconds": max(narrow, default=None),
    }


def goals(found: kb.Comparison) -> TextTable | None:
    """The figures over all streams, and the goals set for them."""
    own = summary(found)
    if own is None:
        return None
    count, mean, worst = own["streams"], own["geometric_mean"], own["worst"]
    close = own["close"] / count
    rows = [
        [
            "geometric mean of ours / best of all rivals",
            f"{mean:.3f}",
            "<= 0.60, beyond 0.50",
            "beyond" if mean <= 0.5 else _yes(mean <= 0.6),
        ],
        [
            f"rows first or within {CLOSE:.0%}",
            f"{own['close']} of {count} ({close:.0%})",
            ">= 25 of 28 (89%)",
            _yes(close >= 25 / 28),
        ],
        [f"  of these first outright: {own['first']}", "", "", ""],
    ]
    if own["online_streams"]:
        mean = own["online_geometric_mean"]
        label = "geometric mean of ours / best online rival"
        rows.append([label, f"{mean:.3f}", "<= 0.43", _yes(mean <= 0.43)])
    if own["with_intervals"]:
        held, every = own["intervals_held"], own["with_intervals"]
        label = f"rows with intervals of {COVERAGE:.0%} within {TOLERANCE:.0%}"
        rows.append([label, f"{held} of {every}", "every row", _yes(held == every)])
        farthest = f"  farthest: {own['farthest_stream']}"
        rows.append([farthest, f"{own['farthest_coverage']:.3f}", "", ""])
    label = f"worst ratio ({own['worst_stream']})"
    rows.append([label, f"{worst:.3f}", "<= 1.25", _yes(worst <= 1.25)])
    if own["with_slots"]:
        share = own["at_or_below_slot"] / own["with_slots"]
        text = f"{own['at_or_below_slot']} of {own['with_slots']} ({share:.0%})"
        rows.append(["rows at or below the best slot", text, ">= 70%", _yes(share >= 0.7)])
    if own["microseconds"] is not None:
        text, reached = f"{own['microseconds']:.0f} us", _yes(own["microseconds"] <= 300)
        label = f"longest time per sample, up to {NARROW} inputs"
        rows.append([label, text, "<= 300 us", reached])
    return TextTable("ours over all streams", ["what", "figure", "goal", "reached"], rows)


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


# --- long streams ---------------------------------------------------------------------------------


def quarter_means(result: Result, skip: int) -> dict[str, float]:
    """The mean loss in each quarter of the stream and in its last half.

    The first `skip` rows are not scored; a part without a scored row is NaN.
    """
    length = len(result.losses)
    edges = [length * part // 4 for part in range(5)]
    parts = dict(zip(QUARTERS, pairwise(edges))) | {LAST_HALF: (edges[2], length)}
    scored = {name: result.losses[max(skip, start) : end] for name, (start, end) in parts.items()}
    return {name: float(own.mean()) if own.size else math.nan for name, own in scored.items()}


def order(stream: str) -> str:
    """Whether the rows of a stream are in an order; streams that are not listed are."""
    known = BENCHMARKS.get(stream.partition(" +")[0])
    return "time" if known is None else known.order


def quarters(found: kb.Comparison) -> list[dict[str, Any]]:
    """One dictionary for each stream and method: AutoBank first, the others by their last half."""
    rows = [
        {"stream": one.stream, "method": one.name, **quarter_means(one, found.skip)}
        for one in found.results
        if one.name == AUTO or competes(one)
    ]
    place = {stream: at for at, stream in enumerate(found.streams)}
    rows.sort(key=lambda row: (place[row["stream"]], row["method"] != AUTO, row[LAST_HALF]))
    return rows


def by_quarter(found: kb.Comparison) -> TextTable:
    """One row for each stream and method."""
    columns = ["stream", "method", *QUARTERS, LAST_HALF]
    rows = [
        [row["stream"], row["method"], *(long(row[part]) for part in (*QUARTERS, LAST_HALF))]
        for row in quarters(found)
    ]
    return TextTable("error by quarter of the stream", columns, rows)


def verdicts(found: kb.Comparison) -> TextTable | None:
    """AutoBank's error in the last half over LightGBM's, the largest share of its goal first."""
    rows: list[tuple[float, list[str]]] = []
    for stream in found.streams:
        own, rival = found.result(stream, AUTO), found.result(stream, RIVAL_NAME)
        if own is None or rival is None:
            continue
        mine, other = (quarter_means(one, found.skip)[LAST_HALF] for one in (own, rival))
        ratio, kind = own.ratio(mine, other), order(stream)
        goal = LONG_GOALS[kind]
        reached = "yes" if ratio <= goal else "no"
        cells = [stream, kind, long(mine), long(other), f"{ratio:.3f}", f"<= {goal}", reached]
        rows.append((ratio / goal, cells))
    rows.sort(key=lambda row: -row[0])
    columns = ["stream", "order", "ours", RIVAL_NAME, "ratio", "goal", "reached"]
    title = f"the last half of the stream: ours / {RIVAL_NAME}"
    return TextTable(title, columns, [cells for _, cells in rows]) if rows else None


# --- what names and cells mean --------------------------------------------------------------------


def legend(descriptions: dict[str, str]) -> list[str]:
    """What each name means."""
    lines = [
        "streams are sorted by ratio (ours / best): where ours loses stands first",
        "+3: everybody is given the last three targets as well",
        f"close: behind by no more than {CLOSE:.0%}",
        "last y: the last target again, a rival too",
        "slot: the best single slot of ours, chosen afterwards",
        "us: microseconds per sample, to predict and to learn",
    ]
    for name, description in descriptions.items():
        short = _SHORT.get(name, name)
        lines.append(f"{name if short == name else f'{name} ({short})'}: {description}")
    return lines


def notes(found: kb.Comparison) -> list[str]:
    """Which competitors failed or diverged where."""
    return [
        f"{one.name} on {one.stream} {one.note or 'diverged'}"
        for one in found.results
        if one.note or one.diverged
    ]


def geometric_mean(ratios: list[float]) -> float:
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(ratios))))


def brief(value: float | None) -> str:
    """At most five letters, so that a dozen competitors stand side by side."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "div"
    if value >= 99.5:
        return f"{value:.0e}"
    return f"{value:.4f}"[1:] if value < 0.99995 else f"{value:.3g}"


def long(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if math.isfinite(value) else "diverged"


def _rank(one: BestRival) -> str:
    return "first" if one.first else "close" if is_close(one) else "no"


def _time(results: list[Result], summarise: Any = max) -> str:
    microseconds = summarise([one.seconds_per_sample * 1e6 for one in results])
    return f"{microseconds:.0f}" if microseconds < 99999.5 else f"{microseconds:.0e}"
