"""Other outputs for a bank: copies of outputs that exist, and new ones.

What slots compute from the inputs alone stays as it is, with the first output. All else of an
output (weights, ledger, combiner, what slots have learned of its targets) comes from a *source*:
an output of a bank with the same slots that has counted as many samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..utils.validation import Floats
from . import bank_cost
from .engines import Serial
from .outputs import OutputRuntime
from .runtime import Runtime
from .runtime_state import under
from .settings import BankSettings


@dataclass(frozen=True)
class OutputSource:
    """The state of one output, as that of a bank of its own.

    arrays : all arrays but those that it shares with the first output of its bank.
    missing : how many samples had no target.
    models : those behind slots whose state is not arrays, by leaf.
    """

    arrays: Mapping[str, Floats]
    missing: int
    models: Mapping[int, Any]

    def restore(self, runtime: Runtime, shared: Mapping[str, Floats] | None = None) -> None:
        """Let a runtime continue from this state; `shared`: arrays that replace some of it."""
        runtime.restore_models(self.models)
        runtime.ledger.missing = self.missing
        runtime.restore({**self.arrays, **(shared or {})})


def output_sources(runtime: Any) -> list[OutputSource]:
    """The outputs of a runtime, for one that is made of it; arrays are copies."""
    runtimes = runtime.runtimes if isinstance(runtime, OutputRuntime) else [runtime]
    return [OutputSource(one.arrays(), one.ledger.missing, one.copy_models()) for one in runtimes]


def with_outputs(
    settings: BankSettings, runtime: Any, sources: Sequence[OutputSource]
) -> tuple[BankSettings, OutputRuntime]:
    """Settings and runtime with these outputs; what they share is that of `runtime`."""
    new = replace(settings, outputs=len(sources))
    result = OutputRuntime(new)
    result.warned = runtime.warned
    result.open(np.zeros(runtime.dimension))
    names = result.runtimes[1].array_specs(runtime.dimension)
    shared = {n: a for n, a in runtime.leader.arrays().items() if n not in names}
    for one, source in zip(result.runtimes, sources, strict=True):
        source.restore(one, shared)
    return new, result


def has_room(runtime: Any) -> bool:
    """Whether an output can be added to a runtime without other arrays for the others.

    Blocks are shorter with more outputs. So that few outputs need other arrays, blocks may be up
    to twice as long as those of a bank that starts with as many.
    """
    if not isinstance(runtime, OutputRuntime):
        return False
    leader = runtime.leader
    dimension = leader.workspace.points.shape[1]
    wanted = leader.block_length(dimension, len(runtime.runtimes) + 1)
    return leader.workspace.size <= 2 * wanted


def start_output(
    settings: BankSettings, first: int, first_input: Floats
) -> tuple[BankSettings, Runtime]:
    """Settings and runtime of a new output, alone: it counts `first` samples that it never saw."""
    layout = replace(settings.layout, first_sample=first)
    alone = replace(settings.of_output(0), layout=layout, engine=Serial(), outputs=1, losses=())
    runtime = Runtime(alone)
    runtime.open(first_input)
    arrays = runtime.arrays()
    arrays["ledger/running"][bank_cost.SAMPLES] = first
    runtime.ledger.missing = first
    runtime.restore(arrays)
    return alone, runtime


def finished_output(
    settings: BankSettings, runtime: Any, output: Runtime, past_target: float
) -> OutputSource:
    """What `start_output` made and has learned up to now, as one more output of `runtime`.

    past_target : the target of the samples that it never saw, NaN if it is not known.
    """
    (source,) = output_sources(output)
    leader = runtime.leader.arrays()
    for number, group in enumerate(settings.layout.groups):
        prefix, past = f"slots/group{number}/", past_target
        if group.residual_of is not None:
            past = np.nan  # the base's predictions are not known
        elif group.transform is not None:
            past = group.transform.forward(past_target)
        group.learner.fit_to_shared(under(prefix, source.arrays), under(prefix, leader), past)
    return source
