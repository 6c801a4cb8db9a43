"""Errors of a command as one line, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..errors import KernelBankError


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
    except (KernelBankError, OSError, MemoryError) as error:
        raise RefusedCommand(error_text(error)) from None


def error_text(error: BaseException) -> str:
    """An error and its notes, which say where it came and what to do, as one line."""
    text = str(error) or ("not enough memory" if isinstance(error, MemoryError) else repr(error))
    end = "" if text.endswith((".", "!", "?")) or not _notes(error) else "."
    return " ".join(" ".join([text + end, *_notes(error)]).split())


def _notes(error: BaseException) -> list[str]:
    return [str(note) for note in getattr(error, "__notes__", ())]
