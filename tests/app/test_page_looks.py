"""The page on screens, phones and paper, by mouse and by keys; and what it says in words."""

import math

import pytest

from support import browser
from support.browser import (
    CHARTS,
    DARK_BANK,
    LIGHT_BANK,
    cell,
    column,
    pixels,
    readout,
    shades,
    tile,
)
from support.made_up import made_up_story

chromium, show = browser.chromium, browser.show


@pytest.mark.slow
class TestLooks:
    def background(self, watched):
        return watched.page.evaluate("getComputedStyle(document.body).backgroundColor")

    def test_dark_and_light(self, show):
        watched = show(made_up_story(), color_scheme="dark")
        assert self.background(watched) == "rgb(18, 22, 26)"
        assert pixels(watched, "cost", DARK_BANK) > 300
        assert pixels(watched, "cost", LIGHT_BANK) == 0
        heat = pixels(watched, "weights", (0x20, 0x27, 0x2D))
        watched.page.locator("#theme").click()
        assert self.background(watched) == "rgb(246, 247, 248)"
        assert pixels(watched, "cost", DARK_BANK) == 0
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        assert pixels(watched, "weights", (0x20, 0x27, 0x2D)) == 0
        assert pixels(watched, "weights", (0xF4, 0xF6, 0xF8)) >= heat * 0.9
        watched.page.reload()
        assert self.background(watched) == "rgb(246, 247, 248)"
        watched.requests.pop()

    def test_follows_the_system(self, show):
        watched = show(made_up_story(points=40), color_scheme="light")
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        watched.page.emulate_media(color_scheme="dark")
        watched.eventually(lambda: self.background(watched) == "rgb(18, 22, 26)")
        watched.eventually(lambda: pixels(watched, "cost", DARK_BANK) > 300)

    def test_printed_in_light_colours_without_controls(self, show):
        watched = show(made_up_story(), color_scheme="dark")
        watched.page.emulate_media(media="print")
        watched.eventually(lambda: pixels(watched, "cost", LIGHT_BANK) > 300)
        assert pixels(watched, "cost", DARK_BANK) == 0
        for control in ("#theme", "nav", "#function-choices", "fieldset", "summary"):
            assert not watched.page.locator(control).first.is_visible(), control
        avoided = "e => getComputedStyle(e).breakInside"
        assert watched.page.locator("#cost").evaluate(avoided) == "avoid"
        watched.page.emulate_media(media="screen")
        size = "document.querySelector('#cost-chart canvas').clientWidth"
        before = watched.page.evaluate(size)
        watched.page.evaluate(
            f"() => addEventListener('beforeprint', () => {{ window.printed = {size}; }})"
        )
        assert watched.page.pdf(format="A4").startswith(b"%PDF")
        assert (
            watched.page.evaluate("window.printed") == 660
        )  # A4 has room for it, the screen for more
        assert watched.page.evaluate(size) == before
        assert watched.page.locator("#weights-table details tbody tr").count() == 31

    @pytest.mark.parametrize("task", ["regression", "classification"])
    def test_fits_on_a_phone(self, show, task):
        story = made_up_story(task=task)
        story["run"]["slots"][12] = "w" * 300
        story["run"]["columns"][0] = "v" * 200
        story["run"]["title"] = "t" * 150
        story["bad"]["examples"][0]["value"] = "x" * 500
        watched = show(story, width=360, height=740, device_scale_factor=2, has_touch=True)
        for _ in range(2):
            widths = "[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
            assert watched.page.evaluate(widths) == [360, 360, 360]
            watched.page.locator("summary").first.click()
        watched.page.set_viewport_size({"width": 900, "height": 740})
        width = "document.querySelector('#cost-chart canvas').clientWidth"
        watched.eventually(lambda: watched.page.evaluate(width) > 700)

    def test_everything_can_be_reached_by_keys(self, show):
        watched = show(made_up_story(points=40))
        reached = []
        for _ in range(40):
            watched.page.keyboard.press("Tab")
            reached.append(
                watched.page.evaluate(
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
            "function-input",
            "function-time",
        ):
            assert name in reached, name
        assert not [name for name in reached if "ring" in name]

    def test_charts_say_what_they_are(self, show):
        watched = show(made_up_story(points=40))
        for chart in watched.page.locator(".chart").all():
            assert chart.get_attribute("aria-label")
            described = chart.get_attribute("aria-describedby")
            assert watched.text(f"#{described}")
        links = watched.page.locator("nav a").evaluate_all(
            "all => all.map(a => a.getAttribute('href'))"
        )
        assert links == watched.page.locator("section").evaluate_all(
            "all => all.map(s => '#' + s.id)"
        )


@pytest.mark.slow
class TestWords:
    def test_lists(self, show):
        story = made_up_story(points=40)
        story["changes"] = [[10 * number, "error grew", ""] for number in range(1, 25)]
        story["changes"].append([900, "input level", "wind"])
        watched = show(story)
        rows = (
            watched.page.locator("#signals-list table")
            .first.locator("tbody tr")
            .all_text_contents()
        )
        assert len(rows) == 20
        assert rows[0] == "900the level of an input movedwind"
        assert rows[1] == "240the error grew"
        watched.page.locator("#signals-list summary").click()
        assert watched.text("#signals-list summary") == "Show 5 older signals"
        watched.eventually(
            lambda: watched.page.locator("#signals-list details tbody tr").count() == 5
        )
        assert "3 rows could not be used" in watched.text("#bad-list")
        assert "line 813windn/a?is not a number" in watched.text("#bad-list")
        assert "the bank17.02 s · 79.5 %" in watched.text("#time-list")
        assert "all else0.38 s · 1.8 %" in watched.text("#time-list")
        assert "The run was started 2 times" in watched.text("#time-list")
        assert "checkpoint every60 s" in watched.text("#ran-list")

    def test_slots_by_weight(self, show):
        story = made_up_story()
        watched = show(story)
        present = column(story, "weights")[-1]
        highest = [max(each) for each in zip(*column(story, "weights_high"), strict=True)]
        order = sorted(range(39), key=lambda slot: -present[slot])
        rows = (
            watched.page.locator("#weights-table table")
            .first.locator("tbody tr")
            .all_text_contents()
        )
        assert len(rows) == 8
        slot = order[0]
        expected = (
            f"{story['run']['slots'][slot]}{present[slot] / 100:.2f} %{highest[slot] / 100:.2f} %"
        )
        assert rows[0].startswith(expected)
        watched.page.locator("#weights-table summary").click()
        watched.eventually(
            lambda: watched.page.locator("#weights-table details tbody tr").count() == 31
        )

    def test_empty_story(self, show):
        watched = show({})
        assert watched.text("#summary") == "Waiting for the first rows."
        assert watched.text("#status-words") == "waiting"
        assert watched.page.locator("canvas").count() == 1  # that of the colour scale, hidden
        assert watched.page.locator("section .empty:visible").count() == 10

    def test_run_without_points(self, show):
        watched = show(made_up_story(points=0))
        assert watched.page.locator("section .empty:visible").count() == 9
        assert watched.text("#title") == "sensors.csv: load"

    def test_one_point(self, show):
        watched = show(made_up_story(points=1), color_scheme="light")
        for chart in CHARTS:
            assert shades(watched, chart) > 5, chart
        assert pixels(watched, "error", LIGHT_BANK) > 5
        assert "rows 1 to 100,000" in readout(watched, "error")

    def test_thousand_slots(self, show):
        story = made_up_story(points=64, slots=1000)
        story["points/1"]["weights"][10][777:779] = 9999, 3
        watched = show(story, color_scheme="light")
        watched.page.locator("#weights-chart .u-over").hover(position=cell(watched, story, 42, 777))
        at = story["run"]["slots"].index(
            watched.text("#weights-chart-readout .slot-name")
        )  # several slots share a pixel
        assert abs(at - 777) <= 2
        # The largest of those that share a pixel is shown.
        assert pixels(watched, "weights", (0x06, 0x24, 0x3F), near=2) > 5

    def test_classification(self, show):
        story = made_up_story(task="classification")
        story["run"]["weights_of"] = "spam"
        watched = show(story, color_scheme="light")
        answered = sum(column(story, "scored"))
        assert tile(watched, "bank") == pytest.approx(sum(column(story, "loss")) / answered)
        assert tile(watched, "stated") == pytest.approx(sum(column(story, "width")) / answered)
        assert not watched.page.locator("#stream").is_visible()
        assert not watched.page.locator("#width-chart").is_visible()
        assert watched.text("#intervals-heading") == "Calibration"
        assert watched.text("#function-chart .caption").startswith("probability of spam along wind")
        assert watched.text("#weights-chart .caption") == "slots of the bank for spam"
        assert "so far right" in readout(watched, "share")
        for chart in ("error", "cost", "function", "share"):
            assert pixels(watched, chart, LIGHT_BANK) > 300, chart

    @pytest.mark.parametrize("size", [1e-250, 1e-17, 1e17, 1e250])
    def test_numbers_of_any_size(self, show, size):
        story = made_up_story(points=3, slots=3)
        for name in ("loss", "baseline_loss", "worst_loss", "width"):
            story["points/0"][name] = [size * value for value in story["points/0"][name]]
        for name in ("target", "prediction"):  # so close that a small step does not change a number
            story["points/0"][f"{name}_low"] = 3 * [size]
            story["points/0"][f"{name}_high"] = 3 * [size * (1 + 3.2e-16)]
        story["points/0"]["losses"] = [
            [size * value for value in row] for row in story["points/0"]["losses"]
        ]
        watched = show(story, color_scheme="light")
        for chart in ("error", "stream", "cost", "width"):
            assert shades(watched, chart) > 5, chart
            frame = watched.page.locator(f"#{chart}-chart .u-over")
            assert frame.evaluate("frame => frame.offsetLeft") > 40, chart  # room for an axis
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        answered = sum(column(story, "scored"))
        expected = math.sqrt(sum(column(story, "loss")) / answered)
        assert tile(watched, "bank") == pytest.approx(expected)

    def test_slots_that_diverge(self, show):
        story = made_up_story(points=100)
        for name in ("points/1", "points/2", "points/3"):
            for losses in story[name]["losses"]:
                losses[5:8] = None, 1e300, 100 * losses[7]
        story["points/2"]["worst_loss"][3] = None
        watched = show(story, color_scheme="light")
        assert "3 lines leave the picture" in watched.text("#cost-chart .note")
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        watched.page.locator("#cost-chart .chart").focus()
        for _ in range(45):
            watched.page.keyboard.press("ArrowUp")
        assert story["run"]["slots"][5] in readout(watched, "cost")
        assert "not known" in readout(watched, "cost")
        watched.page.locator("#weights-table summary").click()
        watched.eventually(lambda: "not known" in watched.text("#weights-table details"))
