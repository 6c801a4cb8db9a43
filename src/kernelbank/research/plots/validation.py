"""Checks of the traces and targets that are plotted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bank.trace import FIELDS, Trace
from ...utils import validation as check
from ...utils.validation import Floats


def check_trace(trace: Any, *fields: str) -> None:
    """Refuse anything but a trace of one output, without samples or without one of these fields."""
    check_is_trace(trace)
    if trace.outputs > 1:
        remedy = "Draw one at a time, such as trace.of_output(0) with y[:, 0]."
        raise check.refuse("trace", "have one output", f"{trace.outputs} outputs", remedy)
    for field in fields:
        if field not in trace.fields:
            remedy = 'Run with record="all", or with this name in the list.'
            if field not in FIELDS[trace.task]:
                remedy = "Only a KernelBank records it; see kb.plots.cumulative_loss(trace, y)."
            raise check.refuse("trace", f"hold {field!r}", list(trace.fields), remedy)
    if not len(trace):
        raise check.refuse("trace", "have at least one sample", trace, "Run the bank on some.")


def check_is_trace(trace: Any) -> None:
    """Refuse anything but a trace."""
    if not isinstance(trace, Trace):
        remedy = "Give what bank.run(X, y) returned."
        raise check.refuse("trace", "be a Trace", trace, remedy)


def numbers(y: Any, trace: Trace) -> Floats:
    """Targets that are numbers, one for each sample."""
    remedy = "Give the targets that the bank was run on."
    array = check.floats("y", y, remedy)
    if array.shape != (len(trace),):
        rule = f"have one target for each of the trace's {len(trace)} samples"
        raise check.refuse("y", rule, array.shape, remedy)
    return array


def labels(y: Any, trace: Trace) -> list[Any]:
    """Targets that are labels, one for each sample."""
    given = y.tolist() if isinstance(y, np.ndarray) else list(y)
    if len(given) != len(trace):
        remedy = "Give the labels that the bank was run on."
        rule = f"have one label for each of the trace's {len(trace)} samples"
        raise check.refuse("y", rule, len(given), remedy)
    return given


def are_labels(trace: Trace) -> bool:
    """Whether the trace comes from a classification."""
    check_trace(trace)
    return trace.task == "classification"
