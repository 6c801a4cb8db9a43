"""The tables of a comparison as text, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..utils import validation as check
from ..utils.rendering import one_line

if TYPE_CHECKING:
    from .results import Comparison, Result, TimeShare

BY_STREAM, BY_COMPETITOR = "streams", "competitors"
SLOWEST = 3
"""Competitors that are named when it is said where the time went."""


# --- losses of everybody on every stream ----------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One entry: a loss, its deviation over the runs, whether it is best or not proven worse."""

    loss: float | None
    deviation: float | None = None
    best: bool = False
    undecided: bool = False


@dataclass(frozen=True)
class LossTable:
    """Mean losses with names of rows and columns; mean ranks of competitors, if there are any.

    - by_stream: whether rows are streams
    - cells: (rows, columns); a loss of None where a competitor did not run
    - ranks: by competitor; empty for a single stream
    """

    caption: str
    by_stream: bool
    rows: list[str]
    columns: list[str]
    cells: list[list[Cell]]
    ranks: dict[str, float]


def loss_table(found: Comparison, rows: str | None = None) -> LossTable:
    """The mean losses of a comparison; by default what is more numerous stands in rows."""
    names = list(dict.fromkeys(result.name for result in found.results))
    if rows is None:
        rows = BY_STREAM if len(found.streams) >= len(names) else BY_COMPETITOR
    by_stream = check.choice("rows", rows, "table", (BY_STREAM, BY_COMPETITOR)) == BY_STREAM
    cells = [[_cell(found.result(stream, name)) for name in names] for stream in found.streams]
    if not by_stream:
        cells = [list(column) for column in zip(*cells, strict=True)]
    streams = list(found.streams)
    return LossTable(
        caption=_caption(found),
        by_stream=by_stream,
        rows=streams if by_stream else names,
        columns=names if by_stream else streams,
        cells=cells,
        ranks={each.name: each.mean_rank for each in found.overall},
    )


def _cell(result: Result | None) -> Cell:
    if result is None:
        return Cell(None)
    undecided = result.p_value is not None and result.p_value >= 0.05
    return Cell(result.mean_loss, result.mean_loss_deviation, result.best, undecided)


def _caption(found: Comparison) -> str:
    scored = sorted({result.samples for result in found.results})
    count = f"{scored[0]}" if len(scored) == 1 else f"{scored[0]} to {scored[-1]}"
    seeds = len(found.seeds)
    over = f" (mean ± standard deviation over {seeds} seeds)" if seeds > 1 else ""
    units = f" Standard units of the first {found.standardise} rows." if found.standardise else ""
    return (
        f"Mean loss, {found.loss}, of predictions one step ahead, {count} samples per stream"
        f"{over}.{units} Bold: the least of a stream. Asterisk: not significantly larger "
        "(Diebold-Mariano with Holm's correction, 5 %)."
    )


def as_markdown(table: LossTable) -> str:
    """A Markdown table, and its caption below."""
    return "\n".join(
        [
            *_markdown_lines(_body(table, _markdown_cell, "{:.2f}".format, _markdown_text)),
            "",
            table.caption,
            "",
        ]
    )


def as_latex(table: LossTable) -> str:
    """A table environment; it needs the package booktabs."""
    head, *body = _body(table, _latex_cell, "{:.2f}".format, _latex_text)
    ranked = bool(table.ranks) and table.by_stream
    lines = [" & ".join(row) + r" \\" for row in body]
    if ranked:
        lines.insert(len(lines) - 1, r"\midrule")
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(table.caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _body(table: LossTable, cell: Any, rank: Any, text: Any) -> list[list[str]]:
    """Head and rows as text, with the mean ranks as the last row or column."""
    head = ["stream" if table.by_stream else "", *map(text, table.columns)]
    rows = [
        [text(name), *map(cell, cells)] for name, cells in zip(table.rows, table.cells, strict=True)
    ]

    def shown(name: str) -> str:
        return rank(table.ranks[name]) if name in table.ranks else ""

    if table.ranks and table.by_stream:
        rows.append(["mean rank", *map(shown, table.columns)])
    elif table.ranks:
        head.append("mean rank")
        for name, row in zip(table.rows, rows, strict=True):
            row.append(shown(name))
    return [head, *rows]


def _markdown_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    rule = "|".join(["---"] + ["---:"] * (len(rows[0]) - 1))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], f"|{rule}|", *lines[1:]]


def _markdown_text(text: str) -> str:
    return one_line(text).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _markdown_cell(cell: Cell) -> str:
    if cell.loss is None:
        return ""
    text = "diverged" if not math.isfinite(cell.loss) else f"{cell.loss:.4g}"
    if cell.deviation is not None:
        text += f" ± {cell.deviation:.2g}"
    return f"**{text}**" if cell.best else f"{text} \\*" if cell.undecided else text


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


def _latex_cell(cell: Cell) -> str:
    if cell.loss is None:
        return ""
    if not math.isfinite(cell.loss):
        return "diverged"
    text = _latex_number(cell.loss, 4)
    if cell.deviation is not None:
        text += rf" \pm {_latex_number(cell.deviation, 2)}"
    if cell.best:
        return rf"$\mathbf{{{text}}}$"
    return f"${text}^{{*}}$" if cell.undecided else f"${text}$"


# --- plain text -----------------------------------------------------------------------------------


def as_text(found: Comparison) -> str:
    """One table per stream, mean ranks, and where the time went."""
    names = {result.name for result in found.results}
    lines = [
        f"Comparison({_count(found.streams, 'stream')}, {_count(names, 'competitor')}, "
        f"{_count(found.seeds, 'seed')}, {found.loss})"
    ]
    if found.standardise:
        lines.append(f"in standard units of the first {found.standardise} rows")
    width = max((len(name) for name in names), default=0)
    for stream in found.streams:
        own = found.of(stream)
        lines.append(f"{stream}: {own[0].samples} samples")
        lines.append(f"  {'':{width}}  {'mean loss':>21}  {'rmse':>9}  {'cost':>9}  us   p")
        for row in own:
            cells = table_cells(row)
            lines.append(
                f"  {row.name:{width}}  {cells['mean loss']:>21}  {cells['rmse']:>9}  "
                f"{cells['cost']:>9}  {cells['us per sample']:>7}  {cells['p']}"
            )
    for each in found.overall:
        lines.append(f"  {each.name:{width}}  mean rank {each.mean_rank:.2f}")
    lines += [time_line(found.times())] if found.results else []
    return "\n".join(lines)


def time_line(times: Sequence[TimeShare]) -> str:
    """Who was slow: the slowest competitors with their seconds and their share of the time."""
    slow = sum(one.share >= 0.01 for one in times[:SLOWEST])
    named = [f"{one.name} {one.seconds:.2g} s ({one.share:.0%})" for one in times[:slow]]
    others = times[slow:]
    if others:
        rest = math.fsum(one.seconds for one in others)
        share = math.fsum(one.share for one in others)
        named.append(f"{_count(others, 'other')} {rest:.2g} s ({share:.0%})")
    return "time: " + ", ".join(named)


def table_cells(result: Result) -> dict[str, str]:
    """The figures of a row as text, by column."""
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
        "us per sample": f"{result.seconds_per_sample * 1e6:.3g}",
        "p": chance,
    }


def _count(things: Collection[Any], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")
