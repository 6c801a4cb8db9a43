"""The tables of `kernelbank reproduce`, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from ..research import paper
from ..research.paper import RIVALS, PaperRun, RuleResult, Standing, number_of_seeds

READING_NAMES = {
    "variance": "the variance",
    "std": "the standard deviation",
    "generator": "the variance, on one signal *",
}


def quantities(runs: Sequence[PaperRun], samples: int, noise: str) -> Table:
    """Costs, steps and errors of the scheme, OMKR and NORMA."""
    result = Table(
        title=f"{number_of_seeds(len(runs))}, {samples} samples, noise as {noise}",
        title_justify="left",
    )
    result.add_column("")
    for name in ("seed 0", "mean", "least", "most"):
        result.add_column(name, justify="right")
    for section, rows in paper.table(runs):
        result.add_section()
        result.add_row(f"[bold]{section}[/bold]")
        for row in rows:
            name, *cells = row.cells()
            result.add_row(f"  {name}", *cells)
    return result


def verdict(found: Mapping[str, Sequence[Standing]], seeds: int) -> Table:
    """Against each rival: on how many seeds the scheme is below, and by how much on average."""
    result = Table(
        title=f"On how many of {number_of_seeds(seeds)} the scheme's cumulative cost ends below a "
        "rival's,\nand the mean margin in percent of the rival's cost",
        title_justify="left",
    )
    result.add_column("0.71519837 is", max_width=18)
    for name in ("samples", *RIVALS):
        result.add_column(name, justify="right", max_width=15)
    for reading, group in found.items():
        columns = {rival: [s for s in group if s.rival == rival] for rival in RIVALS}
        counted = reading != "generator"  # which is one signal
        result.add_section()
        result.add_row(
            READING_NAMES[reading],
            "\n".join(str(standing.samples) for standing in columns[RIVALS[0]]),
            *("\n".join(_cell(s, counted) for s in columns[rival]) for rival in RIVALS),
        )
    return result


def _cell(standing: Standing, counted: bool) -> str:
    margin = f"{100 * standing.margin:+.1f} %"
    return f"{standing.below} {margin:>8}" if counted else margin


def combiners(results: Sequence[RuleResult], samples: int, noise: str) -> Table:
    """Every rule: cumulative cost and error one step ahead, on seed 0 and on average."""
    seeds = number_of_seeds(len(results[0].cost))
    result = Table(
        title=f"Every rule of kb.combiners: {seeds}, {samples} samples, noise as {noise}.\n"
        "Cumulative cost, and mean squared error one step ahead",
        title_justify="left",
    )
    result.add_column("", overflow="fold")
    for name in ("cost,\nseed 0", "cost,\nmean", "error,\nseed 0", "error,\nmean"):
        result.add_column(name, justify="right")
    for row in results:
        cells = f"{row.cost[0]:.1f}", f"{row.mean_cost:.1f}", f"{row.loss[0]:.4f}"
        result.add_row(row.name, *cells, f"{row.mean_loss:.4f}")
    return result
