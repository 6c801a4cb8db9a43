"""A browser for the tests of pages, and ways to read a canvas."""

import contextlib
import json
import os
import shutil
import time

import pytest

from kernelbank.run.live.page import LivePage
from kernelbank.run.live.server import Limits
from kernelbank.run.report.page import render_page

CHARTS = ("recent", "targets", "error", "loss", "weights", "curves", "coverage", "width")
LIGHT_MODEL, DARK_MODEL = (0x00, 0x72, 0xB2), (0x56, 0xB4, 0xE9)  # the colour of the model

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]


def needs_chromium():
    if CHROMIUM is None:
        if os.environ.get("KERNELBANK_NO_SKIP"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")


class ShownPage:
    """A page in the browser, and all its errors and requests."""

    def __init__(self, context):
        self.page = context.new_page()
        self.errors, self.requests, self.failed, self.dialogs = [], [], [], []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", lambda request: self.failed.append(request.url))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dialog)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def text(self, selector):
        return self.page.locator(selector).first.text_content()

    def wait_until(self, condition, seconds=10):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            self.page.wait_for_timeout(20)


class Browser:
    """One chromium for all tests; each page has a context, that is a profile, of its own."""

    def __init__(self):
        from playwright.sync_api import sync_playwright

        self.playwright = sync_playwright().start()
        self.chromium = self.playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=FLAGS
        )

    def open(self, address, width=1200, height=900, **options):
        context = self.chromium.new_context(viewport={"width": width, "height": height}, **options)
        shown = ShownPage(context)
        shown.page.set_default_timeout(10_000)
        shown.page.goto(address)
        return shown

    def close(self):
        self.chromium.close()
        self.playwright.stop()


# Not for the whole session: while playwright runs, no other test can run a loop of asyncio.
@pytest.fixture(scope="module")
def chromium():
    needs_chromium()
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def show(chromium, tmp_path):
    """Open the file of a report; at the end it must have no errors and have requested nothing."""
    opened = []

    def open_file(report, **options):
        path = tmp_path / "report.html"
        path.write_text(render_page(json.dumps(report)), encoding="utf-8")
        shown = chromium.open(path.as_uri(), **options)
        opened.append(shown)
        return shown

    yield open_file
    for shown in opened:
        assert shown.errors == []
        assert shown.dialogs == shown.failed == []
        assert [address[:5] for address in shown.requests] == ["file:"]
        shown.page.context.close()


@pytest.fixture
def show_live(chromium):
    """Open the live page of a report; returns it, and the page in the browser."""
    with contextlib.ExitStack() as stack:

        def open_live(report, **options):
            live = stack.enter_context(LivePage(limits=Limits(poll_interval=0.02)))
            live.publish(json.dumps(report))
            shown = chromium.open(live.address, **options)
            stack.callback(shown.page.context.close)
            title = report.get("run", {"title": ""})["title"]
            shown.wait_until(lambda: title in shown.text("#title"))
            return live, shown

        yield open_live


def column(report, name):
    """A column of all points of a report."""
    return report["points"][name]


def tile(shown, name):
    return float(shown.page.locator(f"#tile-{name} data").get_attribute("value"))


def readout(shown, chart):
    return shown.text(f"#{chart}-chart-readout")


def press(shown, chart, *keys):
    """Press keys while a chart has the focus."""
    shown.page.locator(f"#{chart}-chart .chart").focus()
    for key in keys:
        shown.page.keyboard.press(key)


# A copy is read: browsers warn if a canvas on its way to the screen is read again and again.
READ_CANVAS = """([selector, wanted, near]) => {
    const canvas = document.querySelector(selector);
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
        const close = wanted.every((channel, index) => Math.abs(data[at + index] - channel) < near);
        if (close && data[at + 3] === 255) count += 1;
    }
    return [count, new Set(new Uint32Array(data.buffer)).size];
}"""


def count_pixels(shown, chart, colour, near=12):
    """The number of pixels of a chart's canvas that have about this colour."""
    return shown.page.evaluate(READ_CANVAS, [f"#{chart}-chart .chart canvas", colour, near])[0]


def count_colours(shown, chart):
    """The number of different colours of a chart's canvas."""
    return shown.page.evaluate(READ_CANVAS, [f"#{chart}-chart .chart canvas", [], 0])[1]
