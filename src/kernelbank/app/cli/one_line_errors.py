"""Errors of a command as one line, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ...errors import KernelBankError


class RefusedCommand(click.ClickException):
    """An error of one line, with the exit code of wrong usage."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"kernelbank: {self.message}", file=file, err=True)


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    """Turn errors of ours and of the system into one line."""
    try:
        yield
    except (KernelBankError, OSError) as error:
        raise RefusedCommand(" ".join(str(error).split())) from None
