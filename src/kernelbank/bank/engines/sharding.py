"""A bank that is divided into shards, and put together again.

A shard is a bank of the core with some packs of the whole bank. The driver's is one with all packs,
whose learners run elsewhere (`src/core/learners/remote.hpp`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Description = dict[str, Any]
"""What a bank of the core is made from: see `BankSettings.describe`."""

Models = Mapping[int, list[Any]]
"""By pack: the models of its outputs, behind a slot whose state is not arrays."""

Snapshot = tuple[dict[str, Any], dict[int, list[Any]]]
"""The arrays of a shard by name, without its outputs, and its models, by pack."""


def partition(packs: Sequence[Mapping[str, Any]], shards: int) -> list[list[int]]:
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
    own, count = [], 0
    for number in packs:
        pack = whole["packs"][number]
        width, base = len(pack["slots"]), pack["base"]
        own.append(
            {
                **pack,
                "slots": list(range(count, count + width)),
                "base": None if base is None else [place[base[0]], base[1]],
            }
        )
        count += width
    return {
        **whole,
        "packs": own,
        "slots": count,
        "block": block,
        "threads": 1,
        "combiner": ("Uniform", {}),
        "first_weights": [1.0 / count] * count,
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


def with_models(description: Description, models: Mapping[int, list[Any]]) -> Description:
    """The same bank with these models, by pack."""
    packs = [
        {**pack, "models": models[number]} if number in models else pack
        for number, pack in enumerate(description["packs"])
    ]
    return {**description, "packs": packs}


def renumbered(arrays: Mapping[str, Any], place: Mapping[int, int]) -> dict[str, Any]:
    """The arrays of packs by other numbers, and those that are of no pack and no output."""
    prefixes = {f"pack{number}": f"pack{to}" for number, to in place.items()}
    found = {}
    for name, array in arrays.items():
        part, _, rest = name.partition("/")
        if part in prefixes:
            found[f"{prefixes[part]}/{rest}"] = array
        elif not part.startswith(("pack", "output")):
            found[name] = array
    return found


def has_c_function(spec: Any) -> bool:
    """Whether a kernel or loss, as the core is given it, is the address of a function, or any in a
    list is."""
    if not (isinstance(spec, (tuple, list)) and spec):
        return False
    return spec[0] == "c_function" or any(map(has_c_function, spec))
