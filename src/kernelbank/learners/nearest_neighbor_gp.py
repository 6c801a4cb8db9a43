"""NearestNeighborGP: at every point a small Gaussian process on the nearest past samples.

The settings and arrays of the method; the compiled code is in `neighbor_search`, `neighbor_steps`
and `neighbor_follow`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..kernels import Kernel
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..kernels.program import PackedProgram, PackedStatistics, number_statistics
from ..kernels.sample_buffer import SampleBuffer
from ..losses import Squared
from ..losses.objective import Objective
from ..native.functions import NativeFunction
from ..native.phases import Phase
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup
from .neighbor_follow import follow_block, follow_query
from .neighbor_search import BLOCK
from .neighbor_steps import LOCAL_SIZE, learn_block, predict_points, predict_query


@dataclass(frozen=True)
class NearestNeighborGP(Learner):
    """Gaussian process regression from the nearest of the last samples, anew at every point.

    With z_1 .. z_k the nearest inputs to x among the last `memory` samples, v their targets, and
    K the matrix of k(z_i, z_j) + constant:

        f(x) = q' (K + noise I)^-1 v,   q_i = k(x, z_i) + constant.

    Near means a small Euclidean distance, in the coordinates of `ActiveDims` if the kernel has it;
    of equally near inputs the newer are taken. So the capacity grows with the stream, up to
    `memory` samples, where a method with a fixed number of features or centres stands still. The
    samples are forgotten when `memory` newer ones have come. Inputs are rounded to single
    precision, so that more of them can be searched.

    f is a posterior mean, but of another small process at every x, so it is not a function of the
    kernel's space: norm^2 is 0, which means none.

    The four slots of a leaf, with kernels of one structure, share the search: four widths cost
    little more than one. Cost per step and leaf: memory * inputs products for the search, and
    O(neighbors^3 / 6) for the local systems of four slots; `window` times more with a window.
    Memory: memory * (inputs + 1).

    Parameters
    ----------
    neighbors : k, how many samples a prediction is computed from.
    memory : how many of the last samples are kept, more than `neighbors`.
    noise : variance of the targets' error, positive, in the unit of the kernel's values.
    constant : variance of an unknown constant, 0 or more, in the same unit: where the targets are
        not near 0 everywhere, the prediction far from all samples is then near their mean.

    It learns by the squared loss; a slot of a bank for another loss can: kb.Slot(...,
    loss="squared").

    Reference: Vecchia, Estimation and model identification for continuous spatial processes,
    Journal of the Royal Statistical Society B 50 (1988); Datta, Banerjee, Finley and Gelfand,
    Hierarchical nearest-neighbor Gaussian process models for large geostatistical datasets, Journal
    of the American Statistical Association 111 (2016).

    >>> import numpy as np, kernelbank as kb
    >>> x = np.random.default_rng(0).uniform(0, 6, 500)
    >>> bank = kb.KernelBank([kb.kernels.Matern(1.0)], kb.learners.NearestNeighborGP(noise=0.01))
    >>> trace = bank.run(x, np.sin(x))
    >>> bank.predict([1.0, 4.0]).round(2).tolist() == np.sin([1.0, 4.0]).round(2).tolist()
    True
    """

    core_name: ClassVar[str] = "NearestNeighborGP"
    neighbors: int = 32
    memory: int = 4096
    noise: float = 0.1
    constant: float = 1.0
    leaf_arrays: ClassVar[frozenset[str]] = frozenset({"points", "responses", "stored"})
    single_arrays: ClassVar[frozenset[str]] = frozenset({"points"})
    shared_arrays: ClassVar[frozenset[str]] = frozenset({"points", "stored"})
    accepts_new_inputs: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = True
    uses_kernel_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        noise = "Give the variance of the targets' error, such as 0.1."
        check.settings(
            self,
            neighbors=check.whole("Give how many samples a prediction uses, such as 32."),
            noise=lambda name, value, owner: check.scale(name, value, owner, noise),
            constant=lambda name, value, owner: check.number(
                name, value, owner, "Give a variance, such as 1, or 0 for no constant.", least=0
            ),
        )
        remedy = "Raise memory, or lower neighbors."
        least = self.neighbors + 1
        kept = check.count("memory", self.memory, owner, remedy, least=least)
        object.__setattr__(self, "memory", kept)

    def check(self, objective: Objective) -> None:
        if objective.loss != Squared():
            raise check.refuse(
                "loss",
                "be the squared one for NearestNeighborGP",
                objective.loss,
                'Use "squared", another learner, or let this one learn by squares all the same: '
                'kb.Slot(..., loss="squared").',
            )

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        coordinates = len(active_coordinates(kernel, dimension))
        return {
            "points": (leaves, -(-self.memory // BLOCK), coordinates, BLOCK),
            "responses": (leaves, self.memory),
            "stored": (leaves,),
        }

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        rows = 3 * kernel.instruction_count(dimension) + dimension + 40
        return self.neighbors * (WIDTH * self.neighbors + rows)

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        known = old["points"].shape[2]
        new["points"][:, :, :known], new["points"][:, :, known:] = old["points"], 0.0
        super().extend_inputs({name: old[name] for name in old if name != "points"}, new)

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, Any]:
        coordinates = np.array(active_coordinates(kernels[0], dimension), dtype=float)
        return super().core_settings(kernels, dimension, identity) | {"coordinates": coordinates}

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        kept = self._kept(group, workspace) if workspace.is_followed else {}
        return [self._learn(learn_block, group, buffer, kept)]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        kept = self._kept(group, workspace) if workspace.is_followed else {}
        return [self._predict(predict_query, group, workspace, kept)]

    def follows(self, objective: Objective, leader: Objective) -> bool:
        """Always: neighbors and their systems follow from the inputs."""
        return True

    def follow_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        kept = self._kept(leader, workspace) | {"followed": 2}
        return [self._learn(follow_block, group, buffer, kept)]

    def follow_predict_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        kept = self._kept(leader, workspace) | {"followed": 2}
        return [self._predict(follow_query, group, workspace, kept)]

    def fit_to_shared(
        self, state: Mapping[str, Floats], leader: Mapping[str, Floats], past_target: float
    ) -> None:
        """Move the targets to the places that their samples have in the shared memory."""
        for leaf, responses in enumerate(state["responses"]):
            alone, shared = int(state["stored"][leaf]), int(leader["stored"][leaf])
            ages = np.arange(min(alone, shared, self.memory))
            newest = responses[(alone - 1 - ages) % self.memory]
            responses[:] = past_target
            responses[(shared - 1 - ages) % self.memory] = newest

    def _learn(
        self, function: NativeFunction, group: SlotGroup, buffer: SampleBuffer, kept: Any
    ) -> Phase:
        return Phase(
            function,
            **self._arguments(group, buffer.inputs) | kept,
            **group.common(),
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            targets=buffer.targets,
            memo=buffer.memo,
        )

    def _predict(
        self, function: NativeFunction, group: SlotGroup, workspace: Workspace, kept: Any
    ) -> Phase:
        arguments = self._arguments(group, workspace.query_point[:, None]) | kept
        values = group.query_values
        return Phase(function, **arguments, leaves=group.leaves, query_values=values)

    def _kept_shapes(self, dimension: int) -> dict[str, tuple[int, ...]]:
        """What is kept of a point for other outputs."""
        count = self.neighbors
        return {
            "kept_places": (count + 3,),
            "kept_inputs": (dimension, count),
            "kept_factors": (count * (count - 1) // 2, WIDTH),
            "kept_scales": (count, WIDTH),
            "kept_projected": (count, WIDTH),
            "kept_spread": (WIDTH,),
        }

    def kept_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        active = len(active_coordinates(kernel, dimension))
        return objective.window * sum(map(prod, self._kept_shapes(active).values()))

    def _kept(self, leader: SlotGroup, workspace: Workspace) -> dict[str, Any]:
        """What the slots of the first output keep for those of the others."""
        active = len(active_coordinates(leader.kernels[0][0], leader.dimension))
        shapes = self._kept_shapes(active)
        for name, shape in shapes.items():
            if name not in leader.scratch:
                whole = (leader.leaves, leader.size, leader.objective.window, *shape)
                leader.scratch[name] = np.zeros(whole, np.int64 if name == "kept_places" else float)
        return {name: leader.scratch[name] for name in shapes} | {"followed": 1}

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        return self._at_points(group, points, wanted)[0]

    def variance(self, group: SlotGroup, seen: int, points: Floats) -> Floats:
        """(k(x, x) + constant - q' (K + noise I)^-1 q) / noise."""
        everyone = np.ones(group.leaves, dtype=np.bool_)
        return self._at_points(group, points, everyone)[1] / self.noise

    def _at_points(
        self, group: SlotGroup, points: Floats, wanted: np.ndarray
    ) -> tuple[Floats, Floats]:
        """(leaves, n, 4) each: the predictions and their variances at points (n, d)."""
        out = np.zeros((group.leaves, len(points), WIDTH))
        spread = np.zeros_like(out)
        # Results of its own: those of the last query must stay for the sample that follows it.
        predict_points(
            len(points),
            **self._arguments(group, np.ascontiguousarray(points.T))
            | {"local": np.zeros((group.leaves, LOCAL_SIZE, WIDTH))},
            leaves=group.leaves,
            wanted=wanted.astype(np.int64),
            out=out,
            spread=spread,
        )
        return out, spread

    def _arguments(self, group: SlotGroup, inputs: Floats) -> dict[str, Any]:
        """The values of NEIGHBORS; inputs: (dimension of the bank, positions)."""
        active = active_coordinates(group.kernels[0][0], group.dimension)
        dimension, count = len(active), self.neighbors
        kernels = [[without_active_dims(kernel) for kernel in leaf] for leaf in group.kernels]
        numbers = number_statistics([kernel for leaf in kernels for kernel in leaf], dimension)
        program = PackedProgram.pack(kernels, numbers, dimension)
        sources = PackedStatistics.pack(numbers, dimension)
        local = np.zeros((group.leaves, LOCAL_SIZE, WIDTH))
        return {
            "dimension": dimension,
            "active": np.array(active, dtype=np.int64),
            "inputs": inputs,
            "neighbors": count,
            "memory": self.memory,
            "noise": self.noise,
            "constant": self.constant,
            **{name: group.state[name] for name in ("points", "responses", "stored")},
            "program": program.code,
            "kernel_constants": program.constants,
            "addresses": sources.addresses,
            "source_parameters": sources.parameters,
            "coordinates": sources.coordinates,
            "starts": sources.starts,
            "statistics": np.zeros((len(numbers), 1, count)),
            "stack": np.zeros((program.depth + 1, count, WIDTH)),
            "rounded": np.zeros(dimension, dtype=np.float32),
            "point": np.zeros(dimension),
            "other": np.zeros(dimension),
            "distances": np.zeros(count),
            "block_distances": np.zeros(BLOCK),
            "nearest": np.zeros(count, dtype=np.int64),
            "chosen": np.zeros((dimension, count)),
            "factor": np.zeros((count, count, WIDTH)),
            **{
                name: np.zeros((count, WIDTH))
                for name in ("row", "query_row", "scales", "solved", "projected")
            },
            "local": group.scratch.setdefault("local", local),
            "followed": 0,
            **dict.fromkeys(self._kept_shapes(dimension)),
        }
