"""Combiners on evidence of our own making: what they choose, sample by sample."""

import itertools
from types import SimpleNamespace

import numpy as np

import kernelbank as kb
from kernelbank.losses.objective import Objective
from kernelbank.native.phases import Phases
from kernelbank.native.workspace import Workspace


def weigh(combiner, losses=None, *, values=None, targets=None, curvature=None, cuts=(), loss=None):
    """The weights after each sample, from made-up evidence; `cuts` are where blocks end.

    values is (n, window, P) for window evidence, or (n, P): predictions one step ahead.
    """
    shape = losses.shape if values is None else (len(values), values.shape[-1])
    samples, slots = shape
    window = values.shape[1] if values is not None and values.ndim == 3 else 1
    objective = Objective(loss or kb.losses.Squared(), window, 0.0)
    workspace = Workspace(objective, samples, 1, slots, 1, values=combiner.needs_values, workers=1)
    state = {name: np.zeros(shape) for name, shape in combiner.shapes(slots).items()}
    weights = combiner.first_weights(slots)
    phases = Phases(combiner.phases(objective, workspace, state, weights))
    rows, figures = [], []
    targets = np.zeros(window - 1 + samples) if targets is None else targets
    for start, end in itertools.pairwise([0, *cuts, samples]):
        count = end - start
        workspace.window_loss[:count] = 1.0
        if losses is not None:
            workspace.slot_loss[:count] = losses[start:end]
            workspace.window_loss[:count] = np.where(np.isinf(losses[start:end]), np.inf, 1.0)
        if values is not None:
            out = np.isnan(values[start:end])
            workspace.window_loss[:count][out.any(axis=1) if out.ndim == 3 else out] = np.inf
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
        figures.append(combiner.diagnostics(state, weights))
    return SimpleNamespace(
        weights=np.vstack(rows), state=state, report=figures[-1], reports=figures
    )


def one_by_one(samples):
    return range(1, samples)


def problem(seed, slots, rows, labels, *, spread=1.0, alike=0.0):
    """Values of slots that are each partly right; `alike` makes them nearly collinear."""
    draw = np.random.default_rng(seed)
    truth = draw.normal(size=rows)
    noise = draw.normal(size=(rows, slots)) * draw.uniform(0.3, 1.5, slots)
    common = draw.normal(size=(rows, 1))
    values = truth[:, None] + alike * common + (1 - alike) * noise
    targets = truth + 0.3 * draw.normal(size=rows)
    if labels:
        targets = np.where(targets > 0, 1.0, -1.0)
    return spread * values, targets if labels else spread * targets
