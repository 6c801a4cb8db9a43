"""Delayed targets: slots are judged by what they predicted when the input came."""

# mypy: disable-error-code="no-untyped-def"
import numpy as np

from ..losses.objective import Objective
from ..native.formulas import call_loss, pointer
from ..native.phases import Phase, argument_fields, compiled, float_array, read_int
from ..native.simd import WIDTH
from ..native.workspace import Workspace

PAST = argument_fields(
    "slots",
    "loss",
    "parameters",
    "has_past_predictions",
    "past_predictions",
    "new_targets",
    "slot_predictions",
    "slot_loss",
    "scratch",
)


def use_past_predictions(args, first, count):
    """Where has_past_predictions[t]: slot_predictions[t] = past_predictions[t], and their losses.

    past_predictions, slot_predictions, slot_loss: (n, P); has_past_predictions, new_targets: (n,).
    """
    slots = read_int(args, PAST.slots)
    scratch = float_array(args, PAST.scratch)  # (3, 4): predictions, targets, losses
    for t in range(count):
        if float_array(args, PAST.has_past_predictions)[t] == 0.0:
            continue
        for p in range(t * slots, (t + 1) * slots):
            value = float_array(args, PAST.past_predictions)[p]
            # A slot that is out stays out. A past prediction that is not finite does not count.
            if not (float_array(args, PAST.slot_loss)[p] < np.inf and abs(value) < np.inf):
                continue
            for k in range(WIDTH):
                scratch[k] = value
                scratch[WIDTH + k] = float_array(args, PAST.new_targets)[t]
            call_loss(
                read_int(args, PAST.loss),
                scratch,
                pointer(scratch, WIDTH),
                1,
                float_array(args, PAST.parameters),
                pointer(scratch, 2 * WIDTH),
            )
            float_array(args, PAST.slot_predictions)[p] = value
            float_array(args, PAST.slot_loss)[p] = scratch[2 * WIDTH]


def past_predictions_phase(objective: Objective, workspace: Workspace) -> Phase:
    """The phase that puts past predictions in the place of the present ones."""
    return Phase(
        compiled(use_past_predictions),
        PAST,
        slots=workspace.slots,
        loss=objective.loss.value_address,
        parameters=objective.loss.parameters,
        has_past_predictions=workspace.has_past_predictions,
        past_predictions=workspace.past_predictions,
        new_targets=workspace.new_targets,
        slot_predictions=workspace.slot_predictions,
        slot_loss=workspace.slot_loss,
        scratch=np.zeros((3, WIDTH)),
    )
