"""The page on screens, phones and paper, by mouse and by keys; and its texts."""

import pytest

from support import browser
from support.browser import (
    CHARTS,
    DARK_MODEL,
    LIGHT_MODEL,
    column,
    count_colours,
    count_pixels,
    readout,
    tile,
)
from support.sample_reports import sample_report

chromium, show = browser.chromium, browser.show


@pytest.mark.slow
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


@pytest.mark.slow
class TestTexts:
    def test_tables_list_changes_bad_rows_times_and_settings(self, show):
        report = sample_report(points=40)
        one = [["error grew", "", 1]]
        report["changes"] = [[10 * number, 10 * number, one] for number in range(1, 25)]
        kinds = [["input level", "wind", 5], ["weights", "", 1]]
        report["changes"].append([900, 950, kinds])
        shown = show(report)
        rows = (
            shown.page.locator("#changes-list table").first.locator("tbody tr").all_text_contents()
        )
        assert len(rows) == 20
        moved = "the level of an input moved: wind (5 times); the weights moved to other slots"
        assert rows[0] == f"900 to 950{moved}"
        assert rows[1] == "240the error grew"
        shown.page.locator("#changes-list summary").click()
        assert shown.text("#changes-list summary") == "Show 5 older changes"
        shown.wait_until(lambda: shown.page.locator("#changes-list details tbody tr").count() == 5)
        assert "3 rows could not be used" in shown.text("#bad-rows-list")
        assert "line 813windn/a?is not a number" in shown.text("#bad-rows-list")
        assert "the model17.02 s · 79.5 %" in shown.text("#times-list")
        assert "other0.38 s · 1.8 %" in shown.text("#times-list")
        assert "Started 2 times" in shown.text("#times-list")
        assert "checkpoint every60 s" in shown.text("#details-list")

    def test_empty_report_says_so_in_every_section(self, show):
        shown = show({})
        assert shown.text("#summary") == "Waiting for the first rows."
        assert shown.text("#state-text") == "waiting"
        assert shown.page.locator("canvas").count() == 1  # the colour scale, hidden
        assert shown.page.locator("section .empty:visible").count() == 11

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            ({"phase": "running"}, "Waiting for the first rows."),
            ({"phase": "ended"}, "No rows."),
            ({"phase": "saved"}, "No rows."),
            ({"phase": "stopped", "bad_rows": 3}, "No rows: 3 bad rows were skipped."),
        ],
    )
    def test_report_without_rows_says_so(self, show, status, words):
        assert show({"status": {"rows": 0, **status}}).text("#summary") == words

    def test_rows_that_a_broker_deleted_are_counted_beside_the_bad_ones(self, show):
        report = sample_report(points=1)
        report["status"]["missing_rows"] = 1234
        assert show(report).text("#tile-bad-rows .note") == "1,234 missing"

    def test_report_of_one_point_is_drawn(self, show):
        shown = show(sample_report(points=1), color_scheme="light")
        for chart in CHARTS:
            assert count_colours(shown, chart) > 5, chart
        assert count_pixels(shown, "error", LIGHT_MODEL) > 5
        assert "rows 1 to 100,000" in readout(shown, "error")

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
        assert cells == ["40", "10", "80.0 %", "0.930"]
        for chart in ("error", "loss", "curves", "coverage", "reliability"):
            assert count_pixels(shown, chart, LIGHT_MODEL) > 300, chart

    def test_first_sentence_says_how_good_the_predictions_were_lately(self, show):
        report = sample_report(points=40, time=True)
        lately = report["status"]["lately"]
        expected = {
            5.4: ", 42 % better than repeating the last value.",
            3.14: ", about as well as by repeating the last value.",
            2.5: ", 26 % worse than repeating the last value.",
            0.5: ", 6.3 times the error of repeating the last value.",
            None: ".",
        }
        for baseline, end in expected.items():
            lately["baseline_absolute_error"] = baseline
            text = show(report).text("#headline")
            start = "The last 24 hours of load were predicted to within ±3.1 on average"
            assert text == start + end
        lately["period"] = None
        assert show(report).text("#headline").startswith("The last 1,440 rows of load were")
        report["status"]["lately"] = None
        assert show(report).text("#headline").startswith("Too few rows")

    def test_first_sentence_about_labels_is_honest(self, show):
        report = sample_report(points=40, task="classification", time=True)
        text = show(report).text("#headline")
        assert text == (
            "The last 24 hours: load was predicted correctly in 90.0 % of the rows. Repeating the "
            "last label would have been correct in 80.0 %."
        )
        report["status"]["lately"]["baseline_loss"] = 0.05
        assert show(report).text("#headline").endswith("95.0 %, which would have been better.")

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
