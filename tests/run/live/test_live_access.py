"""Who may read a live page, and what a request can do."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelbank.run.live.page import LivePage
from kernelbank.run.live.parts import Limits
from support.live_viewers import connect, host_and_port, request, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")

SECRET = "the rows of this run"


@pytest.fixture(scope="module")
def page() -> Iterator[LivePage]:
    with LivePage(limits=Limits(poll_interval=0.02)) as page:
        page.publish({"run": json.dumps({"title": SECRET}), "status": '{"rows": 1}'})
        wait_until(lambda: SECRET.encode() in request(page.address)[2])
        yield page


def token_of(page: LivePage) -> str:
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
    for host in [*bad, "[::2]", "", "[", "127.0.0.1@evil"]:
        status, _, body = request(page.address, Host=host)
        assert status == 403, host
        assert SECRET.encode() not in body
    with closing(connect(page.address)) as old:  # no Host header at all
        old.sendall(f"GET /{token_of(page)}/ HTTP/1.0\r\n\r\n".encode())
        assert old.makefile("rb").readline().split()[1] == b"403"


def test_icon_request_without_token_gets_an_empty_response(page):
    assert request(page.address, "/favicon.ico")[::2] == (204, b"")


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
    assert len(files) >= 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
