"""The error by quarter of the stream, for long streams, and AutoBank beside LightGBM at the end."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from accuracy_competitors import AUTO, competes
from accuracy_tables import TextTable, long

import kernelbank as kb
from kernelbank.research.datasets.benchmarks import BENCHMARKS
from kernelbank.research.results import Result

RIVAL_NAME = "lightgbm-500"
"""Whose last half AutoBank's is divided by."""

GOALS = {"time": 1.0, "iid": 1.15}
"""The largest ratio that is good enough, by the order of the stream."""

QUARTERS = ("q1", "q2", "q3", "q4")
LAST_HALF = "last half"


def means(result: Result, skip: int) -> dict[str, float]:
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


def figures(found: kb.Comparison) -> list[dict[str, Any]]:
    """One dictionary for each stream and method: AutoBank first, the others by their last half."""
    rows = [
        {"stream": one.stream, "method": one.name, **means(one, found.skip)}
        for one in found.results
        if one.name == AUTO.name or competes(one)
    ]
    place = {stream: at for at, stream in enumerate(found.streams)}
    rows.sort(key=lambda row: (place[row["stream"]], row["method"] != AUTO.name, row[LAST_HALF]))
    return rows


def by_quarter(found: kb.Comparison) -> TextTable:
    """One row for each stream and method."""
    columns = ["stream", "method", *QUARTERS, LAST_HALF]
    rows = [
        [row["stream"], row["method"], *(long(row[part]) for part in (*QUARTERS, LAST_HALF))]
        for row in figures(found)
    ]
    return TextTable("error by quarter of the stream", columns, rows)


def verdicts(found: kb.Comparison) -> TextTable | None:
    """AutoBank's error in the last half over LightGBM's, the largest share of its goal first."""
    rows: list[tuple[float, list[str]]] = []
    for stream in found.streams:
        own, rival = found.result(stream, AUTO.name), found.result(stream, RIVAL_NAME)
        if own is None or rival is None:
            continue
        mine, other = (means(one, found.skip)[LAST_HALF] for one in (own, rival))
        ratio, kind = own.ratio(mine, other), order(stream)
        goal = GOALS[kind]
        reached = "yes" if ratio <= goal else "no"
        cells = [stream, kind, long(mine), long(other), f"{ratio:.3f}", f"<= {goal}", reached]
        rows.append((ratio / goal, cells))
    rows.sort(key=lambda row: -row[0])
    columns = ["stream", "order", "ours", RIVAL_NAME, "ratio", "goal", "reached"]
    title = f"the last half of the stream: ours / {RIVAL_NAME}"
    return TextTable(title, columns, [cells for _, cells in rows]) if rows else None
