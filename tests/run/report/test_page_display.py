"""The page on screens, phones and paper, by mouse and by keys; and its texts."""

import csv
import json
import math
import re

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
    heat_position,
    readout,
    tile,
)
from support.sample_reports import sample_forecasts, sample_report

pytestmark = pytest.mark.slow  # they need a browser

chromium, show = browser.chromium, browser.show


class TestDisplay:
    def background(self, shown):
        return shown.page.evaluate("getComputedStyle(document.body).backgroundColor")

    def test_theme_button_switches_all_colours_and_is_remembered(self, show):
        shown = show(sample_report(), color_scheme="dark")
        assert self.background(shown) == "rgb(18, 22, 26)"
        assert count_pixels(shown, "loss", DARK_MODEL) > 300
        assert count_pixels(shown, "loss", LIGHT_MODEL) == 0
        heat = count_pixels(shown, "weights", (0x20, 0x27, 0x2D))
        shown.page.locator("#theme").click()
        assert self.background(shown) == "rgb(246, 247, 248)"
        assert count_pixels(shown, "loss", DARK_MODEL) == 0
        assert count_pixels(shown, "loss", LIGHT_MODEL) > 300
        assert count_pixels(shown, "weights", (0x20, 0x27, 0x2D)) == 0
        assert count_pixels(shown, "weights", (0xF4, 0xF6, 0xF8)) >= heat * 0.9
        shown.page.reload()
        assert self.background(shown) == "rgb(246, 247, 248)"
        shown.requests.pop()

    @pytest.mark.parametrize("task", ["regression", "classification"])
    def test_page_with_long_texts_fits_on_a_phone(self, show, task):
        report = sample_report(task=task)
        report["run"]["slots"][12] = "w" * 300
        report["run"]["inputs"][0] = "v" * 200
        report["run"]["title"] = "t" * 150
        report["bad_rows"]["examples"][0]["value"] = "x" * 500
        shown = show(report, width=360, height=740, device_scale_factor=2, has_touch=True)
        for _ in range(2):
            widths = "[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
            assert shown.page.evaluate(widths) == [360, 360, 360]
            shown.page.locator("summary").first.click()
        shown.page.set_viewport_size({"width": 900, "height": 740})
        width = "document.querySelector('#loss-chart canvas').clientWidth"
        shown.wait_until(lambda: shown.page.evaluate(width) > 700)

    def test_all_controls_are_reached_by_keys_with_a_visible_focus(self, show):
        shown = show(sample_report(points=40))
        reached = []
        for _ in range(40):
            shown.page.keyboard.press("Tab")
            reached.append(
                shown.page.evaluate(
                    """() => {
                        const here = document.activeElement;
                        const ring = parseFloat(getComputedStyle(here).outlineWidth);
                        const name = here.id || here.parentElement.id || here.tagName;
                        return ring > 1 ? name : name + " without a ring";
                    }"""
                )
            )
        for name in (
            "theme",
            *(f"{chart}-chart" for chart in CHARTS),
            "curves-input",
            "curves-slider",
        ):
            assert name in reached, name
        assert not [name for name in reached if "ring" in name]

    def test_charts_have_labels_and_sections_have_links(self, show):
        shown = show(sample_report(points=40))
        for chart in shown.page.locator(".chart:visible").all():
            assert chart.get_attribute("aria-label")
            described = chart.get_attribute("aria-describedby")
            assert shown.text(f"#{described}")
        links = shown.page.locator("nav a").evaluate_all(
            "all => all.map(a => a.getAttribute('href'))"
        )
        assert links == shown.page.locator("section").evaluate_all(
            "all => all.map(s => '#' + s.id)"
        )


