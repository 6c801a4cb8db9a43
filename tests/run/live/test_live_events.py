"""The events of a live page: what changed since the version that a viewer has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from kernelbank.run.live.page import LivePage
from kernelbank.run.live.parts import Limits
from support.live_viewers import Viewer, request, wait_until


@pytest.fixture
def page() -> Iterator[LivePage]:
    with LivePage(limits=Limits(poll_interval=0.02)) as page:
        yield page


def test_events_hold_changed_and_removed_parts_only(page):
    page.publish({"a": "1", "b": '{"c":\r\n [2]}', "d/7": "7"})
    with closing(Viewer(page.address)) as viewer:
        assert viewer.response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert viewer.response.headers["cache-control"] == "no-store"
        found = viewer.follow_until(lambda parts: "a" in parts)
        assert found == {"a": 1, "b": {"c": [2]}, "d/7": 7}
        first = viewer.version
        page.publish({"a": "1", "b": "3"})
        viewer.follow_until(lambda parts: parts["b"] == 3)
        assert viewer.messages[-1] == {"b": 3, "d/7": None}
        second = viewer.version
        page.publish({"a": "1", "b": "3", "d/7": "7"})
        viewer.follow_until(lambda parts: "d/7" in parts)
        assert viewer.messages[-1] == {"d/7": 7}
        with closing(Viewer(page.address)) as late:  # nothing that was removed, everything else
            assert late.follow_until(bool) == viewer.parts
        for header in ({}, {"Last_Event_ID": str(second)}):
            with closing(Viewer(page.address, f"after={first}", **header)) as back:
                back.read_event()
                assert set(back.messages[0]) == ({"d/7"} if header else {"b", "d/7"})
        for nonsense in ("after=-1", "after=x", "after=99999", "after=", "", "after=" + "9" * 4000):
            with closing(Viewer(page.address, nonsense, Last_Event_ID="\u00b2")) as odd:
                assert odd.follow_until(bool) == viewer.parts


def test_page_reloaded_after_a_change_shows_the_newest_parts(page):
    page.publish({"a": "1"})
    with closing(Viewer(page.address)) as viewer:
        viewer.follow_until(bool)
        page.publish({"a": "2"})
        viewer.follow_until(lambda parts: parts["a"] == 2)
        assert wait_until(lambda: b'"a":2' in request(page.address)[2])


def test_page_before_the_first_publish_is_served(page):
    assert request(page.address)[0] == 200


def test_texts_with_line_breaks_and_broken_characters_stay_one_event(page):
    page.publish({"a": json.dumps("</script>\n\u2028\u00e9"), "b": '"\ud800"', 'c"\n': "3"})
    with closing(Viewer(page.address)) as viewer:
        found = viewer.follow_until(bool)
        assert found == {"a": "</script>\n\u2028\u00e9", "b": "?", 'c"\n': 3}


def test_many_viewers_and_reloads_all_get_the_newest_parts(page):
    texts = {f"points/{k}": json.dumps(["x" * 20_000, k]) for k in range(15)}
    page.publish(texts)
    viewers = [Viewer(page.address) for _ in range(20)]
    for row in range(10):
        page.publish({**texts, "status": str(row)})
        assert wait_until(lambda row=row: b'"status":%d' % row in request(page.address)[2])
    for viewer in viewers:
        viewer.follow_until(lambda parts: parts.get("status") == 9)
        assert viewer.parts == {**{name: json.loads(t) for name, t in texts.items()}, "status": 9}
        viewer.close()
