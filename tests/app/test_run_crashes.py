"""Killed at any moment and started again, a run ends as if nothing had happened, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import kernelbank as kb
from support.run_cases import CASES, Bench, opened, slow
from support.run_faults import Fault

HOW_MANY = 32
"""Kills at random for each case, of which there are seven: over 200."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with opened(tmp_path_factory.mktemp("crashes")) as found:
        yield found


def need_server(bench: Bench, name: str) -> None:
    if name == "redis" and bench.server is None:
        pytest.skip("there is no redis-server")


MOMENTS = {
    "the first state half written": [Fault("write:state", 3, "half")],
    "before the first checkpoint": [Fault("write:predictions", 1, "before")],
    "before the state lasts": [Fault("fsync:state", 3, "before")],
    "the state lasts under another name": [Fault("fsync:state", 3, "after")],
    "renamed, the folder does not know": [Fault("replace:state", 3, "after")],
    "answers last, the state does not tell": [Fault("fsync:predictions", 3, "after")],
    "in the middle of answers": [Fault("write:predictions", 3, "half")],
    "in the middle of a bad row": [Fault("write:bad-rows", 2, "half")],
    "going back": [
        Fault("write:predictions", 3, "after"),
        Fault("truncate:predictions", 1, "before"),
        Fault("truncate:predictions", 1, "after"),
        Fault("truncate:bad-rows", 1, "after"),
    ],
    "many in a row": [Fault("write:state", n, "half") for n in (90, 30, 5, 60, 1)],
}
SHORT = ("going back",)


@pytest.mark.parametrize("moment", [m if m in SHORT else slow(m) for m in MOMENTS])
def test_chosen_moments(bench: Bench, moment: str) -> None:
    assert bench.kill("messy", MOMENTS[moment]) == len(MOMENTS[moment])


@pytest.mark.slow
def test_right_at_the_end(bench: Bench) -> None:
    bench.undisturbed("messy")
    last = bench.events["messy"]["fsync:folder"]
    assert bench.kill("messy", [Fault("fsync:folder", last, "after")]) == 1


PARTS = [
    Fault("write:part", 2, "half"),
    Fault("replace:part", 1, "before"),
    Fault("replace:part", 2, "after"),
]


def test_parts(bench: Bench) -> None:
    assert bench.kill("parts", PARTS) == 3


@pytest.mark.slow
def test_first_and_last_part(bench: Bench) -> None:
    bench.undisturbed("parts")
    # The last part is written after the last mark.
    assert bench.kill(
        "parts", [Fault("replace:part", bench.events["parts"]["replace:part"], "after")]
    )
    # The folder is there, and nothing has been marked.
    assert bench.kill("parts", [Fault("fsync:folder", 1, "before"), Fault("write:state", 1)]) == 2


def test_batches_for_redis(bench: Bench) -> None:
    need_server(bench, "redis")
    faults = [Fault("redis", 2, "half"), Fault("redis", 1, "after"), Fault("fsync:state", 1)]
    assert bench.kill("redis", faults) == 3


@pytest.mark.parametrize("name", ["late", *(slow(name) for name in ("plain", "classes", "input"))])
def test_every_case_once(bench: Bench, name: str) -> None:
    assert bench.kill(name, [Fault("replace:state", 3, "after"), Fault("fsync:state", 2)]) == 2


@pytest.mark.slow
def test_the_saved_bank_answers_the_same(bench: Bench) -> None:
    folders = [bench.folder(), bench.folder()]
    assert bench.run("messy", folders[0]).code == 0
    assert bench.run("messy", folders[1], Fault("write:predictions", 3, "half")).killed
    assert bench.run("messy", folders[1]).code == 0
    banks = [kb.load(folder / "state/state.kb") for folder in folders]
    width = 2 + len("uvwx")
    X = np.random.default_rng(1).normal(size=(20, width))
    one, other = (bank.predict_interval(X, 0.9) for bank in banks)
    assert one.tobytes() == other.tobytes()
    assert banks[0].predict(X).tobytes() == banks[1].predict(X).tobytes()


@pytest.mark.parametrize("name", ["messy", slow("parts")])
def test_order_of_what_lasts(bench: Bench, name: str) -> None:
    """A kill does not show what a power failure would: what was not yet asked to last."""
    folder, logs = bench.folder(), [bench.root / f"{name}-order{n}.log" for n in (1, 2)]
    assert bench.run(name, folder, Fault("replace:state", 4, "after"), log=str(logs[0])).killed
    assert bench.run(name, folder, log=str(logs[1])).code == 0
    first, second = (log.read_text().split() for log in logs)
    assert "fsync:folder" in first[: first.index("replace:state")]  # the outputs' names last
    assert first.count("replace:state") == 4
    in_order(first)
    assert in_order(second) <= {"lock"}


def in_order(events: list[str]) -> set[str]:
    """Check that a state is in place only when all that it tells of lasts; what does not at the end."""
    loose: set[str] = set()
    for event in events:
        what, _, where = event.partition(":")
        if what in ("write", "truncate"):
            loose.add(where)
        elif what == "fsync":
            loose.discard("names" if where == "folder" else where)
        elif what == "replace":
            assert where not in loose
            if where == "state":
                assert not loose & {"predictions", "bad-rows", "part", "names"}
            loose.add("names")
    return loose


def drawn(bench: Bench, name: str, draw: random.Random) -> Fault | float:
    """Any moment: of the clock, or of the events, where each kind is as likely as another."""
    if draw.random() < 0.3:
        return draw.uniform(0.01, bench.seconds[name])
    label = draw.choice(sorted(bench.events[name]))
    # Early ones more often: a run that goes on has fewer of them.
    most = max(1, round(bench.events[name][label] * draw.random()))
    return Fault(label, draw.randint(1, most), draw.choice(["before", "half", "after"]))


def test_bad_rows_alone_are_marked_too(bench: Bench) -> None:
    (bench.root / "bad.csv").write_text("a,b,kind,y\n" + "oh,1,u,2\n" * 120)
    folder, log = bench.folder(), bench.root / "bad.log"
    args = CASES["messy"].args(folder, None)
    args[1] = "../bad.csv"
    assert bench.stable.run(args, folder, log=str(log)).code == 0
    # At the start, after 37, 74 and 111 rows, and at the end.
    assert log.read_text().split().count("replace:state") == 5


@pytest.mark.slow
@pytest.mark.parametrize("more", ["--delay 3", "--lags 0"])
def test_labels_late_or_long(bench: Bench, more: str) -> None:
    """Classes with a delay, and over so many rows that a snapshot is taken."""
    header, *rows = (bench.root / "labels.csv").read_text().splitlines()
    (bench.root / "long-labels.csv").write_text("\n".join([header, *rows * 4]) + "\n")
    folder = bench.folder()
    args = CASES["classes"].args(folder, None)
    args[1] = "../long-labels.csv"
    ended = bench.stable.run([*args, *more.split()], folder)
    assert ended.code == 0, ended.said


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_random_moments(bench: Bench, name: str) -> None:
    need_server(bench, name)
    bench.undisturbed(name)
    draw = random.Random(name)
    kills = 0
    while kills < HOW_MANY:
        kills += bench.kill(name, [drawn(bench, name, draw) for _ in range(draw.randint(1, 6))])
