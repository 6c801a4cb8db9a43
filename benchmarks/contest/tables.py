"""The contest for readers: tables on the terminal, the same in Markdown, everything in JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from .entries import CLASSIFICATION, REGRESSION
from .players import OURS, Player
from .scores import CLOSE, Scored, Summary

_SHORT = {"autobank": "ours", "bayesian-linear": "bayes", "rbf-sgd": "rbf", "persistence": "last"}


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn: a title, columns, rows of words; the first column is a name."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def drawn(self) -> Table:
        table = Table(
            title=self.title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
        )
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="right" if place else "left", no_wrap=place > 0)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        rule = "|".join(["---"] + ["---:"] * (len(self.columns) - 1))
        lines = [f"**{self.title}**", "", _line(self.columns), f"|{rule}|"]
        return "\n".join([*lines, *map(_line, self.rows)]) + "\n"


def results(rows: list[Scored]) -> Grid:
    """One line an entry: ours, the best peer, and what else is worth knowing."""
    columns = ["stream", "ours", "best", "peer", "ratio", "first", "last y", "slot", "to slot"]
    lines = []
    for row in rows:
        own = next((f for f in row.figures.values() if f.kind == OURS), None)
        lines.append(
            [
                _name(row),
                long(row.ours),
                long(row.best),
                row.best_peer or "",
                _ratio(row.ratio),
                _first(row),
                long(row.persistence),
                long(row.best_slot),
                _ratio(row.slot_ratio),
                "" if own is None else _time(own.microseconds, own.jobs),
            ]
        )
    title = "prequential error: MSE / variance of the target, or error rate"
    return Grid(title, [*columns, "us"], lines)


def everybody(rows: list[Scored], task: str, players: list[Player]) -> Grid | None:
    """One line an entry, one column a player, and their times below."""
    own = [row for row in rows if row.task == task]
    names = [p.name for p in players if any(p.name in row.figures for row in own)]
    if not names:
        return None
    lines = [
        [_name(row), *(brief(row.figures[n].figure if n in row.figures else None) for n in names)]
        for row in own
    ]
    for words, summarise in (("us a sample, median", median), ("us a sample, largest", max)):
        line = [words]
        for name in names:
            found = [row.figures[name] for row in own if name in row.figures]
            time = summarise([figure.microseconds for figure in found])
            line.append(_time(time, max(figure.jobs for figure in found)))
        lines.append(line)
    title = f"everybody, {task}: " + (
        "MSE / variance of the target" if task == REGRESSION else "error rate"
    )
    return Grid(title, ["stream", *(_SHORT.get(name, name) for name in names)], lines)


def intervals(rows: list[Scored], coverage: float) -> Grid | None:
    """How often AutoBank's intervals hold the target, and how wide they are."""
    lines = [
        [
            _name(row),
            f"{row.coverage:.3f}",
            f"{row.coverage_error:.3f}",
            f"{row.width:.3g}",
        ]
        for row in rows
        if row.coverage is not None
    ]
    columns = ["stream", "coverage", "standard error", "width / sd of y"]
    return Grid(f"intervals meant to hold {coverage:.0%}", columns, lines) if lines else None


def bars(found: Summary) -> Grid:
    """The figures over all rows, and the bars set for them."""
    share = found.close / found.rows
    lines = [
        [
            "rows first, or close to it",
            f"{found.close} of {found.rows} ({share:.0%})",
            ">= 26 of 28 (93%)",
            _yes(share >= 26 / 28),
        ],
        [f"  of these first outright: {found.first}", "", "", ""],
        [
            "geometric mean of ours / best peer",
            f"{found.geometric_mean:.3f}",
            "<= 0.5, beyond 0.4",
            "beyond" if found.geometric_mean <= 0.4 else _yes(found.geometric_mean <= 0.5),
        ],
        [
            f"worst ratio ({found.worst_row})",
            f"{found.worst:.3f}",
            "<= 1.25",
            _yes(found.worst <= 1.25),
        ],
    ]
    if found.slot_rows:
        share = found.at_or_below_slot / found.slot_rows
        words = f"{found.at_or_below_slot} of {found.slot_rows} ({share:.0%})"
        lines.append(["rows at or below the best slot", words, ">= 70%", _yes(share >= 0.7)])
    if found.microseconds is not None:
        words = f"{found.microseconds:.0f} us"
        reached = _yes(found.microseconds <= 300)
        lines.append(["longest time a sample, up to 20 inputs", words, "<= 300 us", reached])
    return Grid("ours over all rows", ["what", "figure", "bar", "reached"], lines)


def legend(players: Iterable[Player]) -> list[str]:
    """What each name means."""
    lines = [
        "+3: everybody is told the last three targets as well, and last y competes too",
        f"close: behind by no more than {CLOSE:.0%}, or one standard error of the difference of "
        "the losses, which counts correlations in time",
        "last y: the last target again; slot: the best single slot of ours, chosen afterwards",
        "us: microseconds a sample, to predict and to learn",
    ]
    for player in players:
        name = _SHORT.get(player.name, player.name)
        shown = player.name if name == player.name else f"{player.name} ({name})"
        lines.append(f"{shown}: {player.words}")
    return lines


def notes(rows: list[Scored]) -> list[str]:
    """Who failed or diverged where, and which times are not to be trusted."""
    lines = [
        f"{figure.player} on {row.name} {figure.note or 'diverged'}"
        for row in rows
        for figure in row.figures.values()
        if figure.note or not math.isfinite(figure.figure)
    ]
    if any(figure.jobs > 1 for row in rows for figure in row.figures.values()):
        lines.append("~: measured while others played side by side; use --jobs 1 --fresh for times")
    return lines


def to_json(facts: dict[str, Any], rows: list[Scored], found: Summary | None) -> str:
    """Everything but the curves; numbers that are not finite become null."""
    content = []
    for row in rows:
        fields = {key: value for key, value in vars(row).items() if key != "curves"}
        fields["figures"] = {name: asdict(figure) for name, figure in row.figures.items()}
        content.append(fields)
    whole = facts | {"rows": content, "summary": None if found is None else asdict(found)}
    return json.dumps(plain(whole), indent=1, allow_nan=False) + "\n"


def figures_json(rows: list[Scored]) -> str:
    """{"stream/view": {player: figure}} of what is done so far."""
    found = {row.name: {name: f.figure for name, f in row.figures.items()} for row in rows}
    return json.dumps(plain(found), indent=1, allow_nan=False) + "\n"


def brief(value: float | None) -> str:
    """At most five letters, so that a dozen players stand side by side."""
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


def _name(row: Scored) -> str:
    lagged = row.view.removeprefix("lags")
    return row.stream if row.view == "given" else f"{row.stream} +{lagged}"


def _first(row: Scored) -> str:
    if row.first is None:
        return ""
    return "first" if row.first else "close" if row.close else "no"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _time(microseconds: float, jobs: int) -> str:
    words = f"{microseconds:.0f}" if microseconds < 99999.5 else f"{microseconds:.0e}"
    return f"~{words}" if jobs > 1 else words


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def plain(value: Any) -> Any:
    """For JSON: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


TASKS = (REGRESSION, CLASSIFICATION)
