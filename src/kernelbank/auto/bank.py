"""`AutoBank`: a stream in, answers out, nothing to tune."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.engines import as_engine
from ..bank.layout import Slot
from ..bank.status import Status
from ..bank.trace import Trace, chosen_fields
from ..combiners import Combiner
from ..errors import InvalidArgument
from ..io import checkpoint
from ..native.formulas import inside_callback
from ..utils import validation as check
from ..utils.interrupts import defer_sigint
from ..utils.lazy import plots
from ..utils.validation import Floats
from .classification import Classification
from .config import Plan
from .default_slots import SIZES
from .labels import MOST, Labels
from .ledger import AutoLedger
from .pending import Pending
from .prequential_run import Run
from .regression import Regression
from .summary import overview
from .task_model import Desk, Said
from .validation import checked_loss, checked_scalings, checked_slots, inputs, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COVERAGE = 0.9


class AutoBank:
    """A bank that needs no parameters: scaling, slots, weights and intervals all run online.

    Inputs are scaled in three ways, the target in its running deviations; each scaling has slots of
    several kinds (`kernelbank.auto.default_slots`): least squares on random features of low order with
    three kinds of memory, linear ones, partition trees on the target and on what other slots leave.
    `kb.combiners.Stacking` weighs them by what they predicted. After 5, 32 and 128 rows
    everything starts anew from all rows so far: their scaling need not have been right at once.

    Parameters
    ----------
    task : "regression", or "classification" (labels as they are: numbers, booleans, text; more
        than two are learned one against the rest).
    lags : how many of the last targets are inputs too.
    size : "small", "default" or "large": how many slots and features, so how much time.
    classes : the labels, in the order of the columns of probabilities. By default they are found
        in the stream, in the order in which they appear.
    slots : slots of your own instead of the recipe. They see the scalings side by side.
    combiner : the rule for the weights.
    loss : what answers are to keep small, a loss or its name: on the target in its deviations, or
        on labels of -1 and 1. For other losses than the squared one the slots of the recipe still
        learn by squares; some also stand shifted, by gradient steps with the loss, and
        `kb.combiners.NewtonStacking` weighs them by it. `Pinball(0.9)` makes `predict` a quantile.
    window, regularization : of the inner bank; see `KernelBank`. The recipe needs neither.
    scalings : some of "standard", "asinh", "rank" and "none" (inputs as they are, for kernels that
        know their units); by default those of the size, or "standard" alone for slots of your own.
    engine : where the slots run: "serial" or "threads". Same bits.
    seed : whole number from which random features and random cuts follow.

    An input may be missing (NaN): it is taken to be where its column's correlation from row to row
    would expect it, and no row is lost. A missing target is an error.

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
        self._labels = Labels(classes)
        self._most_classes = MOST if classes is None else len(self._labels)
        if combiner is not None and not isinstance(combiner, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Stacking()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, owner)
        own = None if slots is None else checked_slots(slots)
        seed = check.count("seed", seed, owner, "Give a whole number.", least=0, most=2**31)
        given = checked_scalings(scalings, SIZES[size].scalings if own is None else ("standard",))
        self._plan = Plan(
            count,
            size,
            seed,
            given,
            own,
            combiner,
            as_engine(engine),
            checked_loss(loss, self._task),
            window,
            regularization,
        )
        self._plan.check()
        self._desk: Desk | None = None
        self._pending = Pending()
        self._ledger = AutoLedger(self)
        self._turn = threading.RLock()

    # --- looking ------------------------------------------------------------------------------

    @property
    def task(self) -> str:
        """ "regression" or "classification"."""
        return self._task

    @property
    def lags(self) -> int:
        """How many of the last targets are inputs."""
        return self._plan.lags

    @property
    def size(self) -> str:
        """ "small", "default" or "large"."""
        return self._plan.size

    @property
    def samples(self) -> int:
        """How many rows have been learned."""
        return self._ledger.samples

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of the columns of probabilities."""
        return tuple(self._labels.known)

    @property
    def ledger(self) -> AutoLedger:
        """Errors so far, and signals of change."""
        return self._ledger

    @property
    def bank(self) -> KernelBank | None:
        """The inner bank, on scaled inputs; None before the fifth row.

        With more than two classes, that of the first; all are in `banks`.
        """
        return self.banks[0] if self.banks else None

    @property
    def banks(self) -> tuple[KernelBank, ...]:
        """The inner banks: one, or one a class if there are more than two."""
        return () if self._desk is None else tuple(self._desk.banks)

    @property
    def names(self) -> tuple[str, ...]:
        """What the slots are, in words; empty before the first row."""
        return () if self._desk is None else tuple(self._desk.names)

    def typical(self) -> Floats:
        """(inputs, 3): the median of the last values of every input, and the ends of their range.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank(size="small")
        >>> for n in range(101):
        ...     bank.learn_one([n, n % 2], n)
        >>> bank.typical()[0]
        array([ 50.,   0., 100.])
        """
        with self._turn:
            if self._desk is None or not self._desk.rows:
                raise InvalidArgument("typical() needs inputs to look at. Learn some rows first.")
            return self._desk.scaling.typical()

    def plot_weights(self, most: int = 15) -> Figure:
        """The present weights as bars; see `kb.plots.bars`."""
        return plots().bars(self, most)

    def _title(self) -> str:
        lags = f", lags={self.lags}" if self.lags else ""
        size = "" if self.size == "default" else f", size={self.size!r}"
        slots = f"; {len(self.names)} slots" if self.names else ""
        return f"AutoBank({self.task!r}{lags}{size}{slots}; {self.samples} samples)"

    def __repr__(self) -> str:
        return self.status().text()

    def _repr_html_(self) -> str:
        return self.status().html()

    def status(self) -> Status:
        """What the model is, how well it does and which slots carry it, at this moment."""
        if inside_callback():  # by a bank that is at work, perhaps for this one: do not wait for it
            return Status(self._title())
        with self._turn:
            known = self._labels.known
            title = self._title()
            return overview(title, self._task, self._plan, self._ledger, self._desk, known)

    # --- answering ----------------------------------------------------------------------------

    def predict_one(self, x: Any) -> Any:
        """The prediction for one input: a number, or a label. Learns nothing.

        The question is remembered until its target comes, so that a target that comes late is
        learned with what was known when the question was asked (see `learn_one`).
        """
        return self._worded(self._ask_one(x, COVERAGE))

    def predict_interval_one(self, x: Any, coverage: float = COVERAGE) -> tuple[float, float]:
        """The ends of an interval that holds the target with this probability.

        Calibrated online on the answers given so far, also under drift: in the long run a share of
        `coverage` of the targets lies inside, whatever the stream does.
        """
        said = self._ask_one(x, self._checked_coverage(coverage))
        return float(said.answer[1]), float(said.answer[2])

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label so far, in the order of `classes`."""
        self._need("classification", "predict_proba_one")
        said = self._ask_one(x, COVERAGE)
        return dict(zip(self.classes, said.answer.tolist(), strict=True))

    def answer_one(self, x: Any, record: Any = "light", coverage: float = COVERAGE) -> Trace:
        """What is answered to one input, as the row that `run` would record. Learns nothing.

        The question is remembered, as by `predict_one`, but each call is a question of its own:
        rows that happen to be equal are rows.
        """
        with self._turn:
            fields = chosen_fields(record, self._task)
            said = self._ask_one(x, share(coverage), anew=True)
            assert self._desk is not None
            found = self._desk.described(said)
            if self._task == "classification" and "predictions" in fields:
                known = bool(len(self._labels))
                best = np.array([int(np.argmax(said.answer))]) if known else np.zeros(1, dtype=int)
                unknown = np.array([None], dtype=object)
                found["predictions"] = self._labels.array(best) if known else unknown
            own = {"task": self._task, "classes": self.classes, "arrays": found}
            return Trace(1, tuple(self._desk.names), fields, **own)

    def predict(self, X: Any) -> np.ndarray:
        """(n,): predictions for the rows of an (n, d) array. Learns nothing.

        Without lags, each row is answered as the next one of the stream. With lags, the rows are
        the next n of the stream in their order: each prediction is a lagged target of those after.
        """
        said = self._ask_many(X, COVERAGE)
        if self._task == "regression":
            return np.array([one.answer[0] for one in said])
        self._need_classes("predict")
        return self._labels.array(np.array([int(np.argmax(one.answer)) for one in said]))

    def predict_interval(self, X: Any, coverage: float = COVERAGE) -> Floats:
        """(n, 2): the ends of the intervals, each as of an answer one step ahead."""
        said = self._ask_many(X, self._checked_coverage(coverage))
        return np.array([one.answer[1:] for one in said])

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes): probabilities, columns in the order of `classes`."""
        self._need("classification", "predict_proba")
        said = self._ask_many(X, COVERAGE)
        self._need_classes("predict_proba")
        return np.array([one.answer for one in said])

    def survey(self, X: Any, coverage: float = COVERAGE) -> Floats:
        """Every row answered as if it were the next of the stream, with the lagged targets of now.

        (n, 3): prediction and the ends of its interval; for classes (n, classes): probabilities.
        So a function can be drawn along an input. Without lags, `predict` does the same.
        """
        with self._turn:
            rows = inputs(X, self._dimension, "X")
            desk = self._open(rows.shape[1])
            tail = 0.5 * (1 - share(coverage))
            said = desk.ask(rows, np.tile(desk.lagged, (len(rows), 1)), tail)
            return np.array([one.answer for one in said])

    def _ask_one(self, x: Any, coverage: float, *, anew: bool = False) -> Said:
        with self._turn:
            row = inputs(x, self._dimension, "x", one=True)
            desk = self._open(row.shape[1])
            said = desk.ask(row, desk.lagged[None], 0.5 * (1 - coverage))[0]
            self._pending.note(row[0], said, anew=anew)
            return said

    def _ask_many(self, X: Any, coverage: float) -> list[Said]:
        with self._turn:
            rows = inputs(X, self._dimension, "X")
            desk = self._open(rows.shape[1])
            tail = 0.5 * (1 - coverage)
            lagged = desk.lagged.copy()
            if not self.lags:
                return desk.ask(rows, np.tile(lagged, (len(rows), 1)), tail)
            said = []
            for row in rows:
                said += desk.ask(row[None], lagged[None], tail)
                lagged[1:] = lagged[:-1].copy()
                lagged[0] = desk.as_lag(said[-1])
            return said

    def _worded(self, said: Said) -> Any:
        if self._task == "regression":
            return float(said.answer[0])
        if not len(said.answer):
            return None
        return self._labels.known[int(np.argmax(said.answer))]

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, *, added: int = 0) -> None:
        """Learn one row. Its target may come any number of steps after `predict_one(x)`.

        added : how many of the row's numbers, the last ones, are new from now on: `add_inputs`,
            once it is clear that nothing is wrong with the row.

        If the same input was asked for before (among the last 1,000 questions whose targets have
        not come), then the answer given then is scored, and the lagged targets of that moment are
        learned from; else those of now.
        """
        with self._turn:
            row = inputs(x, self._wider(added), "x", one=True)
            if self._task == "regression":
                target = float(check.one_target(y)[0])
            else:
                (label,) = self._labels.check(y, None, self._most_classes)
            self._widen(added)
            desk = self._open(row.shape[1])
            said = self._pending.take(row[0])
            with defer_sigint():
                if said is None:
                    said = desk.ask(row, desk.lagged[None], 0.5 * (1 - COVERAGE))[0]
                if self._task == "classification":
                    target = float(self._class_of(label))
                desk.tell(row[0], said, target)

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
        """Answer every row, and learn it when its target comes.

        Parameters
        ----------
        X : (n, d), or (n,) for inputs of one number. NaN where a value is missing.
        y : (n,) targets or labels.
        delay : how many rows later a target comes; row t is learned after row t + delay was
            answered, and the last ones after the last answer.
        record : "light", "all" (also what is kept for every slot) or a list of names.
        coverage : of the intervals in the trace.
        added : how many columns, the last ones, are new from now on; see `add_inputs`.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and of
        `predict_one` and `learn_one`.
        """
        with self._turn:
            rows = inputs(X, self._wider(added), "X")
            steps = check.count("delay", delay, "run", "Give how many rows later.", least=0)
            fields = chosen_fields(record, self._task)
            tail = 0.5 * (1 - share(coverage))
            labels: list[Any] = []
            if self._task == "regression":
                targets = check.targets(y, len(rows))
            else:
                labels = self._labels.check(y, len(rows), self._most_classes)
                targets = np.zeros(len(rows))
            self._widen(added)
            desk = self._open(rows.shape[1])
            play = Run(desk, rows, targets, labels, self._labels, self._class_of, tail, fields)
            if steps:
                play.late(steps)
            else:
                play.at_once()
            return play.trace()

    def add_inputs(self, count: int = 1) -> None:
        """From now on, every input has so many numbers more, behind the others.

        Nothing that was learned is lost: all is as if they had been missing (NaN) so far. Lines and
        trees take them up as they come; random features keep to the inputs with which they began,
        until the next start. Open questions are kept.

        >>> import kernelbank as kb
        >>> bank = kb.AutoBank()
        >>> for n in range(300):
        ...     bank.learn_one([n % 7], n % 7)
        >>> bank.add_inputs()
        >>> round(bank.predict_one([3.0, float("nan")]), 1)
        3.0
        """
        remedy = "Give how many inputs are added."
        self._widen(check.count("count", count, "add_inputs", remedy, least=1, most=10**6))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next answer depends on to one file, atomically.

        `kb.load(path)` goes on bit for bit. The file holds arrays and JSON, no code.
        """
        from .auto_serialization import describe

        with self._turn:
            header, arrays = describe(self)
        checkpoint.write(path, header, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but the lock."""
        with self._turn:
            return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = threading.RLock()

    # --- the inside ---------------------------------------------------------------------------

    @property
    def _dimension(self) -> int | None:
        """The width of the inputs, once something was learned: a question fixes nothing."""
        return None if self._desk is None or not self._desk.rows else self._desk.dimension

    def _wider(self, added: int) -> int | None:
        """The width that inputs have to have, with so many added."""
        remedy = "Give how many of the last columns are new."
        count = check.count("added", added, "AutoBank", remedy, least=0, most=10**6)
        return None if self._dimension is None else self._dimension + count

    def _widen(self, count: int) -> None:
        if count:
            with self._turn, defer_sigint():
                if self._dimension is not None and self._desk is not None:
                    self._desk.widen(count)
                    self._pending.widen(count)

    def _open(self, dimension: int) -> Desk:
        if self._desk is None or self._desk.dimension != dimension:
            self._pending.asked.clear()
            self._desk = (
                Regression(self._plan, dimension)
                if self._task == "regression"
                else Classification(self._plan, dimension, len(self._labels))
            )
        return self._desk

    def _class_of(self, label: Any) -> int:
        """The number of a label's class, which may be new."""
        if label not in self._labels.known:
            self._labels.add([label])
            assert isinstance(self._desk, Classification)
            self._desk.add_class()
        return self._labels.number(label)

    def _need(self, task: str, method: str) -> None:
        if self._task != task:
            raise InvalidArgument(
                f"{method} needs task={task!r}; this AutoBank does {self._task}. "
                f"Make one with kb.AutoBank(task={task!r})."
            )

    def _need_classes(self, method: str) -> None:
        if not len(self._labels):
            raise InvalidArgument(
                f"{method} needs to know the labels. Learn some rows first, or name them: "
                "kb.AutoBank(classes=[...])."
            )

    def _checked_coverage(self, coverage: Any) -> float:
        self._need("regression", "an interval")
        return share(coverage)
