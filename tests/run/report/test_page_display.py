"""The page of runs, on screens and phones, by mouse and by keys: it shows what the report holds."""

import csv
import json
import math
import os
import re
import signal

import numpy as np
import pytest

from support import browser
from support.browser import (
    CHARTS,
    DARK_MODEL,
    LIGHT_MODEL,
    column,
    count_colours,
    count_pixels,
    press,
    readout,
    tile,
)
from support.sample_reports import sample_report

pytestmark = pytest.mark.slow  # they need a browser

chromium, show, show_live = browser.chromium, browser.show, browser.show_live
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("kind", ["numbers", "labels", "targets"])
def test_page_of_every_kind_is_drawn_and_fits_its_screen(show, kind, width):
    report = sample_report(kind)
    report["run"]["slots"][12], report["run"]["inputs"][0] = "w" * 300, "v" * 200
    report["run"]["title"] = "t" * 150
    report["bad_rows"]["examples"][0]["value"] = "x" * 500
    shown = show(report, width=width, height=740, color_scheme="light")
    for chart in CHARTS:
        if shown.page.locator(f"#{chart}-chart").is_visible():
            assert count_colours(shown, chart) > 5, chart
    for chart in ("error", "loss", "curves", "coverage"):
        assert count_pixels(shown, chart, LIGHT_MODEL) > 100, chart
    shown.page.locator("summary").first.click()
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width


def test_theme_button_switches_all_colours_and_is_remembered(show):
    shown = show(sample_report(), color_scheme="dark")
    assert shown.page.evaluate(BACKGROUND) == "rgb(18, 22, 26)"
    assert count_pixels(shown, "loss", DARK_MODEL) > 300
    assert count_pixels(shown, "loss", LIGHT_MODEL) == 0
    shown.page.locator("#theme").click()
    assert count_pixels(shown, "loss", DARK_MODEL) == 0
    assert count_pixels(shown, "loss", LIGHT_MODEL) > 300
    shown.page.reload()
    assert shown.page.evaluate(BACKGROUND) == "rgb(246, 247, 248)"
    shown.requests.pop()


FOCUSED = """() => {
    const here = document.activeElement;
    const ring = parseFloat(getComputedStyle(here).outlineWidth);
    const name = here.id || here.parentElement.id || here.tagName;
    return ring > 1 ? name : name + " without a ring";
}"""


def test_all_controls_are_reached_by_keys_with_a_visible_focus(show):
    shown, reached = show(sample_report()), []
    for _ in range(60):
        shown.page.keyboard.press("Tab")
        reached.append(shown.page.evaluate(FOCUSED))
    controls = {"theme", "curves-input", *(f"{chart}-chart" for chart in CHARTS)}
    assert controls <= set(reached)
    assert not [name for name in reached if "ring" in name]


# --- what it shows --------------------------------------------------------------------------------


def test_tiles_show_the_totals_of_the_report(show):
    report = sample_report()
    shown = show(report)
    scored = sum(column(report, "scored"))
    expected = {
        "rows": sum(column(report, "rows")),
        "model": math.sqrt(sum(column(report, "loss")) / scored),
        "best-slot": report["status"]["best_slot_error"],
        "baseline": math.sqrt(sum(column(report, "baseline_loss")) / scored),
        "coverage": sum(column(report, "covered")) / scored,
        "changes": len(report["changes"]),
        "bad-rows": 3,
        "rows-s": report["status"]["rows_per_second"],
    }
    assert {name: tile(shown, name) for name in expected} == pytest.approx(expected, rel=1e-5)
    assert report["status"]["best_slot"] in shown.text("#tile-best-slot")
    assert shown.page.title() == "load from sensors.csv"


def test_tables_list_changes_bad_rows_worst_rows_and_errors_by_category(show):
    report = sample_report()
    usual = [["error grew", "", 1]]
    report["changes"] = [[10 * number, 10 * number, usual] for number in range(1, 25)]
    kinds = [["input level", "wind", 5], ["weights", "", 1]]
    report["changes"].insert(3, [200, 250, kinds, 7.5])
    shown = show(report)
    changes = shown.page.locator("#changes-list table").first.locator("tbody tr")
    rows = changes.all_text_contents()
    assert len(rows) == 20
    moved = "the level of an input moved: wind (5 times); the weights moved to other slots"
    assert rows[0].startswith(f"200 to 250{moved}")  # by what they cost
    assert rows[0].endswith("7.5")
    assert shown.text("#changes-list summary") == "Show 5 other changes"
    assert "3 rows could not be used" in shown.text("#bad-rows-list")
    assert "sensors.csv, line 32windn/a?is not a number" in shown.text("#bad-rows-list")
    worst = shown.page.locator("#worst-list tbody tr").first.text_content()
    assert worst.startswith(f"{report['worst_rows'][0]['row']}17 Jan 2024, 17:00")
    assert "Errors by site" in shown.text("#worst-list table:last-of-type caption")
    assert "categories of sitenorth, south, hill" in shown.text("#details-list")


