"""What an AutoBank holds: columns, classes, the model for them, and predictions that wait.

Here too is how all of it changes at once (new inputs and classes), is saved, and is put back when
a step fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ..io import checkpoint
from ..utils import validation as check
from ..utils.interrupts import defer_signals
from ..utils.validation import Floats
from ..utils.whole_steps import CutOff, new_turn, whole_step
from .arguments import checked_targets
from .auto_serialization import describe
from .auto_view import AutoBankView
from .classification import ClassificationModel
from .encoding.class_labels import checked_labels
from .encoding.column_encoder import NUMBER, ColumnEncoder
from .encoding.named_inputs import NamedInputs, read_named
from .encoding.plain_inputs import checked_inputs
from .forecasts.forecaster import Forecaster
from .forecasts.known_inputs import KnownInputs, known_slots
from .many_targets import TargetsModel
from .pending_predictions import PendingPredictions
from .quantiles import Quantiles
from .regression import RegressionModel
from .slots.default_slots import SIZES
from .state_copy import StateCopy
from .task_model import TaskModel


class AutoBankState(AutoBankView):
    """The part of `AutoBank` that holds its state."""

    _pending: PendingPredictions
    """Predictions whose targets have not come yet."""

    # --- new columns and classes ------------------------------------------------------------------

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
        >>> round(bank.predict_one([6.0, float("nan")]), 1)
        6.0
        """
        if self._encoder is not None and not self._encoder.tentative:
            remedy = "Start a new bank with the new columns, NaN in rows without them."
            raise check.refuse("add_inputs", "have names for new columns", count, remedy)
        remedy = "Give how many inputs are added."
        self._add_inputs(check.count("count", count, "add_inputs", remedy, least=1, most=10**6))

    def add_classes(self, classes: Iterable[Any]) -> None:
        """Add labels that may occur from now on, also beyond those named and beyond max_classes.

        Nothing that was learned is lost. A class beyond two starts from the last 512 rows, as one
        that first appears there. Known labels may be among them.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank("classification", classes=["no", "yes"])
        >>> bank.learn_one([1.0], "yes")
        >>> bank.add_classes(["perhaps"])
        >>> bank.classes
        ('no', 'yes', 'perhaps')
        """
        self._need("classification", "add_classes")
        labels = checked_labels(classes)
        with self._turn, whole_step(self):
            for label in labels:
                self._encode(label)
            self._classes.limit = max(self._classes.limit, len(self._classes))

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
            or any(bank.calls_python for bank in self._model.banks)
        ):
            return StateCopy(self)
        return None

    def _failed_step(self, before: StateCopy | None, error: BaseException) -> None:
        if before is None:
            self._cut_off(f"a step was cut off by {error!r}")
        else:
            before.restore(self)

    def _cut_off(self, why: str) -> None:
        self._model = cast(Any, CutOff(why))

    # --- columns and the model --------------------------------------------------------------------

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

    @property
    def _outputs(self) -> int | None:
        """How many targets a row has; None before the first row was learned."""
        if self._model is None or not self._model.rows:
            return None if self._target_names is None else len(self._target_names)
        return self._model.target_count

    def _checked_targets(
        self, y: Any, count: int, *, one: bool = False
    ) -> tuple[Floats, tuple[str, ...] | None]:
        """Targets of rows, (n,) or (n, K), and the names of several ones, if they have names."""
        known = self._target_names
        return checked_targets(y, count, self._outputs, self._config, known=known, one=one)

    def _use_targets(self, targets: Floats, names: tuple[str, ...] | None) -> None:
        """Take the targets of the first rows for those of all later ones."""
        if self._outputs is None and targets.ndim == 2:
            self._target_names = names or tuple(f"target {k}" for k in range(targets.shape[1]))

    def _model_for(self, dimension: int) -> TaskModel:
        """The model for inputs of this width; a new one if nothing has been learned yet."""
        outputs = self._outputs or 1
        if (
            self._model is None
            or self._model.dimension != dimension
            or (self._task == "regression" and self._model.target_count != outputs)
        ):
            same_inputs = self._model is not None and self._model.dimension == dimension
            waiting = list(self._pending.items) if same_inputs else []
            self._pending.clear()
            self._model = self._new_model(dimension, outputs)
            if self._task == "regression":
                self._predict_unknown([key for key, _ in waiting], self._model)
        return self._model

    def _predict_unknown(self, keys: Iterable[bytes], model: TaskModel) -> None:
        """Let predictions wait that were made before the number of targets was known."""
        unknown = np.full((1, model.dimension), np.nan)
        for key in keys:
            prediction = model.predict(unknown, model.past_row(), tail=0.5)
            self._pending.append(key, prediction)

    def _new_model(self, dimension: int, outputs: int) -> TaskModel:
        if self._task == "classification":
            return ClassificationModel(self._config, dimension, len(self._classes))
        if outputs > 1:
            return TargetsModel(self._config, dimension, outputs)
        model = RegressionModel(self._config, dimension)
        if self._config.horizons:
            periods = () if model.seasons is None else model.seasons.periods
            model.forecaster = self._new_forecaster(dimension, periods)
        if self._config.quantiles:
            model.quantile_part = Quantiles(self._config, dimension, self._config.quantiles)
        return model

    def _new_forecaster(self, dimension: int, periods: tuple[int, ...]) -> Forecaster:
        """Forecasts for inputs of this width, with nothing learned."""
        config, known = self._config, None
        if config.known:
            columns = self._known_columns(dimension)
            slots = known_slots(len(columns), SIZES[config.size], config.seed)
            make: Any = type(self)
            banks = [make(slots=slots, scalings="standard") for _ in range(2)]
            known = KnownInputs(columns, banks[0], banks[1], config.horizons[-1])
        return Forecaster(config, dimension, config.horizons, periods, known)

    def _known_columns(self, dimension: int) -> list[int]:
        """The inputs of the columns that are known in advance."""
        found: list[int] = []
        for column in self._config.known:
            own: list[int] = []
            if self._encoder is not None:
                own = self._encoder.inputs_of(column)
            elif isinstance(column, int) and column < dimension:
                own = [column]
            if not own:
                names = self._encoder.names if self._encoder is not None else range(dimension)
                remedy = f"Columns are {', '.join(map(str, list(names)[:10]))}."
                rule = "name columns of numbers or times among the inputs"
                raise check.refuse("known", rule, column, remedy, "AutoBank")
            found += own
        return found

    def _width_with(self, added: int) -> int | None:
        """The width that inputs must have with `added` columns more."""
        remedy = "Give how many of the last columns are new."
        count = check.count("added", added, "AutoBank", remedy, least=0, most=10**6)
        return None if self._dimension is None else self._dimension + count

    def _add_inputs(self, count: int) -> None:
        if count:
            with self._turn, defer_signals():
                if self._dimension is not None and self._model is not None:
                    self._model.add_inputs(count)
                    self._pending.add_inputs(count)

    def _encode(self, label: Any) -> int:
        """The number of a label's class, which may be new."""
        if label not in self._classes:
            self._classes.add([label])
            if isinstance(self._model, ClassificationModel):
                self._model.add_class()
        return self._classes.number(label)
