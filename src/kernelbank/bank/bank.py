"""`KernelBank`: slots that learn a stream on their own, and weights that combine them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..utils import validation as check
from ..utils.validation import Floats
from ..utils.whole_steps import whole_step
from .bank_changes import ChangingBank
from .exclusive import exclusive, refuse_inside
from .trace import Trace, chosen_fields


class KernelBank(ChangingBank):
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
            refuse_inside()
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

    @exclusive
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
            for block in runtime.iter_blocks(points[done:end], targets[done:end]):
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

    @exclusive
    def __reduce__(self) -> tuple[Any, ...]:
        """For copy and pickle, which keep user-made parts and models behind adapters too."""
        runtime = self._runtime
        dimension, arrays = self._kept_state()
        models = None if dimension is None else runtime.copy_models()
        state = (dimension, sorted(runtime.warned), arrays, models)
        settings = self._settings
        history = (settings.history, settings.selection)
        return _unpickled, (settings.arguments(), history, *state)


def _unpickled(arguments: Mapping[str, Any], history: tuple[Any, Any], *state: Any) -> KernelBank:
    bank = KernelBank(**arguments)
    bank._use_history(*history)
    bank._continue_from(*state)
    return bank
