"""`AutoBank`: a stream in, predictions out, nothing to tune."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..bank.engines import as_engine
from ..bank.slot import Slot
from ..bank.trace import Trace, chosen_fields
from ..combiners import Combiner
from ..utils import validation as check
from ..utils.interrupts import defer_signals
from ..utils.whole_steps import new_turn, whole_step
from .arguments import (
    checked_bounds,
    checked_coverage,
    checked_horizons,
    checked_known,
    checked_loss,
    checked_quantiles,
    checked_scalings,
    checked_slots,
)
from .auto_ledger import AutoLedger
from .auto_predictions import COVERAGE, AutoBankPredictions, tail_of
from .config import AutoConfig
from .encoding.class_labels import ClassLabels
from .encoding.column_encoder import ColumnEncoder
from .encoding.plain_inputs import checked_inputs
from .pending_predictions import PendingPredictions
from .prequential_run import PrequentialRun
from .seasons import checked_seasons
from .slots.default_slots import SIZES
from .table_run import TableRun, learn_row
from .task_model import TaskModel


class AutoBank(AutoBankPredictions):
    """A bank that needs no parameters: scaling, slots, weights and intervals all run online.

    Inputs are scaled in three ways, the target by its running mean and standard deviation. Slots
    are of several kinds (`names` explains them): least squares on random features of low order with
    three kinds of memory, linear ones, partition trees on the target and on the residuals of other
    slots, nearest neighbors, the last value, and functions of the inputs and past targets that
    matter most. `kb.combiners.RobustStacking`, for labels `Stacking`, weighs them by their
    predictions. After 5, 32 and 128 rows everything starts anew from all rows so far: their first
    scaling need not have been right. After 512 rows and more, slots without weight give way to
    others.

    Parameters
    ----------
    task : "regression", or "classification" (labels as they are: numbers, booleans, text; more
        than two are learned one against the rest).
    lags : how many of the last targets are inputs too.
    size : "small", "default" or "large": how many slots and features, so how much time.
    classes : the labels that may occur, in the order of the columns of probabilities; all are known
        from the start, and another one is refused. By default they are found in the stream, in the
        order in which they appear.
    slots : slots of your own instead of the default ones. They see the scalings side by side.
    combiner : the rule for the weights instead of the default one.
    loss : the loss to minimise, or its name: on the target in its standard deviations, or on labels
        of -1 and 1. For other losses than the squared one the default slots still learn by the
        squared loss; some are also shifted, by gradient steps on the loss, and
        `kb.combiners.Joint` weighs them by it. `Pinball(0.9)` makes `predict` a quantile.
    window, regularization : of the inner bank; see `KernelBank`. The default slots need neither.
    scalings : some of "standard", "asinh", "rank" and "none" (inputs as they are, for kernels that
        know their units); by default those of the size, or "standard" alone for slots of your own.
    lower, upper : numbers that no target lies below or above, such as lower=0 for a load that
        cannot be negative. Predictions and intervals stay within; a target beyond is refused.
    seasons : periods in rows after which the stream repeats, such as 24 or (24, 168) for the hours
        of days and weeks; "auto" finds up to two in the stream, after 200, 500, 1,000 and every
        2,000 rows. Some slots then know the targets of earlier periods and the phase. A row counts
        when its target was learned, or waits for it.
    horizons : how many rows ahead to forecast, such as (1, 6, 24), or 24 for 1 to 24, for
        regression: `forecast` then returns direct forecasts from what is known after the last
        learned row, each with an interval calibrated from the past errors of its horizon. The
        predictions are the same with and without.
    known : with horizons, the names or indices of columns of numbers or times whose future values
        are known in advance, such as the hour or a price; `forecast` is then given them.
    quantiles : levels such as (0.05, 0.5, 0.95), for regression: `predict_quantiles` and the trace
        then have these quantiles of the target, learned by pinball losses, which never cross.
        The ends of intervals are calibrated by past errors, as always: `ledger.quantiles` compares
        both. Takes about as long again as everything else.
    max_classes : how many labels may be found in the stream, by default 100: a target with more may
        be a number. Beyond two, the model grows with each class (docs/auto.md, "How large a model
        is"); `kb.errors.LargeModel` warns when its file is larger than 500 MB.
    engine : where the slots run: "serial", "threads", or "ray" for other processes and machines.
        Same bits.
    seed : whole number from which random features and random cuts follow.

    An input may be missing (NaN): it is filled in from the last values of its column, by their
    correlation from row to row, and no row is lost. A missing target is an error, but for one of
    several targets.

    Rows may have several targets, for regression: the first that are learned, (n, K) or (K,), say
    how many. All are outputs of one inner bank, whose slots share what they compute from inputs.
    Predictions are then (n, K), intervals (n, K, 2); lagged targets are those of all targets. A
    target that is missing in a row (NaN) is not learned for that target only.

    >>> import numpy as np, kernelbank as kb
    >>> draw = np.random.default_rng(0)
    >>> X = draw.uniform(-2, 2, (300, 2))
    >>> y = 100 + 10 * np.sin(2 * X[:, 0]) * X[:, 1]
    >>> bank = kb.AutoBank()
    >>> trace = bank.run(X, y)
    >>> bool(np.mean((trace.predictions[200:] - y[200:]) ** 2) < 0.1 * y[200:].var())
    True
    >>> len(bank.bank.slots), type(bank.bank.combiner).__name__
    (62, 'RobustStacking')
    """

    def __init__(
        self,
        task: str = "regression",
        lags: int = 0,
        size: str = "default",
        classes: Iterable[Any] | None = None,
        *,
        slots: Iterable[Slot] | None = None,
        combiner: Combiner | None = None,
        loss: Any = "squared",
        window: int = 1,
        regularization: float = 0.0,
        scalings: Any = None,
        lower: float | None = None,
        upper: float | None = None,
        seasons: Any = None,
        horizons: Any = None,
        known: Any = None,
        quantiles: Any = None,
        max_classes: int | None = None,
        engine: Any = "serial",
        seed: int = 0,
    ) -> None:
        owner = "AutoBank"
        self._task = check.choice("task", task, owner, ("regression", "classification"))
        remedy = "Give how many of the last targets are inputs, 0 for none."
        count = check.count("lags", lags, owner, remedy, least=0, most=1000)
        check.choice("size", size, owner, SIZES)
        for name, given in (("classes", classes), ("max_classes", max_classes)):
            if given is not None and task == "regression":
                remedy = f'Use task="classification", or leave {name} out.'
                raise check.refuse(name, "be left out for regression", given, remedy, owner)
        self._classes = ClassLabels(classes, max_classes)
        if combiner is not None and not isinstance(combiner, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Stacking()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, owner)
        own = None if slots is None else checked_slots(slots)
        seed = check.count("seed", seed, owner, "Give a whole number.", least=0, most=2**31)
        usual = SIZES[size].scalings if own is None else ("standard",)
        self._config = AutoConfig(
            count,
            size,
            seed,
            checked_scalings(scalings, usual),
            own,
            combiner,
            as_engine(engine),
            checked_loss(loss, self._task),
            window,
            regularization,
            *checked_bounds(lower, upper, self._task),
            seasons=checked_seasons(seasons),
            horizons=checked_horizons(horizons, self._task),
            known=checked_known(known, checked_horizons(horizons, self._task)),
            quantiles=checked_quantiles(quantiles, self._task),
            labels=self._task == "classification",
        )
        self._config.check()
        self._model: TaskModel | None = None
        self._target_names: tuple[str, ...] | None = None
        """Of several targets, once some were given."""
        self._encoder: ColumnEncoder | None = None
        """Of rows with names, once one was learned."""
        self._pending = PendingPredictions()
        self._ledger = AutoLedger(self)
        self._turn = new_turn(self)

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, *, added: int = 0) -> None:
        """Learn one row. Its target may come any number of rows after `predict_one(x)`.

        y : a number or a label; for several targets (K,), NaN where one is missing.

        added : how many of the row's numbers, the last ones, are new from now on: `add_inputs`,
            once it is clear that nothing is wrong with the row.

        If the same input was predicted before (among the last 1,000 predictions whose targets have
        not come), then that prediction is scored, and the lagged targets of that moment are learned
        from; else the present ones.
        """
        with self._turn:
            named = self._named(x, "x", one=True, added=added)
            row = (
                checked_inputs(x, self._width_with(added), "x", one=True)
                if named is None
                else named.inputs
            )
            new = False
            if self._task == "regression":
                target, names = self._checked_targets(y, 1, one=True)
            else:
                (label,) = self._classes.check(y, None)
                new = label not in self._classes
            with defer_signals():
                self._add_inputs(added)
                with whole_step(self):
                    if self._task == "regression":
                        self._use_targets(target, names)
                    model = self._model_for(row.shape[1])
                    past = self._pending.pop(row[0] if named is None else named.codes[0])
                    if past is None and new:  # predicted without its class
                        past = model.predict(row, model.past_row(), tail_of(COVERAGE))
                    if self._task == "classification":
                        target = np.array([float(self._encode(label))])
                    if named is None:
                        model.update(row, target, tail_of(COVERAGE), past=past)
                    else:
                        self._keep_columns(named.encoder)
                        learn_row(self, named, target, tail_of(COVERAGE), past)

    def run(
        self,
        X: Any,
        y: Any,
        delay: int = 0,
        record: Any = "light",
        coverage: float = COVERAGE,
        *,
        added: int = 0,
    ) -> Trace:
        """Predict every row, and learn it when its target comes.

        Parameters
        ----------
        X : (n, d), or (n,) for inputs of one number. NaN where a value is missing. None for a
            series without inputs, with lags, seasons or horizons.
        y : (n,) targets or labels; (n, K) for several targets, NaN where one is missing.
        delay : how many rows later a target comes; row t is learned after row t + delay was
            predicted, and the last ones after the last prediction.
        record : "light", "all" (also the arrays with one column per slot) or a list of names.
        coverage : of the intervals in the trace.
        added : how many columns, the last ones, are new from now on; see `add_inputs`.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and of
        `predict_one` and `learn_one`.
        """
        with self._turn:
            if X is None:
                X = np.zeros((np.shape(y)[0] if np.ndim(y) else 1, 1))
            named = self._named(X, "X", added=added)
            if named is None:
                rows = checked_inputs(X, self._width_with(added), "X")
            else:
                rows = named.codes if named.encoder.statistics else named.inputs
            steps = check.count("delay", delay, "run", "Give how many rows later.", least=0)
            fields = chosen_fields(record, self._task, without=self._no_fields)
            tail = tail_of(checked_coverage(coverage))
            labels: list[Any] | None = None
            if self._task == "regression":
                targets, names = self._checked_targets(y, len(rows))
                self._use_targets(targets, names)
            else:
                labels = self._classes.check(y, len(rows))
                targets = np.zeros(len(rows))
            self._add_inputs(added)
            self._pending.stale = len(self._pending.items)
            self._model_for(rows.shape[1] if named is None else named.encoder.width)
            if named is not None:
                self._keep_columns(named.encoder)
                if named.encoder.statistics:
                    return TableRun(self, named, targets, labels, tail, fields).run(steps)
            return PrequentialRun(self, rows, targets, labels, tail, fields, steps).run()
