"""Run a combiner on artificial evidence, without a bank."""

import itertools
from types import SimpleNamespace

import numpy as np

import kernelbank as kb
from kernelbank.losses.objective import Objective
from kernelbank.native.phases import Phases
from kernelbank.native.workspace import Workspace


def run_combiner(
    combiner,
    losses=None,
    *,
    costs=None,
    values=None,
    targets=None,
    curvature=None,
    cuts=(),
    loss=None,
):
    """The weights after each sample, the final state, and the diagnostics after each block.

    losses, costs: (n, P), inf for a slot that has failed; costs are losses unless they are given.
    values: (n, window, P) for window evidence, or (n, P), the predictions; NaN for a slot that has
    failed. Blocks end at `cuts`.
    """
    shape = losses.shape if values is None else (len(values), values.shape[-1])
    samples, slots = shape
    window = values.shape[1] if values is not None and values.ndim == 3 else 1
    objective = Objective(loss or kb.losses.Squared(), window, 0.0)
    workspace = Workspace(objective, samples, 1, slots, 1, needs=combiner.needs, workers=1)
    state = {name: np.zeros(shape) for name, shape in combiner.shapes(slots).items()}
    weights = combiner.first_weights(slots)
    phases = Phases(combiner.phases(objective, workspace, state, weights))
    rows, history = [], []
    targets = np.zeros(window - 1 + samples) if targets is None else targets
    for start, end in itertools.pairwise([0, *cuts, samples]):
        count = end - start
        workspace.window_loss[:count] = 1.0
        if losses is not None:
            workspace.slot_loss[:count] = losses[start:end]
            workspace.slot_cost[:count] = (losses if costs is None else costs)[start:end]
            workspace.window_loss[:count] = np.where(np.isinf(losses[start:end]), np.inf, 1.0)
        if values is not None:
            failed = np.isnan(values[start:end])
            failed = failed.any(axis=1) if failed.ndim == 3 else failed
            workspace.window_loss[:count][failed] = np.inf
            if window > 1 or values.ndim == 3:
                workspace.values[:count] = np.nan_to_num(values[start:end])
            workspace.slot_predictions[:count] = values[start:end].reshape(count, -1, slots)[:, -1]
        if curvature is not None:
            workspace.curvature[:count] = curvature[start:end]
        workspace.recent[: window - 1 + count] = targets[start : end + window - 1]
        workspace.new_targets[:count] = targets[start + window - 1 : end + window - 1]
        phases.run(start, count)
        rows.append(workspace.chosen[:count].copy())
        weights[:] = rows[-1][-1]
        history.append(combiner.diagnostics(state, weights))
    return SimpleNamespace(
        weights=np.vstack(rows), state=state, diagnostics=history[-1], history=history
    )


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
