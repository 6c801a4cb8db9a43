"""`KernelBank`: the game between the bank and its stream, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _validate as check
from . import checkpoint, kernels, losses
from ._hot import score as hot
from ._validate import Floats
from .combiners import Combiner, Simplex
from .dictionary import Dictionary, gaussian_grid
from .engines import as_engine
from .engines.base import Crew
from .layout import Layout, Slot
from .learners import Norma
from .ledger import Ledger
from .losses import as_loss
from .notices import Notices
from .setting import PAGE, Evidence, Setting
from .shard import Shard
from .specs import to_spec
from .trace import Trace, chosen_fields


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
    engine : where the slots run: "serial".
    slots : instead of dictionary and learner, a list of `Slot`, to mix methods.

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
    ) -> None:
        owner = "KernelBank"
        remedy = "Give how many recent samples a cost looks at, such as 10."
        width = check.count("window", window, owner, remedy)
        remedy = "Give 0 or a small positive number, such as 0.01."
        ridge = check.number("regularization", regularization, owner, remedy, least=0)
        self._setting = Setting(as_loss(loss), width, ridge)
        self._combiner = Simplex() if combiner is None else combiner
        if not isinstance(self._combiner, Combiner):
            remedy = "Use one of kb.combiners, such as kb.combiners.Simplex()."
            raise check.refuse("combiner", "be a combiner", combiner, remedy, owner)
        self._layout = Layout.of(_slots(dictionary, learner, slots))
        for slot in self._layout.slots:
            slot.learner.check_kernel(slot.kernel)
        for method in self._layout.learners:
            method.check(self._setting)
        self._engine = as_engine(engine)
        self._crew: Crew | None = None
        self._dimension: int | None = None
        count = len(self._layout.slots)
        self._weights = self._combiner.first_weights(count)
        self._memory: dict[str, Floats] = {}
        self._ledger = Ledger(self._setting, count, self._combiner.on_simplex, self._dropped)
        self._columns = self._layout.columns(list(self._layout.leaves))
        self._notices = Notices(self._layout.slots)
        parts: list[Any] = [self._setting.loss, *(slot.kernel for slot in self._layout.slots)]
        self._callbacks = tuple(dict.fromkeys(c for part in parts for c in part.callbacks))

    # --- looking ------------------------------------------------------------------------------

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots: one kernel and one learner each."""
        return self._layout.slots

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
        return self._setting.loss

    @property
    def window(self) -> int:
        """How many recent samples a cost looks at."""
        return self._setting.window

    @property
    def regularization(self) -> float:
        """Weight of half the squared norm in the cost."""
        return self._setting.regularization

    @property
    def weights(self) -> Floats:
        """(P,): the weights of the next proposal."""
        return self._weights.copy()

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

    def __repr__(self) -> str:
        return (
            f"KernelBank({len(self.slots)} slots, {self._combiner!r}, {self.loss!r}, "
            f"window={self.window}, regularization={self.regularization:g}, "
            f"{self.samples} samples)"
        )

    # --- predicting ---------------------------------------------------------------------------

    def predict_one(self, x: Any) -> float:
        """The proposal at one input, a number or a (d,) array. Learns nothing."""
        return float(self._predict(check.one_sample(x, self._dimension), "x")[0])

    def predict(self, X: Any) -> Floats:
        """(n,): the proposals at the rows of an (n, d) array. Learns nothing."""
        return self._predict(check.samples(X, self._dimension), "X")

    def predict_slots(self, X: Any) -> Floats:
        """(n, P): the estimate of every slot at the rows of an (n, d) array. Learns nothing."""
        points = check.samples(X, self._dimension)
        self._check_domain(points, "X")
        return self._evaluate(points, np.ones(len(self.slots)))

    def _predict(self, points: Floats, name: str) -> Floats:
        self._check_domain(points, name)
        weights = np.repeat(self._weights[None, :], len(points), axis=0)
        values = self._evaluate(points, self._weights)
        if not np.isfinite(values).all():
            values = self._evaluate(points, np.ones(len(self.slots)))
            hot.admit(weights, values, self._combiner.on_simplex)
        out = np.empty(len(points))
        hot.blend(weights, values, self._columns, out)
        return out

    def _evaluate(self, points: Floats, wanted: Floats) -> Floats:
        if self._crew is None:
            return np.zeros((len(points), len(self.slots)))
        values = self._crew.evaluate(self.samples, points, wanted)
        self._raise_from_callbacks()
        return values

    # --- learning -----------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any) -> None:
        """Play one round: charge the present proposal for the sample, then learn it."""
        X = check.one_sample(x, self._dimension)
        target = check.one_target(y)
        self._check_samples(X, target, "x")
        self._play(X, target, None, 0)

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
        points = check.samples(X, self._dimension)
        targets = check.targets(y, len(points))
        chosen_fields(record)
        self._check_samples(points, targets, "X")
        trace = Trace(len(points), len(self.slots), record)
        done = 0
        while done < len(points):
            crew = self._open(points[0])
            room = PAGE - self.samples % PAGE
            end = min(done + min(room, crew.block), len(points))
            self._play(points[done:end], targets[done:end], trace, done)
            done = end
        return trace

    def _check_samples(self, X: Floats, y: Floats, name: str) -> None:
        self._check_domain(X, name)
        self._setting.loss.check_targets(y)

    def _check_domain(self, X: Floats, name: str) -> None:
        for slot in self.slots:
            if slot.kernel.domains != _REAL:
                slot.kernel.check_inputs(X, name)

    def _open(self, first_input: Floats) -> Crew:
        """The crew; at the first sample it is made for the width of the inputs."""
        if self._crew is None:
            self._crew = self._engine.open(self._setting, self._layout, first_input)
            self._dimension = len(first_input)
            shapes = self._combiner.shapes(len(self.slots))
            self._memory = {name: np.zeros(shape) for name, shape in shapes.items()}
        return self._crew

    def _play(self, X: Floats, y: Floats, trace: Trace | None, row: int) -> None:
        """Rounds for a block within one page. A user's own function that fails undoes the block."""
        crew, first = self._open(X[0]), self.samples
        if not self._callbacks:
            self._rounds(crew, X, y, trace, row)
        else:
            before = self._state()
            try:
                self._rounds(crew, X, y, trace, row)
                self._raise_from_callbacks()
            except BaseException:
                self._restore(before, first)
                raise
        self._notices.look(self._ledger, crew, first)

    def _rounds(self, crew: Crew, X: Floats, y: Floats, trace: Trace | None, row: int) -> None:
        first, count, slots = self.samples, len(X), len(self.slots)
        evidence = Evidence.empty(first, count, slots, self._ledger.window_targets(y))
        if self._combiner.needs_values:
            evidence.values = np.zeros((count, self.window, slots))
        crew.learn(first, X, y, evidence)
        chosen = self._combiner.weigh(self._setting, evidence, self._memory, self._weights)
        proposed = np.empty((count, slots))
        proposed[0] = self._weights
        proposed[1:] = chosen[:-1]
        hot.admit(proposed, evidence.slot_predictions, self._combiner.on_simplex)
        rows = self._ledger.charge(evidence, crew.mix(first, proposed))
        self._weights = chosen[-1].copy()
        if trace is not None:
            trace.write(
                row,
                weights=proposed,
                slot_cost=evidence.slot_cost,
                slot_loss=evidence.slot_loss,
                slot_predictions=evidence.slot_predictions,
                curvature=evidence.curvature,
                window_loss=evidence.window_loss,
                **rows,
            )

    def _raise_from_callbacks(self) -> None:
        for callback in self._callbacks:
            callback.check()

    def _dropped(self) -> Floats:
        return np.zeros(len(self.slots)) if self._crew is None else self._crew.dropped()

    # --- saving -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next round depends on to one file, atomically.

        `kb.load(path)` goes on bit for bit. The file holds arrays and JSON, no code.
        """
        methods = list(dict.fromkeys(slot.learner for slot in self.slots))
        header = {
            "kernels": [to_spec(slot.kernel) for slot in self.slots],
            "learners": [to_spec(method) for method in methods],
            "learner_of": [methods.index(slot.learner) for slot in self.slots],
            "combiner": to_spec(self._combiner),
            "loss": to_spec(self.loss),
            "window": self.window,
            "regularization": self.regularization,
            "samples": self.samples,
            "dimension": self._dimension,
            "said": sorted(self._notices.said),
        }
        checkpoint.write(path, header, self._state())

    def _state(self) -> dict[str, Floats]:
        """Copies of all arrays that the next round depends on."""
        state = {"weights": self._weights.copy()}
        state |= {f"ledger/{name}": array for name, array in self._ledger.state().items()}
        state |= {f"combiner/{name}": array.copy() for name, array in self._memory.items()}
        if self._crew is not None:
            state |= {f"slots/{name}": array for name, array in self._crew.state().items()}
        return state

    def _restore(self, state: Mapping[str, Floats], samples: int) -> None:
        self._weights = state["weights"].copy()
        self._ledger.restore(samples, _under("ledger/", state))
        self._memory = {name: a.copy() for name, a in _under("combiner/", state).items()}
        self._notices.out = self._ledger.out
        if self._crew is not None:
            self._crew.restore(_under("slots/", state))

    def _shapes(self, dimension: int | None) -> dict[str, tuple[int, ...]]:
        """The shapes of a state's arrays, without making any."""
        shapes: dict[str, tuple[int, ...]] = {"weights": (len(self.slots),)}
        shapes |= {f"ledger/{name}": a.shape for name, a in self._ledger.state().items()}
        if dimension is not None:
            memory = self._combiner.shapes(len(self.slots))
            shapes |= {f"combiner/{name}": shape for name, shape in memory.items()}
            slots = Shard.shapes(self._setting, self._layout, dimension)
            shapes |= {f"slots/{name}": shape for name, shape in slots.items()}
        return shapes


_REAL = frozenset(["real"])


def _slots(dictionary: Any, learner: Any, slots: Iterable[Slot] | None) -> list[Slot]:
    if slots is None:
        chosen = gaussian_grid(0.1, 10, 20) if dictionary is None else dictionary
        if not isinstance(chosen, Dictionary):
            chosen = Dictionary([chosen] if isinstance(chosen, kernels.Kernel) else chosen)
        method = Norma() if learner is None else learner
        return [Slot(kernel, method) for kernel in chosen]
    remedy = "Give a list of kb.Slot(kernel, learner), without dictionary and learner."
    if dictionary is not None or learner is not None:
        raise check.refuse("slots", "stand alone", slots, remedy, "KernelBank")
    listed = list(slots) if isinstance(slots, Iterable) else []
    if not listed or not all(isinstance(slot, Slot) for slot in listed):
        raise check.refuse("slots", "be a list of at least one Slot", slots, remedy, "KernelBank")
    return listed


def _under(prefix: str, state: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name[len(prefix) :]: a for name, a in state.items() if name.startswith(prefix)}
