"""A browser for the tests of pages, a little server for the live one, and eyes to look with."""

import contextlib
import http.server
import json
import os
import shutil
import threading
import time

import pytest

from kernelbank.app.report.page import page as page_of
from kernelbank.app.report.page import policy

CHARTS = ("error", "stream", "cost", "weights", "function", "share", "width")
LIGHT_BANK, DARK_BANK = (0x00, 0x72, 0xB2), (0x56, 0xB4, 0xE9)  # the colour of the bank

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def needs_chromium():
    if CHROMIUM is None:
        if os.environ.get("KERNELBANK_NO_SKIP"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")


def as_parts(story):
    return {name: json.dumps(value) for name, value in story.items()}


def written(folder, story, name="report.html"):
    """The address of a report file of a story."""
    path = folder / name
    path.write_text(page_of(as_parts(story)), encoding="utf-8")
    return path.as_uri()


class Teller:
    """A little server of a live page: it sends on what it is told to, to everybody who listens."""

    def __init__(self, story):
        self.story, self.sent, self.streams = story, [], 0
        self.news = threading.Condition()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        self.open = True

    def send(self, parts, event=None):
        with self.news:
            self.sent.append((event, json.dumps(parts)))
            self.news.notify_all()

    def hang_up(self):
        """End all streams; whoever listens finds the line dead."""
        with self.news:
            self.open = False
            self.news.notify_all()

    def close(self):
        self.hang_up()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _handler(teller):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                if self.path != "/events":
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Security-Policy", policy(live=True))
                    self.end_headers()
                    self.wfile.write(page_of(as_parts(teller.story), "events").encode())
                    return
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b"retry: 100\n\n")
                teller.streams += 1
                told = len(teller.sent) if teller.streams == 1 else 0
                with teller.news, contextlib.suppress(ConnectionError):
                    while teller.open:
                        for event, data in teller.sent[told:]:
                            name = f"event: {event}\n" if event else ""
                            self.wfile.write(f"{name}data: {data}\n\n".encode())
                        self.wfile.flush()
                        told = len(teller.sent)
                        teller.news.wait(5)

            def log_message(self, *_):
                pass

        return Handler


class Watched:
    """A browser's page, and everything it complained about or asked for."""

    def __init__(self, context):
        self.page = context.new_page()
        self.complaints, self.requests, self.failed, self.dialogs = [], [], [], []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.failed.append(request.url))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dialog)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def text(self, selector):
        return self.page.locator(selector).first.text_content()

    def eventually(self, holds, seconds=10):
        """Wait until something holds: browsers tell of a change when they come to it."""
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, "waited in vain"
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
        watched = Watched(context)
        watched.page.set_default_timeout(10_000)
        watched.page.goto(address)
        return watched

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
    """Open the report of a story; in the end it must have run without a word and asked for nothing."""
    shown = []

    def open_report(story, **options):
        watched = chromium.open(written(tmp_path, story), **options)
        shown.append(watched)
        return watched

    yield open_report
    for watched in shown:
        assert watched.complaints == []
        assert watched.dialogs == watched.failed == []
        assert [address[:5] for address in watched.requests] == ["file:"]
        watched.page.context.close()


@pytest.fixture
def live(chromium):
    """Open a live page of a story; returns the teller of its news and the page."""
    tellers = []

    def open_live(story, **options):
        tellers.append(Teller(story))
        watched = chromium.open(tellers[-1].address, **options)
        tellers.append(watched)
        watched.eventually(lambda: tellers[-2].streams)
        return tellers[-2], watched

    yield open_live
    teller, watched = tellers
    watched.page.context.close()
    teller.close()


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
READ = """([selector, wanted, near]) => {
    const canvas = document.querySelector(selector);
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
        const close = wanted.every((channel, place) => Math.abs(data[at + place] - channel) < near);
        if (close && data[at + 3] === 255) count += 1;
    }
    return [count, new Set(new Uint32Array(data.buffer)).size];
}"""


def pixels(watched, chart, wanted, near=12):
    """How many pixels of a chart's canvas are of about a colour."""
    return watched.page.evaluate(READ, [f"#{chart}-chart .chart canvas", wanted, near])[0]


def shades(watched, chart):
    """How many different colours a chart's canvas has."""
    return watched.page.evaluate(READ, [f"#{chart}-chart .chart canvas", [], 0])[1]


def cell(watched, story, at, slot, within=0.5):
    """Where in the heat map the weight of a slot in a stretch is."""
    rows = column(story, "rows")
    box = watched.page.locator("#weights-chart .u-over").bounding_box()
    across = (sum(rows[:at]) + rows[at] / 2) / sum(rows)
    down = (slot + within) / len(story["run"]["slots"])
    return {"x": across * box["width"], "y": down * box["height"]}
