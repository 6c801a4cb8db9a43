"""The engine in C++; src/core/bindings/ has what it offers."""

from typing import Any

def __getattr__(name: str) -> Any: ...
