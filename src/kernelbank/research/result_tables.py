"""The tables of a comparison as text, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..utils import validation as check
from ..utils.rendering import one_line

if TYPE_CHECKING:
    from .results import Comparison, Result, TimeShare

BY_STREAM, BY_COMPETITOR = "streams", "competitors"
SLOWEST = 3
"""Competitors that are named when it is said where the time went."""


# --- losses of everybody on every stream ----------------------------------------------------------


@dataclass(frozen=True)
class LossTable:
    """Mean losses with names of rows and columns; mean ranks of competitors, if there are any.

    - by_stream: whether rows are streams
    - cells: (rows, columns); None where a competitor did not run
    - ranks: by competitor; empty for a single stream
    """

    caption: str
    by_stream: bool
    rows: list[str]
    columns: list[str]
    cells: list[list[Result | None]]
    ranks: dict[str, float]

    def text(
        self, show_cell: Callable[[Result | None], str], escape: Callable[[str], str]
    ) -> list[list[str]]:
        """Head and rows as text, with the mean ranks as the last row or column."""
        head = ["stream" if self.by_stream else "", *map(escape, self.columns)]
        rows = [
            [escape(name), *map(show_cell, cells)]
            for name, cells in zip(self.rows, self.cells, strict=True)
        ]
        ranks = {name: f"{rank:.2f}" for name, rank in self.ranks.items()}
        if ranks and self.by_stream:
            rows.append(["mean rank", *(ranks.get(name, "") for name in self.columns)])
        elif ranks:
            head.append("mean rank")
            for name, row in zip(self.rows, rows, strict=True):
                row.append(ranks.get(name, ""))
        return [head, *rows]


def loss_table(comparison: Comparison, rows: str | None = None) -> LossTable:
    """The mean losses of a comparison; by default what is more numerous stands in rows."""
    names = list(dict.fromkeys(result.name for result in comparison.results))
    streams = list(comparison.streams)
    if rows is None:
        rows = BY_STREAM if len(streams) >= len(names) else BY_COMPETITOR
    by_stream = check.choice("rows", rows, "table", (BY_STREAM, BY_COMPETITOR)) == BY_STREAM
    cells = [[comparison.result(stream, name) for name in names] for stream in streams]
    return LossTable(
        caption=_caption(comparison),
        by_stream=by_stream,
        rows=streams if by_stream else names,
        columns=names if by_stream else streams,
        cells=cells if by_stream else [list(column) for column in zip(*cells, strict=True)],
        ranks={row.name: row.mean_rank for row in comparison.overall},
    )


def _is_undecided(result: Result) -> bool:
    """Whether its loss is not proven larger than the best."""
    return result.p_value is not None and result.p_value >= 0.05


def _caption(comparison: Comparison) -> str:
    scored = sorted({result.samples for result in comparison.results})
    count = f"{scored[0]}" if len(scored) == 1 else f"{scored[0]} to {scored[-1]}"
    seeds = len(comparison.seeds)
    over = f" (mean ± standard deviation over {seeds} seeds)" if seeds > 1 else ""
    units = (
        f" Standard units of the first {comparison.standardise} rows."
        if comparison.standardise
        else ""
    )
    return (
        f"Mean loss, {comparison.loss}, of predictions one step ahead, {count} samples per stream"
        f"{over}.{units} Bold: the least of a stream. Asterisk: not significantly larger "
        "(Diebold-Mariano with Holm's correction, 5 %)."
    )


def as_markdown(table: LossTable) -> str:
    """A Markdown table, and its caption below."""
    rows = table.text(_markdown_cell, _markdown_text)
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    rule = "|".join(["---"] + ["---:"] * (len(rows[0]) - 1))
    return "\n".join([head, f"|{rule}|", *body, "", table.caption, ""])


def _markdown_text(text: str) -> str:
    return one_line(text).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _markdown_cell(result: Result | None) -> str:
    if result is None:
        return ""
    text = _loss_text(result)
    return f"**{text}**" if result.best else f"{text} \\*" if _is_undecided(result) else text


def _loss_text(result: Result) -> str:
    """The mean loss and its deviation over the runs, if there are several."""
    if result.diverged:
        return "diverged"
    deviation = result.mean_loss_deviation
    return f"{result.mean_loss:.4g}" + ("" if deviation is None else f" ± {deviation:.2g}")


def as_latex(table: LossTable) -> str:
    """A table environment; it needs the package booktabs."""
    rows = table.text(_latex_cell, _latex_text)
    head, *lines = [" & ".join(row) + r" \\" for row in rows]
    if table.ranks and table.by_stream:
        lines.insert(len(lines) - 1, r"\midrule")
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(table.caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def _latex_number(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else mantissa


def _latex_cell(result: Result | None) -> str:
    if result is None:
        return ""
    if result.diverged:
        return "diverged"
    text = _latex_number(result.mean_loss, 4)
    if result.mean_loss_deviation is not None:
        text += rf" \pm {_latex_number(result.mean_loss_deviation, 2)}"
    if result.best:
        return rf"$\mathbf{{{text}}}$"
    return f"${text}^{{*}}$" if _is_undecided(result) else f"${text}$"


# --- plain text -----------------------------------------------------------------------------------


def as_text(comparison: Comparison) -> str:
    """One table per stream, mean ranks, and where the time went."""
    names = {result.name for result in comparison.results}
    lines = [
        f"Comparison({_count(comparison.streams, 'stream')}, {_count(names, 'competitor')}, "
        f"{_count(comparison.seeds, 'seed')}, {comparison.loss})"
    ]
    if comparison.standardise:
        lines.append(f"in standard units of the first {comparison.standardise} rows")
    width = max((len(name) for name in names), default=0)
    for stream in comparison.streams:
        results = comparison.of(stream)
        lines.append(f"{stream}: {results[0].samples} samples")
        lines.append(f"  {'':{width}}  {'mean loss':>21}  {'rmse':>9}  {'cost':>9}  us   p")
        for row in results:
            cells = table_cells(row)
            lines.append(
                f"  {row.name:{width}}  {cells['mean loss']:>21}  {cells['rmse']:>9}  "
                f"{cells['cost']:>9}  {cells['us per sample']:>7}  {cells['p']}"
            )
    for each in comparison.overall:
        lines.append(f"  {each.name:{width}}  mean rank {each.mean_rank:.2f}")
    lines += [time_line(comparison.times())] if comparison.results else []
    return "\n".join(lines)


def time_line(times: Sequence[TimeShare]) -> str:
    """Who was slow: the slowest competitors with their seconds and their share of the time."""
    slow = sum(row.share >= 0.01 for row in times[:SLOWEST])
    parts = [f"{row.name} {row.seconds:.2g} s ({row.share:.0%})" for row in times[:slow]]
    others = times[slow:]
    if others:
        rest = math.fsum(row.seconds for row in others)
        share = math.fsum(row.share for row in others)
        parts.append(f"{_count(others, 'other')} {rest:.2g} s ({share:.0%})")
    return "time: " + ", ".join(parts)


def table_cells(result: Result) -> dict[str, str]:
    """The figures of a row as text, by column."""
    chance = "best" if result.best else ""
    if result.p_value is not None:
        chance = "< 0.001" if result.p_value < 0.001 else f"{result.p_value:.3f}"
    return {
        "mean loss": _loss_text(result),
        "rmse": "" if result.diverged else f"{result.root_mean_squared_error:.4g}",
        "cost": "" if result.cumulative_cost is None else f"{result.cumulative_cost:.5g}",
        "us per sample": f"{result.seconds_per_sample * 1e6:.3g}",
        "p": chance,
    }


def _count(things: Collection[object], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")
