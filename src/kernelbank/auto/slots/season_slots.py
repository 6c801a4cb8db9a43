"""The default slots for seasons: the only ones that see the targets of earlier periods.

They see the inputs in their first scaling too. As long as no period is known they are idle: least
squares on a column of zeros, which costs next to nothing and gets no weight.

- *season: linear, adaptive bias*: the last target of the phase, the mean of the last three, the
  phase and the inputs. With the bias, which follows the last errors, this is a seasonal forecast.
- *season: random features, adaptive bias*: Gaussian kernels of cosine and sine of the phase are
  periodic kernels (MacKay, Introduction to Gaussian processes, 1998).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...bank.slot import Slot
from ...kernels import ActiveDims, Linear
from ...learners import FourierRLS, LinearRLS
from ...losses import Loss, Squared
from ..scaling.scaling import Scaling
from ..seasons import INPUTS
from .default_slots import FAST, LINEAR_RIDGE, RIDGE, SLOW, WIDE, Size, mixed_kernel


def season_slots(scaling: Scaling, size: Size, seed: int, loss: Loss) -> list[tuple[str, Slot]]:
    """The slots for seasons and their names; none without seasons."""
    if not scaling.seasons:
        return []
    adaptive: dict[str, Any] = {
        "forgetting": SLOW,
        "forget": "prior",
        "constant_forgetting": FAST,
    }
    own = scaling.columns_of[scaling.names[0]]
    added = scaling.dimension - scaling.core
    inputs, later = own[: len(own) - added], own[len(own) - added :]
    seasons = scaling.season_columns[: scaling.periods * INPUTS]
    if scaling.periods:
        line = ActiveDims(Linear(1.0), (*seasons, *inputs, *later)[:WIDE])
        columns = (*seasons, *inputs)
        linear = Slot(line, LinearRLS(ridge=LINEAR_RIDGE, **adaptive))
        features = Slot(
            ActiveDims(mixed_kernel(len(columns), size.widths), columns),
            FourierRLS(features=size.features, ridge=RIDGE, seed=seed, **adaptive),
        )
    else:
        zeros = ActiveDims(Linear(1.0), scaling.season_columns[:1])
        linear = features = Slot(zeros, LinearRLS(ridge=LINEAR_RIDGE))
    found = {"linear, adaptive bias": linear, "random features, adaptive bias": features}
    if loss != Squared():
        found = {name: replace(slot, loss=Squared()) for name, slot in found.items()}
    return [(f"season: {name}", slot) for name, slot in found.items()]
