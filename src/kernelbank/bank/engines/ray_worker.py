"""The Ray engine in the processes of the cluster: one shard of slots in each.

A worker learns blocks in the order of the sample numbers and refuses all others. So a worker that
was restarted, or a caller that has lost count, is noticed at once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from ... import __version__, _core
from ...errors import KernelBankError
from ...utils.validation import Floats
from .base import Description, Snapshot, with_models

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

    def open(
        self, description: Description, snapshot: Snapshot | None, samples: Samples | None
    ) -> None:
        """Be the shard that has learned these samples after the snapshot, or from the beginning."""
        arrays, models = snapshot or ({}, {})
        self._bank = _core.Bank(with_models(description, models))
        if snapshot is not None:
            self._bank.restore(self._bank.state() | arrays)
        if samples is not None:
            self._bank.learn(*samples, None, {})
        self._description = description

    def learn(
        self, first: int, samples: Samples, with_snapshot: bool
    ) -> tuple[dict[str, Floats], Snapshot | None]:
        """Learn a block, whose first sample has the number `first`.

        For n samples and S slots, what they leave behind: "predictions", "norms" and "effects"
        (n, K, S), "values" (n, K, window, S); and "dropped" and "step_ratio" (K, S) after the
        block.
        """
        if first != self._bank.samples:
            raise OutOfOrder(f"this shard expects sample {self._bank.samples}, and got {first}")
        window, slots = self._description["window"], self._description["slots"]
        shape = (*samples[1].shape, slots)
        records = {
            "slot_predictions": np.empty(shape),
            "norms": np.empty(shape),
            "effects": np.empty(shape),
            "values": np.empty((*shape[:2], window, slots)),
        }
        self._bank.learn(*samples, None, dict(records))
        records["predictions"] = records.pop("slot_predictions")
        records["dropped"] = self._bank.ledger()["dropped"]
        records["step_ratio"] = self._bank.step_ratio()
        return records, self.snapshot() if with_snapshot else None

    def predict_slots(self, X: Floats) -> Floats:
        """(n, K, S): the slots' values."""
        return self._bank.predict_slots(X)

    def variance_slots(self, X: Floats) -> Floats:
        """(n, K, S): the slots' variances."""
        return self._bank.variance_slots(X)

    def snapshot(self) -> Snapshot:
        """What the next block depends on, without outputs; models are copied on their way."""
        arrays = self._bank.state()
        of_slots = {name: array for name, array in arrays.items() if not name.startswith("output")}
        return of_slots, self._bank.models()


def partition(packs: Sequence[Description], shards: int) -> list[list[int]]:
    """The packs of every shard, dealt in turn, since narrow kernels cost less than wide ones; packs
    that depend on each other stay together."""
    groups: list[list[int]] = []
    group_of: list[list[int]] = []
    for number, pack in enumerate(packs):
        if pack["base"] is None:
            groups.append([])
        group_of.append(groups[-1] if pack["base"] is None else group_of[pack["base"][0]])
        group_of[-1].append(number)
    parts: list[list[int]] = [[] for _ in range(min(shards, len(groups)))]
    for i, group in enumerate(groups):
        parts[i % len(parts)] += group
    return [sorted(part) for part in parts]


def describe_shard(whole: Description, packs: Sequence[int], block: int) -> Description:
    """The bank of some packs, which have their bases among them. Its slots are numbered anew, pack
    by pack, and its weights are of no use."""
    place = {number: i for i, number in enumerate(packs)}
    shard_packs, count = [], 0
    for pack in (whole["packs"][number] for number in packs):
        slots = list(range(count, count + len(pack["slots"])))
        base = None if pack["base"] is None else [place[pack["base"][0]], pack["base"][1]]
        shard_packs.append({**pack, "slots": slots, "base": base})
        count += len(slots)
    return {
        **whole,
        "packs": shard_packs,
        "slots": count,
        "block": block,
        "threads": 1,
        "combiner": ("Uniform", {}),
        "first_weights": [1.0 / count] * count,
        "late_prices": [1.0] * count,
        "on_simplex": True,
        "needs_values": False,
        "sums_weights": False,
    }


def describe_driver(whole: Description, shards: Sequence[Sequence[int]]) -> Description:
    """The bank whose slots run elsewhere: its packs copy what the shards hand over."""
    packs = [{**pack, "learner": "Remote", "kernels": []} for pack in whole["packs"]]
    for numbers in shards:
        column = 0
        for number in numbers:
            pack, width = packs[number], len(packs[number]["slots"])
            pack |= {"settings": {"column": column, "width": width}}
            pack |= dict.fromkeys(["loss", "base", "transform"])
            pack.pop("models", None)
            column += width
    return {**whole, "packs": packs}


def renumbered(arrays: Mapping[str, np.ndarray], place: Mapping[int, int]) -> dict[str, np.ndarray]:
    """The arrays of packs by other numbers, and those that are of no pack and no output."""
    prefixes = {f"pack{number}": f"pack{to}" for number, to in place.items()}
    result = {}
    for name, array in arrays.items():
        part, _, rest = name.partition("/")
        if part in prefixes:
            result[f"{prefixes[part]}/{rest}"] = array
        elif not part.startswith(("pack", "output")):
            result[name] = array
    return result
