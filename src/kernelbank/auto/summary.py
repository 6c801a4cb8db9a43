"""What an `AutoBank` shows of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..bank.summary import brief, carriers, columns, engine_fact, quarantine, short, told
from ..utils.rendering import Summary, shortened
from .config import Plan
from .ledger import AutoLedger
from .task_model import MOST_CHANGES, STARTS, Desk

LABELS = 6
"""How many classes are named, at most."""


@np.errstate(all="ignore")  # figures may be beyond all floats, and a look must not warn of it
def overview(
    title: str, task: str, plan: Plan, ledger: AutoLedger, desk: Desk | None, classes: Sequence[Any]
) -> Summary:
    """An `AutoBank` at a glance; its title alone, and its settings, if it has learned nothing."""
    settings = (
        ("task", task),
        ("size", plan.size if plan.slots is None else "slots of one's own"),
        ("lags", str(plan.lags)),
        ("scalings", ", ".join(plan.scalings)),
        ("combiner", told(plan.rule)),
        ("engine", told(plan.engine)),
        ("seed", str(plan.seed)),
    )
    if desk is None or not desk.rows:
        return Summary(title, settings=settings)
    lags = f" and {plan.lags} lagged target{'s' * (plan.lags > 1)}" if plan.lags else ""
    facts = [("inputs", columns(desk.dimension) + lags)]
    if task == "classification":
        facts.append(("classes", _named(classes)))
    facts.append(("combiner", brief(plan.rule)))
    facts += engine_fact(plan.engine)
    facts.append(_loss(task, ledger))
    facts.append(("last change", _last_change(desk)))

    def name(place: int) -> str:
        return desk.names[place]

    count = len(desk.banks)
    if not count:
        few = desk.rows < STARTS[0]
        start = f"the slots start after {STARTS[0]} rows" if few else "there is one class only"
        return Summary(title, short(facts), "weights", (), f"none yet: {start}", settings)
    out = Counter(place for bank in desk.banks for place in bank.quarantined)
    if out:

        def where(place: int) -> str:
            banks = f" (in {out[place]} of {count} banks)" if count > 1 else ""
            return name(place) + banks

        facts.append(("quarantined", quarantine(sorted(out), len(desk.names), where)))
    heading = "weights" if count == 1 else f"weights, mean of {count} banks (one a class)"
    bars, rest = carriers(np.mean([bank.weights for bank in desk.banks], axis=0), name)
    return Summary(title, short(facts), heading, bars, rest, settings)


def _named(classes: Sequence[Any]) -> str:
    shown = ", ".join(shortened(told(label), 20) for label in classes[:LABELS])
    return f"{len(classes)}: {shown}{', ...' if len(classes) > LABELS else ''}"


def _loss(task: str, ledger: AutoLedger) -> tuple[str, str]:
    form = ".4g" if task == "regression" else ".2%"
    label = "mean squared error" if task == "regression" else "wrong answers"
    known = ledger.samples > 1
    beside = f"  (persistence: {format(ledger.persistence_loss, form)})" if known else ""
    return label, format(ledger.mean_loss, form) + beside


def _last_change(desk: Desk) -> str:
    if not desk.changes:
        return "none so far"
    last = desk.changes[-1]
    where = f" of column {last.column}" if last.column >= 0 else ""
    many = len(desk.changes)
    more = " or more" if many >= MOST_CHANGES else ""
    total = f"the last of {many}{more}" if many > 1 else "the only one"
    return f"{last.what}{where} after row {last.row} of {desk.rows} ({total})"
