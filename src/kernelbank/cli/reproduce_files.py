"""The CSV files of `kernelbank reproduce`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..research import paper
from ..research.paper import EXACT, PRINTED, SCHEME, PaperRun, RuleResult, Standing


def write_curves(path: Path, run: PaperRun) -> Path:
    """The curves of the figure, one row per step."""
    norma = [f"norma_{slot + 1}" for slot in range(run.slot_cumulative_cost.shape[1])]
    rows = []
    for n in range(len(run.x)):
        own = [run.cumulative_cost[name][n] for name in (SCHEME, EXACT, PRINTED)]
        row = [run.y[n], *own, paper.WINDOW * (n + 1), *run.slot_cumulative_cost[n]]
        rows.append([n + 1, *map(float, row)])
    return _write(path, ["n", "y", "scheme", "omkr", "omkr_printed", "reference", *norma], rows)


def write_table(path: Path, runs: Sequence[PaperRun]) -> Path:
    """The table, one row per quantity and one column per seed."""
    rows = [
        [section, row.name, *("" if v is None else v for v in row.values)]
        for section, group in paper.table(runs)
        for row in group
    ]
    return _write(path, ["quantity", "of", *(f"seed_{run.seed}" for run in runs)], rows)


def write_verdict(path: Path, verdict: Mapping[str, Sequence[Standing]]) -> Path:
    """The scheme beside its rivals, one row per reading, length and rival."""
    rows = [
        [reading, standing.samples, standing.rival, standing.below, standing.margin]
        for reading, group in verdict.items()
        for standing in group
    ]
    return _write(path, ["noise", "samples", "rival", "seeds_below", "mean_margin"], rows)


def write_combiners(path: Path, results: Sequence[RuleResult]) -> Path:
    """Every rule, one row per quantity and one column per seed."""
    rows = []
    for result in results:
        rows.append(["cumulative cost", result.name, *result.cost])
        rows.append(["mean squared error one step ahead", result.name, *result.loss])
    seeds = [f"seed_{seed}" for seed in range(len(results[0].cost))]
    return _write(path, ["quantity", "of", *seeds], rows)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path
