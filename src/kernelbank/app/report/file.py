"""The page of a run as a file."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import RunRefused
from ..runner.status import RunStatus
from .page import page
from .report_data import Story


def check_place(path: Path, option: str) -> None:
    """Refuse a place that cannot be written to, or that is likely to be something else's."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise RunRefused(f"{option} must end with .html; got {path}.")
    if path.is_dir():
        raise RunRefused(f"{option}: {path} is a folder. Give a file.")
    if not path.absolute().parent.is_dir():
        raise RunRefused(f"{option}: there is no folder {path.absolute().parent}. Make it first.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise RunRefused(f"{option}: {path.absolute().parent} cannot be written to.")


def write(path: Path, status: RunStatus) -> None:
    """Write the page; at any moment the old or the new one is there, whole."""
    text = page(Story().parts(status))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
