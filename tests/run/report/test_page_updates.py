"""A live page in a browser: later parts are drawn, and what the viewer chose stays."""

import json

import pytest

from support import browser
from support.browser import CHARTS, LIGHT_MODEL, column, count_colours, count_pixels, readout, tile
from support.sample_reports import sample_report

chromium, show_live = browser.chromium, browser.show_live


def point_groups(report):
    return {name for name in report if name.startswith("points/")}


@pytest.mark.slow
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

    def test_reloaded_page_starts_from_the_newest_report(self, show_live):
        report = sample_report(points=40)
        server, shown = show_live(report)
        report["run"]["title"] = "another"
        shown.page.reload()
        assert shown.text("#title") == "another"
        shown.wait_until(lambda: server.streams == 2)
        assert {request.partition("//")[2].partition("/")[2] for request in shown.requests} == {
            "",
            "events",
        }
        assert shown.errors == []

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
