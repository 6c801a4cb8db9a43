"""The page on screens, phones and paper, by mouse and by keys; and its texts."""

import json

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
