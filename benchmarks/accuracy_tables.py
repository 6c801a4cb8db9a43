"""Tables of the accuracy benchmarks: `make accuracy`, `make ablation`, `make forecasts`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from accuracy_competitors import AUTO, COVERAGE, ONLINE, competes
from rich import box
from rich.table import Table

import kernelbank as kb
from kernelbank.research.competitors import PERSISTENCE
from kernelbank.research.results import Result, overall

CLOSE = 0.02
"""A loss is close to another one if it is larger by this share or less."""

NARROW = 20
"""The longest time per sample is that of streams with at most this many inputs."""

TOLERANCE = 0.01
"""How far the coverage of intervals may be from the requested one."""

LONG_RIVAL = "lightgbm-500"
"""Whose last half AutoBank's is divided by on long streams."""

_SHORT = {"autobank": "ours", "bayesian-linear": "bayes", "rbf-sgd": "rbf", "persistence": "last"}


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


# --- AutoBank and the best rival ------------------------------------------------------------------


@dataclass(frozen=True)
class BestRival:
    """AutoBank and the best of its rivals on one stream; `ratio` is its mean loss over theirs."""

    ours: Result
    rival: Result

    @property
    def ratio(self) -> float:
        return self.ours.ratio(self.ours.mean_loss, self.rival.mean_loss)

    @property
    def place(self) -> str:
        if self.ours.diverged or self.ratio > 1 + CLOSE:
            return "no"
        return "first" if self.ours.mean_loss <= self.rival.mean_loss else "close"


def best_rivals(comparison: kb.Comparison, online: bool = False) -> list[BestRival]:
    """On each stream on which AutoBank and a rival ran; the largest ratio first.

    `online` leaves out the rivals that do not learn row by row, and the last target.
    """
    names = {one.name for one in ONLINE}
    pairs = []
    for stream in comparison.streams:
        ours = comparison.result(stream, AUTO)
        rivals = [r for r in comparison.of(stream) if (r.name in names if online else competes(r))]
        if ours is not None and rivals:
            pairs.append(BestRival(ours, rivals[0]))  # the least mean loss first
    return sorted(pairs, key=lambda pair: -pair.ratio)


def per_stream(comparison: kb.Comparison) -> TextTable:
    """One row per stream: ours, the best rival, and what else is worth knowing."""
    columns = ["stream", "ours", "best", "rival", "ratio", "first", "last y", "slot", "us"]
    rows = []
    for pair in best_rivals(comparison):
        ours, rival = pair.ours, pair.rival
        last = comparison.result(ours.stream, PERSISTENCE)
        rows.append(
            [
                ours.stream,
                brief(ours.mean_loss),
                brief(rival.mean_loss),
                rival.name,
                f"{pair.ratio:.2f}",
                pair.place,
                brief(None if last is None else last.mean_loss),
                brief(ours.figures.get("best_slot_loss")),
                f"{ours.seconds_per_sample * 1e6:.0f}",
            ]
        )
    return TextTable("MSE / variance of the target, or error rate", columns, rows)


def times(comparison: kb.Comparison) -> TextTable:
    """Microseconds per sample of every competitor: the median and the most over the streams."""
    rows = []
    for name in comparison.names:
        own = [1e6 * r.seconds_per_sample for r in comparison.results if r.name == name]
        rows.append([_SHORT.get(name, name), f"{median(own):.0f}", f"{max(own):.0f}"])
    return TextTable("us per sample", ["method", "median", "largest"], rows)


def ranks(comparison: kb.Comparison, task: str) -> TextTable | None:
    """Mean ranks over the streams of a task as given, and tests against the leader."""
    given = as_given(comparison, task)
    if not given.overall:
        return None
    rows = [
        [
            _SHORT.get(one.name, one.name),
            f"{one.mean_rank:.2f}",
            str(one.first),
            brief(one.ratio),
            "" if one.wilcoxon is None else f"{one.wilcoxon:.3f}",
        ]
        for one in given.overall
    ]
    title = f"mean ranks on {len(given.streams)} streams as given, {task}"
    columns = ["method", "mean rank", "first on", "loss / leader's", "p (Wilcoxon, Holm)"]
    return TextTable(title, columns, rows)


