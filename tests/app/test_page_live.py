"""The live page: what comes later is drawn, and what its viewer chose stays."""

import json

import pytest

from support import browser
from support.browser import CHARTS, LIGHT_BANK, column, pixels, readout, shades, tile
from support.made_up import made_up_story

chromium, live = browser.chromium, browser.live


def pieces(story):
    return {name for name in story if name.startswith("points/")}


@pytest.mark.slow
class TestLive:
    def test_waits_and_then_tells(self, live):
        teller, watched = live({}, color_scheme="light")
        assert watched.text("#summary") == "Waiting for the first rows."
        story = made_up_story(points=40)
        story["run"]["status"] = "running"
        teller.send(story)
        watched.eventually(lambda: watched.text("#title") == "sensors.csv: load")
        assert watched.text("#status-words") == "running"
        for chart in CHARTS:
            assert shades(watched, chart) > 5, chart
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        assert tile(watched, "rows") == sum(column(story, "rows"))
        story["run"]["status"] = "ended"
        teller.send({"run": story["run"]})
        teller.send({}, event="end")
        watched.eventually(lambda: watched.text("#status-words") == "ended")
        watched.eventually(
            lambda: watched.page.locator("#status").get_attribute("data-state") == "still"
        )
        teller.hang_up()
        watched.page.wait_for_timeout(300)
        assert teller.streams == 1  # nobody calls again
        assert watched.complaints == []

    def test_keeps_what_the_viewer_chose(self, live):
        first = made_up_story(points=60, stride=100)
        teller, watched = live(first)
        shown = watched.page
        shown.locator("input[value=stretch]").check()
        shown.locator("#function-input").select_option(index=1)
        shown.locator("#function-time").focus()
        shown.keyboard.press("Home")
        shown.keyboard.press("ArrowRight")
        shown.locator("#theme").click()
        background = "getComputedStyle(document.body).backgroundColor"
        chosen = (watched.text("#function-row"), shown.evaluate(background))
        shown.locator("#weights-chart .chart").focus()
        for key in ("Home", "PageDown", "PageDown", "ArrowRight", "ArrowDown"):
            shown.keyboard.press(key)
        assert "rows 2,101 to 2,200" in readout(watched, "weights")
        slot = watched.text("#weights-chart-readout .slot-name")
        place = shown.locator("#weights-chart").bounding_box()["y"]
        # More rows in fewer points: neighbours were joined.
        later = made_up_story(points=30, stride=400, seed=1)
        kept = {name: part for name, part in first.items() if name.startswith("snapshot/")}
        gone = dict.fromkeys(pieces(first) - pieces(later))
        assert gone
        news = {**{n: p for n, p in later.items() if not n.startswith("snapshot/")}, **gone}
        present = {**later["snapshot/now"]}
        teller.send({**news, "snapshot/now": present, "snapshot/5966": kept["snapshot/now"]})
        watched.eventually(lambda: tile(watched, "rows") == sum(column(later, "rows")))
        assert (watched.text("#function-row"), shown.evaluate(background)) == chosen
        assert shown.locator("#function-input").evaluate("s => s.selectedIndex") == 1
        assert shown.locator("input[value=stretch]").is_checked()
        assert "worst single error" in readout(watched, "error")
        assert "rows 2,001 to 2,400" in readout(watched, "weights")
        assert watched.text("#weights-chart-readout .slot-name") == slot
        shown.keyboard.press("End")
        assert f"to {sum(column(later, 'rows')):,}" in readout(watched, "weights")
        # Lines came and went above; what the viewer looks at stays where it is.
        assert shown.locator("#weights-chart").bounding_box()["y"] == pytest.approx(place, abs=1)
        assert shown.evaluate("document.activeElement.className") == "chart"
        assert watched.complaints == []

    def test_what_was_shown_may_go_again(self, live):
        story = made_up_story(points=40)
        teller, watched = live(story)
        watched.page.locator("#cost-chart .u-over").hover()
        assert "cheapest slot" not in readout(watched, "cost")  # but the one that was picked out
        teller.send(dict.fromkeys(name for name in story if name != "run"))
        watched.eventually(lambda: watched.text("#summary") == "Waiting for the first rows.")
        assert watched.page.locator("section .empty:visible").count() == 9
        watched.page.mouse.move(1, 1)
        teller.send(story)
        watched.eventually(lambda: "cheapest slot" in readout(watched, "cost"))
        assert watched.complaints == []

    def test_slider_at_the_end_follows(self, live):
        first = made_up_story(points=60, stride=100)
        teller, watched = live(first)
        assert watched.text("#function-row") == "5,933"
        later = {**first["snapshot/now"], "row": 6400}
        teller.send({"snapshot/now": later, "snapshot/5933": first["snapshot/now"]})
        watched.eventually(lambda: watched.text("#function-row") == "6,400")

    def test_a_lost_connection_is_told_and_found_again(self, live):
        story = made_up_story(points=40)
        story["run"]["status"] = "running"
        teller, watched = live(story)
        watched.eventually(lambda: watched.text("#status-words") == "running")
        teller.hang_up()
        watched.eventually(lambda: watched.text("#status-words") == "connection lost, trying again")
        story["now"]["rows"] += 1
        teller.sent.append((None, json.dumps({"now": story["now"]})))
        teller.open = True
        watched.eventually(lambda: watched.text("#status-words") == "running")
        watched.eventually(lambda: tile(watched, "rows") == story["now"]["rows"])
        assert teller.streams >= 2

    def test_a_reload_starts_anew(self, live):
        story = made_up_story(points=40)
        teller, watched = live(story)
        story["run"]["title"] = "another"
        watched.page.reload()
        assert watched.text("#title") == "another"
        watched.eventually(lambda: teller.streams == 2)
        assert {request.partition("//")[2].partition("/")[2] for request in watched.requests} == {
            "",
            "events",
        }
        assert watched.complaints == []

    def test_hidden_pages_draw_nothing(self, live):
        story = made_up_story(points=40)
        teller, watched = live(story)
        watched.page.evaluate(
            """() => {
                window.hidden_now = true;
                Object.defineProperty(document, "hidden", {get: () => window.hidden_now, configurable: true});
            }"""
        )
        story["now"]["rows"] += 7
        teller.send({"now": story["now"]})
        watched.page.wait_for_timeout(300)
        assert tile(watched, "rows") == story["now"]["rows"] - 7
        watched.page.evaluate(
            "() => { window.hidden_now = false; document.dispatchEvent(new Event('visibilitychange')); }"
        )
        watched.eventually(lambda: tile(watched, "rows") == story["now"]["rows"])
