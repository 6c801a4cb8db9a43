"""The page of a run, in a real browser: what it shows, and what it does not let happen."""

import json
import math
import re
import subprocess
import sys

import pytest

import browser as rig
from kernelbank.report.page import page, policy

CHARTS = ("error", "stream", "cost", "weights", "function", "share", "width")
LIGHT_BANK, DARK_BANK = (0x00, 0x72, 0xB2), (0x56, 0xB4, 0xE9)


# Not for the whole session: while playwright runs, no other test can run a loop of asyncio.
@pytest.fixture(scope="module")
def chromium():
    rig.needs_chromium()
    chromium = rig.Browser()
    yield chromium
    chromium.close()


@pytest.fixture
def show(chromium, tmp_path):
    """Open the report of a story; in the end it must have run without a word and asked for nothing."""
    shown = []

    def open_report(story, **options):
        watched = chromium.open(rig.written(tmp_path, story), **options)
        shown.append(watched)
        return watched

    yield open_report
    for watched in shown:
        assert watched.complaints == []
        assert watched.dialogs == watched.failed == []
        assert [address[:5] for address in watched.requests] == ["file:"]
        watched.page.context.close()


def column(story, name):
    pieces = sorted(
        (int(key[7:]), part) for key, part in story.items() if key.startswith("points/")
    )
    return [value for _, piece in pieces for value in piece[name]]


def tile(watched, name):
    return float(watched.page.locator(f"#tile-{name} data").get_attribute("value"))


def readout(watched, chart):
    return watched.text(f"#{chart}-chart-readout")


# A copy is read: a browser complains of whoever reads a canvas on its way to the screen again and
# again.
READ = """(selector) => {
    const canvas = document.querySelector(selector);
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Map();
    for (const pixel of new Uint32Array(data.buffer)) seen.set(pixel, (seen.get(pixel) ?? 0) + 1);
    return [...seen];
}"""


def colours_of(watched, chart):
    """How often each colour is on a chart's canvas, by (red, green, blue); what is clear is left out."""
    seen = watched.page.evaluate(READ, f"#{chart}-chart .chart canvas")
    return {
        (pixel & 255, pixel >> 8 & 255, pixel >> 16 & 255): count
        for pixel, count in seen
        if pixel >> 24 == 255
    }


def pixels(watched, chart, wanted, near=12):
    """How many pixels of a chart's canvas are of about a colour."""
    return sum(
        count
        for colour, count in colours_of(watched, chart).items()
        if all(abs(one - other) < near for one, other in zip(colour, wanted, strict=True))
    )


def shades(watched, chart):
    return len(colours_of(watched, chart))


def cell(watched, story, at, slot):
    """Where in the heat map the weight of a slot in a stretch is."""
    rows = column(story, "rows")
    box = watched.page.locator("#weights-chart .u-over").bounding_box()
    across = (sum(rows[:at]) + rows[at] / 2) / sum(rows)
    down = (slot + 0.5) / len(story["run"]["slots"])
    return {"x": across * box["width"], "y": down * box["height"]}


class TestFile:
    def test_holds_no_address_and_stays_small(self):
        text = page(rig.as_parts(rig.made_up_story(points=512, slots=60)))
        assert len(text.encode()) < 2_000_000
        assert re.findall("(?i)http.{8}", text) == ['http-equiv="']
        assert "://" not in text

    def test_addresses_in_the_data_cannot_be_found_in_the_file(self):
        story = rig.made_up_story(points=2)
        story["run"]["title"] = "https://example.org/a.csv"
        text = page(rig.as_parts(story))
        assert "https://" not in text
        assert json.loads(embedded(text))["run"]["title"] == "https://example.org/a.csv"

    def test_names_the_licence_of_what_it_brings(self):
        assert "uPlot 1.6.32\n\nThe MIT License" in page({})
        assert "AUTHORS OR COPYRIGHT HOLDERS BE LIABLE" in page({})

    def test_keeps_every_text(self):
        texts = [
            "</script>",
            "<!--<script>",
            "&lt;&amp;",
            "\u2028\u2029",
            "{{script}}",
            "\ud800",
            "\\",
            '"',
        ]
        story = {"run": {"title": "".join(texts), "slots": texts}}
        for ascii_only in (True, False):
            parts = {
                name: json.dumps(part, ensure_ascii=ascii_only) for name, part in story.items()
            }
            text = page(parts)
            text.encode()
            assert json.loads(embedded(text)) == story
            assert not set(embedded(text)) & set("<>&\u2028\u2029")

    def test_policy_allows_its_own_scripts_only(self):
        assert policy(live=False) in page({}).replace("&#x27;", "'")
        assert "connect-src" not in policy(live=False)
        assert policy(live=True).endswith("connect-src 'self'")
        assert "unsafe" not in policy(live=True)
        assert policy(live=True).startswith("default-src 'none'; script-src 'sha256-")

    def test_events_are_named_in_the_live_page_only(self):
        assert "data-events" not in re.sub("(?s)<script>.*?</script>", "", page({}))
        assert 'data-events="events?after=3&amp;&quot;"' in page({}, 'events?after=3&"')

    def test_needs_no_numpy(self):
        code = "import sys, kernelbank.report.page; sys.exit('numpy' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_scripts_write_no_html(self):
        own = page({}).split("<script>")[-1]
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert word not in own


