"""Write src/kernelbank/_core.pyi, the types of the bindings, from the compiled core.

nanobind tells the types of C++, in which a dict or a tuple has no parts: the rules below add them.
"""

import re
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

RULES = [
    # A NumPy array by its numbers alone: the core checks shape and order.
    (r"Annotated\[(NDArray\[numpy\.\w+\]), dict\((?:[^()]|\([^()]*\))*\)\]", r"\1"),
    (r"def state\((.*)\) -> dict:", r"def state(\1) -> dict[str, NDArray[Any]]:"),
    (r"def restore\(self, arrays: dict\)", "def restore(self, arrays: dict[str, NDArray[Any]])"),
    (r"def ledger\(self\) -> dict:", "def ledger(self) -> dict[str, NDArray[numpy.float64]]:"),
    (r"def models\(self\) -> dict:", "def models(self) -> dict[int, list[Any]]:"),
    (
        r"def predict_slots_one\((.*)\) -> tuple:",
        r"def predict_slots_one(\1) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:",
    ),
    (r"def __getitem__\((.*)\) -> Any:", r"def __getitem__(\1) -> NDArray[Any]:"),
    (r"\*\*kwargs", "**kwargs: object"),
    (r"object \| None", "object"),
    (r"\bdict\b(?!\[)", "dict[str, Any]"),
    (r"\btuple\b(?!\[)", "tuple[Any, ...]"),
    (r"\blist\b(?!\[)", "list[Any]"),
    (r"from typing import .*", "from typing import Any"),
]


def stub() -> str:
    """The text of the file."""
    from kernelbank import _core

    generator = StubGen(_core)
    generator.put(_core)
    text = generator.get()
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


if __name__ == "__main__":
    target = Path(__file__).parents[1] / "src/kernelbank/_core.pyi"
    Path(sys.argv[1] if len(sys.argv) > 1 else target).write_text(stub())
