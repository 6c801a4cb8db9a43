"""Who may see the live page, the events that follow it, and `kernelbank run --live`."""

import json
import os
import socket
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from kernelbank.run.live.page import LivePage
from kernelbank.run.live.server import Limits
from support.live_viewers import (
    LiveCommand,
    Viewer,
    X,
    Y,
    connect,
    host_and_port,
    request,
    wait_until,
)
from support.run_command import refusal, succeed, write_csv

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")

SECRET = "the rows of this run"


@pytest.fixture(scope="module")
def page():
    with LivePage(limits=Limits(poll_interval=0.02)) as page:
        page.publish({"run": json.dumps({"title": SECRET}), "status": '{"rows": 1}'})
        wait_until(lambda: SECRET.encode() in request(page.address)[2])
        yield page


def token_of(page):
    return page.address.split("/")[-2]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_page_with_token_is_served_with_protective_headers(page, method):
    status, headers, body = request(page.address, method=method)
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith("; frame-ancestors 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers
    assert (SECRET.encode() in body) == (method == "GET")


def test_path_without_the_exact_token_is_refused_and_reveals_nothing(page):
    token = token_of(page)
    assert len(token) == 32
    wrong = [
        "/",
        "/events",
        "//",
        f"/{token}x",
        f"/{token}x/",
        f"/{token[:-1]}/",
        f"/{token[:-1]}/events",
        f"/{token.swapcase()}/",
        f"/x/{token}/",
        f"/{token}/docs",
        f"/{token}/events/",
        f"/{token}/../{token}/",
        f"/?{token}",
        "/%F0%9F%98%80/events",
        "/%FF%00/",
        "/openapi.json",
    ]
    for path in wrong:
        status, headers, body = request(page.address, path)
        assert status == 403, path
        assert headers["content-type"].startswith("text/plain"), path
        assert len(body) < 100, path
        assert token.encode() not in body, path
        assert b"rows" not in body, path


def test_address_without_its_last_slash_leads_to_the_page(page):
    status, headers, body = request(page.address, f"/{token_of(page)}")
    assert (status, body) == (308, b"")
    assert headers["location"] == f"{token_of(page)}/"  # relative: also behind a tunnel
    assert headers["referrer-policy"] == "no-referrer"
    with urllib.request.urlopen(page.address.rstrip("/")) as found:
        assert found.url == page.address
        assert SECRET.encode() in found.read()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_method_that_could_write_is_refused(page, method):
    for path in (None, "/", "/events", f"/{token_of(page)}/events"):
        status, headers, body = request(page.address, path, method)
        assert status == 405
        assert headers["allow"] == "GET, HEAD"
        assert SECRET.encode() not in body


def test_request_with_a_body_is_refused_unread(page):
    status, headers, _ = request(page.address, body=b"x" * 100)
    assert (status, headers["connection"]) == (400, "close")
    assert request(page.address, body=iter([b"x"]), Transfer_Encoding="chunked")[0] == 400


def test_host_header_that_does_not_name_this_machine_is_refused(page):
    port = host_and_port(page.address)[1]
    for host in ["127.0.0.1", f"127.0.0.1:{port}", "localhost", "LocalHost:1", "[::1]:80"]:
        assert request(page.address, Host=host)[0] == 200, host
    bad = ["evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil"]
    bad += ["[::1]evil.com", "[::1]:80.evil.com", "127.0.0.1:80evil", "[[::1]]"]
    for host in [*bad, "[::2]", "", "[", "127.0.0.1@evil"]:
        status, _, body = request(page.address, Host=host)
        assert status == 403, host
        assert SECRET.encode() not in body
    with closing(connect(page.address)) as old:  # no Host header at all
        old.sendall(f"GET /{token_of(page)}/ HTTP/1.0\r\n\r\n".encode())
        assert old.makefile("rb").readline().split()[1] == b"403"


def test_server_by_default_listens_on_loopback_only(page):
    port = host_and_port(page.address)[1]
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and local.endswith(f":{port:04X}"):
                found.append(local.split(":")[0])
    assert found == ["0100007F"]


def test_token_is_neither_in_arguments_nor_environment_nor_folder(page):
    token, process = token_of(page).encode(), page._process.pid
    for name in ("cmdline", "environ"):
        content = Path(f"/proc/{process}/{name}").read_bytes()
        assert content
        assert token not in content
    assert not [file for file in page._folder.iterdir() if token in file.read_bytes()]


def test_server_has_lower_priority_than_the_run(page):
    server = os.getpriority(os.PRIO_PROCESS, page._process.pid)
    assert server > os.getpriority(os.PRIO_PROCESS, 0)


def test_folder_and_files_can_be_read_by_their_owner_only(page):
    assert page._folder.stat().st_mode & 0o777 == 0o700
    files = list(page._folder.iterdir())
    assert files
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


# --- The events of a live page: what changed since the version that a viewer has ---


@pytest.fixture
def quick_page():
    with LivePage(limits=Limits(poll_interval=0.02)) as quick_page:
        yield quick_page


def test_events_hold_changed_and_removed_parts_only(quick_page):
    quick_page.publish({"a": "1", "b": '{"c":\r\n [2]}', "d/7": "7"})
    with closing(Viewer(quick_page.address)) as viewer:
        assert viewer.response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert viewer.response.headers["cache-control"] == "no-store"
        found = viewer.follow_until(lambda parts: "a" in parts)
        assert found == {"a": 1, "b": {"c": [2]}, "d/7": 7}
        first = viewer.version
        quick_page.publish({"a": "1", "b": "3"})
        viewer.follow_until(lambda parts: parts["b"] == 3)
        assert viewer.messages[-1] == {"b": 3, "d/7": None}
        second = viewer.version
        quick_page.publish({"a": "1", "b": "3", "d/7": "7"})
        viewer.follow_until(lambda parts: "d/7" in parts)
        assert viewer.messages[-1] == {"d/7": 7}
        with closing(
            Viewer(quick_page.address)
        ) as late:  # nothing that was removed, everything else
            assert late.follow_until(bool) == viewer.parts
        for header in ({}, {"Last_Event_ID": str(second)}):
            with closing(Viewer(quick_page.address, f"after={first}", **header)) as back:
                back.read_event()
                assert set(back.messages[0]) == ({"d/7"} if header else {"b", "d/7"})
        for nonsense in ("after=-1", "after=x", "after=99999", "after=", "", "after=" + "9" * 4000):
            with closing(Viewer(quick_page.address, nonsense, Last_Event_ID="\u00b2")) as odd:
                assert odd.follow_until(bool) == viewer.parts


def test_texts_with_line_breaks_and_broken_characters_stay_one_event(quick_page):
    quick_page.publish({"a": json.dumps("</script>\n\u2028\u00e9"), "b": '"\ud800"', 'c"\n': "3"})
    with closing(Viewer(quick_page.address)) as viewer:
        found = viewer.follow_until(bool)
        assert found == {"a": "</script>\n\u2028\u00e9", "b": "?", 'c"\n': 3}


def test_many_viewers_and_reloads_all_get_the_newest_parts(quick_page):
    texts = {f"points/{k}": json.dumps(["x" * 20_000, k]) for k in range(15)}
    quick_page.publish(texts)
    viewers = [Viewer(quick_page.address) for _ in range(20)]
    for row in range(10):
        quick_page.publish({**texts, "status": str(row)})
        assert wait_until(lambda row=row: b'"status":%d' % row in request(quick_page.address)[2])
    for viewer in viewers:
        viewer.follow_until(lambda parts: parts.get("status") == 9)
        assert viewer.parts == {**{name: json.loads(t) for name, t in texts.items()}, "status": 9}
        viewer.close()


# --- `kernelbank run --live`: the page of a running run ---


def is_listening(address):
    url = urlsplit(address)
    with socket.socket() as opened:
        opened.settimeout(5)
        return opened.connect_ex((url.hostname, url.port)) == 0


def test_live_page_shows_the_rows_of_the_run_until_it_ends():
    with LiveCommand("--log-json") as command:
        assert json.loads(command.lines[-1])["event"] == "live"
        assert urlsplit(command.address).hostname == "127.0.0.1"
        command.send(0, 100)
        command.wait_for_rows(100)
        command.send(100, 150)
        command.wait_for_rows(150)
        assert command.finish() == 0
        assert not is_listening(command.address)
    assert json.loads(command.lines[-1])["rows"] == 150


@pytest.mark.slow
def test_live_page_of_a_killed_run_stops_listening():
    with LiveCommand("--quiet") as command:  # the address is printed all the same
        command.send(0, 10)
        command.wait_for_rows(10)
    for _ in range(200):
        if not is_listening(command.address):
            return
        time.sleep(0.05)
    pytest.fail("the server outlives the run")


@pytest.mark.slow
def test_live_page_for_other_machines_prints_a_note():
    with LiveCommand("--live-host", "0.0.0.0") as command:
        command.send(0, 10)
        assert command.finish() == 0
        assert "not encrypted" in "".join(command.lines)


def test_run_with_taken_port_is_refused(tmp_path):
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X[:9], Y[:9]]))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port}" in refusal(source, "--target", "y", "--live", port)


def test_live_before_the_source_does_not_swallow_it(tmp_path):
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X[:9], Y[:9]]))
    assert "Live page: http://" in succeed("--live", source, "--target", "y").err