def embedded(text):
    return re.search('(?s)id="story"[^>]*>(.*?)</script>', text)[1]


class TestPicture:
    def test_every_chart_is_drawn(self, show):
        watched = show(rig.made_up_story(), color_scheme="light")
        for chart in CHARTS:
            assert shades(watched, chart) > 5, chart
        for chart in ("error", "cost", "function", "share", "width"):
            assert pixels(watched, chart, LIGHT_BANK) > 300, chart
        assert shades(watched, "weights") > 100
        assert watched.page.title() == "sensors.csv: load"

    def test_tiles_are_the_figures_of_the_story(self, show):
        story = rig.made_up_story()
        watched = show(story)
        answered = sum(column(story, "answered"))
        alone = [sum(losses) for losses in zip(*column(story, "losses"), strict=True)]
        expected = {
            "rows": sum(column(story, "rows")),
            "bank": math.sqrt(sum(column(story, "loss")) / answered),
            "best-slot": math.sqrt(min(alone) / answered),
            "persistence": math.sqrt(sum(column(story, "persistence")) / answered),
            "coverage": sum(column(story, "inside")) / answered,
            "signals": 5,
            "bad-rows": 3,
            "rows-s": 4672.9,
        }
        assert {name: tile(watched, name) for name in expected} == pytest.approx(expected)
        best = story["run"]["slots"][alone.index(min(alone))]
        assert best in watched.text("#tile-best-slot")
        assert f"{expected['bank']:.4g}" in watched.text("#summary")

    def test_error_so_far_and_by_stretch(self, show):
        story = rig.made_up_story()
        watched = show(story)
        loss, answered = column(story, "loss"), column(story, "answered")
        before = pixels(watched, "error", LIGHT_BANK)
        watched.page.locator("#error-chart .chart").focus()
        for key in ("Home", "PageDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
            watched.page.keyboard.press(key)
        far = math.sqrt(sum(loss[:12]) / sum(answered[:12]))
        assert f"rows 1 to {12 * 500:,}" in readout(watched, "error")
        assert f"bank {far:.4g}" in readout(watched, "error")
        watched.page.locator("input[value=stretch]").check()
        alone = math.sqrt(loss[11] / answered[11])
        worst = math.sqrt(column(story, "worst")[11])
        assert "rows 5,501 to 6,000" in readout(watched, "error")
        assert f"bank {alone:.4g}" in readout(watched, "error")
        assert f"worst single error {worst:.4g}" in readout(watched, "error")
        assert pixels(watched, "error", LIGHT_BANK) != before

    def test_hover_over_the_heat_map_tells_its_values(self, show):
        story = rig.made_up_story()
        watched = show(story)
        for at, slot in ((17, 12), (150, 25), (0, 0), (199, 38)):
            over = watched.page.locator("#weights-chart .u-over")
            over.hover(position=cell(watched, story, at, slot))
            said = readout(watched, "weights")
            assert story["run"]["slots"][slot] in said
            assert f"mean weight {column(story, 'weights')[at][slot] / 100:.2f} %" in said
            assert f"highest {column(story, 'weights_high')[at][slot] / 100:.2f} %" in said
            assert f"to {sum(column(story, 'rows')[: at + 1]):,}" in said

    def test_keys_move_over_the_heat_map(self, show):
        story = rig.made_up_story()
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
        story = rig.made_up_story(points=4, slots=5)
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
        story = rig.made_up_story()
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
        story = rig.made_up_story()
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
        story = rig.made_up_story()
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
        watched = show(rig.made_up_story())
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
        story = rig.made_up_story(points=3)
        watched = show(story)
        watched.page.locator("#function-play").click()
        assert watched.text("#function-play") == "Stop"
        assert watched.text("#function-row") == f"{self.line(story, 0)[0]:,}"
        watched.eventually(lambda: watched.text("#function-play") == "Play")
        assert watched.text("#function-row") == f"{self.line(story, -1)[0]:,}"


class TestLooks:
    def background(self, watched):
        return watched.page.evaluate("getComputedStyle(document.body).backgroundColor")

    def test_dark_and_light(self, show):
        watched = show(rig.made_up_story(), color_scheme="dark")
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
        watched = show(rig.made_up_story(points=40), color_scheme="light")
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        watched.page.emulate_media(color_scheme="dark")
        watched.eventually(lambda: self.background(watched) == "rgb(18, 22, 26)")
        watched.eventually(lambda: pixels(watched, "cost", DARK_BANK) > 300)

    def test_printed_in_light_colours_without_controls(self, show):
        watched = show(rig.made_up_story(), color_scheme="dark")
        watched.page.emulate_media(media="print")
        watched.eventually(lambda: pixels(watched, "cost", LIGHT_BANK) > 300)
        assert pixels(watched, "cost", DARK_BANK) == 0
        for control in ("#theme", "nav", "#function-choices", "fieldset", "summary"):
            assert not watched.page.locator(control).first.is_visible(), control
        avoided = "e => getComputedStyle(e).breakInside"
        assert watched.page.locator("#cost").evaluate(avoided) == "avoid"
        watched.page.emulate_media(media="screen")
        size = "document.querySelector('#cost-chart canvas').width"
        before = watched.page.evaluate(size)
        watched.page.evaluate(
            f"addEventListener('afterprint', () => {{ window.printed = {size}; }}, true)"
        )
        assert watched.page.pdf(format="A4").startswith(b"%PDF")
        assert watched.page.evaluate(size) == before
        assert (
            watched.page.evaluate("document.querySelectorAll('#weights-table details tr').length")
            == 40
        )

    @pytest.mark.parametrize("task", ["regression", "classification"])
    def test_fits_on_a_phone(self, show, task):
        story = rig.made_up_story(task=task)
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
        watched = show(rig.made_up_story(points=40))
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
        watched = show(rig.made_up_story(points=40))
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


class TestWords:
    def test_lists(self, show):
        story = rig.made_up_story(points=40)
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
        story = rig.made_up_story()
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
            lambda: watched.page.locator("#weights-table details tbody tr").count() == 39
        )

    def test_empty_story(self, show):
        watched = show({})
        assert watched.text("#summary") == "Waiting for the first rows."
        assert watched.text("#status-words") == "waiting"
        assert watched.page.locator("canvas").count() == 1  # that of the colour scale, hidden
        assert watched.page.locator("section .empty:visible").count() == 10

    def test_run_without_points(self, show):
        watched = show(rig.made_up_story(points=0))
        assert watched.page.locator("section .empty:visible").count() == 9
        assert watched.text("#title") == "sensors.csv: load"

    def test_one_point(self, show):
        watched = show(rig.made_up_story(points=1), color_scheme="light")
        for chart in CHARTS:
            assert shades(watched, chart) > 5, chart
        assert pixels(watched, "error", LIGHT_BANK) > 5
        assert "rows 1 to 100,000" in readout(watched, "error")

    def test_thousand_slots(self, show):
        story = rig.made_up_story(points=64, slots=1000)
        story["points/1"]["weights"][10][777] = 9999
        watched = show(story, color_scheme="light")
        watched.page.locator("#weights-chart .u-over").hover(position=cell(watched, story, 42, 777))
        at = story["run"]["slots"].index(
            watched.text("#weights-chart-readout .slot-name")
        )  # several slots share a pixel
        assert abs(at - 777) <= 2
        # The largest of those that share a pixel is shown.
        assert pixels(watched, "weights", (0x06, 0x24, 0x3F), near=2) > 5

    def test_classification(self, show):
        story = rig.made_up_story(task="classification")
        story["run"]["weights_of"] = "spam"
        watched = show(story, color_scheme="light")
        answered = sum(column(story, "answered"))
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

    def test_slots_that_diverge(self, show):
        story = rig.made_up_story(points=100)
        for name in ("points/1", "points/2", "points/3"):
            for losses in story[name]["losses"]:
                losses[5], losses[6] = None, 1e300
        story["points/2"]["worst"][3] = None
        watched = show(story, color_scheme="light")
        assert "2 lines leave the picture" in watched.text("#cost-chart .note")
        assert pixels(watched, "cost", LIGHT_BANK) > 300
        watched.page.locator("#cost-chart .chart").focus()
        for _ in range(45):
            watched.page.keyboard.press("ArrowUp")
        assert story["run"]["slots"][5] in readout(watched, "cost")
        assert "not known" in readout(watched, "cost")
        watched.page.locator("#weights-table summary").click()
        watched.eventually(lambda: "not known" in watched.text("#weights-table details"))


