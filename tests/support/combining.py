"""Run a combiner on artificial evidence, without a bank."""

import itertools
from types import SimpleNamespace

import numpy as np

import kernelbank as kb
from kernelbank import _core
from kernelbank.combiners import Evidence
from kernelbank.losses import Objective


def run_combiner(
    combiner,
    losses=None,
    *,
    values=None,
    targets=None,
    curvature=None,
    cuts=(),
    loss=None,
):
    """The weights after each sample, the final state, and the diagnostics after each block.

    losses: (n, P), inf for a slot that has failed; costs are losses.
    values: (n, window, P) for window evidence, or (n, P), the predictions; NaN for a slot that has
    failed. Blocks end at `cuts`.
    """
    samples, slots = losses.shape if values is None else (len(values), values.shape[-1])
    on_window = values is not None and values.ndim == 3
    window = values.shape[1] if on_window else 1
    failed = np.zeros((samples, slots), bool)
    predictions = np.zeros((samples, slots))
    if losses is not None:
        failed |= np.isinf(losses)
    if values is not None:
        failed |= np.isnan(values).any(axis=1) if on_window else np.isnan(values)
        predictions = values.reshape(samples, -1, slots)[:, -1]
    losses = np.zeros((samples, slots)) if losses is None else losses
    rows = {
        "curvature": np.zeros((samples, slots)) if curvature is None else curvature,
        "window_loss": np.where(failed, np.inf, 1.0),
        "slot_cost": losses,
        "slot_loss": losses,
        "slot_predictions": predictions,
        "values": np.nan_to_num(values) if on_window else np.zeros((samples, window, slots)),
    }
    targets = np.zeros(window - 1 + samples) if targets is None else targets
    choose, state = open_combiner(
        combiner, Objective(loss or kb.losses.Squared(), window, 0.0), slots
    )
    weights, chosen, history = combiner.first_weights(slots), [], []
    for start, end in itertools.pairwise([0, *cuts, samples]):
        block = {name: np.ascontiguousarray(array[start:end]) for name, array in rows.items()}
        recent = np.ascontiguousarray(targets[start : window - 1 + end])
        chosen.append(choose(weights, Evidence(first=start, targets=recent, **block)))
        weights = chosen[-1][-1].copy()
        history.append(combiner.diagnostics(state(), weights))
    return SimpleNamespace(
        weights=np.vstack(chosen), state=state(), diagnostics=history[-1], history=history
    )


def open_combiner(combiner, objective, slots):
    """A function from weights and evidence to the weights after each sample, and one of the state."""
    if combiner.in_python:
        arrays = {name: np.zeros(shape) for name, shape in combiner.shapes(slots).items()}
        return lambda w, e: combiner.combine(objective, e, arrays, w), lambda: arrays
    rule = combiner.core_spec([objective], slots)
    numbers = (objective.window, objective.regularization)
    core = _core.Combiner(rule, slots, *numbers, objective.loss.core_spec())
    return lambda w, e: core.choose(w, vars(e)), core.state


def one_by_one(samples):
    """Cuts into blocks of one sample."""
    return range(1, samples)


def problem(seed, slots, rows, labels, *, spread=1.0, alike=0.0):
    """(rows, slots) values that are each partly right; `alike` makes them nearly collinear."""
    draw = np.random.default_rng(seed)
    truth = draw.normal(size=rows)
    noise = draw.normal(size=(rows, slots)) * draw.uniform(0.3, 1.5, slots)
    common = draw.normal(size=(rows, 1))
    values = truth[:, None] + alike * common + (1 - alike) * noise
    targets = truth + 0.3 * draw.normal(size=rows)
    if labels:
        targets = np.where(targets > 0, 1.0, -1.0)
    return spread * values, targets if labels else spread * targets
