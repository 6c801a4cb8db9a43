"""The status of an `AutoBank`: what it is, how well it does, which slots carry it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..bank.naming import full_name, short_name
from ..bank.status import Metric, Status, columns_note, engine_note, quarantine_note
from ..utils.frames import unique
from ..utils.rendering import one_line, shortened
from .auto_ledger import AutoLedger
from .change_detection import MAX_CHANGES
from .config import AutoConfig
from .encoding.column_encoder import ColumnEncoder
from .model import Model
from .seasons import Setting

MAX_LABELS = 6
"""How many classes are listed, at most."""


@np.errstate(all="ignore")  # values may be beyond all floats, and showing them must not warn
def auto_status(
    title: str,
    task: str,
    config: AutoConfig,
    ledger: AutoLedger,
    model: Model | None,
    classes: Sequence[Any],
    encoder: ColumnEncoder | None = None,
    targets: Sequence[str] = (),
) -> Status:
    """The status of an `AutoBank`; title and settings alone before the first row is learned."""
    settings = {
        "task": task,
        "size": config.size if config.slots is None else "own slots",
        "lags": str(config.lags),
        "seasons": _seasons(config.seasons),
        "scalings": ", ".join(config.scalings),
        "combiner": full_name(config.effective_combiner),
        "engine": full_name(config.engine),
        "seed": str(config.seed),
    }
    if model is None or not model.rows:
        return Status(title, settings)
    lags = f" and {config.lags} lagged target{'s' * (config.lags > 1)}" if config.lags else ""
    columns = model.dimension if encoder is None else len(encoder.columns)
    notes = {"inputs": columns_note(columns) + lags}
    if config.seasons is not None:
        periods = " and ".join(map(str, model.periods))
        notes["seasons"] = f"{periods} rows" if periods else "none found so far"
    if task == "classification":
        notes["classes"] = _class_list(classes)
    if targets:
        notes["targets"] = _class_list(targets)
    notes["combiner"] = short_name(config.effective_combiner)
    notes |= engine_note(config.engine)
    notes["last change"] = _last_change(model, encoder)
    status = Status(title, settings, model.rows, _metrics(task, ledger, model, targets), notes)
    if not model.banks:
        why = "there is only one class"
        if not model.started:
            why = f"the slots start after {config.restarts[0]} rows"
        return replace(status, no_weights=f"none yet: {why}")
    count = model.outputs
    quarantined = Counter(
        int(model.members[index])
        for bank in model.banks
        for ledger in (bank.ledger.outputs if bank.outputs > 1 else (bank.ledger,))
        for index in ledger.quarantined
    )
    if quarantined:

        def describe(index: int) -> str:
            what = "classes" if task == "classification" else "targets"
            where = f" (for {quarantined[index]} of {count} {what})" if count > 1 else ""
            return model.names[index] + where

        notes["quarantined"] = quarantine_note(sorted(quarantined), len(model.members), describe)
    return replace(
        status,
        names=model.names,
        weights=model.mean_weights_of_outputs(),
        losses=model.slot_losses(),
        heading=_heading(model),
    )


def _heading(model: Model) -> str:
    if model.outputs == 1:
        return "weights"
    what = "targets" if model.targets else "classes"
    return f"weights, mean of {model.outputs} {what}"


def _metrics(
    task: str, ledger: AutoLedger, model: Model, targets: Sequence[str]
) -> dict[str, Metric]:
    """RMSE or error rate, beside the baseline, which predicts the last target."""
    own, baseline = ledger.mean_loss, ledger.baseline_loss
    name = "error rate"
    if task == "regression" and model.target_count == 1:
        name, own, baseline = "RMSE", float(np.sqrt(own)), float(np.sqrt(baseline))
    scored = model.rows - model.unscored
    if model.target_count > 1:
        names = [shortened(one_line(name), 20) for name in targets[:MAX_LABELS]]
        shown = zip(unique(names), np.sqrt(own), np.sqrt(baseline), strict=False)
        note = "baseline (last value)"
        return {f"RMSE of {name}": Metric(one, last, note) for name, one, last in shown}
    percent = task == "classification"
    return {name: Metric(own, baseline, "baseline (last value)", percent, scored)}


def _seasons(seasons: Setting) -> str:
    if seasons is None or isinstance(seasons, str):
        return seasons or "none"
    return ", ".join(map(str, seasons))


def _class_list(classes: Sequence[Any]) -> str:
    listed = ", ".join(shortened(full_name(label), 20) for label in classes[:MAX_LABELS])
    return f"{len(classes)}: {listed}{', ...' if len(classes) > MAX_LABELS else ''}"


def _last_change(model: Model, encoder: ColumnEncoder | None) -> str:
    if not model.changes:
        return "none so far"
    last = model.changes[-1]
    column = f" of {last.period} rows" if last.period else ""
    if last.column >= 0:
        name = last.column if encoder is None else repr(encoder.input_names[last.column])
        column = f" of column {name}"
    count = len(model.changes)
    more = " or more" if count >= MAX_CHANGES else ""
    total = f"the last of {count}{more}" if count > 1 else "the only one"
    return f"{last.what}{column} after row {last.row} of {model.rows} ({total})"
