"""What an AutoBank tells of itself: its settings, its state, and how it is shown."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.status import Status
from ..errors import HalfLearned, InvalidArgument
from ..utils.validation import Floats
from .auto_ledger import AutoLedger
from .auto_status import auto_status
from .config import AutoConfig
from .encoding.class_labels import ClassLabels
from .encoding.column_encoder import ColumnEncoder
from .task_model import TaskModel


class AutoBankView:
    """The part of `AutoBank` that changes nothing."""

    _task: str
    _config: AutoConfig
    _model: TaskModel | None
    _classes: ClassLabels
    _encoder: ColumnEncoder | None
    _target_names: tuple[str, ...] | None
    _ledger: AutoLedger
    _turn: threading.RLock

    @property
    def task(self) -> str:
        """ "regression" or "classification"."""
        return self._task

    @property
    def lags(self) -> int:
        """How many of the last targets are inputs."""
        return self._config.lags

    @property
    def seasons(self) -> str | tuple[int, ...] | None:
        """The periods that were named, in rows; "auto" if they are found, None for no seasons."""
        return self._config.seasons

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The levels of `predict_quantiles`; empty without quantiles."""
        return self._config.quantiles

    @property
    def _several(self) -> bool:
        """Whether rows have several targets."""
        return (
            self._task == "regression" and self._model is not None and self._model.target_count > 1
        )

    @property
    def _no_fields(self) -> tuple[str, ...]:
        """How the names of arrays begin that a trace does not have."""
        unused = {"forecast": self.horizons, "quantiles": self.quantiles}
        return tuple(name for name, setting in unused.items() if not setting)

    @property
    def horizons(self) -> tuple[int, ...]:
        """How many rows ahead `forecast` goes; empty without horizons."""
        return self._config.horizons

    @property
    def periods(self) -> tuple[int, ...]:
        """The periods in use, in rows: those that were named, or found so far."""
        if self._model is not None and self._model.seasons is not None:
            return self._model.seasons.periods
        return self.seasons if isinstance(self.seasons, tuple) else ()

    @property
    def size(self) -> str:
        """ "small", "default" or "large"."""
        return self._config.size

    @property
    def lower(self) -> float | None:
        """What no target lies below; None for no bound."""
        return self._config.lower

    @property
    def upper(self) -> float | None:
        """What no target lies above; None for no bound."""
        return self._config.upper

    @property
    def samples(self) -> int:
        """How many rows have been learned."""
        return self._ledger.samples

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of the columns of probabilities."""
        return tuple(self._classes.known)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of several targets: those of the columns of y, or "target 0", ...; else empty.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> bank.learn_one([1.0], {"load": 2.0, "price": 3.0})
        >>> bank.target_names
        ('load', 'price')
        """
        return self._target_names or ()

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns, if the bank has learned rows with names."""
        if self._encoder is None or self._encoder.tentative:
            raise AttributeError("this AutoBank has learned no rows with names")
        return np.array(self._encoder.names, dtype=object)

    @property
    def ledger(self) -> AutoLedger:
        """Errors so far, and signals of change."""
        return self._ledger

    @property
    def bank(self) -> KernelBank | None:
        """The inner bank, on scaled inputs; None before the fifth row.

        With more than two classes, these are its outputs; but with lagged labels or seasons each
        class has a bank, all of which are in `banks`, and this is the first.
        """
        return self.banks[0] if self.banks else None

    @property
    def banks(self) -> tuple[KernelBank, ...]:
        """The inner banks: one; with lags or seasons one per class if there are more than two."""
        return () if self._model is None else tuple(self._model.banks)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all slots that may run; empty before the first row.

        A default slot is named `scaling: method`; "a + b" is slot a plus one that learns its
        residual. The scalings are "standard" (deviations from the running mean), "asinh" (the same,
        for heavy tails) and "rank". The methods:

        - "random features, no forgetting": least squares on random features of the kernels;
          "..., forgetting": old rows count less; "..., adaptive bias": and the constant follows the
          last errors; "narrow", "all inputs": with other kernels;
        - "linear, no forgetting" and "linear, adaptive bias": least squares on the inputs;
        - "tree 1", "tree 2", ...: a partition tree;
        - "nearest neighbors, width w, noise v": a small Gaussian process on the nearest rows;
        - "last value": the last target again;
        - "slow shift", "fast shift": gradient steps on the loss, for other losses than the squared
          one.

        Instead of a scaling stand "relevant" (the inputs, past targets and inputs of the row before
        that matter most), "past" (the same columns, all alike) and, with seasons, "season" (the
        targets of earlier periods, and the phase).

        >>> import numpy as np, kernelbank as kb
        >>> X = np.random.default_rng(0).normal(size=(10, 2))
        >>> bank = kb.AutoBank()
        >>> _ = bank.run(X, X[:, 0])
        >>> sorted({name.split(":")[0].split(" + ")[0] for name in bank.names})
        ['asinh', 'last value', 'past', 'rank', 'relevant', 'standard']
        >>> bank.names[0]
        'standard: random features, no forgetting'
        """
        return () if self._model is None else tuple(self._model.names)

    @property
    def weights(self) -> Floats:
        """(slots,): the weights of the next prediction, in the order of `names`.

        0 for slots that do not run; with more than two classes the mean over them; empty
        before the slots start, after the fifth row.
        """
        with self._turn:
            if self._model is None or not self._model.banks:
                return np.zeros(0)
            return self._model.mean_weights_of_outputs()

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank(size="small")
        >>> for n in range(101):
        ...     bank.learn_one([n, n % 2], n)
        >>> bank.input_ranges()[0]
        array([ 50.,   0., 100.])
        """
        with self._turn:
            if self._model is None or not self._model.rows:
                raise InvalidArgument("input_ranges() needs inputs. Learn some rows first.")
            return self._model.input_ranges()

    @property
    def input_names(self) -> tuple[str, ...]:
        """A name for every input of the model, in the order of `input_ranges`.

        A column of times or categories gives several inputs; columns without names are numbered.
        """
        width = self._dimension or 0
        if self._encoder is None or self._encoder.tentative or not width:
            return tuple(f"input {k}" for k in range(width))
        return tuple(self._encoder.input_names)

    def _title(self) -> str:
        lags = f", lags={self.lags}" if self.lags else ""
        if self.seasons is not None:
            lags += f", seasons={self.seasons!r}"
        size = "" if self.size == "default" else f", size={self.size!r}"
        slots = "" if self._model is None else f"; {len(self._model.members)} slots"
        targets = f"; {len(self.target_names)} targets" if self.target_names else ""
        return f"AutoBank({self.task!r}{lags}{size}{targets}{slots}; {self.samples} samples)"

    def __repr__(self) -> str:
        try:
            return self.status().text()
        except HalfLearned as error:
            return f"AutoBank: {error}"

    def _repr_html_(self) -> str:
        return self.status().html()

    def status(self) -> Status:
        """What the model is, how well it does and which slots carry it, at this moment."""
        with self._turn:
            known = self._classes.known
            title = self._title()
            facts = (self._task, self._config, self._ledger, self._model, known, self._encoder)
            return auto_status(title, *facts, self.target_names)

    @property
    def _dimension(self) -> int | None:
        """The width of the inputs, once something was learned: a prediction fixes nothing."""
        return None if self._model is None or not self._model.rows else self._model.dimension

    def _need(self, task: str, method: str) -> None:
        if self._task != task:
            raise InvalidArgument(
                f"{method} needs task={task!r}; this AutoBank does {self._task}. "
                f"Make one with kb.AutoBank(task={task!r})."
            )
