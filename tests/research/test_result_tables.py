"""Tables of a comparison in Markdown and LaTeX, and who was slow."""

import math
from dataclasses import replace

import pytest

import kernelbank as kb
from kernelbank.research.result_tables import time_line
from kernelbank.research.scores import overall
from support.results import result_row


def _comparison(streams=3, seeds=(0,)):
    rows = []
    for n in range(streams):
        rows += [
            replace(result_row(f"s_{n}", "a|b", 0.5), best=True, seconds=3.0),
            replace(result_row(f"s_{n}", "100% & more", 123456.0), p_value=0.2, seconds=0.9),
            replace(result_row(f"s_{n}", "bad", math.inf), seconds=0.1),
        ]
    rows = [replace(row, mean_loss_deviation=0.01 if len(seeds) > 1 else None) for row in rows]
    rows.append(result_row("s_0", "once", 0.7))
    return kb.Comparison("Squared()", 0, 50, seeds, tuple(rows), overall(rows))


def test_markdown_has_best_undecided_and_ranks():
    lines = _comparison(5).to_markdown().splitlines()
    assert lines[:4] == [
        r"| stream | a\|b | 100% & more | bad | once |",
        "|---|---:|---:|---:|---:|",
        r"| s\_0 | **0.5** | 1.235e+05 \* | diverged | 0.7 |",
        r"| s\_1 | **0.5** | 1.235e+05 \* | diverged |  |",
    ]
    assert lines[7] == "| mean rank | 1.00 | 2.00 | 3.00 |  |"
    assert "Squared()" in lines[9]
    assert "Standard units of the first 50 rows" in lines[9]


def test_latex_is_escaped_and_complete(tmp_path):
    text = _comparison(2, seeds=(0, 1)).to_latex(tmp_path / "table.tex", rows="competitors")
    assert (tmp_path / "table.tex").read_text() == text
    assert r" & s\_0 & s\_1 & mean rank \\" in text
    assert r"a\textbar{}b & $\mathbf{0.5 \pm 0.01}$ & $\mathbf{0.5 \pm 0.01}$ & 1.00 \\" in text
    assert r"100\% \& more & $1.235 \times 10^{5} \pm 0.01^{*}$" in text
    assert r"bad & diverged & diverged & 3.00 \\" in text
    assert r"(mean $\pm$ standard deviation over 2 seeds)" in text
    assert r"\begin{tabular}{lrrr}" in text
    for word in ("table", "tabular"):
        assert text.count(rf"\begin{{{word}}}") == text.count(rf"\end{{{word}}}") == 1
    assert text.count("{") == text.count("}")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in body} == {3}


def test_rows_are_what_is_more_numerous_unless_said():
    few, many = _comparison(1), _comparison(5)
    assert few.to_markdown().startswith(r"|  | s\_0 |")  # no mean rank of one stream
    assert many.to_markdown().startswith("| stream |")
    assert many.to_latex(rows="streams").count(r"\midrule") == 2
    with pytest.raises(ValueError, match="'rows' of table"):
        few.to_markdown(rows="both")


def test_slowest_competitors_are_named_with_their_share():
    found = _comparison(2)
    times = found.times()
    assert [one.name for one in times] == ["a|b", "100% & more", "bad", "once"]
    assert times[0].seconds == 6.0
    assert times[0].share == pytest.approx(6 / 8.00003)
    assert math.fsum(one.share for one in times) == pytest.approx(1)
    line = "time: a|b 6 s (75%), 100% & more 1.8 s (22%), bad 0.2 s (2%), 1 other 3e-05 s (0%)"
    assert time_line(times) == line
    assert repr(found).splitlines()[-1] == line
    assert repr(found).splitlines()[1] == "in standard units of the first 50 rows"