BAIT = [
    "</script><script>window.caught = 1</script>",
    "<img src=x onerror='window.caught = 1'>",
    '"><svg onload="window.caught = 1">',
    "\u2028window.caught = 1\u2029",
    "javascript:window.caught=1",
    "\u202eright to left\u202d\u0000\u0007",
    "{{story}}${window.caught = 1}",
    "long " * 2000,
]


def hostile(value, bait):
    """A story in which every text is bait, except for the few that are part of the format."""
    if isinstance(value, str):
        return bait
    if isinstance(value, list):
        return [hostile(each, bait) for each in value]
    if isinstance(value, dict):
        kept = ("task", "loss", "status", "started", "updated")
        return {name: each if name in kept else hostile(each, bait) for name, each in value.items()}
    return value


class TestHostile:
    @pytest.mark.parametrize("bait", BAIT, ids=range(len(BAIT)))
    def test_texts_are_shown_and_nothing_runs(self, show, bait):
        story = hostile(rig.made_up_story(points=3, slots=12), bait)
        watched = show(story, width=360)
        watched.page.locator("#weights-table summary").click()
        watched.page.locator("#weights-chart .chart").focus()
        watched.page.keyboard.press("ArrowDown")
        assert watched.page.evaluate("window.caught") is None
        assert watched.page.locator("main img, main svg, main script").count() == 0
        for place in (
            "#title",
            "#ran-list dd",
            "#bad-list td:nth-child(4)",
            "#signals-list td:nth-child(2)",
        ):
            assert watched.text(place) == bait, place
        assert bait in watched.text("#function-input option")
        assert bait in readout(watched, "weights")
        assert watched.page.evaluate("document.documentElement.scrollWidth") == 360

    def test_parts_that_are_no_part_of_a_story(self, show):
        story = rig.made_up_story(points=3)
        story |= {
            "points/x": {"rows": [1]},
            "snapshot/": 3,
            "__proto__": {"rows": 1},
            "constructor": 7,
        }
        watched = show(story)
        assert tile(watched, "rows") == sum(column(rig.made_up_story(points=3), "rows"))


