"""`KernelBank`: slots that learn a stream on their own, and weights that combine them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from .. import _core
from ..combiners import Combiner
from ..errors import KernelBankError
from ..io import checkpoint
from ..io.specs import check_names
from ..kernels import Kernel
from ..losses import Loss
from ..utils import validation as check
from ..utils.validation import Floats
from . import serialization
from .diagnostics import Diagnostics
from .engines import Engine, Serial
from .engines.base import EngineBank, bank_from, with_models
from .ledger import Ledger
from .settings import BankSettings
from .slot import Slot, SlotNames, slot_tuple
from .slot_changes import Samples, check_wider, continue_with_slots
from .slot_history import continued_slots
from .status import Status, bank_status, bank_title
from .trace import Trace, chosen_fields

_LEARNED = 1
"""What the core returns for a sample after which there is nothing to check."""


class KernelBank:
    """A bank of kernels that learns from a stream: one online learner per kernel, combined by
    weights that change with every sample.

    For each sample the bank predicts with f = sum_p w_p f_p. Then the target arrives. The cost of
    the prediction is the loss of f on the window plus regularization / 2 * sum_p w_p^2 |f_p|^2.
    Every slot learns from the window, without reading the weights, and the combiner chooses new
    weights.

    Parameters
    ----------
    dictionary : a kernel or a list of kernels, or an `AdaptiveDictionary`, of
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

    _settings: BankSettings
    _bank: EngineBank | None
    _dimension: int | None
    _names: SlotNames
    _diagnostics: Diagnostics
    _plain: bool
    _lock: threading.RLock
    _process: int

    def __new__(cls, *arguments: object, **named: object) -> Self:
        self = super().__new__(cls)
        self._lock, self._process = threading.RLock(), os.getpid()
        return self

    def __init__(
        self,
        dictionary: object = None,
        learner: object = None,
        combiner: object = None,
        loss: object = "squared",
        window: int = 10,
        regularization: float = 0.01,
        engine: object = "serial",
        *,
        slots: Iterable[Slot] | None = None,
        initial: object = None,
        outputs: int = 1,
    ) -> None:
        bank = (dictionary, learner, combiner, loss, window, regularization, engine)
        self._use(BankSettings.checked(*bank, slots, initial, outputs))

    @classmethod
    def _of(cls, *state: Any) -> Self:
        """The bank with these settings and this state: the arguments of `_use`."""
        self = cls.__new__(cls)
        self._use(*state)
        return self

    def _use(
        self,
        settings: BankSettings,
        bank: EngineBank | None = None,
        dimension: int | None = None,
        warned: Iterable[str] = (),
    ) -> None:
        """Be the bank with these settings and this state; None: nothing is learned."""
        diagnostics = Diagnostics(settings.slots, settings.losses[0])
        diagnostics.warned = set(warned)
        if bank is not None and bank.samples:
            diagnostics.quarantined = Ledger.of(settings, bank).quarantined
        # At once: an interrupt must not leave a bank that is partly another one.
        self.__dict__.update(
            _settings=settings,
            _bank=bank,
            _dimension=dimension,
            _names=SlotNames(settings.slots),
            _diagnostics=diagnostics,
            # Whether the core can check and learn a sample by itself.
            _plain=settings.dictionary is None,
        )

    def _local(self) -> _core.Bank:
        """The bank of the core, in this process."""
        bank = self._bank
        assert bank is not None
        return bank if isinstance(bank, _core.Bank) else bank.to_local()

    def _state_from(
        self, settings: BankSettings, local: _core.Bank | None, dimension: int | None = None
    ) -> tuple[Any, ...]:
        """The arguments of `_use` to go on with other settings, from a bank in this process.

        dimension : columns of its inputs; by default as many as there are.
        """
        width, warned = dimension or self._dimension, self._diagnostics.warned
        if local is None or width is None:
            return settings, None, None, warned
        return settings, settings.engine.open(settings, width, local), width, warned

    # --- what the bank is ------------------------------------------------------------------------

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots."""
        return self._settings.slots

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the slots: "[index] kernel", and the learner where learners differ."""
        return tuple(self._names)

    @property
    def dictionary(self) -> list[Kernel]:
        """The kernels of the slots."""
        return [slot.kernel for slot in self.slots]

    @property
    def combiner(self) -> Combiner:
        """The rule for the weights."""
        return self._settings.combiner

    @property
    def loss(self) -> Loss:
        """The loss, of the first output."""
        return self._settings.losses[0]

    @property
    def window(self) -> int:
        """How many recent samples a cost is taken over."""
        return self._settings.window

    @property
    def regularization(self) -> float:
        """Weight of half the squared norm in the cost."""
        return self._settings.regularization

    @property
    def outputs(self) -> int:
        """How many targets a sample has, K."""
        return self._settings.outputs

    @property
    def dimension(self) -> int | None:
        """Columns of the inputs; None before the first sample, unless the bank has an initial f."""
        initial = self._settings.initial
        if self._dimension is None and initial is not None:
            return int(initial.points.shape[1])
        return self._dimension

    @property
    def identities(self) -> tuple[int, ...]:
        """Of every slot, a number that no other slot of the bank ever had. Random draws follow from
        it."""
        return self._settings.history.identities

    @property
    def no_missing_because(self) -> str:
        """Why targets must not be missing; empty if they may be."""
        return self._settings.no_missing_because

    @property
    def calls_python(self) -> bool:
        """Whether learning calls functions of the user's, which may fail."""
        settings = self._settings
        kernels = (slot.kernel for slot in settings.slots)
        parts: list[Loss | Kernel | Combiner] = [*settings.losses, *kernels, settings.combiner]
        in_core = all(slot.learner.core_name for slot in settings.slots)
        return any(part.in_python for part in parts) or not in_core

    # --- what it has learned ---------------------------------------------------------------------

    @property
    def samples(self) -> int:
        """How many samples have been learned."""
        return 0 if self._bank is None else self._bank.samples

    @property
    def weights(self) -> Floats:
        """(P,): the weights of the next prediction; (K, P) for several outputs."""
        if self._bank is None:
            weights = np.tile(self._settings.first_weights(), (self.outputs, 1))
        else:
            weights = self._bank.weights()
        return weights if self.outputs > 1 else weights[0]

    @property
    def ledger(self) -> Ledger:
        """The costs and losses so far, at this moment."""
        return Ledger.of(self._settings, self._bank)

    @property
    def quarantined(self) -> tuple[int, ...]:
        """The slots that became non-finite and are out for good."""
        return self.ledger.quarantined

    def evidence(self) -> dict[str, Floats]:
        """The quantities by which the combiner has chosen the weights after the last sample.

        Small arrays by name, as `Combiner.diagnostics` of the combiner says: Simplex returns the
        curvature and the linear term of its program, Joint its certificate, Hedge its cumulative
        losses and its rate. Before the first sample they are those of an empty state. For several
        outputs they have that axis first.

        >>> import kernelbank as kb
        >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3))
        >>> bank.learn_one(0.0, 1.0)
        >>> {name: array.shape for name, array in bank.evidence().items()}
        {'curvature': (3,), 'linear': (3,)}
        """
        settings, bank = self._settings, self._bank
        state = settings.empty_state() if bank is None else bank.state()
        shown = []
        for k, weights in enumerate(np.reshape(self.weights, (self.outputs, -1))):
            state_of_rule = serialization.under(f"output{k}/combiner/", state)
            shown.append(settings.combiner.diagnostics(state_of_rule, weights.copy()))
        if self.outputs == 1:
            return shown[0]
        return {name: np.array([arrays[name] for arrays in shown]) for name in shown[0]}

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all arrays that the next sample depends on, by name; none before the first."""
        return {} if self._bank is None else self._bank.state()

    def slot_state(self, slot: int) -> dict[str, np.ndarray]:
        """Copies of the arrays of the learner that a slot runs in, by name.

        Those of output k begin with "output<k>/", unless there is one output and the learner
        shares nothing. Slots that run side by side are along the last axis of arrays that have one.
        """
        remedy = "Give the index of a slot, from 0."
        index = check.count("slot", slot, "slot_state", remedy, least=0, most=len(self.slots) - 1)
        pack = next(i for i, members in enumerate(self._settings.packs) if index in members)
        begin = f"pack{pack}/learner/"
        bank = self._bank
        state = self._settings.empty_state() if bank is None else bank.state(begin)
        return serialization.under(begin, state)

    def state_bytes(self, dimension: int) -> int:
        """The bytes of all that the next sample depends on, for inputs of so many columns."""
        bank = self._bank or _core.Bank(self._settings.describe(dimension))
        return bank.bytes

    def status(self) -> Status:
        """What the bank is, how well it does and which slots carry it, at this moment.

        >>> import kernelbank as kb
        >>> kb.KernelBank(kb.gaussian_grid(1, 2, 3)).status().samples
        0
        """
        return bank_status(self._settings, self._dimension, self.ledger, self.weights, self._names)

    def _shown(self) -> Status:
        """The status; of a bank that a function of the user's prints from inside, its settings."""
        try:
            return self.status()
        except KernelBankError:
            return Status(bank_title(self._settings, "some"))

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    # --- predicting ------------------------------------------------------------------------------

    def predict_one(self, x: object) -> Any:
        """The prediction at one input, a number or a (d,) array: a float, or (K,). Learns nothing.

        `learn_one` of the same input right afterwards does not evaluate the kernels again.
        """
        if self._plain and self._bank is not None:
            value = self._bank.predict_one(x)
            if value is not None:
                return value
        return self.predict_slots_one(x)[0]

    def predict_slots_one(self, x: object) -> tuple[Any, Floats]:
        """The prediction at one input, and (P,) or (K, P) those of all slots. Learns nothing.

        The slots' predictions can be given to `learn_one` later, if the target is delayed.
        """
        point = check.one_sample(x, self.dimension)
        bank = self._ready(point, "x")
        if bank is None:
            predictions, slots = np.zeros(self.outputs), np.zeros((self.outputs, len(self.slots)))
        else:
            predictions, slots = bank.predict_slots_one(point[0])
        return (predictions, slots) if self.outputs > 1 else (float(predictions[0]), slots[0])

    def predict(self, X: object) -> Floats:
        """(n,) or (n, K): the predictions at the rows of an (n, d) array. Learns nothing."""
        return self._predict_rows(X, "predict")

    def predict_slots(self, X: object) -> Floats:
        """(n, P) or (n, K, P): predictions of all slots at the rows of an (n, d) array.

        Learns nothing.
        """
        return self._predict_rows(X, "predict_slots")

    def predict_variance_slots(self, X: object) -> Floats:
        """(n, P) or (n, K, P): variance of every slot's function, NaN for methods without one.

        Without the noise, and in units of the noise's variance. Learns nothing.
        """
        return self._predict_rows(X, "variance_slots")

    def _predict_rows(self, X: object, method: str) -> Floats:
        """What a method of the bank of the core returns for the rows of X, (n, d)."""
        points = check.samples(X, self.dimension)
        bank = self._ready(points, "X")
        if bank is None:
            shape = (len(points), self.outputs, len(self.slots))[: 2 + (method != "predict")]
            values = np.full(shape, np.nan if method == "variance_slots" else 0.0)
        else:
            values = getattr(bank, method)(points)
        return values if self.outputs > 1 else values[:, 0]

    def _ready(self, points: Floats, name: str) -> EngineBank | None:
        """The bank to predict these inputs with; None if there is nothing to predict with yet."""
        if self._bank is None:
            self._settings.check_width(points.shape[1], name)
            if self._settings.initial is not None:
                with self._changing():
                    self._open(points)
        return self._bank

    # --- learning --------------------------------------------------------------------------------

    def learn_one(self, x: object, y: object, past_predictions: object = None) -> None:
        """Learn one sample, after the cost of the present prediction has been taken.

        y : a number; for several outputs (K,), NaN where a target is missing.
        past_predictions : (P,), or (K, P), for a delayed target: what `predict_slots_one` returned
            for the slots when this input was predicted. The combiner and the one-step-ahead losses
            then judge the slots by these, not by what they would predict now. Where it holds NaN or
            infinity, the slot's present prediction counts.
        """
        if past_predictions is None and self._plain and self._bank is not None:
            result = self._bank.learn_one(x, y)
            if result == _LEARNED:
                return
            if result:
                self._check(self._bank.samples - 1)
                return
        settings, past = self._settings, None
        point = check.one_sample(x, self.dimension)
        target = settings.check_targets(y, 1, single=True)
        if past_predictions is not None:
            past = settings.check_past_predictions(past_predictions)[None]
        self._ready(point, "x")
        with self._changing():
            self._revise_if_due()
            self._learn(point, target, past, {})

    def run(self, X: object, y: object, record: object = "all") -> Trace:
        """Predict and learn every row in turn.

        Parameters
        ----------
        X : (n, d), or (n,) for inputs of one number.
        y : (n,) targets; (n, K) for several outputs.
        record : what the trace keeps: "all", "light" (nothing of size n * P), or a list of names.

        The result does not depend, in any bit, on how a stream is cut into calls of `run` and
        `learn_one`.
        """
        points = check.samples(X, self.dimension)
        targets = self._settings.check_targets(y, len(points))
        fields = chosen_fields(record)
        self._ready(points, "X")
        trace = Trace(len(points), self._names, fields, outputs=self.outputs)
        arrays = {name: getattr(trace, name) for name in fields}
        if self.outputs == 1:  # with an axis of outputs, as the core has it
            arrays = {name: array[:, None] for name, array in arrays.items()}
        done, most = 0, self._settings.engine.rows
        if self.calls_python:  # slow, and what an interrupt or an error ends is undone
            most = self._settings.engine.local_options().get("block") or _core.SLIDE_PERIOD
        while done < len(points):
            with self._changing():
                self._revise_if_due()
                end = min(len(points), done + most)
                if self._settings.dictionary is not None:  # no part goes beyond a revision
                    end = min(end, done + self._settings.dictionary.until_revision(self.samples))
                rows = slice(done, end)
                parts = {name: array[rows] for name, array in arrays.items()}
                self._learn(points[rows], targets[rows], None, parts)
            done = end
        if not self.combiner.on_simplex and "bound_gap" in fields:
            trace.bound_gap[...] = np.nan
        return trace

    def _learn_rows(
        self,
        X: Floats,
        y: Floats,
        past: Floats | None,
        trace: dict[str, Floats],
        delay: float = 0.0,
    ) -> None:
        """Learn rows, as the core's model of an AutoBank asks: X (n, d), y (n, K), past (n, K, P).

        trace : arrays to be filled, by name.
        delay : of late targets, in rows, if the weights shall allow for it.
        """
        self._ready(X, "X")
        with self._changing():
            self._learn(X, y, past, trace, delay)

    def _changing(self) -> threading.RLock:
        """The lock under which the bank of the core is made, and exchanged in a revision.

        It is held while the core learns: a call from inside, in a thread of the core, would wait
        for ever, but the core refuses it.
        """
        if self._bank is not None:
            _ = self._bank.samples
        if self._process != os.getpid():  # nobody here gives back the locks of other threads
            self._lock, self._process = threading.RLock(), os.getpid()
        return self._lock

    def _open(self, points: Floats) -> EngineBank:
        """The bank of the engine, made with the first input; see `BankSettings.initial`."""
        if self._bank is None:
            settings, width = self._settings, points.shape[1]
            local, start = None, settings.initial
            if start is not None:
                local = _core.Bank(settings.describe(width))
                local.begin(start.points[0], start.points, start.coefficients)
            self._bank, self._dimension = settings.engine.open(settings, width, local), width
        return self._bank

    def _learn(
        self,
        X: Floats,
        y: Floats,
        past: Floats | None,
        trace: dict[str, Floats],
        delay: float = 0.0,
    ) -> None:
        """Learn samples whole or not at all, then revise the slots if that is due."""
        before = self._bank
        bank = self._open(X)
        first = bank.samples
        try:
            bank.learn(X, y, past, trace, delay)
        except BaseException:
            if before is None and self._settings.initial is None and not bank.samples:
                self._bank = self._dimension = None
            raise
        self._revise_if_due()
        self._check(first)

    def _check(self, first: int) -> None:
        """Warn of what the samples from number `first` on have shown."""
        if self._bank is not None and self._bank.samples > first:
            self._diagnostics.check(self._bank, first, lambda: self.ledger)

    def check_memory(self, dimension: int, most_memory: int) -> None:
        """Refuse a bank that would need more bytes to run, on inputs of so many columns."""
        serialization.check_memory(self._settings, dimension, most_memory)

    # --- other slots, inputs and outputs ---------------------------------------------------------

    def fresh(self) -> Self:
        """A bank with the same settings that has learned nothing."""
        return type(self)(**self._settings.arguments())

    def rescale(self, factor: float, offset: float = 0.0, output: int = 0) -> None:
        """Go on with an output's targets in other units: factor * y + offset from now on.

        Targets that a slot keeps to predict them again, as `LastValue` does, are mapped likewise.
        What slots have learned of the inputs goes on as it is: the inputs may have other units too,
        or be past targets. What was summed up so far, in `ledger`, stays in the old units.
        """
        remedy = "Give the index of an output, from 0."
        most = self.outputs - 1
        number = check.count("output", output, "rescale", remedy, least=0, most=most)
        if self._bank is not None:
            local = self._local()
            local.rescale(number, factor, offset)
            self._bank = self._state_from(self._settings, local)[1]

    def with_inputs(self, dimension: int, slots: Iterable[Slot] | None = None) -> Self:
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
        """
        remedy, least = "Give how many columns inputs have from now on.", self.dimension or 1
        most, owner = 2**31 - 1, "with_inputs"
        width = check.count("dimension", dimension, owner, remedy, least=least, most=most)
        self._refuse_revised("with_inputs")
        arguments = {**self._settings.arguments(), "slots": self.slots if slots is None else slots}
        if self._settings.initial is not None:
            points, coefficients = arguments["initial"]
            more = width - points.shape[1]  # columns, which are 0
            arguments["initial"] = np.pad(points, ((0, 0), (0, more))), coefficients
        new = replace(BankSettings.checked(**arguments), history=self._settings.history)
        if self._bank is None or self._dimension is None:
            return self._of(new)
        new.check_width(width, "dimension")
        check_wider(self._settings, self._dimension, new, width)
        local = _core.Bank(new.describe(width))
        try:
            local.continue_from(self._local())
        except ValueError as error:
            rule = f"be ones that can take up new columns ({error})"
            remedy = "Give all columns from the start, with NaN or 0 where one is not known."
            raise check.refuse("slots", rule, new.slots, remedy, "with_inputs") from None
        return self._of(*self._state_from(new, local, width))

    def with_slots(
        self,
        slots: Iterable[Slot],
        kept: Iterable[int | None],
        previous: Iterable[int | None] | None = None,
        replay: tuple[object, object] | None = None,
    ) -> Self:
        """A bank with other slots that continues from this one.

        A slot that is kept goes on bit for bit, whatever its index. A new slot on the residual of
        one that is kept starts at the function of its base. Every other new slot first learns the
        samples that the bank still holds, as if the stream had begun with the oldest of them: those
        since the last multiple of 256, and before them as many as the slots need (`budget` of
        Norma) or a window.

        New slots have weight 0 until the next sample, and the weights of the others are scaled to
        sum 1, if the combiner keeps them on the simplex; without any weight left, all weights are
        those of a new bank. At first the combiner judges a new slot like a previous one, in whose
        place it comes, and its totals in the ledger go on from those of the previous one, so that
        all totals are over all samples; `ledger.slot_since` tells when each slot was added.

        Parameters
        ----------
        slots : all slots from now on, with `residual_of` in their new order. A slot cannot be
            retired while another learns its residual.
        kept : for each of them the index, in this bank, of the slot that it continues, or None if
            it is new.
        previous : for each of them the index, in this bank, of the slot in whose place it comes;
            only those of new slots count. None, for one or all: the base for a slot with
            `residual_of`, else the slot of the highest cumulative cost, so that a new slot has to
            earn its weight. That one also counts instead of a slot that is quarantined.
        replay : the newest samples of the stream, inputs (m, d) and targets, which new slots learn
            instead of those that the bank holds.

        docs/adaptive-dictionary.md has an example.
        """
        self._refuse_revised("with_slots")
        remedy = "Give a list of kb.Slot, such as bank.slots."
        new_slots = slot_tuple(slots, "with_slots", remedy)
        samples = None if replay is None else self._checked_replay(*replay)
        return self._of(*self._continued(new_slots, kept, previous, replay=samples))

    def _checked_replay(self, X: object, y: object) -> Samples:
        """(m, d) and (m, K): the newest samples, for new slots to begin with."""
        points = check.samples(X, self.dimension)
        self._ready(points, "replay")
        remedy = "Give as many targets as inputs."
        targets = check.floats("replay", y, remedy)
        targets = targets[:, None] if targets.ndim == 1 else targets
        if targets.shape != (len(points), self.outputs):
            rule = f"have {len(points)} rows of {self.outputs}"
            raise check.refuse("replay", rule, targets.shape, remedy, "with_slots")
        check.within_range("replay", np.where(np.isnan(targets), 0.0, targets))
        return points, targets

    def _continued(self, *change: Any, **options: Any) -> tuple[Any, ...]:
        """The arguments of `_use` after a change of slots; see `continue_with_slots`."""
        before = self._settings, self._local() if self.samples else None, self._dimension
        return self._state_from(*continue_with_slots(*before, *change, **options))

    def _revise_if_due(self) -> None:
        """Exchange slots at the sample numbers that an adaptive dictionary has for it.

        A revision that fails leaves the slots as they are; it is made before the next sample.
        """
        settings, bank = self._settings, self._bank
        dictionary, before = settings.dictionary, settings.selection
        if dictionary is None or before is None or bank is None:
            return
        if not dictionary.is_due(before, bank.samples):
            return
        sums = bank.weight_sums()
        after, why = dictionary.revise(before, sums, self.quarantined, bank.samples)
        if after.running == before.running:
            self._settings = replace(settings, selection=after)
            bank.clear_weight_sums()
            return
        slots = settings.selected_slots(after)
        sources = continued_slots(settings.selected_slots(before), slots)
        reasons = {
            (kind, place): why.get(kernel, "")
            for kind, selection in (("retired", before), ("added", after))
            for place, kernel in enumerate(selection.running)
        }
        places = range(len(slots))  # a new slot is judged like the one in whose place it comes
        change = (tuple(slots.values()), sources, places)
        self._use(*self._continued(*change, reasons=reasons, selection=after))

    def _refuse_revised(self, method: str) -> None:
        if self._settings.dictionary is not None:
            remedy = "Give all columns from the start, and a pool with all kernels."
            rule = "be a plain one for a bank whose inputs or slots are changed from outside"
            raise check.refuse("dictionary", rule, self._settings.dictionary, remedy, method)

    def new_output(self, first: int) -> Self:
        """A bank for one more output, alone, that has learned nothing; see `with_output`.

        first : the number of the first sample that it will learn. Those before count as samples
            whose target was missing.
        """
        samples, dimension = self.samples, self._dimension
        remedy = "Give the number of a sample that the bank has learned, from 0."
        start = check.count("first", first, "new_output", remedy, least=0, most=samples)
        self._refuse_revised("new_output")
        if dimension is None:
            remedy = "Make a bank with more outputs, or let this one learn a sample before."
            rule = "be one of a bank with samples"
            raise check.refuse("first", rule, first, remedy, "new_output")
        new = replace(self._settings, losses=(self.loss,), engine=Serial(), first_sample=start)
        return self._of(*self._state_from(new, _core.Bank(new.describe(dimension))))

    def with_output(self, output: int, alone: Self, past_target: float = float("nan")) -> Self:
        """A bank with one more output that continues from this one; other outputs go on as before.

        Parameters
        ----------
        output : its index; outputs from this one on get the next one.
        alone : what `new_output` returned, after it has learned its targets up to now.
        past_target : what is known of its target before those: a number, or NaN.
        """
        settings, count, dimension = self._settings, self.outputs, self._dimension
        remedy = "Give the index of the new output, from 0."
        check.count("output", output, "with_output", remedy, least=0, most=count)
        if alone.samples != self.samples or alone.slots != self.slots or alone.outputs != 1:
            remedy = "Give what new_output returned, after it has learned all newer samples."
            rule = "be one output of this bank that has learned as many samples"
            raise check.refuse("alone", rule, alone.samples, remedy, "with_output")
        assert dimension is not None
        before, single = self._local(), alone._local()
        models = {pack: [*pack_models] for pack, pack_models in before.models().items()}
        for pack, (model,) in single.models().items():
            models[pack].insert(output, model)
        losses = (*settings.losses[:output], alone.loss, *settings.losses[output:])
        new = replace(settings, losses=losses)
        local = _core.Bank(with_models(new.describe(dimension), models))
        local.continue_with_output(before, single, output, past_target)
        return self._of(*self._state_from(new, local))

    # --- saving and copying ----------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next sample depends on to one file, atomically.

        `kb.load(path)` continues bit for bit. The file holds arrays and JSON, no code.
        """
        header, arrays = self.describe()
        checkpoint.write(path, header, arrays)

    def to_bytes(self) -> bytes:
        """The same as bytes, for a database or a message; `kb.from_bytes` is the way back."""
        return checkpoint.to_bytes(*self.describe())

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything that the next sample depends on: settings as JSON data, and arrays."""
        remedy = "Save a bank without such slots, and keep the model yourself."
        self._settings.check_saveable("saved", remedy)
        pool = () if self._settings.dictionary is None else self._settings.dictionary.kernels
        check_names([*self._settings.losses, self.combiner, *self.slots, *pool])
        has_learned = self.samples > 0  # a bank without samples is saved as a new one
        header = {
            **serialization.describe_settings(self._settings),
            "dimension": self._dimension if has_learned else None,
            "warned": sorted(self._diagnostics.warned),
        }
        return header, self.state() if has_learned else {}

    @classmethod
    def restored(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        engine: Engine,
        components: Mapping[str, object],
        most_memory: int,
    ) -> Self:
        """The bank that `describe` described, checked in every respect; see `kb.load`."""
        settings = serialization.parse_settings(header, components, engine)
        bank = serialization.restored_bank(settings, header["dimension"], arrays, most_memory)
        return cls._of(
            settings, bank, header["dimension"], [str(name) for name in header["warned"]]
        )

    def __copy__(self) -> Self:
        bank = None if self._bank is None else self._bank.copy()
        return self._of(self._settings, bank, self._dimension, self._diagnostics.warned)

    def __deepcopy__(self, copies: dict[int, object]) -> Self:
        return self.__copy__()

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickle, which keeps user-made parts and models behind adapters too."""
        bank, warned = self._bank, sorted(self._diagnostics.warned)
        state = None if bank is None else (bank.state(), bank.models())
        return self._settings, self._dimension, warned, state

    def __setstate__(self, saved: tuple[Any, ...]) -> None:
        settings, dimension, warned, state = saved
        bank = None
        if state is not None:
            local = bank_from(settings.describe(dimension), state)
            bank = settings.engine.open(settings, dimension, local)
        self._use(settings, bank, dimension, warned)
