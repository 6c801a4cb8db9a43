"""`KernelBank`: slots that learn a stream on their own, and weights that combine them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from .. import losses
from ..combiners import Combiner
from ..errors import HalfLearned, KernelBankError
from ..io import checkpoint
from ..io.specs import check_names
from ..kernels.dictionary import Dictionary
from ..native.callbacks import inside_callback
from ..utils import validation as check
from ..utils.interrupts import defer_signals
from ..utils.lazy import plots
from ..utils.validation import Floats
from ..utils.whole_steps import CutOff, new_turn, whole_step
from . import serialization
from .adaptive_dictionary import DictionaryState
from .engines import Engine
from .layout import Slot, given_slots
from .naming import SlotNames
from .output_changes import (
    has_room,
    negated,
    output_sources,
    start_output,
    with_outputs,
)
from .outputs import make_runtime
from .settings import BankSettings
from .slot_changes import Samples, SlotPlan, changed_settings, continue_with, plan_change
from .slot_history import SlotHistory
from .status import Status, bank_status, bank_title
from .trace import Trace, chosen_fields
from .widening import check_wider, widened_arrays

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NO_SLOTS: dict[str, Any] = {"dictionary": None, "learner": None, "slots": None}

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _exclusive(method: _Method) -> _Method:
    """Let calls from several threads take turns, and refuse calls from inside the same bank."""

    @wraps(method)
    def guarded(self: KernelBank, *args: Any, **kwargs: Any) -> Any:
        if self._runtime.busy:
            _refuse_inside()
        with self._turn:
            return method(self, *args, **kwargs)

    return cast(_Method, guarded)


def _refuse_inside() -> None:
    """A function that the bank has called must not call the bank."""
    if inside_callback():
        raise KernelBankError(
            "A function that a bank calls has called the same bank. Let kernels, losses, "
            "learners and combiners depend on their arguments only."
        )


class KernelBank:
    """A bank of kernels that learns from a stream: one online learner per kernel, combined by
    weights that change with every sample.

    For each sample the bank predicts with f = sum_p w_p f_p. Then the target arrives. The cost of
    the prediction is the loss of f on the window plus regularization / 2 * sum_p w_p^2 |f_p|^2.
    Every slot learns from the window, without reading the weights, and the combiner chooses new
    weights.

    Parameters
    ----------
    dictionary : the kernels, a `Dictionary` or a list of kernels, or an `AdaptiveDictionary`, of
        which some kernels run at a time. By default 20 Gaussians with widths from 0.1 to 10 in
        equal ratios.
    learner : the method of every slot; by default `Norma()`.
    combiner : the rule for the weights; by default `Simplex()`, the paper's.
    loss : a loss or its name, such as "squared", "huber", "logistic".
    window : how many recent samples a cost is taken over.
    regularization : weight of half the squared norm in the cost, at least 0.
    engine : where the slots run: "serial", "threads" for large dictionaries, or "ray" for more than
        one process or machine (`kb.engines.Ray`). Same bits.
    slots : instead of dictionary and learner, a list of `Slot`, to mix methods.
    dtype : "float64", or "float32" to keep Norma's kernel values and coefficients in half the
        memory, at an error of about 1e-7 of their size. The arithmetic is double in both.
    outputs : how many targets a sample has, K. Every slot then has K functions, and every output
        its own weights, ledger and evidence: targets are (n, K), and all results have an axis of
        outputs, as (n, K) predictions and (K, P) weights. `loss` may be a list with one for each
        output. What learners compute from the inputs alone they compute once (see
        docs/learners.md); every output has the bits of a bank of its own. A target may be missing
        (NaN): that output does not learn the sample, if window is 1.
    initial : (points, coefficients), where the slots start instead of at 0: slot p at
        f_p = sum_j coefficients[j, p] k_p(points[j], .), for points (m, d) and coefficients (m, P),
        or (m,) for all slots. For learners on random features their features stand for k. Norma
        and the learners on centres take the points for samples before the stream: they decay, count
        for the budget and are dropped like others. The weights are uniform at first as always.

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101).

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
        initial: Any = None,
        outputs: int = 1,
    ) -> None:
        settings = BankSettings.checked(
            dictionary,
            learner,
            combiner,
            loss,
            window,
            regularization,
            engine,
            slots,
            dtype,
            initial,
            outputs,
        )
        self._use(settings, make_runtime(settings))
        self._turn = new_turn(self)

    def _use(self, settings: BankSettings, runtime: Any) -> None:
        """Be the bank with these settings and this runtime: a `Runtime` or an `OutputRuntime`."""
        self._settings, self._runtime = settings, runtime
        self._names = SlotNames(settings.slots)

    # --- settings and results -----------------------------------------------------------------

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots."""
        return self._settings.slots

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the slots: "[index] kernel", and the learner where learners differ."""
        return tuple(self._names)

    @property
    def dictionary(self) -> Dictionary:
        """The kernels of the slots."""
        return Dictionary([slot.kernel for slot in self.slots])

    @property
    def combiner(self) -> Combiner:
        """The rule for the weights."""
        return self._settings.combiner

    @property
    def loss(self) -> losses.Loss:
        """The loss."""
        return self._settings.loss

    @property
    def window(self) -> int:
        """How many recent samples a cost is taken over."""
        return self._settings.objective.window

    @property
    def regularization(self) -> float:
        """Weight of half the squared norm in the cost."""
        return self._settings.objective.regularization

    @property
    def outputs(self) -> int:
        """How many targets a sample has, K."""
        return self._settings.outputs

    @property
    def weights(self) -> Floats:
        """(P,): the weights of the next prediction; (K, P) for several outputs."""
        return self._runtime.weights.copy()

    @_exclusive
    def evidence(self) -> dict[str, Floats]:
        """The quantities by which the combiner has chosen the weights after the last sample.

        Small arrays by name, as `Combiner.diagnostics` of the combiner says: Simplex returns the
        curvature and the linear term of its program, Joint its certificate, Hedge its cumulative
        losses and its rate. Before the first sample they are those of an empty state.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3))
        >>> bank.learn_one(0.0, 1.0)
        >>> {name: array.shape for name, array in bank.evidence().items()}
        {'curvature': (3,), 'linear': (3,)}
        """
        return self._runtime.evidence()

    @property
    def ledger(self) -> Any:
        """The costs and losses so far: a `Ledger`, or an `OutputLedger` for several outputs."""
        return self._runtime.ledger

    @property
    def samples(self) -> int:
        """How many samples have been learned."""
        return self.ledger.samples

    @property
    def _dimension(self) -> int | None:
        """Columns of the inputs; None before the first sample, unless the bank has an initial f."""
        known, initial = self._runtime.dimension, self._settings.initial
        return initial.points.shape[1] if known is None and initial is not None else known

    @property
    def quarantined(self) -> tuple[int, ...]:
        """The slots that became non-finite and are out for good."""
        return self.ledger.quarantined

    def plot_weights(self, most: int = 15) -> Figure:
        """The present weights as bars; see `kb.plots.bars`."""
        return plots().bars(self, most)

    def status(self) -> Status:
        """What the bank is, how well it does and which slots carry it, at this moment.

        >>> import kernelbank as kb
        >>> kb.KernelBank(kb.gaussian_grid(1, 2, 3)).status().settings["window"]
        '10'
        """
        if inside_callback():  # of a bank that is learning, perhaps this one: do not wait for it
            return Status(bank_title(self._settings, self.samples))
        with self._turn:
            return bank_status(self._settings, self._runtime, self._names)

    def __repr__(self) -> str:
        try:
            return self.status().text()
        except HalfLearned as error:
            return f"KernelBank: {error}"

    def _repr_html_(self) -> str:
        return self.status().html()

    # --- predicting ---------------------------------------------------------------------------

    def predict_one(self, x: Any) -> Any:
        """The prediction at one input, a number or a (d,) array. Learns nothing.

        A float; for several outputs (K,).

        `learn_one` of the same input right afterwards does not evaluate the kernels again.
        """
        runtime = self._runtime
        if runtime.busy:
            _refuse_inside()
        with self._turn:
            if isfinite(value := runtime.predict_plain(x)):
                return value
            point = check.one_sample(x, self._dimension)
            self._check_inputs(point, "x")
            runtime.open_for_queries()
            if not runtime.is_open:
                return runtime.predict(point)[0] if self.outputs > 1 else 0.0
            return runtime.predict_one(point[0])

    def predict_slots_one(self, x: Any) -> tuple[Any, Floats]:
        """The prediction at one input, and (P,) the predictions of all slots. Learns nothing.

        For several outputs (K,) and (K, P).

        The slots' predictions can be given to `learn_one` later, if the target is delayed.
        """
        with self._turn:
            prediction = self.predict_one(x)
            if not self._runtime.is_open:
                return prediction, np.zeros(self.weights.shape)
            return prediction, self._runtime.query_slots

    @_exclusive
    def predict(self, X: Any) -> Floats:
        """(n,): the predictions at the rows of an (n, d) array. Learns nothing.

        For several outputs (n, K).
        """
        return self._runtime.predict(self._checked_inputs(X))

    @_exclusive
    def predict_slots(self, X: Any) -> Floats:
        """(n, P): the prediction of every slot at the rows of an (n, d) array. Learns nothing.

        For several outputs (n, K, P).
        """
        return self._runtime.evaluate(self._checked_inputs(X), np.ones(len(self.slots)))

    @_exclusive
    def predict_variance_slots(self, X: Any) -> Floats:
        """(n, P): predictive variance of every slot's function, NaN for methods without one.

        Without the noise, and in units of the noise's variance. Learns nothing.
        """
        return self._runtime.variance(self._checked_inputs(X))

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, past_predictions: Any = None) -> None:
        """Learn one sample, after the cost of the present prediction has been taken.

        y : a number; for several outputs (K,), NaN where a target is missing.
        past_predictions : (P,), or (K, P), for a delayed target: what `predict_slots_one` returned
            for the slots when this input was predicted. The combiner and the one-step-ahead losses
            then judge the slots by these, not by what they would predict now. Where it holds NaN or
            infinity, the slot's present prediction counts.
        """
        runtime = self._runtime
        if runtime.busy:
            _refuse_inside()
        with self._turn:
            revised = runtime.weight_sums is not None
            if revised:
                self._revise_if_due()
                runtime = self._runtime
            if past_predictions is None and runtime.learn_one(x, y):
                if revised:
                    self._revise_if_due()
                return
            point = check.one_sample(x, self._dimension)
            target = self._checked_targets(y, 1, one=True)
            past = past_predictions
            if past is not None:
                past = self._settings.check_past_predictions(past)[None]
            self._check_inputs(point, "x")
            self._run_block(point, target, past)

    @_exclusive
    def run(self, X: Any, y: Any, record: Any = "all") -> Trace:
        """Predict and learn every row in turn.

        Parameters
        ----------
        X : (n, d), or (n,) for inputs of one number.
        y : (n,) targets; (n, K) for several outputs.
        record : what the trace keeps: "all", "light" (nothing of size n * P), or a list of names.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and
        `learn_one`.
        """
        points = check.samples(X, self._dimension)
        targets = self._checked_targets(y, len(points))
        fields = chosen_fields(record)
        self._check_inputs(points, "X")
        trace = Trace(len(points), self._names, fields, outputs=self.outputs)
        done = 0
        self._revise_if_due()
        while done < len(points):
            runtime, end = self._runtime, len(points)
            if self._settings.dictionary is not None:  # no block goes beyond a revision
                end = min(end, done + self._settings.dictionary.until_revision(self.samples))
            for block in runtime.iter_blocks(points[done:end], targets[done:end], fields):
                self._run_block(block.points, block.targets)
                runtime.record(trace, done, len(block.points))
                done += len(block.points)
            if self._runtime is not runtime:
                trace.rename(done, self._names)
        return trace

    def _checked_targets(self, y: Any, count: int, *, one: bool = False) -> Floats:
        """(n,) targets, or (n, K) for several outputs."""
        if self.outputs == 1:
            targets = check.one_target(y) if one else check.targets(y, count)
            self.loss.check_targets(targets)
            return targets
        return self._settings.check_output_targets(y, count, one=one)

    def _run_block(self, X: Floats, y: Floats, past_predictions: Floats | None = None) -> None:
        """Learn a block whole, or not at all; then revise the slots if that is due."""
        runtime = self._runtime
        if runtime.undoes_blocks:
            runtime.run_block(X, y, past_predictions)
            self._revise_if_due()
            return
        with whole_step(self):
            runtime.run_block(X, y, past_predictions)
            self._revise_if_due()

    def _revise_if_due(self) -> None:
        """Exchange slots at the sample numbers that an adaptive dictionary has for it.

        A revision that fails leaves the slots as they are; it is made before the next sample.
        """
        dictionary, state = self._settings.dictionary, self._settings.dictionary_state
        if dictionary is None or state is None or not dictionary.is_due(state, self.samples):
            return
        with whole_step(self):
            sums, settings = self._runtime.weight_sums, self._settings
            revision = dictionary.revise(state, sums, self.quarantined, self.samples)
            if not revision.added:
                self._settings = replace(settings, dictionary_state=revision.state)
                self._runtime.clear_weight_sums()
                return
            slots = settings.member_slots(revision.state)
            places = range(len(slots))
            kept = [None if place in revision.added else place for place in places]
            plan = plan_change(settings, self._slot_costs(), slots, kept, places)
            reasons = {"retired": revision.retired, "added": revision.added}
            self._use(*self._continued(slots, plan, reasons, revision.state))

    def _slot_costs(self) -> Floats:
        """(P,): the slots' cumulative costs, summed over the outputs."""
        costs: Floats = self.ledger.slot_cumulative_cost
        return costs if self.outputs == 1 else costs.sum(axis=0)

    def _before_step(self) -> None:
        """The runtime undoes what has to be undone."""

    def _failed_step(self, before: Any, error: BaseException) -> None:
        if self._runtime.is_cut_off:
            self._cut_off(f"a block was cut off by {error!r}")

    def _cut_off(self, why: str) -> None:
        self._runtime = cast(Any, CutOff(why))

    def _checked_inputs(self, X: Any) -> Floats:
        points = check.samples(X, self._dimension)
        self._check_inputs(points, "X")
        return points

    def _check_inputs(self, X: Floats, name: str) -> None:
        self._settings.check_inputs(X, name, first=not self._runtime.is_open)

    # --- other banks --------------------------------------------------------------------------

    def fresh(self) -> KernelBank:
        """A bank with the same settings that has learned nothing."""
        return KernelBank(**self._settings.arguments())

    @_exclusive
    def with_inputs(self, dimension: int, slots: Iterable[Slot] | None = None) -> KernelBank:
        """A bank on inputs with more columns that continues from this one.

        The new columns come after the others, and count as 0 until now. They are seen by slots
        that can use them: those with a learner that is not on random features, and a kernel that
        does not change by columns of zeros. Other slots must have a kernel `ActiveDims` on the
        columns that they know.

        Parameters
        ----------
        dimension : the number of columns from now on.
        slots : as many as there are, each with its kernel from now on; by default the present
            ones, which see the new columns unless their kernels are `ActiveDims`.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
        >>> for n in range(20):
        ...     bank.learn_one([n / 10], n / 5)
        >>> wider = bank.with_inputs(2)
        >>> wider.predict_one([1.0, 0.0]) == bank.predict_one([1.0])
        True
        """
        known = self._runtime.dimension
        remedy = "Give how many columns inputs have from now on."
        width = check.count(
            "dimension", dimension, "with_inputs", remedy, least=self._dimension or 1
        )
        self._refuse_revised("with_inputs")
        given = self.slots if slots is None else tuple(slots)
        arguments = {**self._settings.arguments(), "slots": given}
        if self._settings.initial is not None:
            arguments["initial"] = self._settings.initial.with_columns(width).argument()
        wider = KernelBank(**arguments)
        wider._use_history(self._settings.history, None)
        if known is not None:
            wider._settings.check_width(width, "dimension")
            layout = wider._settings.layout
            check_wider(self._settings.layout, known, layout, width)
            wider._runtime.open(np.zeros(width))
            arrays = self._runtime.changed_arrays(
                wider._runtime, lambda old, new: widened_arrays(layout, old, new)
            )
            models = self._runtime.copy_models()
            wider._continue_from(width, self._runtime.warned, arrays, models)
        return wider

    @_exclusive
    def with_slots(
        self,
        slots: Iterable[Slot],
        kept: Iterable[int | None],
        elders: Iterable[int | None] | None = None,
        replay: tuple[Any, Any] | None = None,
    ) -> KernelBank:
        """A bank with other slots that continues from this one.

        A slot that is kept goes on bit for bit, whatever its index. A new slot on the residual of
        one that is kept starts at the function of its base. Every other new slot first learns the
        samples that the bank still holds, as if the stream had begun with the oldest of them: those
        since the last multiple of 256, and before them as many as the slots need (`budget` of
        Norma) or a window.

        New slots have weight 0 until the next sample, and the weights of the others are scaled to
        sum 1, if the combiner keeps them on the simplex; without any weight left, all weights are
        those of a new bank. The combiner judges a new slot like its
        elder at first, and the ledger's totals of a new slot go on from those of its elder, so
        that all totals are over all samples; `ledger.slot_since` tells when each slot was added.

        Parameters
        ----------
        slots : all slots from now on, with `residual_of` in their new order. A slot cannot be
            retired while another learns its residual.
        kept : for each of them the index, in this bank, of the slot that it continues, or None if
            it is new.
        elders : for each of them the index, in this bank, of its elder; only those of new slots
            count. None, for one or all: the base for a slot with `residual_of`, else the slot of
            the highest cumulative cost, so that a new slot has to earn its weight. In the place of
            an elder that is quarantined it is also that one.
        replay : the newest samples of the stream, inputs (m, d) and targets, which new slots learn
            instead of those that the bank holds.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank([kb.kernels.Gaussian(w) for w in (0.1, 1.0, 10.0)])
        >>> for n in range(100):
        ...     bank.learn_one(n / 10, n % 20 < 10)
        >>> finer = kb.Slot(kb.kernels.Gaussian(0.5), kb.learners.Norma())
        >>> other = bank.with_slots([bank.slots[0], finer, bank.slots[1]], kept=[0, None, 1])
        >>> other.samples, other.ledger.slot_since
        (100, (0, 100, 0))
        >>> other.predict_slots_one(3.0)[1][2] == bank.predict_slots_one(3.0)[1][1]
        np.True_
        """
        self._refuse_revised("with_slots")
        given = given_slots(slots, "with_slots", "Give a list of kb.Slot, such as bank.slots.")
        plan = plan_change(self._settings, self._slot_costs(), given, kept, elders)
        other = KernelBank(**self._settings.arguments() | {"slots": given})
        samples = None if replay is None else self._checked_replay(*replay)
        other._use(*self._continued(given, plan, {}, replay=samples))
        return other

    def _checked_replay(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """(m, d) and (m, outputs): the newest samples, for new slots to begin with."""
        points, targets = self._checked_inputs(X), np.asarray(y, dtype=np.float64)
        targets = targets.reshape(len(targets), -1)
        if targets.shape != (len(points), self.outputs):
            remedy = "Give as many targets as inputs."
            rule = f"have {len(points)} rows of {self.outputs}"
            raise check.refuse("replay", rule, targets.shape, remedy, "with_slots")
        return points, targets

    @_exclusive
    def _new_output(self, first: int, first_input: Floats, past_target: float) -> KernelBank:
        """A bank for one more output with targets (n,), alone; see `_add_output`.

        first : the number of the first sample that it learns, up to the present one.
        past_target : the target of those before it.
        """
        bank = KernelBank(**self._settings.arguments() | {"outputs": 1, "loss": self.loss})
        bank._use(*start_output(self._settings, first, first_input, past_target))
        return bank

    @_exclusive
    def _add_output(self, other: KernelBank) -> None:
        """Have one more output, that of a bank which has learned its targets up to now."""
        (source,) = output_sources(other._runtime)
        settings = replace(self._settings, outputs=self.outputs + 1)
        if has_room(self._runtime):
            source.restore(self._runtime.add(settings))
            self._use(settings, self._runtime)
        else:
            sources = [*output_sources(self._runtime), source]
            self._use(*with_outputs(self._settings, self._runtime, sources))

    @_exclusive
    def _add_first_output(self, other: KernelBank | None) -> None:
        """Have an output before the present one: that of a bank, or by default its negative."""
        (present,) = output_sources(self._runtime)
        if other is None:
            first = negated(self._settings, present)
        else:
            (first,) = output_sources(other._runtime)
        self._use(*with_outputs(self._settings, self._runtime, [first, present]))

    def _refuse_revised(self, method: str) -> None:
        if self._settings.dictionary is not None:
            remedy = "Give all columns from the start, and a pool with all kernels."
            rule = "be a plain one for a bank whose inputs or slots are changed from outside"
            raise check.refuse("dictionary", rule, self._settings.dictionary, remedy, method)

    def _continued(
        self,
        slots: Sequence[Slot],
        plan: SlotPlan,
        reasons: Mapping[str, Mapping[int, str]],
        state: DictionaryState | None = None,
        replay: Samples | None = None,
    ) -> tuple[BankSettings, Any]:
        """Settings and runtime that continue with other slots."""
        new = changed_settings(self._settings, self.samples, slots, plan, reasons, state)
        return new, continue_with(self._runtime, self._settings, new, plan, replay)

    @_exclusive
    def reset(self) -> None:
        """Forget everything that was learned: the bank is then as `fresh` would make it.

        It keeps its arrays, so this is faster. A bank with models behind an `Adapter` cannot
        reset them, and refuses.
        """
        self._settings.check_saveable("reset", "Make a new one: bank.fresh().")
        with defer_signals():
            if self._settings.dictionary is not None:
                settings = BankSettings.checked(**_NO_SLOTS | self._settings.arguments())
                self._use(settings, make_runtime(settings))
            else:
                self._runtime.reset()

    def _reset_for(self, outputs: int) -> bool:
        """Be a bank with that many outputs that has learned nothing, if that is cheap; whether."""
        if outputs < self.outputs or (outputs > self.outputs == 1):
            return False
        self.reset()
        with defer_signals():
            while self.outputs < outputs:
                if not has_room(self._runtime):
                    return False
                settings = replace(self._settings, outputs=self.outputs + 1)
                self._runtime.add(settings)
                self._use(settings, self._runtime)
        return True

    # --- saving -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next sample depends on to one file, atomically.

        `kb.load(path)` continues bit for bit. The file holds arrays and JSON, no code.
        """
        header, arrays = self._describe()
        checkpoint.write(path, header, arrays)

    @_exclusive
    def _describe(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Everything that the next sample depends on: settings as JSON data, and arrays."""
        remedy = "Save a bank without such slots, and keep the model yourself."
        self._settings.check_saveable("saved", remedy)
        pool = () if self._settings.dictionary is None else self._settings.dictionary.kernels
        check_names([self.loss, self.combiner, *self.slots, *pool])
        dimension, arrays = self._kept_state()
        header = {
            **serialization.describe_settings(self._settings),
            "dimension": dimension,
            "warned": sorted(self._runtime.warned),
            **self._settings.history.describe(),
        }
        return header, arrays

    def _kept_state(self) -> tuple[int | None, dict[str, Floats]]:
        """Columns of the inputs, and the arrays. Without samples it is the state of a new bank."""
        arrays = self._state()
        if self.samples:
            return self._runtime.dimension, arrays
        return None, {name: arrays[name] for name in self._runtime.array_specs(None)}

    @classmethod
    def _restored(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, Floats],
        engine: Engine,
        components: Mapping[str, Any],
        most_memory: int,
    ) -> KernelBank:
        """The bank that `_describe` described, checked in every respect; see `kb.load`."""
        bank = cls(**serialization.parse_settings(header, arrays, components), engine=engine)
        dimension = header["dimension"]
        state, dictionary = None, bank._settings.dictionary
        if dictionary is not None:
            state = DictionaryState.parse(header["dictionary_state"], dictionary)
        bank._use_history(SlotHistory.parse(header, len(bank.slots)), state)
        serialization.check_state(bank._settings, bank._runtime, dimension, arrays, most_memory)
        bank._settings.history.check(int(arrays["ledger/running"][-1]))
        bank._continue_from(dimension, (str(name) for name in header["warned"]), arrays, None)
        return bank

    def _use_history(self, history: SlotHistory, state: DictionaryState | None) -> None:
        """Take over the history of another bank, and its members of an adaptive dictionary."""
        settings = self._settings if state is None else self._settings.with_members(state)
        settings = settings.with_history(history)
        self._use(settings, make_runtime(settings))

    def _state(self) -> dict[str, Floats]:
        """Copies of all arrays that the next sample depends on."""
        return self._runtime.arrays()

    def _continue_from(
        self,
        dimension: int | None,
        warned: Iterable[str],
        arrays: Mapping[str, Floats],
        models: Mapping[int, Any] | None,
    ) -> None:
        """Take over the state of another bank."""
        runtime = self._runtime
        if dimension is not None:
            runtime.open(np.zeros(dimension))
            if models is not None:
                runtime.restore_models(models)
        runtime.restore(arrays)
        runtime.warned = set(warned)

    @_exclusive
    def __reduce__(self) -> tuple[Any, ...]:
        """For copy and pickle, which keep user-made parts and models behind adapters too."""
        runtime = self._runtime
        dimension, arrays = self._kept_state()
        models = None if dimension is None else runtime.copy_models()
        state = (dimension, sorted(runtime.warned), arrays, models)
        settings = self._settings
        history = (settings.history, settings.dictionary_state)
        return _unpickled, (settings.arguments(), history, *state)


def _unpickled(arguments: Mapping[str, Any], history: tuple[Any, Any], *state: Any) -> KernelBank:
    bank = KernelBank(**arguments)
    bank._use_history(*history)
    bank._continue_from(*state)
    return bank
