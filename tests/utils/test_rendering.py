"""Drawings of a status: exact, and harmless whatever they are given."""

import io
import re
import sys
from html import unescape

import numpy as np
import pytest

from kernelbank.utils.rendering import (
    CELLS,
    number,
    one_line,
    render_html,
    render_text,
)
from support.status_views import SCRIPT, parsed_html


def test_bars_have_lengths_in_proportion_to_their_values():
    bars = (("all", 0.8), ("half", 0.4), ("a little", 1e-9), ("nothing", 0.0), ("less", -0.2))
    lines = render_text("title", (), "weights", bars).split("\n")
    found = [re.fullmatch(r"    +(\S+) (.{20}) (.*)", line).groups() for line in lines[2:]]
    assert [name for *_, name in found] == [name for name, _ in bars]
    drawn = [bar.rstrip() for _, bar, _ in found]
    assert drawn == ["█" * CELLS, "█" * 10, "▏", "", "░" * 5]
    widths = re.findall(r"width:([0-9.]+)%", render_html("title", bars=bars))
    assert widths == ["100.0", "50.0", "0.0", "0.0", "25.0"]


@pytest.mark.parametrize("share", [np.nan, np.inf, -np.inf, 1e308, 5e-324, -1e-300])
def test_values_of_any_size_are_drawn(share):
    for bars in ((("one", share), ("two", 0.5)), (("one", share),)):
        assert number(share) in render_text("title", bars=bars)
        parsed_html(render_html("title", bars=bars))


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "no such"])
def test_output_without_block_characters_gets_ascii_bars(monkeypatch, encoding):
    class Output(io.StringIO):
        pass

    Output.encoding = encoding
    monkeypatch.setattr(sys, "stdout", Output())
    text = render_text("title", bars=(("a", 1.0), ("b", -0.5)))
    assert text.encode("ascii")
    assert "#" * CELLS in text
    assert "-" * (CELLS // 2) in text
    monkeypatch.setattr(sys, "stdout", None)
    assert "█" in render_text("title", bars=(("a", 1.0),))


def test_hostile_text_is_drawn_as_text_only():
    bad = f"{SCRIPT}\"'&amp;\n\x1b[31m\x00\u202e\ud800\tend"
    pairs = ((bad, bad),)
    drawn = (bad, pairs, bad, ((bad, 0.5),), bad)
    text, page = render_text(*drawn), render_html(*drawn, pairs)
    assert len(text.split("\n")) == 5
    assert text.replace("\n", "").isprintable()
    assert "<script" not in page
    words = list(parsed_html(page).itertext())
    assert words.count(one_line(bad)) == 8
    assert page.encode("utf-8")
    assert unescape(page).count(SCRIPT) == 8
