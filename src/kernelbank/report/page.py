"""The page: one file with everything in it, around the parts of a story."""

from __future__ import annotations

from collections.abc import Mapping


def page(parts: Mapping[str, str], events: str | None = None) -> str:
    """The page of a story whose parts are JSON texts by name.

    events : the address from which later parts come, relative to the page's; None for a file.
    """
    told = ",".join(f'"{name}":{text}' for name, text in parts.items()).replace("<", "\\u003c")
    return f"<!doctype html><title>kernelbank</title><script type=\"application/json\" id=\"story\">{{{told}}}</script>"


def policy(*, live: bool) -> str:
    """The content-security policy under which the page works: its own script and style only."""
    return "default-src 'none'" + ("; connect-src 'self'" if live else "")
