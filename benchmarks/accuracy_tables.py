"""Tables of `make accuracy` and `make ablation`, from a `Comparison`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from accuracy_competitors import AUTO, competes
from rich import box
from rich.table import Table

import kernelbank as kb
from kernelbank.research.competitors import COVERAGE, PERSISTENCE, RUNNING_MEAN
from kernelbank.research.datasets.stream import REGRESSION
from kernelbank.research.results import CLOSE, BestRival, Result
from kernelbank.research.scores import overall

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


# --- tables ---------------------------------------------------------------------------------------


def losing_first(found: kb.Comparison) -> kb.Comparison:
    """The same with its streams sorted by the ratio of ours to the best rival, largest first."""
    ratio = {one.stream: one.ratio for one in found.best_rivals(AUTO.name, competes)}
    results = sorted(found.results, key=lambda one: -ratio.get(one.stream, 0.0))
    return replace(found, results=tuple(results))


def is_close(one: BestRival) -> bool:
    """Whether ours is first, or behind by no more than 2 %."""
    return one.first or (one.ratio <= 1 + CLOSE and math.isfinite(one.mean_loss))


def per_stream(found: kb.Comparison) -> TextTable:
    """One row per stream: ours, the best rival, and what else is worth knowing."""
    columns = ["stream", "ours", "best", "rival", "ratio", "first", "last y", "slot", "to slot"]
    best_rivals = {one.stream: one for one in found.best_rivals(AUTO.name, competes)}
    rows = []
    for stream in found.streams:
        own = found.result(stream, AUTO.name)
        last = found.result(stream, PERSISTENCE)
        rivals = [one for one in found.of(stream) if competes(one)]
        against = best_rivals.get(stream)
        slot = None if own is None else own.best_slot_loss
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
            f"{one.coverage:.3f}",
            f"{one.coverage_error:.3f}",
            f"{one.interval_width:.3g}",
        ]
        for one in found.results
        if one.name == AUTO.name and one.coverage is not None
    ]
    columns = ["stream", "coverage", "standard error", "width / sd of y"]
    return TextTable(f"intervals meant to hold {COVERAGE:.0%}", columns, rows) if rows else None


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
    """Which competitors failed or diverged where, and which times are not reliable."""
    lines = [
        f"{one.name} on {one.stream} {one.note or 'diverged'}"
        for one in found.results
        if one.note or one.diverged
    ]
    if any(one.jobs > 1 for one in found.results):
        lines.append("~: measured while other runs went on; use --jobs 1 --fresh for times")
    return lines


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
    text = f"{microseconds:.0f}" if microseconds < 99999.5 else f"{microseconds:.0e}"
    return f"~{text}" if max(one.jobs for one in results) > 1 else text
