"""The state of an AutoBank is one tree: each part lists once, by name, what it holds.

A part holds arrays, objects of the core, banks and other parts. From its list it is written as JSON
data and arrays with the names of the parts in front, and restored. A file may be a stranger's:
whatever does not fit the settings is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.engines import Engine
from ..bank.serialization import BUILT_IN, under
from ..errors import FileRefused
from ..io.specs import from_spec

Json = dict[str, Any]  # plain data of a file, which in a forged one may be anything
Arrays = dict[str, np.ndarray]  # the arrays of a state, by their names in a file

Parts = Mapping[str, Any]
"""What a part holds, by name: an array, an object of the core (with `state` and `restore`), a bank,
another part (with `describe` and `restore`), or None for one that is not there."""


def describe_parts(parts: Parts) -> tuple[Json, Arrays]:
    """The state of all parts, as JSON data and arrays."""
    header: Json = {}
    arrays: Arrays = {}
    for name, part in parts.items():
        state: Mapping[str, np.ndarray] = {}
        if isinstance(part, np.ndarray):
            arrays[name] = part.copy()
        elif part is None:
            header[name] = None
        elif hasattr(part, "describe"):
            header[name], state = part.describe()
        else:
            state = part.state()
        arrays |= {f"{name}/{inner}": array for inner, array in state.items()}
    return header, arrays


@dataclass(frozen=True)
class Reading:
    """How the parts of a file are made.

    engine : where the slots of its banks run.
    components : user-made parts by name; see `kb.load`.
    most_memory : how many bytes each bank may need beside its state.
    """

    engine: Engine
    components: Mapping[str, object]
    most_memory: int

    def component(self, spec: Json, *types: type) -> Any:
        """A component of a bank, or an object of one of the types."""
        return from_spec(spec, (*BUILT_IN, *types), self.components)

    def bank(self, header: Json, arrays: Arrays, template: KernelBank) -> KernelBank:
        """The bank of a file, if its settings are those of the template."""
        if header.get("outputs", 1) == template.outputs:  # before anything is made for them
            memory = self.most_memory
            bank = KernelBank.restored(header, arrays, self.engine, self.components, memory)
            names = ("slots", "outputs", "loss", "window", "regularization")
            if all(getattr(bank, name) == getattr(template, name) for name in names):
                return bank
        raise FileRefused("an inner bank does not fit its settings.")

    def restore(
        self,
        parts: Parts,
        header: Json,
        arrays: Arrays,
        engines: Mapping[str, Engine] | None = None,
    ) -> Json:
        """Give parts that have learned nothing the state that `describe_parts` returned.

        Returns the banks by name: they are other objects than before.

        engines : where other banks run than those of the engine of all.
        """
        banks: Json = {}
        for name, part in parts.items():
            state, reading = under(f"{name}/", arrays), self
            if isinstance(part, np.ndarray):
                if arrays[name].shape != part.shape:
                    raise FileRefused(f"its {name} do not fit its settings.")
                part[...] = arrays[name]
                continue
            if part is not None and not hasattr(part, "describe"):
                part.restore(state)
                continue
            if (header[name] is None) != (part is None):
                raise FileRefused(f"its {name} does not fit its settings.")
            if engines and name in engines:
                reading = replace(self, engine=engines[name])
            if isinstance(part, KernelBank):
                banks[name] = reading.bank(header[name], state, part)
            elif hasattr(part, "restored"):  # an AutoBank
                banks[name] = part.restored(header[name], state, reading)
                if part.config != banks[name].config:
                    raise FileRefused(f"its {name} does not fit its settings.")
            elif part is not None:
                part.restore(header[name], state, reading)
        return banks


# --- checks ---------------------------------------------------------------------------------------


def whole_number(value: Any, least: int, most: int, what: str) -> int:
    """A whole number from a file."""
    if isinstance(value, bool) or not (least <= value <= most and value == int(value)):
        raise FileRefused(f"it claims {value!r} for {what}.")
    return int(value)


def check_finite(arrays: Mapping[str, np.ndarray], may_miss: tuple[str, ...]) -> None:
    """Refuse arrays with other values than numbers, but for those whose names end like this."""
    for name, array in arrays.items():
        if not (name.endswith(may_miss) or np.isfinite(array).all()):
            raise FileRefused(f"its statistics are not numbers: {name}.")
