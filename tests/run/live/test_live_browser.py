"""The live page of a real run, in a browser."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from support import browser
from support.live_command import LiveCommand

TIMEOUT = 180_000
"""Milliseconds: the very first run compiles its loops."""


chromium = browser.chromium


def wait_for_rows(shown, count):
    shown.page.locator(f'#tile-rows data[value="{count}"]').wait_for(timeout=TIMEOUT)


def wait_for_state(shown, text):
    exactly = re.compile(f"^{re.escape(text)}$")
    shown.page.locator("#state-text").filter(has_text=exactly).wait_for(timeout=TIMEOUT)


@pytest.mark.slow
def test_page_grows_with_the_run_and_survives_a_reload(chromium):
    with LiveCommand("--quiet") as command:
        shown = chromium.open(command.address)
        wait_for_state(shown, "running")
        command.send(0, 70)
        wait_for_rows(shown, 70)
        before = shown.page.locator("#error canvas").first.screenshot()
        command.send(70, 600)
        wait_for_rows(shown, 600)
        assert shown.page.locator("#error canvas").first.screenshot() != before
        snapshots = shown.page.locator("#curves-slider").get_attribute("max")
        shown.page.reload()
        wait_for_rows(shown, 600)
        assert shown.page.locator("#curves-slider").get_attribute("max") == snapshots
        command.send(600, 1100)
        wait_for_rows(shown, 1100)
        assert command.finish() == 0
        wait_for_state(shown, "ended")
    assert shown.errors == []
    assert shown.dialogs == []
    url = urlsplit(command.address)
    assert {urlsplit(asked).netloc for asked in shown.requests} == {url.netloc}


@pytest.mark.slow
def test_page_with_a_wrong_token_is_refused(chromium):
    with LiveCommand("--quiet") as command:
        command.send(0, 70)
        shown = chromium.open("about:blank")
        url = urlsplit(command.address)
        for path in ("/", "/guess/", url.path[:-2] + "/", url.path.lower() + "x/"):
            response = shown.page.goto(f"http://{url.netloc}{path}")
            assert response.status == 403
            assert "y from" not in shown.page.content()


@pytest.mark.slow
def test_page_with_fifty_stuck_viewers_follows_the_run_to_its_end(chromium):
    with LiveCommand("--quiet") as command:
        url = urlsplit(command.address)
        asked = f"GET {url.path}events HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
        stuck = [socket.create_connection((url.hostname, url.port)) for _ in range(50)]
        try:
            for one in stuck:
                one.sendall(asked)
            shown = chromium.open(command.address)
            for first in range(0, 4000, 1000):
                command.send(first, first + 1000)
                wait_for_rows(shown, first + 1000)
            assert command.finish() == 0
            wait_for_state(shown, "ended")
        finally:
            for one in stuck:
                one.close()
    assert shown.errors == []


@pytest.mark.slow
def test_page_of_a_killed_run_says_that_the_connection_is_lost(chromium):
    with LiveCommand("--quiet") as command:
        command.send(0, 70)
        shown = chromium.open(command.address)
        wait_for_rows(shown, 70)
        command.process.kill()
        wait_for_state(shown, "connection lost, trying again")
        wait_for_rows(shown, 70)


@pytest.mark.slow
def test_page_of_a_file_with_scripts_in_its_header_runs_nothing(chromium):
    """From the first line of a file to the page."""
    hostile = "</script><script>window.owned=1</script>", "<img src=x onerror=window.owned=1>"
    with LiveCommand("--quiet", header=f'"{hostile[0]}","{hostile[1]}",y') as command:
        command.send(0, 200)
        shown = chromium.open(command.address)
        wait_for_rows(shown, 200)
        names = shown.page.locator("#curves option").all_text_contents()
        assert names == list(hostile)
        assert shown.page.evaluate("window.owned") is None
        assert command.finish() == 0