class TestTexts:
    def test_tables_list_changes_bad_rows_times_and_settings(self, show):
        report = sample_report(points=40)
        one = [["error grew", "", 1]]
        report["changes"] = [[10 * number, 10 * number, one] for number in range(1, 25)]
        kinds = [["input level", "wind", 5], ["weights", "", 1]]
        report["changes"].insert(3, [900, 950, kinds, 7.5])
        shown = show(report)
        rows = (
            shown.page.locator("#changes-list table").first.locator("tbody tr").all_text_contents()
        )
        assert len(rows) == 20
        moved = "the level of an input moved: wind (5 times); the weights moved to other slots"
        assert rows[0] == f"900 to 950{moved}7.5"  # by what they cost
        assert rows[1] == "240the error grew\u2013"
        shown.page.locator("#changes-list summary").click()
        assert shown.text("#changes-list summary") == "Show 5 other changes"
        shown.wait_until(lambda: shown.page.locator("#changes-list details tbody tr").count() == 5)
        assert "3 rows could not be used" in shown.text("#bad-rows-list")
        assert "line 813windn/a?is not a number" in shown.text("#bad-rows-list")
        assert "checkpoint every60 s" in shown.text("#details-list")

    def test_empty_report_says_so_in_every_section(self, show):
        shown = show({})
        assert shown.text("#summary") == "Waiting for the first rows."
        assert shown.text("#state-text") == "waiting"
        assert shown.page.locator("canvas").count() == 1  # the colour scale, hidden
        assert shown.page.locator("section .empty:visible").count() == 11

    def test_classification_shows_error_rate_and_calibration(self, show):
        report = sample_report(task="classification")
        report["run"]["weights_of"] = "spam"
        shown = show(report, color_scheme="light")
        scored = sum(column(report, "scored"))
        assert tile(shown, "model") == pytest.approx(sum(column(report, "loss")) / scored)
        assert tile(shown, "mean-probability") == pytest.approx(
            sum(column(report, "width")) / scored
        )
        assert not shown.page.locator("#width-chart").is_visible()
        assert shown.text("#intervals-heading") == "Calibration"
        assert shown.text("#curves-chart .caption").startswith("probability of spam along wind")
        assert shown.text("#weights-chart .caption") == "slots that predict the label spam"
        assert "correct so far" in readout(shown, "coverage")
        assert not shown.page.locator("#targets-chart").is_visible()
        assert count_pixels(shown, "recent", (0xC2, 0x54, 0x00)) > 50  # wrong ones
        assert readout(shown, "reliability") == "predicted 95.0 % correct 97.0 % rows 40"
        cells = shown.page.locator(".confusion tbody tr").first.locator("td").all_text_contents()
        assert cells == ["40", "10", "80.0 %", "88.9 %", "0.930"]
        assert not shown.page.locator("#tile-best-slot, #tile-baseline").count()
        assert shown.text("#tile-recall") == "recall80.0 %spam: 50 rows"
        assert shown.text("#tile-precision") == "precision88.9 %spam: 45 predictions"
        for chart in ("error", "loss", "curves", "coverage", "reliability"):
            assert count_pixels(shown, chart, LIGHT_MODEL) > 300, chart

    def test_first_sentence_says_how_good_the_last_predictions_were(self, show):
        report = sample_report(points=40, time=True)
        recent = report["status"]["recent_errors"]
        expected = {
            5.4: ", 42 % better than repeating the last value.",
            3.14: ", about as well as by repeating the last value.",
            2.5: ", 26 % worse than repeating the last value.",
            0.5: ", 6.3 times the error of repeating the last value.",
            None: ".",
        }
        for baseline, end in expected.items():
            recent["baseline_absolute_error"] = baseline
            text = show(report).text("#headline")
            start = "The last 24 hours of load were predicted to within ±3.1 on average"
            assert text == start + end
        recent["period"] = None
        assert show(report).text("#headline").startswith("The last 1,440 rows of load were")
        report["status"]["recent_errors"] = None
        assert show(report).text("#headline").startswith("Too few rows")

    def test_slots_that_diverge_leave_the_chart_and_are_counted(self, show):
        report = sample_report(points=100)
        for name in ("points/1", "points/2", "points/3"):
            for losses in report[name]["losses"]:
                losses[5:8] = None, 1e300, 100 * losses[7]
        report["points/2"]["worst_loss"][3] = None
        shown = show(report, color_scheme="light")
        assert "3 lines leave the chart" in shown.text("#loss-chart .note")
        assert count_pixels(shown, "loss", LIGHT_MODEL) > 300
        shown.page.locator("#loss-chart .chart").focus()
        for _ in range(45):
            shown.page.keyboard.press("ArrowUp")
        assert report["run"]["slots"][5] in readout(shown, "loss")
        assert "not known" in readout(shown, "loss")
        shown.page.locator("#weights-table summary").click()
        shown.wait_until(lambda: "not known" in shown.text("#weights-table details"))


# --- A live page in a browser: later parts are drawn, and what the viewer chose stays ---


show_live = browser.show_live


def point_groups(report):
    return {name for name in report if name.startswith("points/")}


