"""Compiled calls of a loss, for all that evaluate one."""

from ..native.formulas import call_loss, pointer
from ..native.jit import entry, inline
from ..native.simd import WIDTH


@entry
def apply_loss(address, predictions, targets, parameters, out):
    """The loss, or its derivative, of (rows, 4) predictions and targets."""
    call_loss(
        address,
        pointer(predictions, 0),
        pointer(targets, 0),
        predictions.shape[0],
        pointer(parameters, 0),
        pointer(out, 0),
    )


@inline
def window_loss(address, parameters, values, targets, seen, f, y, out):
    """Call the loss, or its derivative, on `seen` values and targets; four lanes to a row."""
    for i in range(seen):
        f[i] = values[i]
        y[i] = targets[i]
    call_loss(address, f, y, (seen + WIDTH - 1) // WIDTH, parameters, out)
