"""What an `AutoBank` shows of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..bank.naming import full_name, short_name
from ..bank.status import Metric, Status, columns_note, engine_note, quarantine_note
from ..utils.rendering import shortened
from .config import Plan
from .ledger import AutoLedger
from .task_model import MOST_CHANGES, STARTS, Desk

LABELS = 6
"""How many classes are named, at most."""


@np.errstate(all="ignore")  # values may be beyond all floats, and showing them must not warn
def overview(
    title: str, task: str, plan: Plan, ledger: AutoLedger, desk: Desk | None, classes: Sequence[Any]
) -> Status:
    """The status of an `AutoBank`."""
    settings = {
        "task": task,
        "size": plan.size if plan.slots is None else "own slots",
        "lags": str(plan.lags),
        "scalings": ", ".join(plan.scalings),
        "combiner": full_name(plan.rule),
        "engine": full_name(plan.engine),
        "seed": str(plan.seed),
    }
    if desk is None or not desk.rows:
        return Status(title, settings)
    lags = f" and {plan.lags} lagged target{'s' * (plan.lags > 1)}" if plan.lags else ""
    notes = {"inputs": columns_note(desk.dimension) + lags}
    if task == "classification":
        notes["classes"] = _named(classes)
    notes["combiner"] = short_name(plan.rule)
    notes |= engine_note(plan.engine)
    notes["last change"] = _last_change(desk)
    label = "mean squared error" if task == "regression" else "error rate"
    baseline = ledger.persistence_loss if ledger.samples > 1 else float("nan")
    percent = task != "regression"
    metrics = {label: Metric(ledger.mean_loss, baseline, "baseline (last value)", percent)}
    known = {"samples": desk.rows, "metrics": metrics, "notes": notes}
    count = len(desk.banks)
    if not count:
        few = desk.rows < STARTS[0]
        start = f"the slots start after {STARTS[0]} rows" if few else "there is one class only"
        return Status(title, settings, **known, no_weights=f"none yet: {start}")
    out = Counter(index for bank in desk.banks for index in bank.quarantined)
    if out:

        def where(index: int) -> str:
            banks = f" (in {out[index]} of {count} banks)" if count > 1 else ""
            return desk.names[index] + banks

        notes["quarantined"] = quarantine_note(sorted(out), len(desk.names), where)
    heading = "weights" if count == 1 else f"weights, mean of {count} banks (one per class)"
    weights = np.mean([bank.weights for bank in desk.banks], axis=0)
    losses = np.mean([bank.ledger.slot_mean_loss for bank in desk.banks], axis=0)
    return Status(
        title,
        settings,
        **known,
        names=desk.names,
        weights=weights,
        losses=losses,
        heading=heading,
    )


def _named(classes: Sequence[Any]) -> str:
    shown = ", ".join(shortened(full_name(label), 20) for label in classes[:LABELS])
    return f"{len(classes)}: {shown}{', ...' if len(classes) > LABELS else ''}"


def _last_change(desk: Desk) -> str:
    if not desk.changes:
        return "none so far"
    last = desk.changes[-1]
    where = f" of column {last.column}" if last.column >= 0 else ""
    many = len(desk.changes)
    more = " or more" if many >= MOST_CHANGES else ""
    total = f"the last of {many}{more}" if many > 1 else "the only one"
    return f"{last.what}{where} after row {last.row} of {desk.rows} ({total})"
