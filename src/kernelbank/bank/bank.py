"""`KernelBank`: the game between the bank and its stream, and nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import losses
from ..combiners import Combiner, Simplex
from ..errors import KernelBankError
from ..io import checkpoint
from ..io.specs import check_names, own_copy
from ..kernels.dictionary import Dictionary
from ..losses import as_loss
from ..losses.objective import Objective
from ..native.formulas import inside_callback
from ..native.workspace import SLIDE_PERIOD
from ..utils import validation as check
from ..utils.interrupts import defer_sigint
from ..utils.lazy import plots
from ..utils.validation import Floats
from . import bank_cost as hot
from . import rounds, state
from . import slot_metrics as score
from .diagnostics import Diagnostics
from .engines import as_engine
from .layout import Layout, Slot, bank_slots
from .ledger import Ledger
from .naming import SlotNames, full_name
from .single_sample import NEWS
from .status import Status, bank_status
from .trace import Trace, chosen_fields
from .work import Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class KernelBank:
    """A bank of kernels that learns from a stream: one online learner per kernel, mixed anew after
    every sample.

    Each sample is one round of a game. The bank proposes f = sum_p w_p f_p; the sample is revealed;
    the proposal is charged its loss on the window plus regularization / 2 * sum_p w_p^2 |f_p|^2;
    every slot learns from the window, without a look at the weights; the combiner chooses anew.

    Parameters
    ----------
    dictionary : the kernels, a `Dictionary` or a list of kernels. By default 20 Gaussians with
        widths from 0.1 to 10 in equal ratios.
    learner : the method of every slot; by default `Norma()`.
    combiner : the rule for the weights; by default `Simplex()`, the paper's.
    loss : a loss or its name, such as "squared", "huber", "logistic".
    window : how many recent samples a cost looks at.
    regularization : weight of half the squared norm in the cost, at least 0.
    engine : where the slots run: "serial", "threads" for large dictionaries, or "ray" for more than
        one process or machine (`kb.engines.Ray`). Same bits.
    slots : instead of dictionary and learner, a list of `Slot`, to mix methods.
    dtype : "float64", or "float32" to keep Norma's kernel values and coefficients in half the
        memory, at an error of about 1e-7 of their size. The arithmetic is double in both.

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme.

    >>> import numpy as np, kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20), window=10, regularization=0.01)
    >>> x = np.arange(400) / 2
    >>> trace = bank.run(x, np.sin(x))
    >>> bank.ledger.cumulative_cost < bank.ledger.slot_cumulative_cost.min()  # the best kernel's
    np.True_
    """

    def __init__(
        self,
        dictionary: Any = None,
        learner: Any = None,
        combiner: Any = None,
        loss: Any = "squared",
        window: int = 10,
        regularization: float = 0.01,
        engine: Any = "serial",
        *,
        slots: Iterable[Slot] | None = None,
        dtype: str = "float64",
    ) -> None:
        owner = "KernelBank"
        remedy = "Give how many recent samples a cost looks at, such as 10."
        width = check.count("window", window, owner, remedy)
        remedy = "Give 0 or a small positive number, such as 0.01."
        ridge = check.number("regularization", regularization, owner, remedy, least=0)
        check.choice("dtype", dtype, owner, ("float64", "float32"))
        self._objective = Objective(own_copy(as_loss(loss)), width, ridge, dtype)
        self._combiner = Simplex() if combiner is None else combiner
        if not isinstance(self._combiner, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Simplex()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, owner)
        given = bank_slots(dictionary, learner, slots)
        self._layout = Layout.of(replace(slot, kernel=own_copy(slot.kernel)) for slot in given)
        for slot in self._layout.slots:
            slot.learner.check_kernel(slot.kernel)
        for group in self._layout.groups:
            group.check(self._objective)
        self._engine = as_engine(engine)
        self._engine.check(self._combiner)
        self._work: Work | None = None
        self._dimension: int | None = None
        count = len(self._layout.slots)
        self._weights = np.array(self._combiner.first_weights(count), dtype=np.float64)
        if self._weights.shape != (count,):
            remedy = "Let first_weights(slots) return one weight a slot."
            raise check.refuse("combiner", f"start with {count} weights", combiner, remedy, owner)
        self._ledger = Ledger(self._objective, count, self._combiner.on_simplex, self._dropped)
        self._columns = self._layout.columns(list(self._layout.leaves))
        self._diagnostics = Diagnostics(self._layout.slots)
        self._names = SlotNames(self._layout.slots)
        self._at_work = False
        self._turn = threading.RLock()  # calls from several threads take turns
        domains = {slot.kernel: slot.kernel.domains for slot in self.slots}
        self._choosy = [kernel for kernel, names in domains.items() if names != _REAL]

    # --- looking ------------------------------------------------------------------------------

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots: one kernel and one learner each."""
        return self._layout.slots

    @property
    def names(self) -> tuple[str, ...]:
        """What the slots are, in words: place and kernel, and the learner where they differ."""
        return tuple(self._names)

    @property
    def dictionary(self) -> Dictionary:
        """The kernels of the slots."""
        return Dictionary([slot.kernel for slot in self.slots])

    @property
    def combiner(self) -> Combiner:
        """The rule for the weights."""
        return self._combiner

    @property
    def loss(self) -> losses.Loss:
        """The loss."""
        return self._objective.loss

    @property
    def window(self) -> int:
        """How many recent samples a cost looks at."""
        return self._objective.window

    @property
    def regularization(self) -> float:
        """Weight of half the squared norm in the cost."""
        return self._objective.regularization

    @property
    def weights(self) -> Floats:
        """(P,): the weights of the next proposal."""
        return self._weights.copy()

    def evidence(self) -> dict[str, Floats]:
        """By which figures the combiner has weighed the slots after the last sample.

        Small arrays by names that depend on the combiner, as its `diagnostics` says: Simplex the
        curvature and the linear part of its program, Joint its certificate, Hedge its sums of
        losses and its rate. Before the first sample they are those of an empty state.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3))
        >>> bank.learn_one(0.0, 1.0)
        >>> {name: array.shape for name, array in bank.evidence().items()}
        {'curvature': (3,), 'linear': (3,)}
        """
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            if self._work is not None:
                memory = self._work.memory
            else:
                shapes = self._combiner.shapes(len(self.slots))
                memory = {name: np.zeros(shape) for name, shape in shapes.items()}
            return self._combiner.diagnostics(memory, self._weights.copy())

    @property
    def ledger(self) -> Ledger:
        """What has been charged so far."""
        return self._ledger

    @property
    def samples(self) -> int:
        """How many samples have been learned."""
        return self._ledger.samples

    @property
    def quarantined(self) -> tuple[int, ...]:
        """The slots that became non-finite and are out for good."""
        return tuple(int(p) for p in np.flatnonzero(np.isinf(self._ledger.slot_cumulative_cost)))

    def plot_weights(self, most: int = 15) -> Figure:
        """The present weights as bars; see `kb.plots.bars`."""
        return plots().bars(self, most)

    def status(self) -> Status:
        """What the bank is, how well it does and which slots carry it, at this moment.

        >>> import kernelbank as kb
        >>> kb.KernelBank(kb.gaussian_grid(1, 2, 3)).status().settings["window"]
        '10'
        """
        if inside_callback():  # by a bank that is learning, perhaps this one: do not wait for it
            return Status(self._title())
        with self._turn:
            return bank_status(
                self._title(),
                self._objective,
                self._names,
                self.slots,
                self._combiner,
                self._engine,
                self._ledger,
                self._weights,
                self._dimension,
            )

    def _title(self) -> str:
        return (
            f"KernelBank({len(self.slots)} slots, {full_name(self._combiner)}, "
            f"{full_name(self.loss)}, window={self.window}, "
            f"regularization={self.regularization:g}, {self.samples} samples)"
        )

    def __repr__(self) -> str:
        return self.status().text()

    def _repr_html_(self) -> str:
        return self.status().html()

    # --- predicting ---------------------------------------------------------------------------

    def predict_one(self, x: Any) -> float:
        """The proposal at one input, a number or a (d,) array. Learns nothing.

        `learn_one` of the same input right afterwards does not evaluate the kernels again.
        """
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            work = self._work
            if work is None:
                return float(self._predict(check.one_sample(x, self._dimension), "x")[0])
            if work.door is not None and isfinite(value := work.door.look(x)):
                return value
            point = check.one_sample(x, self._dimension)
            self._check_domain(point, "x")
            work.workspace.query_point[:] = point[0]
            if not work.callbacks:
                work.executor.predict_query(self._ledger.samples)
                return float(work.blended[0])
            self._at_work = True
            try:
                with defer_sigint():
                    work.executor.predict_query(self._ledger.samples)
                    work.check()
            except BaseException:
                work.executor.forget_query()
                raise
            finally:
                self._at_work = False
            return float(work.blended[0])

    def predict_slots_one(self, x: Any) -> tuple[float, Floats]:
        """The proposal at one input, and (P,) what every slot says. Learns nothing.

        The slots' values can be given back to `learn_one`, if the target comes late.
        """
        with self._turn:
            proposal = self.predict_one(x)
            if self._work is None:
                return proposal, np.zeros(len(self.slots))
            return proposal, self._work.workspace.slot_values.copy()

    def predict(self, X: Any) -> Floats:
        """(n,): the proposals at the rows of an (n, d) array. Learns nothing."""
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            return self._predict(check.samples(X, self._dimension), "X")

    def predict_slots(self, X: Any) -> Floats:
        """(n, P): the estimate of every slot at the rows of an (n, d) array. Learns nothing."""
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            points = check.samples(X, self._dimension)
            self._check_domain(points, "X")
            return self._evaluate(points, np.ones(len(self.slots)))

    def predict_variance_slots(self, X: Any) -> Floats:
        """(n, P): predictive variance of every slot's function, NaN for methods without one.

        For `KRLSTracker` in the target's units squared; for the recursive least squares in units
        of the noise's variance. Learns nothing.
        """
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            points = check.samples(X, self._dimension)
            self._check_domain(points, "X")
            if self._work is None:
                return np.full((len(points), len(self.slots)), np.nan)
            variances = self._work.executor.variance(points)
            self._work.check()
            return variances

    def _predict(self, points: Floats, name: str) -> Floats:
        self._check_domain(points, name)
        out = np.empty(len(points))
        for start in range(0, len(points), SLIDE_PERIOD):  # so that (n, P) arrays stay small
            some = points[start : start + SLIDE_PERIOD]
            weights = np.repeat(self._weights[None, :], len(some), axis=0)
            values = self._evaluate(some, self._weights)
            if not np.isfinite(values[:, self._weights != 0]).all():
                values = self._evaluate(some, np.ones(len(self.slots)))
                hot.admit(weights, values, self._combiner.on_simplex)
            score.blend(weights, values, self._columns, out[start : start + SLIDE_PERIOD])
        return out

    def _evaluate(self, points: Floats, wanted: Floats) -> Floats:
        if self._work is None:
            return np.zeros((len(points), len(self.slots)))
        values = self._work.executor.evaluate(self.samples, points, wanted)
        self._work.check()
        return values

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, past_predictions: Any = None) -> None:
        """Play one round: charge the present proposal for the sample, then learn it.

        past_predictions : (P,), for a target that comes late: what `predict_slots_one` gave for the slots when the
            question was asked. Combiners and losses one step ahead then judge the slots by that,
            not by what they would say now that they have learned other samples. A slot for which it
            holds NaN or infinity is judged by what it says now.
        """
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            work = self._work
            if past_predictions is not None:
                self._learn_late(x, y, past_predictions)
                return
            door = None if work is None or work.was_reset else work.door
            if door is not None and (told := door.learn(x, y)):
                assert work is not None
                if told == NEWS:
                    self._diagnostics.look(self._ledger, work.executor, self._ledger.samples - 1)
                return
            X = check.one_sample(x, self._dimension)
            target = check.one_target(y)
            self._check_samples(X, target, "x")
            rounds.run_block(self, X, target)

    def _learn_late(self, x: Any, y: Any, past_predictions: Any) -> None:
        X = check.one_sample(x, self._dimension)
        target = check.one_target(y)
        remedy = "Give the second of what predict_slots_one returned."
        values = check.floats("past_predictions", past_predictions, remedy)
        if values.shape != (len(self.slots),):
            raise check.refuse(
                "past_predictions", f"hold {len(self.slots)} values", values.shape, remedy
            )
        check.within_range("past_predictions", np.where(np.isfinite(values), values, 0.0))
        self._check_samples(X, target, "x")
        workspace = self._open(X[0]).workspace
        workspace.past_predictions[0] = values
        workspace.has_past_predictions[0] = 1.0
        try:
            rounds.run_block(self, X, target)
        finally:
            workspace.has_past_predictions[0] = 0.0

    def run(self, X: Any, y: Any, record: Any = "all") -> Trace:
        """Play a round for every row: propose, reveal, charge, learn, weigh.

        Parameters
        ----------
        X : (n, d), or (n,) for inputs of one number.
        y : (n,) targets.
        record : what the trace keeps: "all", "light" (nothing of size n * P), or a list of names.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and
        `learn_one`.
        """
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            points = check.samples(X, self._dimension)
            targets = check.targets(y, len(points))
            fields = chosen_fields(record)
            self._check_samples(points, targets, "X")
            trace = Trace(len(points), self._names, fields)
            done = 0
            for block in rounds.announced(self, points, targets, fields):
                rounds.run_block(self, block.points, block.targets)
                rounds.record(self, trace, done, len(block.points))
                done += len(block.points)
        return trace

    def _check_samples(self, X: Floats, y: Floats, name: str) -> None:
        self._check_domain(X, name)
        self._objective.loss.check_targets(y)

    def _check_domain(self, X: Floats, name: str) -> None:
        if self._work is None:  # later inputs are as wide as the first
            for slot in self.slots:
                slot.kernel.check_width(X.shape[1], name)
        for kernel in self._choosy:
            kernel.check_inputs(X, name)

    def _open(self, first_input: Floats) -> Work:
        return rounds.opened(self, first_input)

    def _refuse_inside(self) -> None:
        """A function that the bank has called must not call the bank."""
        if inside_callback():
            raise KernelBankError(
                "A function that a bank calls has called the same bank. Let kernels, losses, "
                "learners and combiners depend on their arguments only."
            )

    def _dropped(self) -> Floats:
        return np.zeros(len(self.slots)) if self._work is None else self._work.executor.dropped()

    def fresh(self) -> KernelBank:
        """A bank with the same settings that has learned nothing."""
        return KernelBank(**self._settings())

    def _settings(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "combiner": self._combiner,
            "loss": self.loss,
            "window": self.window,
            "regularization": self.regularization,
            "engine": self._engine,
            "dtype": self._objective.dtype,
        }

    def with_inputs(self, dimension: int, slots: Iterable[Slot] | None = None) -> KernelBank:
        """A bank on inputs with more columns that goes on from this one.

        The new columns stand behind the others, and all is as if they had been 0 until now. So
        they belong to slots that can take them up: those of all learners but the ones on random
        features, with a kernel that does not change by columns of zeros. Others must have a kernel
        `ActiveDims` the columns that they know.

        Parameters
        ----------
        dimension : how many columns there are from now on.
        slots : as many as there are, each with the kernel that it has from now on; by default they
            have those of today, which see what comes if they are not `ActiveDims` some columns.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
        >>> for n in range(20):
        ...     bank.learn_one([n / 10], n / 5)
        >>> wider = bank.with_inputs(2)
        >>> wider.predict_one([1.0, 0.0]) == bank.predict_one([1.0])
        True
        """
        remedy = "Give how many columns inputs have from now on."
        least = 1 if self._dimension is None else self._dimension
        width = check.count("dimension", dimension, "with_inputs", remedy, least=least)
        given = self.slots if slots is None else tuple(slots)
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            wider = KernelBank(**{**self._settings(), "slots": given})
            if self._dimension is not None:
                for slot in given:
                    slot.kernel.check_width(width, "dimension")
                state.check_wider(self, wider, width)
                wider._open(np.zeros(width))
                state.widen(self, wider)
            return wider

    def reset(self) -> None:
        """Forget everything that was learned: the bank is then as `fresh` would make it.

        It keeps the arrays that it works with, so this takes less time. A bank with models behind
        an `Adapter` cannot forget what is theirs, and refuses.
        """
        for place, slot in enumerate(self.slots):
            if not slot.learner.saveable:
                raise KernelBankError(
                    f"This bank cannot be reset: slot {place} is {slot.learner!r}, whose state is "
                    "not arrays. Make a new one: bank.fresh()."
                )
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            self._weights[:] = self._combiner.first_weights(len(self.slots))
            self._ledger.restore({k: np.zeros_like(v) for k, v in self._ledger.state().items()})
            self._diagnostics = Diagnostics(self.slots)
            if self._work is None:
                return
            self._work.workspace.recent[:] = 0.0
            for array in self._work.memory.values():
                array[...] = 0.0
            self._work.executor.reset()
            self._work.was_reset = True

    # --- saving -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next round depends on to one file, atomically.

        `kb.load(path)` goes on bit for bit. The file holds arrays and JSON, no code.
        """
        header, state = self._description()
        checkpoint.write(path, header, state)

    def _description(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Everything that the next round depends on: settings as plain data, and arrays."""
        for place, slot in enumerate(self.slots):
            if not slot.learner.saveable:
                raise KernelBankError(
                    f"This bank cannot be saved: slot {place} is {slot.learner!r}, whose state is "
                    "not arrays. Save a bank without such slots, and keep the model yourself."
                )
        check_names([self.loss, self._combiner, *self.slots])
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            return state.described(self), self._state()

    def _state(self) -> dict[str, Floats]:
        """Copies of all arrays that the next round depends on."""
        return state.arrays(self)

    def _restore(self, arrays: Mapping[str, Floats]) -> None:
        state.write(self, arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """For copy and pickle, which keep parts of your own and models behind adapters too."""
        if self._at_work:
            self._refuse_inside()
        with self._turn:
            models = None if self._work is None else self._work.executor.copy_models()
            notices = sorted(self._diagnostics.said)
            kept = (self._settings(), self._dimension, notices, self._state(), models)
            return KernelBank._revived, kept

    @classmethod
    def _revived(
        cls,
        settings: Mapping[str, Any],
        dimension: int | None,
        said: Iterable[str],
        arrays: Mapping[str, Floats],
        models: Any,
    ) -> KernelBank:
        bank = cls(**settings)
        if dimension is not None:
            work = bank._open(np.zeros(dimension))
            work.executor.restore_models(models)
        bank._restore(arrays)
        bank._diagnostics.said = set(said)
        return bank


_REAL = frozenset(["real"])