def as_given(comparison: kb.Comparison, task: str) -> kb.Comparison:
    """The streams of a task without those with lags, which are no further evidence."""
    own = [one for one in comparison.results if one.task == task and not one.lags]
    return replace(comparison, results=tuple(own), overall=overall(own))


def last_halves(comparison: kb.Comparison) -> TextTable | None:
    """AutoBank's error in the last half of a long stream over LightGBM's, the largest first."""
    rows = []
    for stream in comparison.streams:
        pair = [comparison.result(stream, name) for name in (AUTO, LONG_RIVAL)]
        if None in pair:
            continue
        ours, rival = (float(one.losses[len(one.losses) // 2 :].mean()) for one in pair)
        rows.append((pair[0].ratio(ours, rival), stream, ours, rival))
    cells = [[s, brief(o), brief(r), f"{ratio:.3f}"] for ratio, s, o, r in sorted(rows)[::-1]]
    title = f"the last half of the stream: ours / {LONG_RIVAL}"
    return TextTable(title, ["stream", "ours", LONG_RIVAL, "ratio"], cells) if cells else None


def summary(comparison: kb.Comparison) -> dict[str, Any]:
    """AutoBank over all streams; empty if it did not run."""
    pairs, online = best_rivals(comparison), best_rivals(comparison, online=True)
    if not pairs:
        return {}
    ours = [pair.ours for pair in pairs]
    covered = {r.stream: r.figures["coverage"] for r in ours if "coverage" in r.figures}
    held = [abs(share - COVERAGE) <= TOLERANCE + 1e-12 for share in covered.values()]
    slots = [r for r in ours if "best_slot_loss" in r.figures]
    narrow = [1e6 * r.seconds_per_sample for r in ours if r.inputs <= NARROW]
    figures: dict[str, Any] = {
        "rows": len(pairs),
        "first": sum(pair.place == "first" for pair in pairs),
        f"first or within {CLOSE:.0%}": sum(pair.place != "no" for pair in pairs),
        "geometric mean of ours / best rival": geometric_mean([pair.ratio for pair in pairs]),
        "worst ratio": pairs[0].ratio,
        "worst on": pairs[0].ours.stream,
    }
    if online:
        mean = geometric_mean([pair.ratio for pair in online])
        figures["geometric mean of ours / best online rival"] = mean
    if covered:
        farthest = max(covered, key=lambda name: abs(covered[name] - COVERAGE))
        figures["rows with intervals"] = len(covered)
        figures[f"of these within {TOLERANCE:.0%} of {COVERAGE:.0%}"] = sum(held)
        figures["farthest coverage"] = covered[farthest]
        figures["farthest on"] = farthest
    if slots:
        below = [r.ratio(r.mean_loss, r.figures["best_slot_loss"]) <= 1 for r in slots]
        figures[f"at or below the best slot, of {len(slots)}"] = sum(below)
    if narrow:
        figures[f"longest time per sample, up to {NARROW} inputs, us"] = max(narrow)
    return figures


def totals(comparison: kb.Comparison) -> TextTable | None:
    """The summary as a table."""
    rows = [
        [what, f"{figure:.3f}" if isinstance(figure, float) else str(figure)]
        for what, figure in summary(comparison).items()
    ]
    return TextTable("ours over all rows", ["what", "figure"], rows) if rows else None


def notes(comparison: kb.Comparison) -> list[str]:
    """What the cells mean; which competitors failed or diverged where."""
    lines = [
        "ratio: ours / best; where ours loses stands first",
        "+3: everybody is given the last three targets as well",
        f"close: behind by no more than {CLOSE:.0%}",
        "last y: the last target again, a rival too",
        "slot: the best single slot of ours, chosen afterwards",
        "us: microseconds per sample, to predict and to learn",
    ]
    failed = [one for one in comparison.results if one.note or one.diverged]
    return lines + [f"{one.name} on {one.stream} {one.note or 'diverged'}" for one in failed]


def geometric_mean(ratios: list[float]) -> float:
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(ratios))))


def brief(value: float | None) -> str:
    """Three digits; empty for None."""
    if value is None:
        return ""
    return f"{value:.3g}" if math.isfinite(value) else "diverged"
