"""What `make accuracy` finds over all streams, and the goals set for it."""

from __future__ import annotations

from typing import Any

from accuracy_competitors import AUTO, ONLINE, competes
from accuracy_tables import TextTable, geometric_mean, is_close

import kernelbank as kb
from kernelbank.research.competitors import COVERAGE
from kernelbank.research.results import CLOSE

NARROW = 20
"""The goal for the time counts streams with at most this many inputs."""

TOLERANCE = 0.01
"""How far the coverage of intervals may be from the requested one."""

_ONLINE = {one.name for one in ONLINE}


def summary(found: kb.Comparison) -> dict[str, Any] | None:
    """AutoBank over all streams; None if it did not run."""
    best_rivals = found.best_rivals(AUTO.name, competes)
    if not best_rivals:
        return None
    online = found.best_rivals(AUTO.name, lambda one: one.name in _ONLINE)
    own = [found.result(one.stream, AUTO.name) for one in best_rivals]
    worst = max(best_rivals, key=lambda one: one.ratio)
    with_slots = [one for one in own if one.best_slot_loss is not None]
    with_intervals = [one for one in own if one.coverage is not None]
    farthest = max(with_intervals, key=lambda one: abs(one.coverage - COVERAGE), default=None)
    narrow = [one.seconds_per_sample * 1e6 for one in own if one.inputs <= NARROW]
    return {
        "streams": len(best_rivals),
        "first": sum(one.first for one in best_rivals),
        "close": sum(is_close(one) for one in best_rivals),
        "geometric_mean": geometric_mean([one.ratio for one in best_rivals]),
        "online_streams": len(online),
        "online_geometric_mean": geometric_mean([o.ratio for o in online]) if online else None,
        "worst": worst.ratio,
        "worst_stream": worst.stream,
        "with_intervals": len(with_intervals),
        "intervals_held": sum(
            abs(one.coverage - COVERAGE) <= TOLERANCE + 1e-12 for one in with_intervals
        ),
        "farthest_coverage": None if farthest is None else farthest.coverage,
        "farthest_stream": None if farthest is None else farthest.stream,
        "with_slots": len(with_slots),
        "at_or_below_slot": sum(
            one.ratio(one.mean_loss, one.best_slot_loss) <= 1 for one in with_slots
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
