"""`AutoBank`: a stream in, predictions out, nothing to tune."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ..bank.engines import as_engine
from ..bank.layout import Slot
from ..bank.single_sample import DECLINED, DIAGNOSE
from ..bank.trace import Trace, chosen_fields
from ..combiners import Combiner
from ..errors import InvalidArgument
from ..io import checkpoint
from ..utils import validation as check
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from ..utils.whole_steps import CutOff, new_turn, whole_step
from .arguments import (
    check_within_bounds,
    checked_bounds,
    checked_coverage,
    checked_inputs,
    checked_loss,
    checked_scalings,
    checked_slots,
)
from .auto_ledger import AutoLedger
from .auto_serialization import describe
from .auto_view import AutoBankView
from .class_labels import MAX_CLASSES, ClassLabels
from .classification import ClassificationModel
from .column_encoder import NUMBER, ColumnEncoder
from .config import AutoConfig
from .default_slots import SIZES
from .named_inputs import NamedInputs, read_named
from .pending_predictions import PendingPredictions
from .prequential_run import PrequentialRun, make_trace
from .regression import RegressionModel
from .single_row import SingleRowCalls
from .state_copy import StateCopy
from .table_run import TableRun, learn_row
from .task_model import Prediction, TaskModel

COVERAGE = 0.9
"""Of intervals, by default."""


class AutoBank(AutoBankView):
    """A bank that needs no parameters: scaling, slots, weights and intervals all run online.

    Inputs are scaled in three ways, the target by its running mean and standard deviation. Each
    scaling has slots of several kinds (`names` explains them): least squares on random features of
    low order with three kinds of memory, linear ones, partition trees on the target and on the
    residuals of other slots. `kb.combiners.Stacking` weighs them by their predictions. After 5, 32
    and 128 rows everything starts anew from all rows so far: their first scaling need not have been
    right.

    Parameters
    ----------
    task : "regression", or "classification" (labels as they are: numbers, booleans, text; more
        than two are learned one against the rest).
    lags : how many of the last targets are inputs too.
    size : "small", "default" or "large": how many slots and features, so how much time.
    classes : the labels, in the order of the columns of probabilities. By default they are found
        in the stream, in the order in which they appear.
    slots : slots of your own instead of the default ones. They see the scalings side by side.
    combiner : the rule for the weights.
    loss : the loss to minimise, or its name: on the target in its standard deviations, or on labels
        of -1 and 1. For other losses than the squared one the default slots still learn by the
        squared loss; some are also shifted, by gradient steps on the loss, and
        `kb.combiners.NewtonStacking` weighs them by it. `Pinball(0.9)` makes `predict` a quantile.
    window, regularization : of the inner bank; see `KernelBank`. The default slots need neither.
    scalings : some of "standard", "asinh", "rank" and "none" (inputs as they are, for kernels that
        know their units); by default those of the size, or "standard" alone for slots of your own.
    lower, upper : numbers that no target lies below or above, such as lower=0 for a load that
        cannot be negative. Predictions and intervals stay within; a target beyond is refused.
    engine : where the slots run: "serial" or "threads". Same bits.
    seed : whole number from which random features and random cuts follow.

    An input may be missing (NaN): it is filled in from the last values of its column, by their
    correlation from row to row, and no row is lost. A missing target is an error.

    >>> import numpy as np, kernelbank as kb
    >>> draw = np.random.default_rng(0)
    >>> X = draw.uniform(-2, 2, (300, 2))
    >>> y = 100 + 10 * np.sin(2 * X[:, 0]) * X[:, 1]
    >>> bank = kb.AutoBank()
    >>> trace = bank.run(X, y)
    >>> bool(np.mean((trace.predictions[200:] - y[200:]) ** 2) < 0.1 * y[200:].var())
    True
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
        engine: Any = "serial",
        seed: int = 0,
    ) -> None:
        owner = "AutoBank"
        self._task = check.choice("task", task, owner, ("regression", "classification"))
        remedy = "Give how many of the last targets are inputs, 0 for none."
        count = check.count("lags", lags, owner, remedy, least=0, most=1000)
        check.choice("size", size, owner, SIZES)
        if classes is not None and task == "regression":
            remedy = 'Use task="classification", or leave classes out.'
            raise check.refuse("classes", "be left out for regression", classes, remedy, owner)
        self._classes = ClassLabels(classes)
        self._max_classes = MAX_CLASSES if classes is None else len(self._classes)
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
        )
        self._config.check()
        self._model: TaskModel | None = None
        self._encoder: ColumnEncoder | None = None
        """Of rows with names, once one was learned."""
        self._listed = PendingPredictions()
        self._unlisted = False
        """Whether the newest prediction is still in the model's arrays, not in the list."""
        self._ledger = AutoLedger(self)
        self._turn = new_turn(self)

    # --- predicting ---------------------------------------------------------------------------

    def predict_one(self, x: Any) -> Any:
        """The prediction for one input: a number, or a label. Learns nothing.

        Before the first target is known there is none: NaN, or None without known classes.

        The prediction is kept until its target comes, so that a delayed target is learned with what
        was known when the prediction was made (see `learn_one`).
        """
        output = self._output_one(x, COVERAGE)
        if self._task == "regression":
            return output[0]
        return self._classes.known[output.index(max(output))] if output else None

    def predict_interval_one(self, x: Any, coverage: float = COVERAGE) -> tuple[float, float]:
        """The ends of an interval that holds the target with this probability.

        Calibrated online on the predictions so far, also under drift: in the long run a share of
        `coverage` of the targets lies inside, whatever the stream does.
        """
        output = self._output_one(x, self._interval_coverage(coverage))
        return output[1], output[2]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label so far, in the order of `classes`."""
        self._need("classification", "predict_proba_one")
        output = self._output_one(x, COVERAGE)
        return dict(zip(self.classes, output, strict=True))

    def predict_trace_one(self, x: Any, record: Any = "light", coverage: float = COVERAGE) -> Trace:
        """The prediction for one input, as the row that `run` would record. Learns nothing.

        The prediction is kept, as by `predict_one`, but each call counts as a row of its own, even
        if inputs are equal.
        """
        with self._turn:
            fields = chosen_fields(record, self._task)
            prediction = self._predict_one(x, checked_coverage(coverage), distinct=True)
            assert self._model is not None
            found = self._model.record(prediction)
            return make_trace(self._task, [found], fields, self._model.names, self._classes)

    def predict(self, X: Any) -> np.ndarray:
        """(n,): predictions for the rows of an (n, d) array. Learns nothing.

        Without lags, each row is predicted as the next one of the stream. With lags, the rows are
        the next n of the stream in their order: each prediction is a lagged target of later rows.
        """
        output = self._predict_many(X, COVERAGE)
        if self._task == "regression":
            return output[:, 0].copy()
        self._need_classes("predict")
        return self._classes.array(np.argmax(output, axis=1))

    def predict_interval(self, X: Any, coverage: float = COVERAGE) -> Floats:
        """(n, 2): the ends of the intervals, each as of a prediction one step ahead."""
        return self._predict_many(X, self._interval_coverage(coverage))[:, 1:].copy()

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes): probabilities, columns in the order of `classes`."""
        self._need("classification", "predict_proba")
        output = self._predict_many(X, COVERAGE)
        self._need_classes("predict_proba")
        return output

    def predict_at(self, X: Any, coverage: float = COVERAGE) -> Floats:
        """Predict every row as if it were the next of the stream, with the present lagged targets.

        (n, 3): prediction and the ends of its interval; for classes (n, classes): probabilities.
        So the function can be drawn along an input. Without lags, `predict` does the same.
        """
        with self._turn:
            return self._predict_inputs(self._inputs(X, "X"), coverage)

    def _predict_inputs(self, rows: Floats, coverage: float) -> Floats:
        """`predict_at` for inputs of the model, which have been encoded."""
        with self._turn:
            model = self._model_for(rows.shape[1])
            lagged = np.tile(model.lagged, (len(rows), 1))
            return model.predict(rows, lagged, _tail(checked_coverage(coverage))).output

    def _output_one(self, x: Any, coverage: float) -> list[float]:
        """Prediction and ends of the interval, or probabilities; by one compiled call if possible.

        The prediction of such a call stays in the model's arrays, and is listed when necessary.
        """
        with self._turn:
            calls = self._row_calls()
            key = None if calls is None else calls.key(x)
            if calls is not None and key is not None:
                if self._unlisted and key != calls.last_key:
                    self._list_newest()
                if calls.predict(key, _tail(coverage)):
                    self._unlisted = True
                    return calls.last_output.tolist()
            return self._predict_one(x, coverage).output[0].tolist()

    def _row_calls(self) -> SingleRowCalls | None:
        """The compiled calls for one row, where the numbers of a row are the inputs."""
        if self._model is None or (self._encoder is not None and not self._encoder.is_numeric):
            return None
        return self._model.row_calls()

    def _list_newest(self) -> None:
        """Put the newest prediction into the list, if it is in the model's arrays."""
        if self._unlisted:
            assert self._model is not None
            with defer_signals():
                self._listed.add(*self._model.last_prediction())
                self._unlisted = False

    @property
    def _pending(self) -> PendingPredictions:
        """The predictions whose targets have not come."""
        with self._turn:
            self._list_newest()
            return self._listed

    def _predict_one(self, x: Any, coverage: float, *, distinct: bool = False) -> Prediction:
        with self._turn:
            named = self._named(x, "x", one=True)
            row = (
                checked_inputs(x, self._dimension, "x", one=True) if named is None else named.inputs
            )
            model = self._model_for(row.shape[1])
            prediction = model.predict(row, model.lagged[None], _tail(coverage))
            key = row if named is None else named.codes
            with defer_signals():
                self._pending.add(key[0], prediction, distinct=distinct)
            return prediction

    def _predict_many(self, X: Any, coverage: float) -> Floats:
        with self._turn:
            rows = self._inputs(X, "X")
            model = self._model_for(rows.shape[1])
            if not self.lags:
                return model.predict(rows, np.zeros((len(rows), 0)), _tail(coverage)).output
            lagged = model.lagged
            outputs = []
            for row in rows:
                prediction = model.predict(row[None], lagged[None], _tail(coverage))
                lagged = np.concatenate([[model.as_target(prediction)], lagged[:-1]])
                outputs.append(prediction.output)
            return np.concatenate(outputs)

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, *, added: int = 0) -> None:
        """Learn one row. Its target may come any number of rows after `predict_one(x)`.

        added : how many of the row's numbers, the last ones, are new from now on: `add_inputs`,
            once it is clear that nothing is wrong with the row.

        If the same input was predicted before (among the last 1,000 predictions whose targets have
        not come), then that prediction is scored, and the lagged targets of that moment are learned
        from; else the present ones.
        """
        with self._turn:
            if not added and self._learn_plain(x, y):
                return
            named = self._named(x, "x", one=True, added=added)
            row = (
                checked_inputs(x, self._width_with(added), "x", one=True)
                if named is None
                else named.inputs
            )
            if self._task == "regression":
                target, new = check.one_target(y), False
                check_within_bounds(target, self._config.bounds)
            else:
                (label,) = self._classes.check(y, None, self._max_classes)
                new = label not in self._classes
            with defer_signals():
                self._add_inputs(added)
                with whole_step(self):
                    model = self._model_for(row.shape[1])
                    past = self._pending.pop(row[0] if named is None else named.codes[0])
                    if past is None and new:  # predicted without its class
                        past = model.predict(row, model.lagged[None], _tail(COVERAGE))
                    if self._task == "classification":
                        target = np.array([float(self._encode(label))])
                    if named is None:
                        model.update(row, target, _tail(COVERAGE), past=past)
                    else:
                        self._keep_columns(named.encoder)
                        learn_row(self, named, target, _tail(COVERAGE), past)

    def _learn_plain(self, x: Any, y: Any) -> bool:
        """Learn by one compiled call, if x and y are plain and no older prediction waits."""
        model = self._model
        calls = self._row_calls()
        key = None if calls is None else calls.key(x)
        if (
            model is None
            or calls is None
            or key is None
            or (self._listed.items and key in self._listed)
        ):
            return False
        if not (self._unlisted and key == calls.last_key) and (
            self._unlisted or not calls.predict(key, _tail(COVERAGE))
        ):
            return False
        target = y
        if self._task == "classification":
            if not isinstance(y, (str, int, float, np.generic)) or y not in self._classes:
                return False
            target = float(self._classes.number(y))
        with defer_signals():
            result = calls.learn(target)
            if result == DECLINED:
                return False
            self._unlisted = False
            if result == DIAGNOSE:
                model.finish_row(calls)
        return True

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
        X : (n, d), or (n,) for inputs of one number. NaN where a value is missing.
        y : (n,) targets or labels.
        delay : how many rows later a target comes; row t is learned after row t + delay was
            predicted, and the last ones after the last prediction.
        record : "light", "all" (also the arrays with one column per slot) or a list of names.
        coverage : of the intervals in the trace.
        added : how many columns, the last ones, are new from now on; see `add_inputs`.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and of
        `predict_one` and `learn_one`.
        """
        with self._turn:
            named = self._named(X, "X", added=added)
            if named is None:
                rows = checked_inputs(X, self._width_with(added), "X")
            else:
                rows = named.codes if named.encoder.statistics else named.inputs
            steps = check.count("delay", delay, "run", "Give how many rows later.", least=0)
            fields = chosen_fields(record, self._task)
            tail = _tail(checked_coverage(coverage))
            labels: list[Any] | None = None
            if self._task == "regression":
                targets = check.targets(y, len(rows))
                check_within_bounds(targets, self._config.bounds)
            else:
                labels = self._classes.check(y, len(rows), self._max_classes)
                targets = np.zeros(len(rows))
            self._add_inputs(added)
            self._list_newest()
            self._model_for(rows.shape[1] if named is None else named.encoder.width)
            if named is not None:
                self._keep_columns(named.encoder)
                if named.encoder.statistics:
                    return TableRun(self, named, targets, labels, tail, fields).run(steps)
            return PrequentialRun(self, rows, targets, labels, tail, fields, steps).run()

    def name_columns(self, names: Iterable[str]) -> None:
        """Name the columns of a bank that will learn arrays of numbers.

        Then tables and dictionaries with these names can be given too, and messages have the names.
        A bank that learns tables takes the names from them.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> bank.name_columns(["load", "wind"])
        >>> bank.learn_one([1.0, 2.0], 3.0)
        >>> bank.predict_one({"wind": 2.0, "load": 1.0})
        3.0
        """
        remedy = 'Give one name for each column, such as ["load", "wind"], none twice.'
        given = names if isinstance(names, Iterable) and not isinstance(names, str) else []
        columns = [str(name) for name in given]
        if not columns or len(set(columns)) < len(columns):
            raise check.refuse("names", "be a list of different names", names, remedy)
        with self._turn:
            if self._encoder is not None and not self._encoder.tentative:
                remedy = "Start a new bank for other names."
                raise check.refuse("names", "be given once, before any row", columns, remedy)
            check.check_width(len(columns), self._dimension, "names")
            pairs = [(name, NUMBER) for name in columns]
            self._encoder = ColumnEncoder(pairs, labels=self._task == "classification")

    def add_inputs(self, count: int = 1) -> None:
        """From now on, every input has `count` more numbers, behind the others.

        Nothing that was learned is lost: all is as if they had been missing (NaN) so far. Linear
        slots and trees take them up as they come; random features keep to the first inputs until
        the next restart (after 5, 32 and 128 rows). Predictions that wait for targets are kept.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> for n in range(300):
        ...     bank.learn_one([n % 7], n % 7)
        >>> bank.add_inputs()
        >>> round(bank.predict_one([3.0, float("nan")]), 1)
        3.0
        """
        if self._encoder is not None and not self._encoder.tentative:
            remedy = "Start a new bank with the new columns, NaN in rows without them."
            raise check.refuse("add_inputs", "have names for new columns", count, remedy)
        remedy = "Give how many inputs are added."
        self._add_inputs(check.count("count", count, "add_inputs", remedy, least=1, most=10**6))

    # --- saving -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next prediction depends on to one file, atomically.

        `kb.load(path)` continues bit for bit. The file holds arrays and JSON, no code.
        """
        with self._turn:
            header, arrays = describe(self)
        checkpoint.write(path, header, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but the lock."""
        with self._turn:
            self._list_newest()
            return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = new_turn(self)

    # --- whole steps --------------------------------------------------------------------------

    def _before_step(self) -> StateCopy | None:
        """A copy of the state where users' functions may fail; else None."""
        if self._config.has_own_parts and (
            not self._model
            or not self._model.banks
            or any(bank._runtime.calls_users_functions for bank in self._model.banks)
        ):
            self._list_newest()
            return StateCopy(self)
        return None

    def _failed_step(self, before: StateCopy | None, error: BaseException) -> None:
        if before is None:
            self._cut_off(f"a step was cut off by {error!r}")
        else:
            before.restore(self)

    def _cut_off(self, why: str) -> None:
        self._model = cast(Any, CutOff(why))
        self._unlisted = False

    # --- internals ----------------------------------------------------------------------------

    def _named(self, X: Any, name: str, *, one: bool = False, added: int = 0) -> NamedInputs | None:
        """Rows with names, or for a bank with names; None for arrays that have none."""
        if self._encoder is None and type(X) is np.ndarray:
            return None
        labels = self._task == "classification"
        encoder = None if self._encoder is None or self._encoder.tentative else self._encoder
        named = read_named(X, encoder, self._dimension, name, labels=labels, one=one)
        if named is not None and added:
            remedy = "Leave it out: columns with names are known."
            raise check.refuse("added", "be 0 for rows with names", added, remedy)
        if encoder is None and self._dimension is None:
            self._try_columns(None if named is None else named.encoder)
        return named

    def _try_columns(self, encoder: ColumnEncoder | None) -> None:
        """Take the columns of rows that are not learned yet, in place of others."""
        now = None if self._encoder is None else self._encoder.columns
        if now != (None if encoder is None else encoder.columns):
            self._pending.clear()  # of other columns
        self._encoder = encoder
        if encoder is not None:
            encoder.tentative = True

    def _keep_columns(self, encoder: ColumnEncoder) -> None:
        """The columns of the first learned rows are those of all later ones."""
        encoder.tentative = False
        self._encoder = encoder

    def _inputs(self, X: Any, name: str) -> Floats:
        """(n, d): the inputs of the model."""
        named = self._named(X, name)
        return checked_inputs(X, self._dimension, name) if named is None else named.inputs

    def _width_with(self, added: int) -> int | None:
        """The width that inputs must have with `added` columns more."""
        remedy = "Give how many of the last columns are new."
        count = check.count("added", added, "AutoBank", remedy, least=0, most=10**6)
        return None if self._dimension is None else self._dimension + count

    def _add_inputs(self, count: int) -> None:
        if count:
            with self._turn, defer_signals():
                self._list_newest()
                if self._dimension is not None and self._model is not None:
                    self._model.add_inputs(count)
                    self._pending.add_inputs(count)

    def _model_for(self, dimension: int) -> TaskModel:
        """The model for inputs of this width; a new one if nothing has been learned yet."""
        if self._model is None or self._model.dimension != dimension:
            self._unlisted = False
            self._listed.clear()
            self._model = (
                RegressionModel(self._config, dimension)
                if self._task == "regression"
                else ClassificationModel(self._config, dimension, len(self._classes))
            )
        return self._model

    def _encode(self, label: Any) -> int:
        """The number of a label's class, which may be new."""
        if label not in self._classes:
            self._classes.add([label])
            assert isinstance(self._model, ClassificationModel)
            self._model.add_class()
        return self._classes.number(label)

    def _need(self, task: str, method: str) -> None:
        if self._task != task:
            raise InvalidArgument(
                f"{method} needs task={task!r}; this AutoBank does {self._task}. "
                f"Make one with kb.AutoBank(task={task!r})."
            )

    def _need_classes(self, method: str) -> None:
        if not len(self._classes):
            raise InvalidArgument(
                f"{method} needs to know the labels. Learn some rows first, or name them: "
                "kb.AutoBank(classes=[...])."
            )

    def _interval_coverage(self, coverage: Any) -> float:
        self._need("regression", "an interval")
        return checked_coverage(coverage)


def _tail(coverage: float) -> float:
    """The probability beyond each end of an interval."""
    return 0.5 * (1 - coverage)