def test_labels_have_their_recall_and_their_confusion(show):
    report = sample_report("labels")
    shown = show(report)
    wrong = sum(column(report, "loss")) / sum(column(report, "scored"))
    assert tile(shown, "model") == pytest.approx(wrong)
    assert shown.text("#intervals-heading") == "Calibration"
    assert not shown.page.locator("#width-chart, #targets-chart").first.is_visible()
    spam, classes = report["status"]["labels"]["spam"], report["labels"]["labels"]
    assert shown.text("#tile-recall") == f"recall{100 * spam['recall']:.1f} %spam: 70 rows"
    cells = shown.page.locator(".confusion tbody tr").first.locator("td").all_text_contents()
    assert [float(cell) for cell in cells[:2]] == report["labels"]["confusion"][0][:2]
    assert shown.page.locator(".confusion tbody th").all_text_contents() == classes


def test_error_is_cumulative_or_per_segment(show):
    report = sample_report()
    shown = show(report)
    loss, scored = column(report, "loss"), column(report, "scored")
    press(shown, "error", "Home", "PageDown", "ArrowRight", "ArrowRight", "ArrowLeft")
    point = int(re.search(r"rows 1 to (\d+)", readout(shown, "error"))[1]) // 2
    assert point > 5
    far = math.sqrt(sum(loss[:point]) / sum(scored[:point]))
    assert f"model {far:.4g}" in readout(shown, "error")
    shown.page.locator("input[value=segment]").check()
    alone = math.sqrt(loss[point - 1] / scored[point - 1])
    worst = math.sqrt(column(report, "worst_loss")[point - 1])
    assert f"rows {2 * point - 1} to {2 * point}" in readout(shown, "error")
    assert f"model {alone:.4g}" in readout(shown, "error")
    assert f"largest error {worst:.4g}" in readout(shown, "error")


def test_coverage_is_the_mean_of_enough_rows_before_each_point(show):
    """At least 200: 101 points, of two rows but for the last."""
    report = sample_report()
    shown = show(report)
    press(shown, "coverage", "End")
    points = slice(-101, None)
    covered, scored, width = (
        sum(column(report, c)[points]) for c in ("covered", "scored", "width")
    )
    assert f"inside {100 * covered / scored:.1f} %" in readout(shown, "coverage")
    assert f"mean width {width / scored:.4g}" in readout(shown, "width")


def test_axes_and_readouts_are_in_time(show):
    shown = show(sample_report())
    press(shown, "error", "Home")
    for chart in ("error", "loss", "targets", "weights", "coverage", "width"):
        assert "1 Jan 2024, 01:00" in readout(shown, chart), chart
    assert "30 Jan 2024, 03:00" in readout(shown, "recent")


def test_curves_are_those_of_the_chosen_input(show):
    report = sample_report()
    shown = show(report)
    line = report["curves"][0]
    assert f"prediction {line['prediction'][12]:.4g}" in readout(shown, "curves")
    shown.page.locator("#curves-input").select_option(label="sun")
    press(shown, "curves", "End")
    assert f"prediction {report['curves'][1]['prediction'][-1]:.4g}" in readout(shown, "curves")


def test_data_of_a_chart_are_downloaded_as_csv(show):
    report = sample_report()
    report["run"]["slots"][0] = 'one, "two"'
    shown, tables = show(report), {}
    for chart in ("recent", "targets", "error", "loss", "weights", "coverage", "curves"):
        with shown.page.expect_download() as download:
            shown.page.locator(f"#{chart}-chart .csv").click()
        assert download.value.suggested_filename == f"{chart}-chart.csv"
        with open(download.value.path(), newline="", encoding="utf-8") as file:
            tables[chart] = list(csv.DictReader(file))
    losses = [float(row["model"]) for row in tables["loss"]]
    assert losses == pytest.approx(np.cumsum(column(report, "loss")))
    weights = [float(row['one, "two"']) for row in tables["weights"]]
    assert weights == [row[0] / 10_000 for row in column(report, "weights")]
    assert tables["targets"][0]["when"].startswith("2024-01-01T01:00:00")
    recent = [float(row["prediction"]) for row in tables["recent"]]
    assert recent == report["recent"]["prediction"]


