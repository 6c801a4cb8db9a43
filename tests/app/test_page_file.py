"""The file that a page is: whole in itself, and no text of the data can break out of it."""

import itertools
import json
import re
import subprocess
import sys

import pytest

from kernelbank.app.report.page import page, policy
from support import browser
from support.browser import as_parts, column, readout, tile
from support.made_up import made_up_story

chromium, show = browser.chromium, browser.show


class TestFile:
    def test_holds_no_address_and_stays_small(self):
        text = page(as_parts(made_up_story(points=512, slots=60)))
        assert len(text.encode()) < 2_000_000
        assert re.findall("(?i)http.{8}", text) == ['http-equiv="']
        assert "://" not in text

    def test_addresses_in_the_data_cannot_be_found_in_the_file(self):
        story = made_up_story(points=2)
        story["run"]["title"] = "https://example.org/a.csv"
        text = page(as_parts(story))
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
        code = "import sys, kernelbank.app.report.page; sys.exit('numpy' in sys.modules)"
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


def hostile(value, baits):
    """A story in which every text is bait, except for the few that are part of the format."""
    if isinstance(value, str):
        return next(baits)
    if isinstance(value, list):
        return [hostile(each, baits) for each in value]
    if isinstance(value, dict):
        kept = ("task", "loss", "status", "started", "updated")
        return {
            name: each if name in kept else hostile(each, baits) for name, each in value.items()
        }
    return value


@pytest.mark.slow
class TestHostile:
    # The worst one stands everywhere once; the others take turns.
    @pytest.mark.parametrize(
        "baits", [BAIT[:1], BAIT, BAIT[3:] + BAIT[:3]], ids=["one", "all", "turned"]
    )
    def test_texts_are_shown_and_nothing_runs(self, show, baits):
        story = hostile(made_up_story(points=3, slots=12), itertools.cycle(baits))
        watched = show(story, width=360)
        watched.page.locator("#weights-table summary").click()
        watched.page.locator("#weights-chart .chart").focus()
        for _ in range(12):
            watched.page.keyboard.press("ArrowUp")
        watched.page.keyboard.press("ArrowDown")
        assert watched.page.evaluate("window.caught") is None
        assert watched.page.locator("main img, main svg, main script").count() == 0
        run, bad = story["run"], story["bad"]["examples"][0]
        assert watched.text("#title") == run["title"]
        assert run["slots"][1] in readout(watched, "weights")
        texts = watched.page.locator("#function-input option").all_text_contents()
        assert texts == run["columns"]
        cells = watched.page.locator("#bad-list tbody tr").first.locator("td").all_text_contents()
        assert cells[1:] == [bad[name] for name in ("where", "column", "value", "reason")]
        cells = (
            watched.page.locator("#signals-list tbody tr").first.locator("td").all_text_contents()
        )
        assert cells[1:] == story["changes"][-1][1:]
        facts = [text for _, pairs in run["facts"] for pair in pairs for text in pair]
        assert watched.page.locator("#ran-list :is(dt, dd)").all_text_contents() == facts
        words = [words for words, _ in story["now"]["time"]]
        assert set(words) <= set(watched.page.locator("#time-list .words").all_text_contents())
        assert watched.page.evaluate("document.documentElement.scrollWidth") == 360

    def test_parts_that_are_no_part_of_a_story(self, show):
        story = made_up_story(points=3)
        story |= {
            "points/x": {"rows": [1]},
            "snapshot/": 3,
            "__proto__": {"rows": 1},
            "constructor": 7,
        }
        watched = show(story)
        assert tile(watched, "rows") == sum(column(made_up_story(points=3), "rows"))
