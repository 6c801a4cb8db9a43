"""The live page's server: what it shows to whom, and how it begins and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import kernelbank
from kernelbank.app.live.live import Live
from kernelbank.app.live.protocol import Limits
from kernelbank.errors import InvalidArgument, KernelBankWarning, RunRefused
from support.live_rig import Viewer, alive, ask, files, place, raw, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")

SECRET = "the rows of this run"
HOME = str(Path(kernelbank.__file__).parents[1])


@pytest.fixture(scope="module")
def shared() -> Iterator[Live]:
    """One server for tests that only ask."""
    with Live(limits=Limits(pace=0.0)) as live:
        live.publish({"run": json.dumps({"title": SECRET}), "now": '{"rows": 1}'})
        until(lambda: SECRET.encode() in ask(live.address)[2])
        yield live


@pytest.fixture
def live() -> Iterator[Live]:
    with Live(limits=Limits(pace=0.0)) as one:
        yield one


def pid(live: Live) -> int:
    return live._process.pid


# --- what is shown, and to whom -----------------------------------------------------------------


def test_the_page_and_its_headers(shared):
    for method in ("GET", "HEAD"):
        status, headers, body = ask(shared.address, method=method)
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


def test_only_the_token_opens(shared):
    token = shared.address.split("/")[-2]
    assert len(token) == 32
    wrong = [
        "/",
        "/events",
        "//",
        f"/{token}",
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
        "/\x7f/".replace("\x7f", "%FF%00"),
        "/openapi.json",
    ]
    for path in wrong:
        status, headers, body = ask(shared.address, path)
        assert status == 403, path
        assert headers["content-type"].startswith("text/plain"), path
        assert len(body) < 100, path
        assert token.encode() not in body, path
        assert b"rows" not in body, path


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_nothing_can_be_changed(shared, method):
    for path in (None, "/", "/events", shared.address.split("/", 3)[3] + "events"):
        target = None if path is None else "/" + path.lstrip("/")
        status, headers, body = ask(shared.address, target, method)
        assert status == 405
        assert headers["allow"] == "GET, HEAD"
        assert SECRET.encode() not in body


def test_a_request_with_a_body_is_refused_unread(shared):
    status, headers, _ = ask(shared.address, body=b"x" * 100)
    assert (status, headers["connection"]) == (400, "close")
    assert ask(shared.address, body=iter([b"x"]), Transfer_Encoding="chunked")[0] == 400


def test_only_names_of_this_machine(shared):
    port = place(shared.address)[1]
    good = ["127.0.0.1", f"127.0.0.1:{port}", "localhost", "LocalHost:1", "[::1]:80"]
    bad = [
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "[::2]",
    ]
    for host in good:
        assert ask(shared.address, Host=host)[0] == 200, host
    for host in [*bad, "", "[", "127.0.0.1@evil"]:
        status, _, body = ask(shared.address, Host=host)
        assert status == 403, host
        assert SECRET.encode() not in body
    with closing(raw(shared.address)) as old:  # no name at all
        old.sendall(f"GET /{shared.address.split('/')[-2]}/ HTTP/1.0\r\n\r\n".encode())
        assert old.makefile("rb").readline().split()[1] == b"403"


def test_a_browser_that_wants_an_icon_gets_silence(shared):
    assert ask(shared.address, "/favicon.ico")[::2] == (204, b"")


def test_only_loopback_is_listened_on(shared):
    port = place(shared.address)[1]
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and local.endswith(f":{port:04X}"):
                found.append(local.split(":")[0])
    assert found == ["0100007F"]


def test_the_token_is_not_for_other_users(shared):
    token = shared.address.split("/")[-2].encode()
    for name in ("cmdline", "environ"):
        said = Path(f"/proc/{pid(shared)}/{name}").read_bytes()
        assert said
        assert token not in said
    assert os.getpriority(os.PRIO_PROCESS, pid(shared)) > os.getpriority(os.PRIO_PROCESS, 0)


# --- events ---------------------------------------------------------------------------------------


def test_events_tell_what_changed_and_what_has_gone(live):
    live.publish({"a": "1", "b": '{"c":\r\n [2]}', "d/7": "7"})
    with closing(Viewer(live.address)) as viewer:
        assert viewer.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert viewer.answer.headers["cache-control"] == "no-store"
        assert viewer.follow(lambda parts: "a" in parts) == {"a": 1, "b": {"c": [2]}, "d/7": 7}
        live.publish({"a": "1", "b": "3"})
        viewer.follow(lambda parts: parts["b"] == 3)
        assert viewer.messages[-1] == {"b": 3, "d/7": None}
        live.publish({"a": "1", "b": "3", "d/7": "7"})
        viewer.follow(lambda parts: "d/7" in parts)
        assert viewer.messages[-1] == {"d/7": 7}
        with closing(Viewer(live.address)) as late:  # nothing that has gone, everything else
            assert late.follow(bool) == viewer.parts
        for after, header in (("after=1", {}), ("after=1", {"Last_Event_ID": "2"})):
            with closing(Viewer(live.address, after, **header)) as back:
                back.step()
                assert set(back.messages[0]) == ({"d/7"} if header else {"b", "d/7"})
        for nonsense in ("after=-1", "after=x", "after=99999", "after=", "", "after=" + "9" * 4000):
            with closing(Viewer(live.address, nonsense, Last_Event_ID="\u00b2")) as odd:
                assert odd.follow(bool) == viewer.parts


def test_a_reload_shows_the_newest(live):
    live.publish({"a": "1"})
    with closing(Viewer(live.address)) as viewer:
        viewer.follow(bool)
        live.publish({"a": "2"})
        viewer.follow(lambda parts: parts["a"] == 2)
        assert until(lambda: b'"a":2' in ask(live.address)[2])


def test_an_empty_story_is_a_page(live):
    assert ask(live.address)[0] == 200


def test_a_head_of_events_ends(live):
    status, headers, body = ask(live.address + "events", method="HEAD")
    assert (status, headers.get_content_type(), body) == (200, "text/event-stream", b"")


def test_odd_texts_do_not_break_the_line(live):
    odd = {"a": json.dumps("</script>\n\u2028\u00e9"), "b": '"\ud800"', 'c"\n': "3"}
    live.publish(odd)
    with closing(Viewer(live.address)) as viewer:
        assert viewer.follow(bool) == {"a": "</script>\n\u2028\u00e9", "b": "?", 'c"\n': 3}


def test_a_comment_when_nothing_happens():
    with Live(limits=Limits(heartbeat=0.05)) as live, closing(Viewer(live.address)) as viewer:
        viewer.step()
        viewer.step()
        assert viewer.comments == 2


def test_many_viewers_and_reloads(live):
    texts = {f"points/{k}": json.dumps(["x" * 20_000, k]) for k in range(15)}
    live.publish(texts)
    viewers = [Viewer(live.address) for _ in range(20)]
    for row in range(10):
        live.publish({**texts, "now": str(row)})
        assert until(lambda row=row: b'"now":%d' % row in ask(live.address)[2])
    for viewer in viewers:
        viewer.follow(lambda parts: parts.get("now") == 9)
        assert viewer.parts == {**{name: json.loads(t) for name, t in texts.items()}, "now": 9}
        viewer.close()


def test_news_are_handed_on_at_a_pace():
    with Live(limits=Limits(pace=0.3)) as live, closing(Viewer(live.address)) as viewer:
        for row in range(2000):
            live.publish({"now": str(row)})
        viewer.follow(lambda parts: parts.get("now") == 1999)
        assert len(viewer.messages) <= 3


# --- beginnings and ends ------------------------------------------------------------------------


def test_the_end_is_told_after_the_last_news():
    before = files(), threading.active_count()
    live = Live()
    with closing(Viewer(live.address)) as viewer, closing(Viewer(live.address)) as idle:
        live.publish({"now": "1", "big": json.dumps("x" * 2_000_000)})
        reader = threading.Thread(target=lambda: viewer.follow(lambda _: viewer.ended))
        reader.start()
        idle_reader = threading.Thread(target=lambda: idle.follow(lambda _: idle.ended))
        idle_reader.start()
        live.end()
        for thread in (reader, idle_reader):
            thread.join()
        assert viewer.ended
        assert viewer.parts["now"] == idle.parts["now"] == 1
        assert not viewer.step()
    assert live._process.returncode == 0
    assert not alive(pid(live))
    live.publish({"now": "2"})
    live.end()
    live.close()
    assert (files(), threading.active_count()) == before


def test_the_end_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr("kernelbank.app.live.live._END", 0.5)
    live = Live(limits=Limits(pace=0.0))
    os.kill(pid(live), signal.SIGSTOP)
    live.publish({"big": json.dumps("x" * 300_000)})
    live.end()
    assert not alive(pid(live))


def test_a_dead_server_is_said_once_and_the_run_goes_on(live):
    live.publish({"now": "1"})
    os.kill(pid(live), signal.SIGKILL)
    assert until(lambda: live._process.poll() is not None)
    with pytest.warns(KernelBankWarning, match="live page has gone"):
        live.publish({"now": "2"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in range(100):
            live.publish({"now": str(row), "big": "x" * 1_000_000})
        live.end()


def test_a_dead_server_said_as_an_error_still_leaves_nothing():
    before = files()
    live = Live()
    os.kill(pid(live), signal.SIGKILL)
    assert until(lambda: live._process.poll() is not None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KernelBankWarning):
            live.end()
    assert files() == before


def test_a_server_that_dies_in_the_middle_of_a_message(live):
    os.kill(pid(live), signal.SIGSTOP)
    live.publish({"big": json.dumps("x" * 1_000_000)})
    os.kill(pid(live), signal.SIGKILL)
    assert until(lambda: live._broken)
    with pytest.warns(KernelBankWarning, match="live page has gone"):
        live.end()


def test_interrupts_are_for_the_run(live):
    assert os.getsid(pid(live)) != os.getsid(0)
    os.kill(pid(live), signal.SIGINT)
    live.publish({"now": "1"})
    with closing(Viewer(live.address)) as viewer:
        assert viewer.follow(bool) == {"now": 1}


def test_a_port_that_is_taken():
    before = files()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunRefused, match=f"port {port} of 127.0.0.1 is taken.*another port"):
            Live(port=port)
    with Live(port=port) as live:
        assert place(live.address) == ("127.0.0.1", port)
    assert files() == before


def test_other_addresses():
    with pytest.raises(RunRefused, match=r"cannot listen on port 0 of 192\.0\.2\.1: .* Give an"):
        Live("192.0.2.1")
    with pytest.raises(RunRefused, match="cannot listen on port 0 of nowhere"):
        Live("nowhere.invalid")
    for port in (-1, 65_536, 1.5, "80", True):
        with pytest.raises(InvalidArgument, match="'port' of Live must be a whole number"):
            Live(port=port)
    with pytest.raises(InvalidArgument, match="'host' of Live"):
        Live("")
    with Live("0.0.0.0") as live:
        assert "0.0.0.0" not in live.address
        here = f"http://127.0.0.1:{live.port}{urlsplit(live.address).path}"
        assert ask(here)[0] == ask(here, Host="some.name")[0] == 200
        assert ask(here, "/")[0] == 403


def test_the_newer_kind_of_address():
    try:
        with closing(socket.create_server(("::1", 0), family=socket.AF_INET6)):
            pass
    except OSError:
        pytest.skip("there is no ::1")
    with Live("::1") as live:
        assert live.address.startswith(f"http://[::1]:{live.port}/")
        assert ask(live.address)[0] == 200
        assert ask(live.address, Host="evil.example")[0] == 403


@pytest.mark.parametrize("name", ["starlette", "uvicorn"])
def test_without_the_extra(monkeypatch, name):
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == name else find(n))
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'kernelbank\[live\]'") as caught:
        Live()
    assert caught.value.name is None


def test_a_server_that_cannot_start(monkeypatch, tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ImportError('half of it is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RunRefused, match=r"half of it is missing.*kernelbank\[live\]"):
        Live()
    monkeypatch.setattr("kernelbank.app.live.live._BOOT", "raise SystemExit(3)")
    with pytest.raises(RunRefused, match="cannot start: it ended"):
        Live()


# --- the run ends without a word ----------------------------------------------------------------

RUN = """
import os, sys, time
{start}
from kernelbank.app.live.live import Live
live = Live()
live.publish({{"now": "1"}})
{then}
print(live._process.pid, live.address, flush=True)
{end}
"""
ENDS = {
    "killed": ("", "time.sleep(60)"),
    "killed, with a child that holds its files": (
        "if os.fork() == 0:\n    os.close(1)\n    time.sleep(15)\n    os._exit(0)",
        "time.sleep(60)",
    ),
    "an error": ("", "raise RuntimeError"),
    "at its end": ("", ""),
    "at once": ("", "os._exit(0)"),
}


def parent(folder: Path, start: str, then: str, end: str, *options: str, **more: str):
    script = folder / "run.py"
    script.write_text(RUN.format(start=start, then=then, end=end))
    return subprocess.Popen(
        [sys.executable, *options, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, **more},
        text=True,
    )


@pytest.mark.parametrize("how", ENDS)
def test_the_server_ends_with_the_run(tmp_path, how):
    with parent(tmp_path, "", *ENDS[how], PYTHONPATH=HOME) as run:
        assert run.stdout is not None
        number, address = run.stdout.readline().split()
        if how.startswith("killed"):
            assert ask(address)[0] == 200
            run.kill()
    assert until(lambda: not alive(int(number)), 5.0)


def test_the_same_kernelbank_is_found(tmp_path):
    """Imported by a hook, from nowhere on the path, while another one is on it."""
    (tmp_path / "kernelbank").mkdir()
    (tmp_path / "kernelbank" / "__init__.py").write_text("raise ImportError('not this one')")
    start = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("kernelbank", {str(Path(HOME, "kernelbank", "__init__.py"))!r})
sys.modules["kernelbank"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["kernelbank"])
"""
    end = "from urllib.request import urlopen\nprint(urlopen(live.address).status); live.end()"
    with parent(tmp_path, start, "", end) as run:
        assert run.communicate()[0].splitlines()[-1] == "200"