def test_one_far_value_does_not_set_an_axis(show):
    far, usual = sample_report(), sample_report()
    far["points"]["target_low"][20] = far["recent"]["target"][50] = -99_999.0
    far, usual = show(far, color_scheme="light"), show(usual, color_scheme="light")
    for chart, what in (("recent", "row"), ("targets", "segment")):
        drawn = [count_pixels(shown, chart, LIGHT_MODEL, 90) for shown in (far, usual)]
        assert drawn[0] > 0.9 * drawn[1]
        assert far.text(f"#{chart}-chart .note").startswith(f"1 {what} leaves the chart")


def test_forecasts_are_drawn_as_a_fan_with_their_errors(show):
    report = sample_report()
    shown, forecasts = show(report, color_scheme="light"), report["forecasts"]
    assert count_pixels(shown, "fan", LIGHT_MODEL) > 100
    assert "4 rows ahead" in readout(shown, "fan")
    assert f"forecast {forecasts['fan']['point'][3]:.4g}" in readout(shown, "fan")
    error = readout(shown, "horizon-error")
    assert f"RMSE {forecasts['error'][3]:.4g} last value {forecasts['last_value'][3]:.4g}" in error
    assert not show(sample_report("labels")).page.locator("#forecasts").is_visible()


def test_target_that_is_chosen_is_shown(show):
    report = sample_report("targets")
    shown = show(report)
    assert tile(shown, "model") == pytest.approx(report["status"]["error"])
    shown.page.select_option("#target-select", "1")
    shown.wait_until(lambda: "price" in shown.text("#headline"))
    assert tile(shown, "model") == pytest.approx(report["targets/1/status"]["error"])


# --- a live page: later parts are drawn, and what the viewer chose stays --------------------------


def test_empty_page_waits_and_then_draws_what_comes(show_live):
    live, shown = show_live({}, color_scheme="light")
    assert shown.text("#summary") == "Waiting for the first rows."
    assert shown.page.locator("section .empty:visible").count() == 11
    report = sample_report()
    report["status"]["phase"] = "running"
    live.publish(json.dumps(report))
    shown.wait_until(lambda: shown.text("#title") == "load from sensors.csv")
    assert shown.text("#state-text") == "running"
    for chart in CHARTS:
        assert count_colours(shown, chart) > 5, chart
    live.publish(json.dumps({"run": report["run"]}))
    shown.wait_until(lambda: shown.text("#summary") == "Waiting for the first rows.")
    report["status"]["phase"] = "ended"
    live.publish(json.dumps(report))
    live.end()
    shown.wait_until(lambda: shown.text("#state-text") == "ended")
    shown.page.wait_for_timeout(300)
    assert shown.errors == []  # it does not try to connect again


def test_choices_of_the_viewer_survive_later_points(show_live):
    later, first = sample_report(), sample_report()
    points = {name: column(first, name) for name in first["points"] if name != "stride"}
    first["points"] = {name: figures[:320] for name, figures in points.items()}
    live, shown = show_live(first)
    page = shown.page
    page.locator("input[value=segment]").check()
    page.locator("#curves-input").select_option(index=1)
    page.locator("#theme").click()
    chosen = page.evaluate(BACKGROUND)
    press(shown, "weights", "Home", "PageDown", "PageDown", "ArrowRight", "ArrowDown")
    rows = readout(shown, "weights").split(",")[0]
    slot = shown.text("#weights-chart-readout .slot-name")
    later["status"]["rows"] = 12_345
    live.publish(json.dumps(later))
    shown.wait_until(lambda: tile(shown, "rows") == 12_345)
    assert page.evaluate(BACKGROUND) == chosen
    assert page.locator("#curves-input").evaluate("s => s.selectedIndex") == 1
    assert page.locator("input[value=segment]").is_checked()
    assert readout(shown, "weights").split(",")[0] == rows
    assert shown.text("#weights-chart-readout .slot-name") == slot
    assert page.evaluate("document.activeElement.className") == "chart"
    assert shown.errors == []


def test_lost_connection_is_shown(show_live):
    report = sample_report()
    report["status"]["phase"] = "running"
    live, shown = show_live(report)
    shown.wait_until(lambda: shown.text("#state-text") == "running")
    os.kill(live._process.pid, signal.SIGKILL)
    shown.wait_until(lambda: shown.text("#state-text") == "connection lost, trying again")
    assert tile(shown, "rows") == report["status"]["rows"]
