"""The Ray engine in the processes of the cluster: one shard of slots in each.

A worker learns blocks in the order of the sample numbers and refuses all others. So a worker that
was restarted, or a caller that has lost count, is noticed at once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from ... import __version__, _core
from ...errors import KernelBankError
from ...utils.validation import Floats
from .sharding import Description, Snapshot, with_models

Samples = tuple[Floats, Floats]
"""Inputs (n, d) and targets (n, K) of a block."""


class OutOfOrder(RuntimeError):
    """A worker was sent a block that does not follow what it has learned."""


@cache
def build_fingerprint() -> str:
    """Versions that must be equal on all nodes, so that all compute the same bits."""
    files = [*sorted(Path(__file__).parents[2].rglob("*.py")), Path(_core.__file__)]
    build = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    return f"kernelbank {__version__} ({build}), numpy {np.__version__}"


class ShardWorker:
    """A process of the cluster with a shard, which can be replaced: see `RayBank`."""

    def check_build(self, expected: str) -> int:
        """The process id, if the packages here are the driver's."""
        build = build_fingerprint()
        if build != expected:
            raise KernelBankError(
                f"A node of the cluster has {build}, and the driver {expected}. "
                "Install the same versions on all nodes, so that all compute the same bits."
            )
        return os.getpid()

    def open(self, description: Description) -> None:
        """Have a shard that has learned nothing."""
        self._description = description
        self._bank = _core.Bank(description)
        self._next_sample: int | None = None  # None: whichever comes

    def learn(self, first: int, samples: Samples) -> dict[str, Floats]:
        """Learn a block. For n samples and S slots, what they leave behind: "predictions", "norms"
        and "effects" (n, K, S), "values" (n, K, window, S); and "dropped" and "step_ratio" (K, S)
        after the block."""
        window, slots = self._description["window"], self._description["slots"]
        shape = (*samples[1].shape, slots)
        records = {
            "slot_predictions": np.empty(shape),
            "norms": np.empty(shape),
            "effects": np.empty(shape),
            "values": np.empty((*shape[:2], window, slots)),
        }
        self.replay(first, samples, records)
        records["predictions"] = records.pop("slot_predictions")
        records["dropped"] = self._bank.ledger()["dropped"]
        records["step_ratio"] = self._bank.step_ratio()
        return records

    def replay(
        self, first: int, samples: Samples, records: Mapping[str, Floats] | None = None
    ) -> None:
        """Learn a block, maybe again."""
        if self._next_sample not in (None, first):
            raise OutOfOrder(f"this shard expects sample {self._next_sample}, and got {first}")
        self._next_sample = -1  # until the block is whole
        self._bank.learn(*samples, None, dict(records or {}))
        self._next_sample = first + len(samples[0])

    def predict_slots(self, X: Floats) -> Floats:
        """(n, K, S): the slots' values."""
        return self._bank.predict_slots(X)

    def variance_slots(self, X: Floats) -> Floats:
        """(n, K, S): the slots' variances."""
        return self._bank.variance_slots(X)

    def snapshot(self) -> Snapshot:
        """Everything that the next block depends on; models are copied on their way."""
        arrays = self._bank.state()
        own = {name: array for name, array in arrays.items() if not name.startswith("output")}
        return own, self._bank.models()

    def load(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot, at whichever sample comes."""
        arrays, models = snapshot
        self._bank = _core.Bank(with_models(self._description, models))
        self._bank.restore(self._bank.state() | arrays)
        self._next_sample = None
