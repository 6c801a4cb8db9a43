"""No module reads or writes a private attribute of an object that another module defines."""

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src/kernelbank"
NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _defined(nodes: list[ast.AST]) -> set[str]:
    """Private names that a module defines: functions, classes, attributes of self, fields."""
    found = set(NAMED_TUPLE)
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # __slots__
    return found


def foreign_reaches(source: str) -> list[str]:
    """Lines of a module's source that reach into objects of other modules."""
    nodes = list(ast.walk(ast.parse(source)))
    own = _defined(nodes)
    modules = {
        alias.asname or alias.name.split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in sys.stdlib_module_names
    }
    reaches = []
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr) or node.attr in own:
            continue
        owner = node.value
        inherited = isinstance(owner, ast.Name) and owner.id in ("self", "cls", *modules)
        inherited |= isinstance(owner, ast.Call) and ast.unparse(owner.func) == "super"
        if not inherited:
            reaches.append(f"{node.lineno}: {ast.unparse(node)}")
    return reaches


def test_no_module_reaches_into_an_object_of_another():
    sources = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    suspects = {path: text for path, text in sources.items() if re.search(r"[\w)\]]\._[a-z]", text)}
    assert len(suspects) > 30
    assert {p: found for p, text in suspects.items() if (found := foreign_reaches(text))} == {}
