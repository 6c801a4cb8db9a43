"""The page of a run, in a real browser: its charts tell what the story has."""

import math
import re

import pytest

from support import browser
from support.browser import CHARTS, LIGHT_BANK, cell, column, pixels, readout, shades, tile
from support.made_up import made_up_story

chromium, show = browser.chromium, browser.show


class TestPicture:
    def test_every_chart_is_drawn(self, show):
        watched = show(made_up_story(), color_scheme="light")
        for chart in CHARTS:
            assert shades(watched, chart) > 5, chart
        for chart in ("error", "cost", "function", "share", "width"):
            assert pixels(watched, chart, LIGHT_BANK) > 300, chart
        assert shades(watched, "weights") > 100
        assert watched.page.title() == "sensors.csv: load"

    def test_tiles_are_the_figures_of_the_story(self, show):
        story = made_up_story()
        watched = show(story)
        answered = sum(column(story, "scored"))
        alone = [sum(losses) for losses in zip(*column(story, "losses"), strict=True)]
        expected = {
            "rows": sum(column(story, "rows")),
            "bank": math.sqrt(sum(column(story, "loss")) / answered),
            "best-slot": math.sqrt(min(alone) / answered),
            "persistence": math.sqrt(sum(column(story, "baseline_loss")) / answered),
            "coverage": sum(column(story, "covered")) / answered,
            "signals": 5,
            "bad-rows": 3,
            "rows-s": 4672.9,
        }
        assert {name: tile(watched, name) for name in expected} == pytest.approx(expected)
        best = story["run"]["slots"][alone.index(min(alone))]
        assert best in watched.text("#tile-best-slot")
        assert f"{expected['bank']:.4g}" in watched.text("#summary")

    def test_error_so_far_and_by_stretch(self, show):
        story = made_up_story()
        watched = show(story)
        loss, answered = column(story, "loss"), column(story, "scored")
        before = pixels(watched, "error", LIGHT_BANK)
        watched.page.locator("#error-chart .chart").focus()
        for key in ("Home", "PageDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
            watched.page.keyboard.press(key)
        far = math.sqrt(sum(loss[:12]) / sum(answered[:12]))
        assert f"rows 1 to {12 * 500:,}" in readout(watched, "error")
        assert f"bank {far:.4g}" in readout(watched, "error")
        watched.page.locator("input[value=stretch]").check()
        alone = math.sqrt(loss[11] / answered[11])
        worst = math.sqrt(column(story, "worst_loss")[11])
        assert "rows 5,501 to 6,000" in readout(watched, "error")
        assert f"bank {alone:.4g}" in readout(watched, "error")
        assert f"worst single error {worst:.4g}" in readout(watched, "error")
        assert pixels(watched, "error", LIGHT_BANK) != before

    def test_hover_over_the_heat_map_tells_its_values(self, show):
        story = made_up_story()
        watched = show(story)
        for at, slot, within in ((17, 12, 0.2), (150, 25, 0.8), (0, 0, 0.5), (199, 38, 0.5)):
            over = watched.page.locator("#weights-chart .u-over")
            over.hover(position=cell(watched, story, at, slot, within))
            said = readout(watched, "weights")
            assert story["run"]["slots"][slot] in said
            assert f"mean weight {column(story, 'weights')[at][slot] / 100:.2f} %" in said
            assert f"highest {column(story, 'weights_high')[at][slot] / 100:.2f} %" in said
            assert f"to {sum(column(story, 'rows')[: at + 1]):,}" in said

    def test_keys_move_over_the_heat_map(self, show):
        story = made_up_story()
        watched = show(story)
        present = column(story, "weights")[-1]
        slot = present.index(max(present))
        assert story["run"]["slots"][slot] in readout(watched, "weights")
        watched.page.locator("#weights-chart .chart").focus()
        for key in ("End", "PageUp", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowDown"):
            watched.page.keyboard.press(key)
        said = readout(watched, "weights")
        assert story["run"]["slots"][slot - 1] in said
        assert f"mean weight {column(story, 'weights')[188][slot - 1] / 100:.2f} %" in said
        assert watched.page.locator("#weights-chart-readout").get_attribute("aria-live") == "polite"
        # The other charts over time follow, without being announced.
        assert "rows 94,001 to 94,500" in readout(watched, "stream")
        assert watched.page.locator("#stream-chart-readout").get_attribute("aria-live") == "off"

    def test_heat_map_has_the_colours_of_its_weights(self, show):
        story = made_up_story(points=4, slots=5)
        for number in range(4):
            story["points/0"]["weights"][number] = [0, 0, 10000 if number == 2 else 0, 0, 0]
        watched = show(story, color_scheme="light")
        colours = watched.page.evaluate(
            """(places) => {
                const canvas = document.querySelector("#weights-chart canvas");
                const over = document.querySelector("#weights-chart .u-over");
                const pixel = new OffscreenCanvas(canvas.width, canvas.height).getContext(
                    "2d", {willReadFrequently: true});
                pixel.drawImage(canvas, 0, 0);
                return places.map(({x, y}) => [...pixel.getImageData(
                    over.offsetLeft + x, over.offsetTop + y, 1, 1).data].slice(0, 3));
            }""",
            [
                cell(watched, story, at, slot)
                for at, slot in ((2, 2), (1, 2), (3, 2), (2, 1), (2, 3))
            ],
        )
        assert colours == [[0x06, 0x24, 0x3F]] + 4 * [[0xF4, 0xF6, 0xF8]]

    def test_a_slot_of_the_costs_is_picked_out(self, show):
        story = made_up_story()
        watched = show(story, color_scheme="light")
        alone = [sum(losses) for losses in zip(*column(story, "losses"), strict=True)]
        order = sorted(range(39), key=lambda slot: alone[slot])
        purple = (0x9B, 0x44, 0x78)
        assert pixels(watched, "cost", purple) == 0
        watched.page.locator("#cost-chart .chart").focus()
        for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"):
            watched.page.keyboard.press(key)
        assert story["run"]["slots"][order[1]] in readout(watched, "cost")
        assert f"{alone[order[1]]:,.0f}" in readout(watched, "cost")
        assert pixels(watched, "cost", purple) > 300
        watched.page.keyboard.press("Escape")
        assert pixels(watched, "cost", purple) == 0
        watched.page.keyboard.press("Tab")
        over = watched.page.locator("#cost-chart .u-over")
        box = over.bounding_box()
        over.hover(position={"x": box["width"] - 1, "y": (1 - 1 / 1.05) * box["height"]})
        assert story["run"]["slots"][order[-1]] in readout(watched, "cost")
        watched.page.mouse.move(1, 1)
        assert pixels(watched, "cost", purple) == 0


class TestFunction:
    def line(self, story, number, place=0):
        rows = sorted(int(name[9:]) for name in story if re.fullmatch(r"snapshot/\d+", name))
        names = [*rows, "now"]
        return story[f"snapshot/{names[number]}"]["row"], story[f"snapshot/{names[number]}"][
            "lines"
        ][place]

    def test_slider_goes_back_in_time(self, show):
        story = made_up_story()
        watched = show(story)
        watched.page.locator("#function-time").focus()
        watched.page.keyboard.press("ArrowLeft")
        watched.page.keyboard.press("ArrowLeft")
        row, line = self.line(story, -3)
        assert watched.text("#function-row") == f"{row:,}"
        assert f"answer {line['middle'][12]:.4g}" in readout(watched, "function")
        assert (
            watched.page.locator("#function-time").get_attribute("aria-valuetext") == f"row {row:,}"
        )
        box = watched.page.locator("#function-time").bounding_box()
        watched.page.locator("#function-time").click(position={"x": 2, "y": box["height"] / 2})
        row, line = self.line(story, 0)
        assert watched.text("#function-row") == f"{row:,}"
        assert f"answer {line['middle'][12]:.4g}" in readout(watched, "function")

    def test_another_input(self, show):
        story = made_up_story()
        watched = show(story)
        watched.page.locator("#function-input").select_option(index=2)
        _, line = self.line(story, -1, 2)
        watched.page.locator("#function-chart .chart").focus()
        watched.page.keyboard.press("Home")
        watched.page.keyboard.press("ArrowRight")
        said = readout(watched, "function")
        assert f"hour of the day at {line['at'][1]:.4g}" in said
        assert f"interval {line['low'][1]:.4g} to {line['high'][1]:.4g}" in said
        assert "load along hour of the day, after row 99,666" in watched.text(
            "#function-chart .caption"
        )

    def test_axis_holds_still(self, show):
        watched = show(made_up_story())
        axis = """() => {
            const canvas = document.querySelector("#function-chart canvas");
            const left = document.querySelector("#function-chart .u-over").offsetLeft - 6;
            const copy = new OffscreenCanvas(left, canvas.height).getContext("2d");
            copy.drawImage(canvas, 0, 0);
            return [...copy.getImageData(0, 0, left, canvas.height).data].join();
        }"""
        before = watched.page.evaluate(axis)
        watched.page.locator("#function-time").focus()
        watched.page.keyboard.press("Home")
        assert watched.page.evaluate(axis) == before

    def test_play_steps_through_to_the_end(self, show):
        story = made_up_story(points=3)
        watched = show(story)
        watched.page.locator("#function-play").click()
        assert watched.text("#function-play") == "Stop"
        assert watched.text("#function-row") == f"{self.line(story, 0)[0]:,}"
        watched.eventually(lambda: watched.text("#function-play") == "Play")
        assert watched.text("#function-row") == f"{self.line(story, -1)[0]:,}"
