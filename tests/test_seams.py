"""No module reads or writes a private attribute of an object that another module defines."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src/kernelbank"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _defined(tree: ast.Module) -> set[str]:
    """Private names that this module defines: functions, classes, attributes of self, fields."""
    found = set(NAMED_TUPLE)
    for node in ast.walk(tree):
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
    tree = ast.parse(source)
    own = _defined(tree)
    modules = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in sys.stdlib_module_names
    }
    reaches = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
            continue
        owner = node.value
        inherited = isinstance(owner, ast.Name) and owner.id in ("self", "cls", *modules)
        inherited |= isinstance(owner, ast.Call) and ast.unparse(owner.func) == "super"
        if not inherited and node.attr not in own:
            reaches.append(f"{node.lineno}: {ast.unparse(node)}")
    return reaches


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_reaches_into_no_object_of_another(path):
    assert foreign_reaches(path.read_text()) == []


def test_reaches_are_found():
    assert foreign_reaches("def f(bank):\n    bank._model = 1") == ["2: bank._model"]
    assert foreign_reaches("class A:\n    def f(self, other):\n        self._x = other._x") == []