class TestUpdates:
    def test_empty_page_waits_and_then_draws_what_comes(self, show_live):
        server, shown = show_live({}, color_scheme="light")
        assert shown.text("#summary") == "Waiting for the first rows."
        report = sample_report(points=40)
        report["status"]["phase"] = "running"
        server.send(report)
        shown.wait_until(lambda: shown.text("#title") == "load from sensors.csv")
        assert shown.text("#state-text") == "running"
        for chart in CHARTS:
            assert count_colours(shown, chart) > 5, chart
        assert count_pixels(shown, "loss", LIGHT_MODEL) > 300
        assert tile(shown, "rows") == sum(column(report, "rows"))
        report["status"]["phase"] = "ended"
        server.send({"status": report["status"]})
        server.send({}, event="end")
        shown.wait_until(lambda: shown.text("#state-text") == "ended")
        shown.wait_until(
            lambda: shown.page.locator("#state").get_attribute("data-state") == "still"
        )
        server.disconnect()
        shown.page.wait_for_timeout(300)
        assert server.streams == 1  # no viewer reconnects
        assert shown.errors == []

    def test_choices_of_the_viewer_survive_merged_points(self, show_live):
        first = sample_report(points=60, stride=100)
        server, shown = show_live(first)
        page = shown.page
        page.locator("input[value=segment]").check()
        page.locator("#curves-input").select_option(index=1)
        page.locator("#curves-slider").focus()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.locator("#theme").click()
        background = "getComputedStyle(document.body).backgroundColor"
        chosen = (shown.text("#curves-row"), page.evaluate(background))
        page.locator("#weights-chart .chart").focus()
        for key in ("Home", "PageDown", "PageDown", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
        assert "rows 2,101 to 2,200" in readout(shown, "weights")
        slot = shown.text("#weights-chart-readout .slot-name")
        position = page.locator("#weights-chart").bounding_box()["y"]
        # More rows in fewer points: neighbours were merged.
        later = sample_report(points=30, stride=400, seed=1)
        kept = {name: part for name, part in first.items() if name.startswith("curves/")}
        removed = dict.fromkeys(point_groups(first) - point_groups(later))
        assert removed
        changed = {**{n: p for n, p in later.items() if not n.startswith("curves/")}, **removed}
        present = {**later["curves/now"]}
        server.send({**changed, "curves/now": present, "curves/5966": kept["curves/now"]})
        shown.wait_until(lambda: tile(shown, "rows") == sum(column(later, "rows")))
        assert (shown.text("#curves-row"), page.evaluate(background)) == chosen
        assert page.locator("#curves-input").evaluate("s => s.selectedIndex") == 1
        assert page.locator("input[value=segment]").is_checked()
        assert "largest error" in readout(shown, "error")
        assert "rows 2,001 to 2,400" in readout(shown, "weights")
        assert shown.text("#weights-chart-readout .slot-name") == slot
        page.keyboard.press("End")
        assert f"to {sum(column(later, 'rows')):,}" in readout(shown, "weights")
        # Lines above came and went; the chart with the focus stays where it is.
        assert page.locator("#weights-chart").bounding_box()["y"] == pytest.approx(position, abs=1)
        assert page.evaluate("document.activeElement.className") == "chart"
        assert shown.errors == []

    def test_removed_parts_empty_their_sections(self, show_live):
        report = sample_report(points=40)
        server, shown = show_live(report)
        shown.page.locator("#loss-chart .u-over").hover()
        assert "best slot" not in readout(shown, "loss")  # but the selected one
        server.send(dict.fromkeys(name for name in report if name != "run"))
        shown.wait_until(lambda: shown.text("#summary") == "Waiting for the first rows.")
        assert shown.page.locator("section .empty:visible").count() == 10
        shown.page.mouse.move(1, 1)
        server.send(report)
        shown.wait_until(lambda: "best slot" in readout(shown, "loss"))
        assert shown.errors == []

    def test_slider_at_the_newest_row_follows_newer_rows(self, show_live):
        first = sample_report(points=60, stride=100)
        server, shown = show_live(first)
        assert shown.text("#curves-row") == "5,933"
        later = {**first["curves/now"], "row": 6400}
        server.send({"curves/now": later, "curves/5933": first["curves/now"]})
        shown.wait_until(lambda: shown.text("#curves-row") == "6,400")

    def test_lost_connection_is_shown_and_restored(self, show_live):
        report = sample_report(points=40)
        report["status"]["phase"] = "running"
        server, shown = show_live(report)
        shown.wait_until(lambda: shown.text("#state-text") == "running")
        server.disconnect()
        shown.wait_until(lambda: shown.text("#state-text") == "connection lost, trying again")
        report["status"]["rows"] += 1
        server.sent.append((None, json.dumps({"status": report["status"]})))
        server.open = True
        shown.wait_until(lambda: shown.text("#state-text") == "running")
        shown.wait_until(lambda: tile(shown, "rows") == report["status"]["rows"])
        assert server.streams >= 2

    def test_hidden_page_draws_nothing_until_it_is_shown(self, show_live):
        report = sample_report(points=40)
        server, shown = show_live(report)
        shown.page.evaluate(
            """() => {
                window.hidden_now = true;
                Object.defineProperty(document, "hidden", {get: () => window.hidden_now, configurable: true});
            }"""
        )
        report["status"]["rows"] += 7
        server.send({"status": report["status"]})
        shown.page.wait_for_timeout(300)
        assert tile(shown, "rows") == report["status"]["rows"] - 7
        shown.page.evaluate(
            "() => { window.hidden_now = false; document.dispatchEvent(new Event('visibilitychange')); }"
        )
        shown.wait_until(lambda: tile(shown, "rows") == report["status"]["rows"])


# --- The charts of a page in a real browser: they show what the report holds. ---


class TestTime:
    """2024 began when the sample report begins; its rows are a minute apart."""

    def test_axes_and_readouts_are_in_time_where_there_is_one(self, show):
        shown = show(sample_report(points=3, stride=720, time=True))
        shown.page.locator("#error-chart .chart").focus()
        shown.page.keyboard.press("Home")
        for chart in ("error", "targets", "weights", "coverage", "width"):
            assert "720, 1 Jan 2024, 12:00" in readout(shown, chart), chart
        assert "after row 720, 1 Jan 2024, 12:00" in readout(shown, "loss")
        assert readout(shown, "recent").startswith("row 1,680, 1 Jan 2024, 03:19")
        grouped = shown.page.locator("#changes-list tbody tr").last.text_content()
        assert grouped.startswith(
            "924 to 929the error grew; the level of the target moved (3 times)"
        )
        assert grouped.endswith("1 Jan 2024, 15:24\u2013")


class TestInputs:
    def report(self, kind, x, labels=()):
        report = sample_report(points=3)
        report["run"]["inputs"][2] = {"kind": kind, "name": "site", "labels": list(labels)}
        values = {"x": x, "prediction": [12.0] * len(x)}
        values |= {"low": [11.0] * len(x), "high": [13.0] * len(x)}
        report["curves/now"]["lines"][2] = {"input": 2, **values}
        for name, curves in report.items():
            if name.startswith("curves/") and name != "curves/now":
                del curves["lines"][2]
        return report

    def shown(self, show, report):
        shown = show(report, color_scheme="light")
        shown.page.locator("#curves-input").select_option(index=2)
        return shown

    def test_categories_are_dots_with_their_names(self, show):
        shown = self.shown(show, self.report("category", [0, 2], ["north", "east", "hill"]))
        shown.page.locator("#curves-chart .chart").focus()
        shown.page.keyboard.press("End")
        assert "site is hill prediction 12 interval 11 to 13" in readout(shown, "curves")
        assert count_pixels(shown, "curves", LIGHT_MODEL) > 100
        assert shown.page.locator("#curves-slider").is_disabled()  # only the present one is kept

    @pytest.mark.parametrize(
        ("kind", "text"), [("day", "at 08:30"), ("week", "at Wed 12:00"), ("year", "at May")]
    )
    def test_parts_of_time_are_named(self, show, kind, text):
        shown = self.shown(show, self.report(kind, [8.5 / 24, 9.5 / 24, 20.5 / 24]))
        shown.page.locator("#curves-chart .chart").focus()
        shown.page.keyboard.press("Home")
        assert text in readout(shown, "curves")


class TestCharts:
    def test_coverage_is_the_mean_of_enough_rows_before_each_point(self, show):
        """A twentieth of all: 5,000 rows, ten points of 500."""
        report = sample_report()
        shown = show(report)
        shown.page.locator("#coverage-chart .chart").focus()
        for key in ("End", "PageUp", "PageUp"):
            shown.page.keyboard.press(key)
        covered, scored = column(report, "covered"), column(report, "scored")
        mean = sum(covered[170:180]) / sum(scored[170:180])
        assert f"inside {100 * mean:.1f} %" in readout(shown, "coverage")
        width = sum(column(report, "width")[170:180]) / sum(scored[170:180])
        assert f"mean width {width:.4g}" in readout(shown, "width")

    def test_all_charts_of_a_report_are_drawn(self, show):
        shown = show(sample_report(), color_scheme="light")
        for chart in CHARTS:
            assert count_colours(shown, chart) > 5, chart
        for chart in ("error", "loss", "curves", "coverage", "width"):
            assert count_pixels(shown, chart, LIGHT_MODEL) > 300, chart
        assert count_colours(shown, "weights") > 100
        assert shown.page.title() == "load from sensors.csv"

    def test_tiles_show_the_totals_of_the_report(self, show):
        report = sample_report()
        shown = show(report)
        scored = sum(column(report, "scored"))
        alone = [sum(losses) for losses in zip(*column(report, "losses"), strict=True)]
        expected = {
            "rows": sum(column(report, "rows")),
            "model": math.sqrt(sum(column(report, "loss")) / scored),
            "best-slot": math.sqrt(min(alone) / scored),
            "baseline": math.sqrt(sum(column(report, "baseline_loss")) / scored),
            "coverage": sum(column(report, "covered")) / scored,
            "changes": 4,
            "bad-rows": 3,
            "rows-s": 4672.9,
        }
        assert {name: tile(shown, name) for name in expected} == pytest.approx(expected)
        best = report["run"]["slots"][alone.index(min(alone))]
        assert best in shown.text("#tile-best-slot")
        assert f"{expected['model']:.4g}" in shown.text("#summary")

    def test_error_is_cumulative_or_per_segment(self, show):
        report = sample_report()
        shown = show(report)
        loss, scored = column(report, "loss"), column(report, "scored")
        before = count_pixels(shown, "error", LIGHT_MODEL)
        shown.page.locator("#error-chart .chart").focus()
        for key in ("Home", "PageDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
            shown.page.keyboard.press(key)
        far = math.sqrt(sum(loss[:12]) / sum(scored[:12]))
        assert f"rows 1 to {12 * 500:,}" in readout(shown, "error")
        assert f"model {far:.4g}" in readout(shown, "error")
        shown.page.locator("input[value=segment]").check()
        alone = math.sqrt(loss[11] / scored[11])
        worst = math.sqrt(column(report, "worst_loss")[11])
        assert "rows 5,501 to 6,000" in readout(shown, "error")
        assert f"model {alone:.4g}" in readout(shown, "error")
        assert f"largest error {worst:.4g}" in readout(shown, "error")
        assert count_pixels(shown, "error", LIGHT_MODEL) != before

    def test_worst_rows_and_errors_by_category_are_listed(self, show):
        shown = show(sample_report(points=3, time=True))
        rows = shown.page.locator("#worst-list tbody tr").all_text_contents()
        assert rows[0] == "1,5011 Jan 2024, 00:0012.5-99911 to 14"
        assert rows[2:] == ["north1200.50.75", "south800.251"]
        captions = shown.page.locator("#worst-list caption").all_text_contents()
        assert "Errors by site" in captions[1]
        assert captions[1].endswith("3 more categories cost less")
        labels = show(sample_report(points=3, task="classification"))
        row = labels.page.locator("#worst-list tbody tr").first.text_content()
        assert row == "1,501spamham90.0 %"

    def test_data_of_a_chart_are_downloaded_as_csv(self, show):
        report = sample_report(points=40, time=True)
        report["run"]["slots"][0] = 'one, "two"'
        shown = show(report)
        tables = {}
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
        assert [int(row["row"]) for row in tables["targets"]][:2] == [2500, 5000]
        assert tables["targets"][0]["when"].startswith("2024-01-02T17:40:00")
        recent = [float(row["prediction"]) for row in tables["recent"]]
        assert recent == report["recent"]["prediction"]
        assert list(tables["curves"][0]) == ["wind", "prediction", "low", "high"]

    def test_one_far_value_does_not_set_an_axis(self, show):
        far, usual = sample_report(points=40), sample_report(points=40)
        far["points/0"]["target_low"][20] = far["recent"]["target"][50] = -999.0
        far, usual = show(far, color_scheme="light"), show(usual, color_scheme="light")
        for chart, what in (("recent", "row"), ("targets", "segment")):
            drawn = [count_pixels(shown, chart, LIGHT_MODEL, 90) for shown in (far, usual)]
            assert drawn[0] > 0.9 * drawn[1]
            assert far.text(f"#{chart}-chart .note").startswith(f"1 {what} leaves the chart")

    def test_heat_map_under_the_mouse_reads_out_its_weight(self, show):
        report = sample_report()
        shown = show(report)
        for at, slot, within in ((17, 12, 0.2), (150, 25, 0.8), (0, 0, 0.5), (199, 38, 0.5)):
            over = shown.page.locator("#weights-chart .u-over")
            over.hover(position=heat_position(shown, report, at, slot, within))
            text = readout(shown, "weights")
            assert report["run"]["slots"][slot] in text
            assert f"mean weight {column(report, 'weights')[at][slot] / 100:.2f} %" in text
            assert f"highest {column(report, 'weights_high')[at][slot] / 100:.2f} %" in text
            assert f"to {sum(column(report, 'rows')[: at + 1]):,}" in text


class TestCurves:
    def line(self, report, number, index=0):
        """Row and line of the curves with this number, along one input."""
        rows = sorted(int(name[7:]) for name in report if re.fullmatch(r"curves/\d+", name))
        curves = report[f"curves/{[*rows, 'now'][number]}"]
        return curves["row"], curves["lines"][index]

    def test_slider_moved_left_shows_earlier_curves(self, show):
        report = sample_report()
        shown = show(report)
        shown.page.locator("#curves-slider").focus()
        shown.page.keyboard.press("ArrowLeft")
        shown.page.keyboard.press("ArrowLeft")
        row, line = self.line(report, -3)
        assert shown.text("#curves-row") == f"{row:,}"
        assert f"prediction {line['prediction'][12]:.4g}" in readout(shown, "curves")
        assert (
            shown.page.locator("#curves-slider").get_attribute("aria-valuetext") == f"row {row:,}"
        )
        box = shown.page.locator("#curves-slider").bounding_box()
        shown.page.locator("#curves-slider").click(position={"x": 2, "y": box["height"] / 2})
        row, line = self.line(report, 0)
        assert shown.text("#curves-row") == f"{row:,}"
        assert f"prediction {line['prediction'][12]:.4g}" in readout(shown, "curves")


# --- The section of forecasts in a real browser ---


@pytest.mark.parametrize("width", [1200, 390])
def test_fan_scores_and_weights_are_drawn(show, width):
    report = sample_report(points=3) | {"forecasts": sample_forecasts(24)}
    shown = show(report, width=width)
    assert shown.page.locator("#forecasts").is_visible()
    assert count_pixels(shown, "fan", LIGHT_MODEL) > 100
    assert readout(shown, "fan").startswith("row 1,024, 24 rows ahead  forecast 12")
    assert readout(shown, "horizon-error").startswith("24 rows ahead  RMSE 2.4 last value 4.8")
    assert "a period before" in readout(shown, "horizon-error")
    assert readout(shown, "horizon-coverage").startswith("24 rows ahead  inside 88.0 %")
    shown.page.locator("#fan-chart .chart").focus()
    shown.page.keyboard.press("Home")
    assert readout(shown, "fan") == "row 971  target 10"
    cells = shown.page.locator("#horizon-weights tbody tr").first.locator("td").all_text_contents()
    assert cells[0] == "60 %"
    assert len(cells) == (4 if width < 600 else 8)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_horizons_there_is_no_such_section(show):
    shown = show(sample_report(points=3))
    assert not shown.page.locator("#forecasts").is_visible()
    assert not shown.page.locator("#to-forecasts").is_visible()


def test_known_columns_and_few_rows_have_a_sentence(show):
    forecasts = sample_forecasts(2) | {"fan": None, "known": ["hour", "<b>"], "weights": []}
    forecasts |= {"scored": [0, 0], "error": [None, None], "coverage": [None, None]}
    shown = show(sample_report(points=3) | {"forecasts": forecasts})
    assert "hour, <b>" in shown.text("#fan-chart")
    assert "No forecast has been scored yet." in shown.text("#horizon-error-chart")
    assert "no weights yet" in shown.text("#horizon-weights")


def test_a_live_page_draws_forecasts_as_they_come(show_live):
    server, shown = show_live(sample_report(points=3))
    assert not shown.page.locator("#forecasts").is_visible()
    server.send({"forecasts": sample_forecasts(3)})
    shown.wait_until(lambda: shown.page.locator("#forecasts").is_visible())
    assert readout(shown, "fan").startswith("row 1,003, 3 rows ahead")
    server.send({"forecasts": sample_forecasts(3, rows=1100)})
    shown.wait_until(lambda: readout(shown, "fan").startswith("row 1,103, 3 rows ahead"))
