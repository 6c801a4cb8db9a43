"""The page of a report: one HTML document with everything in it, around the parts of the report."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

# The order matters: a script may use, when it is loaded, what the scripts before it define.
_SCRIPTS = (
    "elements.js",
    "report_data.js",
    "chart.js",
    "header.js",
    "targets.js",
    "error.js",
    "weights.js",
    "curves.js",
    "calibration.js",
    "forecasts.js",
    "main.js",
)

# Characters that could end the script element, open another one or end a line of JavaScript; and
# halves of surrogate pairs, which no file can hold.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def render_page(report: str, address: str | None = None) -> str:
    """The page of a report.

    Parameters
    ----------
    report : JSON text, as `report_text` returns it.
    address : where later reports are, relative to the page; None for a file.
    """
    fields = {
        "policy": escape(content_security_policy(live=address is not None)),
        "title": _hide_urls(escape(_HALF_PAIR.sub("\ufffd", _title(report)))),
        "address": "" if address is None else f' data-address="{escape(address)}"',
        "report": _embed(report),
        **_assets(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], _read("page.html"))


def content_security_policy(*, live: bool) -> str:
    """The policy under which the page works: its own scripts and style, and nothing else."""
    assets = _assets()
    scripts = " ".join(_hash(assets[name]) for name in ("theme", "library", "script"))
    rules = [
        "default-src 'none'",
        f"script-src {scripts}",
        f"style-src {_hash(assets['style'])}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*rules, "connect-src 'self'"] if live else rules)


def _title(report: str) -> str:
    run = json.loads(report).get("run")
    return str((run or {}).get("title") or "kernelbank")


def _embed(report: str) -> str:
    """JSON that is safe inside a script element, whatever its texts are."""
    safe = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", report)
    return safe.replace("://", ":\\/\\/")


def _hide_urls(text: str) -> str:
    """HTML text in which "://" does not occur: a plain search shows that a file has no URL."""
    return text.replace("://", ":&#47;&#47;")


@cache
def _read(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")


@cache
def _assets() -> Mapping[str, str]:
    """The scripts and styles, which are the same in all pages."""
    library = re.sub(r"\A/\*!.*?\*/\s*", "", _read("uplot/uPlot.iife.min.js"))
    version = _read("uplot/VERSION").split(",")[0]
    script = "\n".join(_read(name) for name in _SCRIPTS)
    return {
        "theme": _read("theme.js"),
        "library": f"/*! {version}\n\n{_read('uplot/LICENSE').strip()}\n*/\n{library}",
        "script": f'(() => {{\n"use strict";\n\n{script}}})();\n',
        "style": f"{_read('uplot/uPlot.min.css')}\n{_read('page.css')}",
    }


@cache
def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
