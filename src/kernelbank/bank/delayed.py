"""Delayed targets: slots are judged by what they predicted when the input came."""

# mypy: disable-error-code="no-untyped-def"
import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats, lanes
from ..native.formulas import call_loss
from ..native.functions import native
from ..native.phases import Phase
from ..native.simd import WIDTH, lane
from ..native.workspace import Workspace

PAST = Arguments(
    "past_predictions",
    slots=int,
    loss=int,  # address of the loss
    parameters=floats(None),  # of the loss
    has_past_predictions=floats(None),  # 1 for a sample whose past predictions are given
    past_predictions=floats(None, "slots"),
    new_targets=floats(None),
    slot_predictions=floats(None, "slots"),
    slot_loss=floats(None, "slots"),
    scratch=lanes(3),  # prediction, target, loss
)


@native(PAST)
def use_past_predictions(a, first, count):
    """Where has_past_predictions[t]: past predictions instead of the slots', and their losses."""
    for t in range(count):
        if a.has_past_predictions[t] == 0.0:
            continue
        for p in range(a.slots):
            value = a.past_predictions[t, p]
            # A slot that is out stays out. A past prediction that is not finite does not count.
            if not (a.slot_loss[t, p] < np.inf and abs(value) < np.inf):
                continue
            a.scratch[0] = value
            a.scratch[1] = a.new_targets[t]
            call_loss(a.loss, a.scratch, a.scratch[1:], 1, a.parameters, a.scratch[2:])
            a.slot_predictions[t, p] = value
            a.slot_loss[t, p] = lane(a.scratch[2], 0)


def past_predictions_phase(objective: Objective, workspace: Workspace) -> Phase:
    """The phase that puts past predictions in the place of the present ones."""
    return Phase(
        use_past_predictions,
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
