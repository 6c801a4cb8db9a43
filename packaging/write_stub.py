"""Write src/kernelbank/_core.pyi, the types of the bindings, from the compiled core.

nanobind tells the types of C++, in which a dict or a tuple has no parts: the rules below add them.
What the package never names is left out, and what several classes have in common is written once.
"""

import re
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

PACKAGE = Path(__file__).parents[1] / "src/kernelbank"

RULES = [
    # A NumPy array by its numbers alone: the core checks shape and order.
    (r"Annotated\[(NDArray\[numpy\.\w+\]), dict\((?:[^()]|\([^()]*\))*\)\]", r"\1"),
    (r"NDArray\[numpy\.float64\]", "Floats"),
    (r"def state\((.*)\) -> dict:", r"def state(\1) -> dict[str, NDArray[Any]]:"),
    (r"def restore\(self, arrays: dict\)", "def restore(self, arrays: dict[str, NDArray[Any]])"),
    (r"def copy\(self\) -> \w+:", "def copy(self) -> Self:"),
    (r"@property\n +def (\w+)\(self\) -> (.*): \.\.\.", r"\1: \2"),
    (r"    @\w+\.setter\n.*\n\n", ""),
    (r"def ledger\(self\) -> dict:", "def ledger(self) -> dict[str, Floats]:"),
    (r"def models\(self\) -> dict:", "def models(self) -> dict[int, list[Any]]:"),
    (
        r"def predict_slots_one\((.*)\) -> tuple:",
        r"def predict_slots_one(\1) -> tuple[Floats, Floats]:",
    ),
    (r"def __getitem__\((.*)\) -> Any:", r"def __getitem__(\1) -> NDArray[Any]:"),
    (r"\*\*kwargs", "**kwargs: object"),
    (r"object \| None", "object"),
    (r"\bdict\b(?!\[)", "dict[str, Any]"),
    (r"\btuple\b(?!\[)", "tuple[Any, ...]"),
    (r"\blist\b(?!\[)", "list[Any]"),
    (r"from typing import .*", "from typing import Any, Self"),
    (r"from numpy.typing import NDArray", r"\g<0>\n\nFloats = NDArray[numpy.float64]"),
]

BASES = {
    "_State": [
        "Scaling",
        "SeasonHistory",
        "Intervals",
        "Probabilities",
        "HorizonIntervals",
        "HorizonStacking",
    ],
    "_Model": ["NumberModel", "ClassModel"],
}
"""Classes of the stub alone: the members that all of these classes declare with the same types."""


def stub() -> str:
    """The text of the file."""
    from kernelbank import _core

    generator = StubGen(_core)
    generator.put(_core)
    text = generator.get()
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return fold(text, set(re.findall(r"\w+", "".join(map(Path.read_text, PACKAGE.rglob("*.py"))))))


def fold(text: str, used: set[str]) -> str:
    """The declarations of what has one of the names that are used."""
    module: list[str] = []
    classes: dict[str, list[str]] = {}
    for part in re.split(r"\n\n+", text.strip()):
        if part.startswith("class "):
            head, first = part.split("\n", 1)
            classes[head] = [first]
        elif part.startswith("    "):
            classes[next(reversed(classes))].append(part)
        elif part.startswith("from ") or declared_name(part) in {*used, "Floats"}:
            module.append(part)
    classes = {
        head: [member for member in members if declared_name(member) in {*used, "pass"}]
        for head, members in classes.items()
        if declared_name(head) in used
    }
    for base, names in BASES.items():
        heads = [f"class {name}:" for name in names if f"class {name}:" in classes]
        first, *others = (classes[head] for head in heads)
        shared = [member for member in first if all(member in members for members in others)]
        for head in heads:
            members = classes.pop(head)
            classes[f"{head[:-1]}({base}):"] = [m for m in members if m not in shared]
        classes = {f"class {base}:": shared} | classes
    written = ["\n".join([head, *members]) for head, members in classes.items()]
    return "\n\n".join(["\n".join(module), *written]) + "\n"


def declared_name(declaration: str) -> str:
    """The name that a class, a function or a variable is declared by."""
    return re.search(r"(?:class |def |^ *)(\w+)", re.sub(r"@.*\n", "", declaration))[1]


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PACKAGE / "_core.pyi").write_text(stub())
