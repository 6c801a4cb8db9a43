"""What can be compared: banks, models that predict and learn one sample at a time, baselines.

Every competitor runs prequentially: it predicts a sample, and only then learns its target.
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeGuard

import numpy as np

from ..auto import AutoBank
from ..bank.bank import KernelBank
from ..errors import KernelBankWarning
from ..utils import validation as check
from ..utils.validation import Floats
from .datasets import CLASSIFICATION, REGRESSION, Stream

BANK, RIVAL, BASELINE = "bank", "rival", "baseline"
PERSISTENCE, RUNNING_MEAN = "persistence", "running mean"
WARM_UP = 200  # rows that every competitor runs over before it is timed


class OnlineModel(Protocol):
    """What a rival has: it predicts a row, then learns its target."""

    def predict_one(self, x: Any, /) -> Any:
        """The prediction, before the target is known."""

    def learn_one(self, x: Any, y: Any, /) -> object:
        """Learn the target."""


@dataclass(frozen=True)
class CompetitorRun:
    """One pass over a stream of n samples.

    - predictions: (n,), labels in classification; NaN where none was made
    - cumulative_cost: of a `KernelBank`
    - note: why it stopped before the end
    - figures: by name, further figures of the run, which come with its result
    """

    predictions: Floats
    seconds_per_sample: float
    cumulative_cost: float | None = None
    note: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Competitor:
    """A name, and how to run over one stream from nothing.

    - run: from a seed and a stream to the run
    - seeded: whether the run depends on the seed
    - accepts: whether it can run over a stream; by default over all
    - needs_standard_units: whether targets far from standard units are worth a warning
    - description: what it is, in a line
    """

    name: str
    kind: str
    run: Callable[[int, Stream], CompetitorRun]
    seeded: bool = False
    accepts: Callable[[Stream], bool] = lambda stream: True  # noqa: ARG005
    needs_standard_units: bool = False
    description: str = ""

    def run_warmed(self, seed: int, stream: Stream) -> CompetitorRun:
        """Run over the first rows, then from nothing over the whole stream: the second is timed.

        Both must predict the first rows alike. Otherwise the competitor draws random numbers
        without a seed, or its runs share what they learned. Its warnings begin with its name.
        """
        first = stream.head(WARM_UP)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the second run says the same
            before = self.run(seed, first).predictions[: len(first)]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            whole = self.run(seed, stream)
        for warning in said:
            warnings.warn(f"{self.name}: {warning.message}", warning.category, stacklevel=2)
        # With fewer labels in the first rows, a model may be built in another way.
        comparable = first.classes == stream.classes
        if comparable and not np.array_equal(
            before, whole.predictions[: len(first)], equal_nan=True
        ):
            warnings.warn(
                f"{self.name} does not predict the same when it is run again: it draws random "
                "numbers without a seed, or its runs share what they learned. Give it a seed, or "
                "let it start from nothing.",
                KernelBankWarning,
                stacklevel=2,
            )
        return whole


def baselines() -> list[Competitor]:
    """What every model should beat: the last target, and for numbers the mean of all so far."""

    def predicting(
        predict_all: Callable[[Floats], Floats],
    ) -> Callable[[int, Stream], CompetitorRun]:
        def run(seed: int, stream: Stream) -> CompetitorRun:  # noqa: ARG001
            start = time.perf_counter()
            predictions = np.append(0.0, predict_all(stream.y[:-1]))
            return CompetitorRun(predictions, _seconds_per_row(start, stream))

        return run

    mean = predicting(lambda y: np.cumsum(y) / np.arange(1, len(y) + 1))
    return [
        Competitor(PERSISTENCE, BASELINE, predicting(lambda y: y)),
        Competitor(RUNNING_MEAN, BASELINE, mean, accepts=lambda stream: stream.task == REGRESSION),
    ]


def _seconds_per_row(start: float, stream: Stream) -> float:
    return (time.perf_counter() - start) / len(stream)


# --- from what the user gave ----------------------------------------------------------------------


def as_competitor(name: str, entry: object) -> Competitor:
    """A competitor from a bank, a model with predict_one and learn_one, or a maker of either."""
    if name in (PERSISTENCE, RUNNING_MEAN):
        remedy = "Choose another name: this baseline stands in every table."
        raise check.refuse("banks", "not use a baseline's name", name, remedy, "compare")
    if isinstance(entry, Competitor):
        return replace(entry, name=name)
    is_maker = callable(entry) and not _is_model(entry)

    def new_model(seed: int) -> OnlineModel:
        model = entry
        if is_maker:
            try:
                inspect.signature(entry).bind(seed)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise _refuse(name, entry) from None
            model = entry(seed)  # type: ignore[operator]
        if not _is_model(model):
            raise _refuse(name, model)
        if isinstance(model, (KernelBank, AutoBank)) and model.samples:
            rule = f"have learned nothing (it has seen {model.samples} samples)"
            remedy = (
                "Give a new bank, or bank.fresh(), or a function that makes a new one each time."
            )
            raise check.refuse(f"banks[{name!r}]", rule, model, remedy, "compare")
        return model if is_maker else copy.deepcopy(model)

    example = new_model(0)  # what is wrong is refused before anything runs
    return Competitor(
        name,
        BANK if isinstance(example, (KernelBank, AutoBank)) else RIVAL,
        lambda seed, stream: run_model(new_model(seed), stream),
        seeded=is_maker,
        needs_standard_units=isinstance(example, KernelBank),
    )


def _is_model(entry: object) -> TypeGuard[OnlineModel]:
    methods = (getattr(entry, name, None) for name in ("predict_one", "learn_one"))
    return not isinstance(entry, type) and all(callable(method) for method in methods)


def _refuse(name: str, entry: object) -> Exception:
    rule = "be a bank, a model with predict_one and learn_one, or a function from a seed to one"
    remedy = "Give for example kb.KernelBank(), or lambda seed: kb.KernelBank()."
    return check.refuse(f"banks[{name!r}]", rule, entry, remedy, "compare")


# --- running --------------------------------------------------------------------------------------


def run_model(model: OnlineModel, stream: Stream) -> CompetitorRun:
    """Run a bank or a model that has learned nothing over a stream."""
    if not isinstance(model, (AutoBank, KernelBank)):
        return _run_rival(model, stream)
    makes_lags = isinstance(model, AutoBank) and model.lags  # by itself
    X = stream.X if makes_lags else stream.inputs
    start = time.perf_counter()
    predictions = model.run(X, stream.y, record=["predictions"]).predictions
    seconds = _seconds_per_row(start, stream)
    if isinstance(model, AutoBank):
        return CompetitorRun(numeric_predictions(predictions, stream.task), seconds)
    return CompetitorRun(predictions, seconds, model.ledger.cumulative_cost)


def numeric_predictions(predictions: np.ndarray, task: str) -> Floats:
    """An AutoBank's predictions with a value before the first target, where it has none.

    A missing label counts as wrong; a missing number is 0, as for the other models.
    """
    if task == CLASSIFICATION:
        return np.array([-1.0 if label is None else float(label) for label in predictions])
    return np.asarray(np.nan_to_num(predictions, nan=0.0), dtype=np.float64)


def _run_rival(model: OnlineModel, stream: Stream) -> CompetitorRun:
    """One sample after the other. A model that fails predicts nothing from there on.

    River's models take dictionaries and labels as truth values or whole numbers; all others take
    (d,) arrays and floats. A prediction of None counts as 0.
    """
    rows: Sequence[object] = list(stream.inputs)
    targets: list[float] = stream.y.tolist()
    river = sys.modules.get("river.base")  # a model of River cannot come from anywhere else
    if river is not None and isinstance(model, river.Base):
        names = [f"x{index}" for index in range(stream.inputs.shape[1])]
        rows = [dict(zip(names, row, strict=True)) for row in stream.inputs.tolist()]
        if stream.task == CLASSIFICATION:
            kind = bool if stream.classes <= 2 else int
            targets = [kind(target) for target in targets]
    predictions = np.full(len(stream), math.nan)
    note, n = "", 0
    start = time.perf_counter()
    try:
        for n, (row, target) in enumerate(zip(rows, targets, strict=True)):
            predicted = model.predict_one(row)
            predictions[n] = 0.0 if predicted is None else predicted
            model.learn_one(row, target)
    except Exception as error:
        note = f"failed at sample {n}: {error!r}"[:200]
        if not isinstance(error, ArithmeticError):  # it broke rather than diverged: say so
            warnings.warn(f"{type(model).__name__} {note}", stacklevel=2)
    return CompetitorRun(predictions, _seconds_per_row(start, stream), note=note)
