"""Calls of a bank take turns, and none comes from inside another."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ..errors import KernelBankError
from ..native.callbacks import inside_callback

_Method = TypeVar("_Method", bound=Callable[..., Any])


def exclusive(method: _Method) -> _Method:
    """Let calls from several threads take turns, and refuse calls from inside the same bank."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._runtime.busy:
            refuse_inside()
        with self._turn:
            return method(self, *args, **kwargs)

    return cast(_Method, guarded)


def refuse_inside() -> None:
    """A function that the bank has called must not call the bank."""
    if inside_callback():
        raise KernelBankError(
            "A function that a bank calls has called the same bank. Let kernels, losses, "
            "learners and combiners depend on their arguments only."
        )
