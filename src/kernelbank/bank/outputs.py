"""Several outputs: every sample has K targets, and every slot K functions.

Each output has a `Runtime` with its own weights, ledger and evidence. What slots compute from the
inputs alone they compute once, for the first output, the *leader*; those of the other outputs
follow it (`Learner.follows`). So a block is learned output after output, the leader first, and
every output has the same bits as a bank of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..kernels.sample_buffer import ArraySpec, SampleBlock
from ..native.phases import Phases
from ..native.workspace import SLIDE_PERIOD
from ..utils.validation import Floats
from .output_ledger import OutputLedger
from .runtime import Runtime
from .settings import BankSettings
from .trace import Trace

Change = Callable[[Mapping[str, Floats], Mapping[str, Floats]], dict[str, Floats]]


class OutputRuntime:
    """The runtimes of all outputs, with the methods of one; arrays have an axis of outputs more."""

    def __init__(self, settings: BankSettings) -> None:
        leader = Runtime(settings.of_output(0))
        others = range(1, settings.outputs)
        self.busy = False
        """Whether a block or query that may call a user's function is running."""
        self._use([leader, *(Runtime(settings.of_output(k), leader, k) for k in others)])

    def _use(self, runtimes: list[Runtime]) -> None:
        """Have these outputs."""
        self.runtimes = runtimes
        self.ledger = OutputLedger([runtime.ledger for runtime in runtimes])
        self._joined: tuple[Phases, Phases] | None = None
        """The phases of a block and of a query of all outputs, if they are known; see `_join`."""

    # --- what all outputs have in common ----------------------------------------------------------

    @property
    def leader(self) -> Runtime:
        """The runtime of the first output."""
        return self.runtimes[0]

    @property
    def dimension(self) -> int | None:
        """Columns of the inputs; None before the first sample."""
        return self.leader.dimension

    @property
    def is_open(self) -> bool:
        """Whether a sample has been learned, or a state restored."""
        return self.leader.is_open

    @property
    def weights(self) -> Floats:
        """(K, P): the weights of the next predictions."""
        return np.array([runtime.weights for runtime in self.runtimes])

    @property
    def weight_sums(self) -> Floats | None:
        """(P,), for a bank whose slots are revised: sums of |weight| over all outputs."""
        sums = [own for runtime in self.runtimes if (own := runtime.weight_sums) is not None]
        return np.sum(sums, axis=0) if sums else None

    def clear_weight_sums(self) -> None:
        """Begin to sum weights anew, after a revision."""
        for runtime in self.runtimes:
            runtime.clear_weight_sums()

    @property
    def warned(self) -> set[str]:
        """The kinds of warnings that have been given."""
        return set().union(*(runtime.diagnostics.warned for runtime in self.runtimes))

    @warned.setter
    def warned(self, kinds: set[str]) -> None:
        for runtime in self.runtimes:
            runtime.diagnostics.warned = set(kinds)

    @property
    def calls_users_functions(self) -> bool:
        """Whether a block may call a user's function; unknown, so true, before the first one."""
        return any(runtime.calls_users_functions for runtime in self.runtimes)

    @property
    def undoes_blocks(self) -> bool:
        """Whether a block may be interrupted anywhere, and is undone then."""
        return self.leader.undoes_blocks

    @property
    def is_cut_off(self) -> bool:
        """Whether a block has ended in its middle."""
        return any(runtime.is_cut_off for runtime in self.runtimes)

    single_sample_calls = None

    def open(self, first_input: Floats) -> None:
        """Make workspaces and executors, unless they exist."""
        if self.leader.is_open:
            return
        for runtime in self.runtimes:
            runtime.open(first_input)

    def _join(self) -> tuple[Phases, Phases] | None:
        """The phases of all outputs in one list, for a block and for a query.

        None if something else than phases has to run between those of the outputs.
        """
        if self._joined is None:
            own = [runtime.plain_phases() for runtime in self.runtimes]
            if not all(own):
                return None
            block, query = zip(*(pair for pair in own if pair is not None), strict=True)
            self._joined = (
                Phases([phases.as_phase() for phases in block]),
                Phases([phases.as_phase() for phases in query]),
            )
        return self._joined

    def open_for_queries(self) -> None:
        """Open before the first sample if there is something to predict with."""
        for runtime in self.runtimes:
            runtime.open_for_queries()

    def add(self, settings: BankSettings) -> Runtime:
        """Add an output that has learned nothing; settings are those with it."""
        runtime = Runtime(settings.of_output(len(self.runtimes)), self.leader)
        runtime.warned = self.warned
        if self.is_open:
            runtime.open(np.zeros(self.leader.workspace.points.shape[1]))
        self._use([*self.runtimes, runtime])
        return runtime

    # --- learning ---------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any) -> bool:
        """There is no faster way for a single sample."""
        return False

    def iter_blocks(self, X: Floats, y: Floats) -> Iterator[SampleBlock]:
        """The samples in blocks; one in which a target is missing is a block of its own."""
        self.open(X[0])
        size, seen, done = self.leader.workspace.size, self.ledger.samples, 0
        missing = np.asarray(np.isnan(y).any(axis=1))
        while done < len(X):
            end = min(done + size, done + SLIDE_PERIOD - (seen + done) % SLIDE_PERIOD, len(X))
            gaps = np.flatnonzero(missing[done:end])
            if len(gaps):
                end = done + max(int(gaps[0]), 1)
            yield SampleBlock(seen + done, X[done:end], y[done:end])
            done = end

    def run_block(self, X: Floats, y: Floats, past_predictions: Floats | None = None) -> None:
        """Learn a block, of targets (n, K), for all outputs or for none.

        past_predictions : (n, K, P), what the slots predicted earlier, for delayed targets.
        """
        self.open(X[0])
        first, count = self.ledger.samples, len(X)
        self.leader.workspace.points[:count] = X
        joined = self._join()
        if joined is not None and past_predictions is None and not np.isnan(y[0]).any():
            for runtime, targets in zip(self.runtimes, y.T, strict=True):
                runtime.workspace.new_targets[:count] = targets
            joined[0].run(first, count)  # one call: a block is learned whole or not at all
            for runtime in self.runtimes:
                runtime.finish_block(first, count)
            return
        risky = any(runtime.may_fail for runtime in self.runtimes)
        before = [runtime.checkpoint() for runtime in self.runtimes] if risky else []
        self.busy = risky
        try:
            for k, runtime in enumerate(self.runtimes):
                if np.isnan(y[0, k]):
                    runtime.skip_target(first)
                else:
                    past = None if past_predictions is None else past_predictions[:, k]
                    runtime.run_targets(first, y[:, k], past)
        except BaseException:
            for runtime, kept in zip(self.runtimes, before, strict=False):
                runtime.undo(first, kept)
            raise
        finally:
            self.busy = False
        for k, runtime in enumerate(self.runtimes):
            if not np.isnan(y[0, k]):
                runtime.finish_block(first, count)

    def record(self, trace: Trace, row: int, count: int) -> None:
        """Write what the trace keeps of the last block, from this row on."""
        found = [runtime.rows(count, trace.fields) for runtime in self.runtimes]
        joined = {name: np.stack([own[name] for own in found], axis=1) for name in trace.fields}
        trace.write(row, joined)

    # --- predicting -------------------------------------------------------------------------------

    def predict_plain(self, x: Any) -> float:
        """There is no faster way for a single sample."""
        return float("nan")

    def predict_one(self, x: Floats) -> Floats:
        """(K,): the predictions at (d,) x of an open runtime."""
        joined = self._join()
        if joined is None:
            return np.array([runtime.predict_one(x) for runtime in self.runtimes])
        self.leader.workspace.query_point[:] = x
        joined[1].run(self.ledger.samples, 1)
        return np.array([runtime.last_prediction for runtime in self.runtimes])

    @property
    def query_slots(self) -> Floats:
        """(K, P): the slots' predictions at the point of the last `predict_one`."""
        return np.array([runtime.query_slots for runtime in self.runtimes])

    def predict(self, X: Floats) -> Floats:
        """(n, K): the predictions at the rows of X."""
        return self._stacked(lambda runtime: runtime.predict(X))

    def slot_arrays(self, index: int) -> list[dict[str, Floats]]:
        """See `Runtime.slot_arrays`."""
        return [own for runtime in self.runtimes for own in runtime.slot_arrays(index)]

    def evaluate(self, X: Floats, wanted: Floats) -> Floats:
        """(n, K, P): the slots' values at the rows of X, for leaves that have wanted[p] != 0."""
        return self._stacked(lambda runtime: runtime.evaluate(X, wanted))

    def variance(self, X: Floats) -> Floats:
        """(n, K, P): the slots' predictive variances, NaN where there is none."""
        return self._stacked(lambda runtime: runtime.variance(X))

    def _stacked(self, ask: Callable[[Runtime], Floats]) -> Floats:
        return np.stack([ask(runtime) for runtime in self.runtimes], axis=1)

    def evidence(self) -> dict[str, Floats]:
        """The combiners' diagnostics after the last sample, with the outputs as first axis."""
        found = [runtime.evidence() for runtime in self.runtimes]
        return {name: np.array([one[name] for one in found]) for name in found[0]}

    # --- state ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Floats]:
        """Copies of all arrays that the next block depends on.

        The names of the first output are those of a bank with one; others have a prefix. What
        outputs share is there once, whatever the engine.
        """
        found = {"missing": self._missing()}
        for k, runtime in enumerate(self.runtimes):
            found |= self.named_arrays(k, runtime.arrays())
        return found

    def split_arrays(self, arrays: Mapping[str, Floats] | None = None) -> list[dict[str, Floats]]:
        """The arrays of each output that it does not share with the first, by their own names.

        arrays : what `arrays` returned; by default what it returns now.
        """
        if arrays is None:
            return [runtime.arrays() for runtime in self.runtimes]
        found: list[dict[str, Floats]] = [{} for _ in self.runtimes]
        for name, array in arrays.items():
            head, _, rest = name.partition("/")
            if head.startswith("output"):
                found[int(head.removeprefix("output"))][rest] = array
            elif name != "missing":
                found[0][name] = array
        return found

    def named_arrays(self, output: int, own: Mapping[str, Floats]) -> dict[str, Floats]:
        """The part of one output of the arrays of all, from those of a bank of its own."""
        wanted = self.runtimes[output].array_specs(self.dimension)
        return {_prefix(output) + name: own[name] for name in wanted}

    def changed_arrays(self, other: OutputRuntime, change: Change) -> dict[str, Floats]:
        """The arrays of another bank with as many outputs, changed output by output.

        change : from the arrays of this one, and those of the other at its start.
        """
        old, fresh = self.split_arrays(), other.split_arrays()
        found = {"missing": self._missing()}
        for k in range(len(self.runtimes)):
            own = change(old[0] | old[k], fresh[0] | fresh[k])
            found |= other.named_arrays(k, own)
        return found

    def _missing(self) -> Floats:
        return np.array([float(runtime.ledger.missing) for runtime in self.runtimes])

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Continue from what `arrays` returned. The runtime is open if that one was."""
        parts = self.split_arrays(arrays)
        for runtime, own, missing in zip(self.runtimes, parts, arrays["missing"], strict=True):
            runtime.ledger.missing = int(missing)
            runtime.restore(parts[0] | own)

    def array_specs(self, dimension: int | None) -> dict[str, ArraySpec]:
        """Shape and dtype of `arrays` for inputs with that many columns, without making any."""
        found: dict[str, ArraySpec] = {"missing": ((len(self.runtimes),), "float64")}
        for k, runtime in enumerate(self.runtimes):
            own = runtime.array_specs(dimension)
            found |= {_prefix(k) + name: spec for name, spec in own.items()}
        return found

    def state_bytes(self, dimension: int) -> int:
        """The bytes of all arrays for inputs with that many columns."""
        first, second = (runtime.state_bytes(dimension) for runtime in self.runtimes[:2])
        return first + (len(self.runtimes) - 1) * second

    def copy_models(self) -> dict[int, dict[int, Any]]:
        """Copies of the models behind slots whose state is not arrays, by output and leaf."""
        return {k: runtime.copy_models() for k, runtime in enumerate(self.runtimes)}

    def restore_models(self, models: Mapping[int, Mapping[int, Any]]) -> None:
        """Return to what `copy_models` returned."""
        for k, runtime in enumerate(self.runtimes):
            runtime.restore_models(models[k])


def _prefix(output: int) -> str:
    """What the names of an output's arrays begin with."""
    return f"output{output}/" if output else ""


def make_runtime(settings: BankSettings) -> Any:
    """A runtime for the outputs that the settings have."""
    return Runtime(settings) if settings.outputs == 1 else OutputRuntime(settings)
