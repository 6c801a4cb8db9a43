"""The page: one file with everything in it, around the parts of a story."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

# The order matters: a file may use, when it is read, what the files before it define.
_SCRIPTS = (
    "words.js",
    "elements.js",
    "colours.js",
    "story.js",
    "figures.js",
    "axes.js",
    "chart.js",
    "cursor.js",
    "header.js",
    "error.js",
    "stream.js",
    "cost.js",
    "heat.js",
    "weights.js",
    "function.js",
    "intervals.js",
    "lists.js",
    "live.js",
    "main.js",
)

# What could end the script element, open another one or end a line of JavaScript; and halves of
# characters, which no file can hold.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")


def page(parts: Mapping[str, str], events: str | None = None) -> str:
    """The page of a story whose parts are JSON texts by name.

    events : the address from which later parts come, relative to the page's; None for a file.
    """
    told = ",\n".join(f"{json.dumps(name)}:{text}" for name, text in parts.items())
    pieces = {
        "policy": escape(policy(live=events is not None)),
        "title": _without_address(escape(_HALF.sub("\ufffd", _title(parts)))),
        "events": "" if events is None else f' data-events="{escape(events)}"',
        "story": _embedded("{" + told + "}"),
        **_assets(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: pieces[found[1]], _read("page.html"))


def policy(*, live: bool) -> str:
    """The content-security policy under which the page works: its own script and style only."""
    assets = _assets()
    scripts = " ".join(_hash(assets[name]) for name in ("early", "library", "script"))
    rules = [
        "default-src 'none'",
        f"script-src {scripts}",
        f"style-src {_hash(assets['style'])}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*rules, "connect-src 'self'"] if live else rules)


def _title(parts: Mapping[str, str]) -> str:
    run = json.loads(parts.get("run", "null"))
    return str((run or {}).get("title") or "kernelbank")


def _embedded(story: str) -> str:
    """JSON that can stand inside a script element, whatever its texts are."""
    safe = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", story)
    return safe.replace("://", ":\\/\\/")


def _without_address(text: str) -> str:
    """HTML text in which no address can be found, so that one look shows that a file has none."""
    return text.replace("://", ":&#47;&#47;")


@cache
def _read(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")


@cache
def _assets() -> Mapping[str, str]:
    """What is the same in all pages: the texts between the tags of scripts and style."""
    library = re.sub(r"\A/\*!.*?\*/\s*", "", _read("uplot/uPlot.iife.min.js"))
    version = _read("uplot/VERSION").split(",")[0]
    own = "\n".join(_read(name) for name in _SCRIPTS)
    return {
        "early": _read("theme.js"),
        "library": f"/*! {version}\n\n{_read('uplot/LICENSE').strip()}\n*/\n{library}",
        "script": f'(() => {{\n"use strict";\n\n{own}}})();\n',
        "style": f"{_read('uplot/uPlot.min.css')}\n{_read('page.css')}",
    }


@cache
def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
