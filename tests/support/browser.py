"""A browser for the tests of pages, a small server for a live page, and ways to read a canvas."""

import contextlib
import http.server
import json
import os
import shutil
import threading
import time

import pytest

from kernelbank.run.report.page import content_security_policy, render_page

CHARTS = ("recent", "targets", "error", "loss", "weights", "curves", "coverage", "width")
LIGHT_MODEL, DARK_MODEL = (0x00, 0x72, 0xB2), (0x56, 0xB4, 0xE9)  # the colour of the model

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


def as_parts(report):
    return {name: json.dumps(value) for name, value in report.items()}


def write_page(folder, report, name="report.html"):
    """Write a report to a file; its URL."""
    path = folder / name
    path.write_text(render_page(as_parts(report)), encoding="utf-8")
    return path.as_uri()


class EventServer:
    """A small server of a live page: sends events to everybody who follows them."""

    def __init__(self, report):
        self.report, self.sent, self.streams = report, [], 0
        self.changed = threading.Condition()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        self.open = True

    def send(self, parts, event=None):
        with self.changed:
            self.sent.append((event, json.dumps(parts)))
            self.changed.notify_all()

    def disconnect(self):
        """End all streams."""
        with self.changed:
            self.open = False
            self.changed.notify_all()

    def close(self):
        self.disconnect()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _handler(events):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                if self.path != "/events":
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Security-Policy", content_security_policy(live=True))
                    self.end_headers()
                    self.wfile.write(render_page(as_parts(events.report), "events").encode())
                    return
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b"retry: 100\n\n")
                events.streams += 1
                done = len(events.sent) if events.streams == 1 else 0
                with events.changed, contextlib.suppress(ConnectionError):
                    while events.open:
                        for event, data in events.sent[done:]:
                            name = f"event: {event}\n" if event else ""
                            self.wfile.write(f"{name}data: {data}\n\n".encode())
                        self.wfile.flush()
                        done = len(events.sent)
                        events.changed.wait(5)

            def log_message(self, *_):
                pass

        return Handler


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
        shown = chromium.open(write_page(tmp_path, report), **options)
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
    """Open a live page of a report; returns the server of its events, and the page."""
    opened = []

    def open_live(report, **options):
        server = EventServer(report)
        opened.append(server)
        shown = chromium.open(server.address, **options)
        opened.append(shown)
        shown.wait_until(lambda: server.streams)
        return server, shown

    yield open_live
    server, shown = opened
    shown.page.context.close()
    server.close()


def column(report, name):
    """A column of all points of a report."""
    groups = sorted(
        (int(key[7:]), part) for key, part in report.items() if key.startswith("points/")
    )
    return [value for _, group in groups for value in group[name]]


def tile(shown, name):
    return float(shown.page.locator(f"#tile-{name} data").get_attribute("value"))


def readout(shown, chart):
    return shown.text(f"#{chart}-chart-readout")


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


def heat_position(shown, report, at, slot, within=0.5):
    """The position in the heat map of the weight of a slot at a point."""
    rows = column(report, "rows")
    box = shown.page.locator("#weights-chart .u-over").bounding_box()
    across = (sum(rows[:at]) + rows[at] / 2) / sum(rows)
    down = (slot + within) / len(report["run"]["slots"])
    return {"x": across * box["width"], "y": down * box["height"]}
