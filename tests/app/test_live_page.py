"""The live page of a real run, in a browser."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from support import browser as rig
from support.live_run import Command

PATIENCE = 180_000
"""Milliseconds: the very first run compiles its loops."""


@pytest.fixture(scope="module")
def chromium():
    rig.needs_chromium()
    chromium = rig.Browser()
    yield chromium
    chromium.close()


def rows_shown(watched, count):
    """Wait until the page tells of so many rows."""
    watched.page.locator(f'#tile-rows data[value="{count}"]').wait_for(timeout=PATIENCE)


def status_shown(watched, words):
    exactly = re.compile(f"^{re.escape(words)}$")
    watched.page.locator("#status-words").filter(has_text=exactly).wait_for(timeout=PATIENCE)


@pytest.mark.slow
def test_the_page_grows_with_the_run_and_survives_a_reload(chromium):
    with Command("--quiet") as command:
        watched = chromium.open(command.address)
        status_shown(watched, "running")
        command.send(0, 70)
        rows_shown(watched, 70)
        before = watched.page.locator("#error canvas").first.screenshot()
        command.send(70, 600)
        rows_shown(watched, 600)
        assert watched.page.locator("#error canvas").first.screenshot() != before
        snapshots = watched.page.locator("#function input[type=range]").get_attribute("max")
        watched.page.reload()
        rows_shown(watched, 600)
        assert watched.page.locator("#function input[type=range]").get_attribute("max") == snapshots
        command.send(600, 1100)
        rows_shown(watched, 1100)
        assert command.finish() == 0
        status_shown(watched, "ended")
    assert watched.complaints == []
    assert watched.dialogs == []
    place = urlsplit(command.address)
    assert {urlsplit(asked).netloc for asked in watched.requests} == {place.netloc}


@pytest.mark.slow
def test_a_wrong_token_is_refused(chromium):
    with Command("--quiet") as command:
        command.send(0, 70)
        watched = chromium.open("about:blank")
        place = urlsplit(command.address)
        for path in ("/", "/guess/", place.path[:-2] + "/", place.path.lower() + "x/"):
            answer = watched.page.goto(f"http://{place.netloc}{path}")
            assert answer.status == 403
            assert "y from" not in watched.page.content()


@pytest.mark.slow
def test_fifty_stuck_viewers_do_not_matter(chromium):
    """They ask for everything that happens and never read it; others see the run to its end."""
    with Command("--quiet") as command:
        place = urlsplit(command.address)
        asked = f"GET {place.path}events HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
        stuck = [socket.create_connection((place.hostname, place.port)) for _ in range(50)]
        try:
            for one in stuck:
                one.sendall(asked)
            watched = chromium.open(command.address)
            for first in range(0, 4000, 1000):
                command.send(first, first + 1000)
                rows_shown(watched, first + 1000)
            assert command.finish() == 0
            status_shown(watched, "ended")
        finally:
            for one in stuck:
                one.close()
    assert watched.complaints == []


@pytest.mark.slow
def test_a_lost_connection_is_said(chromium):
    with Command("--quiet") as command:
        command.send(0, 70)
        watched = chromium.open(command.address)
        rows_shown(watched, 70)
        command.process.kill()
        status_shown(watched, "connection lost, trying again")
        rows_shown(watched, 70)


@pytest.mark.slow
def test_a_hostile_header_runs_nothing(chromium, tmp_path):
    """From the first line of a file to the page."""
    hostile = "</script><script>window.owned=1</script>", "<img src=x onerror=window.owned=1>"
    with Command("--quiet", header=f'"{hostile[0]}","{hostile[1]}",y') as command:
        command.send(0, 200)
        watched = chromium.open(command.address)
        rows_shown(watched, 200)
        names = watched.page.locator("#function option").all_text_contents()
        assert names == list(hostile)
        assert watched.page.evaluate("window.owned") is None
        assert command.finish() == 0
