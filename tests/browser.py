"""A browser for the tests of pages, and made-up stories for the pages to tell."""

import contextlib
import http.server
import json
import os
import shutil
import threading
import time

import numpy as np
import pytest

from kernelbank.report.page import page as page_of
from kernelbank.report.page import policy

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


def rounded(values, digits=6):
    """Numbers as the story has them: short, and null where they are not finite."""
    return [
        None if not np.isfinite(value) else float(f"{value:.{digits}g}")
        for value in np.asarray(values, dtype=float)
    ]


def made_up_points(draw, points, slots, task, stride):
    """All points of a run with a warm-up, drifting weights and a best slot, as columns."""
    rows = np.full(points, stride)
    if points > 1:
        rows[-1] = max(1, stride // 3)
    answered = rows.copy()
    answered[:1] = max(1, rows[0] - 1)
    along = np.linspace(0, 1, points) if points > 1 else np.zeros(1)
    warm = 1 + 25 * np.exp(-along * 90)
    shift = np.where((along > 0.55) & (along < 0.6), 2.2, 1.0)
    skill = 1 + 2.2 * draw.random(slots) ** 0.7
    skill[slots // 3] = 0.93
    wobble = np.exp(0.12 * draw.normal(size=(points, slots)))
    noise = np.exp(0.15 * draw.normal(size=points))
    level = 0.16 if task == "regression" else 0.09
    loss = level * answered * warm * shift * noise * 0.9
    losses = level * answered[:, None] * (warm * shift * noise)[:, None] * skill * wobble
    persistence = 3.1 * level * answered * np.exp(0.2 * draw.normal(size=points))
    if task == "classification":
        loss, persistence = np.minimum(loss, answered), np.minimum(persistence, answered)
        losses = np.minimum(losses, answered[:, None])
    centre = slots * (0.33 + 0.3 * (along > 0.57) + 0.04 * np.sin(9 * along))
    weights = np.exp(-(((np.arange(slots) - centre[:, None]) / (0.06 * slots + 0.6)) ** 2))
    weights = weights * (0.6 + 0.8 * draw.random((points, slots))) * (draw.random(slots) > 0.35)
    weights += 0.4 * np.exp(-60 * along)[:, None] + 1e-9
    weights /= weights.sum(axis=1, keepdims=True)
    target = 12 + 5 * np.sin(14 * along) + 3 * along
    right = answered * np.clip(0.9 + 0.02 * draw.normal(size=points) - 0.25 * (shift > 1), 0, 1)
    many = np.round(weights * 10000).astype(int)
    columns = {
        "rows": rows.tolist(),
        "answered": answered.tolist(),
        "loss": rounded(np.round(loss) if task == "classification" else loss),
        "persistence": rounded(np.round(persistence) if task == "classification" else persistence),
        "inside": np.round(right).astype(int).tolist(),
        "width": rounded(answered * (0.88 if task == "classification" else 1.3 * np.sqrt(warm))),
        "worst": rounded(
            np.ones(points) if task == "classification" else 9 * level * warm * shift * noise
        ),
        "target_low": rounded(target - 2 - draw.random(points)),
        "target_high": rounded(target + 2 + draw.random(points)),
        "answer_low": rounded(target - 1.6 - 0.5 * draw.random(points)),
        "answer_high": rounded(target + 1.6 + 0.5 * draw.random(points) + 0.1 * warm),
        "weights": many.tolist(),
        "weights_high": np.minimum(10000, many * 3 // 2 + 3).tolist(),
        "losses": [rounded(row, 5) for row in losses],
    }
    if task == "classification":
        for name in ("target_low", "target_high", "answer_low", "answer_high"):
            columns[name] = [None] * points
    return columns


def made_up_line(name, share, draw, task):
    """The function along one input after a share of the run, with its interval."""
    at = np.linspace(-2, 2.5, 24)
    known = 1 - np.exp(-5 * share)
    middle = (
        12
        + 3 * known * np.sin((2.1 + name) * at + 1.5 * share)
        + 0.4 * draw.normal(size=24) * (1 - known)
    )
    half = 1.2 + 4 * np.exp(-6 * share) + 0.3 * at**2 * 0.5
    if task == "classification":
        middle = 1 / (1 + np.exp(-(middle - 12)))
        half = np.zeros(24)
    return {
        "at": rounded(at),
        "middle": rounded(middle),
        "low": rounded(middle - half),
        "high": rounded(middle + half),
    }


KINDS = (
    "RandomFeatureRLS",
    "KRLSTracker",
    "Norma",
    "line",
    "tree on what RandomFeatureRLS leaves, rank",
)


def made_up_story(points=200, slots=39, task="regression", stride=None, seed=0, columns=4):
    """All parts of a run that never was, as Python values by name."""
    draw = np.random.default_rng(seed)
    stride = stride or max(2, 100_000 // max(1, points))
    story = {}
    rows = 0
    if points:
        told = made_up_points(draw, points, slots, task, stride)
        rows = sum(told["rows"])
        for piece in range(0, points, 32):
            story[f"points/{piece // 32}"] = {
                "stride": stride,
                **{name: column[piece : piece + 32] for name, column in told.items()},
            }
    classes = ["spam", "ham"] if task == "classification" else []
    names = [
        f"{KINDS[slot % 5]} {slot // 5 + 1}, width {2.0 ** (slot % 9 - 4):g}"
        for slot in range(slots)
    ]
    story["run"] = {
        "title": "sensors.csv: load",
        "task": task,
        "target": "load",
        "status": "ended",
        "facts": [
            [
                "Data",
                [["source", "sensors.csv"], ["target", "load"], ["inputs", "wind, sun, hour, day"]],
            ],
            [
                "Settings",
                [
                    ["bank", "AutoBank()"],
                    ["slots", str(slots)],
                    ["coverage", "0.9"],
                    ["checkpoint every", "60 s"],
                ],
            ],
            [
                "Versions",
                [
                    ["kernelbank", "0.1.0"],
                    ["numpy", "2.1.3"],
                    ["numba", "0.61.0"],
                    ["Python", "3.12.3"],
                ],
            ],
        ],
        "slots": names,
        "coverage": 0.9,
        "weights_of": "",
        "loss": "wrong answers" if task == "classification" else "squared error",
        "classes": classes,
        "columns": ["wind", "sun", "hour of the day", "day"][:columns],
    }
    story["now"] = {
        "rows": rows,
        "stride": stride,
        "points": points,
        "bad": 3 if rows else 0,
        "without_target": 17 if rows else 0,
        "seconds": 21.4 if rows else 0.0,
        "speed": 4672.9 if rows else None,
        "time": [
            ["reading", 1.31],
            ["the bank", 17.02],
            ["snapshots", 0.44],
            ["writing", 1.9],
            ["checkpoints", 0.35],
        ]
        if rows
        else [],
        "started": "2026-01-05T09:14:03+00:00",
        "starts": 2,
        "updated": "2026-01-05T09:14:25+00:00",
    }
    story["changes"] = (
        [
            [int(rows * 0.55), "error grew", ""],
            [int(rows * 0.553), "target level", ""],
            [int(rows * 0.57), "weights", ""],
            [int(rows * 0.61), "error fell", ""],
            [int(rows * 0.8), "input level", "wind"],
        ]
        if points > 1
        else []
    )
    story["bad"] = {
        "count": 3 if rows else 0,
        "examples": [
            {
                "row": 812,
                "where": "line 813",
                "column": "wind",
                "value": "n/a?",
                "reason": "is not a number",
            },
            {
                "row": 4033,
                "where": "line 4034",
                "column": None,
                "value": None,
                "reason": "has 3 fields instead of 5",
            },
            {
                "row": 90210,
                "where": "line 90211",
                "column": "load",
                "value": "1e999",
                "reason": "is not finite",
            },
        ]
        if rows
        else [],
    }
    if points and columns:
        shares = np.linspace(0.01, 1, min(40, points))
        for share in shares[:-1]:
            row = int(share * rows)
            story[f"snapshot/{row}"] = {
                "row": row,
                "lines": [made_up_line(name, share, draw, task) for name in range(columns)],
            }
        story["snapshot/now"] = {
            "row": rows,
            "lines": [made_up_line(name, 1.0, draw, task) for name in range(columns)],
        }
    return story


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