@pytest.fixture
def live(chromium):
    """Open a live page of a story; returns the teller of its news and the page."""
    tellers = []

    def open_live(story, **options):
        tellers.append(rig.Teller(story))
        watched = chromium.open(tellers[-1].address, **options)
        tellers.append(watched)
        watched.eventually(lambda: tellers[-2].streams)
        return tellers[-2], watched

    yield open_live
    teller, watched = tellers
    watched.page.context.close()
    teller.close()


def pieces(story):
    return {name for name in story if name.startswith("points/")}


class TestLive:
    def test_waits_and_then_tells(self, live):
        teller, watched = live({}, color_scheme="light")
        assert watched.text("#summary") == "Waiting for the first rows."
        story = rig.made_up_story(points=40)
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
        first = rig.made_up_story(points=60, stride=100)
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
        scrolled = shown.evaluate("scrollY")
        # Twice the rows in half as many points: neighbours were joined.
        later = rig.made_up_story(points=50, stride=200, seed=1)
        kept = {name: part for name, part in first.items() if name.startswith("snapshot/")}
        gone = dict.fromkeys(pieces(first) - pieces(later))
        news = {**{n: p for n, p in later.items() if not n.startswith("snapshot/")}, **gone}
        present = {**later["snapshot/now"]}
        teller.send({**news, "snapshot/now": present, "snapshot/5966": kept["snapshot/now"]})
        watched.eventually(lambda: tile(watched, "rows") == sum(column(later, "rows")))
        assert (watched.text("#function-row"), shown.evaluate(background)) == chosen
        assert shown.locator("#function-input").evaluate("s => s.selectedIndex") == 1
        assert shown.locator("input[value=stretch]").is_checked()
        assert "worst single error" in readout(watched, "error")
        assert "rows 2,001 to 2,200" in readout(watched, "weights")
        assert watched.text("#weights-chart-readout .slot-name") == slot
        assert shown.evaluate("scrollY") == scrolled
        assert shown.evaluate("document.activeElement.className") == "chart"
        assert watched.complaints == []

    def test_slider_at_the_end_follows(self, live):
        first = rig.made_up_story(points=60, stride=100)
        teller, watched = live(first)
        assert watched.text("#function-row") == "5,933"
        later = {**first["snapshot/now"], "row": 6400}
        teller.send({"snapshot/now": later, "snapshot/5933": first["snapshot/now"]})
        watched.eventually(lambda: watched.text("#function-row") == "6,400")

    def test_a_lost_connection_is_told_and_found_again(self, live):
        story = rig.made_up_story(points=40)
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
        story = rig.made_up_story(points=40)
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
        story = rig.made_up_story(points=40)
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
