"""What a KernelBank is made of and tells: its settings, weights, costs and status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from .. import losses
from ..combiners import Combiner
from ..errors import HalfLearned
from ..kernels.dictionary import Dictionary
from ..native.callbacks import inside_callback
from ..utils.validation import Floats
from ..utils.whole_steps import CutOff, new_turn
from .exclusive import exclusive
from .layout import Slot
from .naming import SlotNames
from .outputs import make_runtime
from .settings import BankSettings
from .status import Status, bank_status, bank_title


class BankView:
    """The part of `KernelBank` that has settings and a runtime, and tells what they are."""

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
            initial,
            outputs,
        )
        self._use(settings, make_runtime(settings))
        self._turn = new_turn(self)

    def _use(self, settings: BankSettings, runtime: Any) -> None:
        """Be the bank with these settings and this runtime: a `Runtime` or an `OutputRuntime`."""
        self._settings, self._runtime = settings, runtime
        self._names = SlotNames(settings.slots)

    def _before_step(self) -> None:
        """The runtime undoes what has to be undone."""

    def _failed_step(self, before: Any, error: BaseException) -> None:
        if self._runtime.is_cut_off:
            self._cut_off(f"a block was cut off by {error!r}")

    def _cut_off(self, why: str) -> None:
        self._runtime = cast(Any, CutOff(why))

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

    @exclusive
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
