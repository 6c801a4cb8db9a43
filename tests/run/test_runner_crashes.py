"""Killed at any moment and started again, a run ends as if nothing had happened, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from support.crash_scenarios import SCENARIOS, ScenarioRunner, check_one_line, drawn_moment
from support.fault_injection import Fault
from support.marks import slow

HOW_MANY = 32
"""Kills at random for each case, of which there are eight: over 250."""


def need_server(scenarios: ScenarioRunner, name: str) -> None:
    if name == "redis" and scenarios.redis is None:
        pytest.skip("there is no redis-server")


MOMENTS = {
    "the first state half written": [Fault("write:state", 3, "half")],
    "before the first checkpoint": [Fault("write:predictions", 1, "before")],
    "before the state is durable": [Fault("fsync:state", 3, "before")],
    "the state is durable under another name": [Fault("fsync:state", 3, "after")],
    "renamed, the folder is not durable": [Fault("replace:state", 3, "after")],
    "predictions are durable, the state is not": [Fault("fsync:predictions", 3, "after")],
    "in the middle of predictions": [Fault("write:predictions", 3, "half")],
    "in the middle of a bad row": [Fault("write:bad-rows", 2, "half")],
    "rewinding": [
        Fault("write:predictions", 3, "after"),
        Fault("truncate:predictions", 1, "before"),
        Fault("truncate:predictions", 1, "after"),
        Fault("truncate:bad-rows", 1, "after"),
    ],
    "many in a row": [Fault("write:state", n, "half") for n in (90, 30, 5, 60, 1)],
}
SHORT = ("rewinding",)


@pytest.mark.parametrize("moment", [m if m in SHORT else slow(m) for m in MOMENTS])
def test_run_killed_at_a_chosen_moment_leaves_the_same_bytes(
    scenarios: ScenarioRunner, moment: str
) -> None:
    assert scenarios.kill("messy", MOMENTS[moment]) == len(MOMENTS[moment])


@pytest.mark.slow
def test_run_killed_at_its_last_write_leaves_the_same_bytes(scenarios: ScenarioRunner) -> None:
    scenarios.undisturbed("messy")
    last = scenarios.events["messy"]["fsync:folder"]
    assert scenarios.kill("messy", [Fault("fsync:folder", last, "after")]) == 1


PARTS = [
    Fault("write:part", 2, "half"),
    Fault("replace:part", 1, "before"),
    Fault("replace:part", 2, "after"),
]


def test_parquet_run_killed_while_writing_leaves_the_same_bytes(scenarios: ScenarioRunner) -> None:
    assert scenarios.kill("parts", PARTS) == 3


@pytest.mark.slow
def test_parquet_run_killed_at_its_first_or_last_part_leaves_the_same_bytes(
    scenarios: ScenarioRunner,
) -> None:
    scenarios.undisturbed("parts")
    # The last part is written after the last commit.
    assert scenarios.kill(
        "parts", [Fault("replace:part", scenarios.events["parts"]["replace:part"], "after")]
    )
    # The folder is there, and nothing has been marked.
    assert (
        scenarios.kill("parts", [Fault("fsync:folder", 1, "before"), Fault("write:state", 1)]) == 2
    )


def test_redis_run_killed_while_sending_leaves_the_same_entries(scenarios: ScenarioRunner) -> None:
    need_server(scenarios, "redis")
    faults = [Fault("redis", 2, "half"), Fault("redis", 1, "after"), Fault("fsync:state", 1)]
    assert scenarios.kill("redis", faults) == 3


@pytest.mark.parametrize(
    "name",
    [
        *("late", "followed", "forecasts"),
        *(
            slow(name)
            for name in ("plain", "unended", "classes", "refused", "input", "late forecasts")
        ),
    ],
)
def test_every_scenario_killed_once_leaves_the_same_bytes(
    scenarios: ScenarioRunner, name: str
) -> None:
    assert scenarios.kill(name, [Fault("replace:state", 3, "after"), Fault("fsync:state", 2)]) == 2


@pytest.mark.slow
def test_saved_bank_after_kills_predicts_the_same(scenarios: ScenarioRunner) -> None:
    folders = [scenarios.folder(), scenarios.folder()]
    assert scenarios.run("messy", folders[0]).code == 0
    assert scenarios.run("messy", folders[1], Fault("write:predictions", 3, "half")).killed
    assert scenarios.run("messy", folders[1]).code == 0
    banks = [kb.load(folder / "state/state.kb") for folder in folders]
    draw = np.random.default_rng(1).normal(size=(20, 2))
    X = pd.DataFrame(draw, columns=["a", "b"]).assign(kind=list("uvwx" * 5))
    one, other = (bank.predict_at(X, 0.9) for bank in banks)
    assert one.tobytes() == other.tobytes()
    assert banks[0].predict(X).tobytes() == banks[1].predict(X).tobytes()


@pytest.mark.parametrize("name", ["messy", slow("parts")])
def test_checkpoint_is_written_after_the_rows_are_durable(
    scenarios: ScenarioRunner, name: str
) -> None:
    """A kill does not show what a power failure would: what was not yet asked to last."""
    folder, logs = scenarios.folder(), [scenarios.root / f"{name}-order{n}.log" for n in (1, 2)]
    assert scenarios.run(name, folder, Fault("replace:state", 4, "after"), log=str(logs[0])).killed
    assert scenarios.run(name, folder, log=str(logs[1])).code == 0
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


def test_run_of_bad_rows_only_is_committed(scenarios: ScenarioRunner) -> None:
    (scenarios.root / "bad.csv").write_text("a,b,kind,y\n" + "oh,1,u,2\n" * 120)
    folder, log = scenarios.folder(), scenarios.root / "bad.log"
    args = SCENARIOS["messy"].args(folder, None)
    args[1] = "../bad.csv"
    ended = scenarios.forks.run(args, folder, log=str(log))
    check_one_line(
        ended, "none of the 120 rows can be used. The first: bad.csv, line 2, column 'a'"
    )
    # At the start, after 37, 74 and 111 rows, and at the end.
    assert log.read_text().split().count("replace:state") == 5


@pytest.mark.slow
@pytest.mark.parametrize("more", ["--delay 3", "--lags 0"])
def test_labels_with_delay_or_many_rows_survive_kills(scenarios: ScenarioRunner, more: str) -> None:
    """Classes with a delay, and over so many rows that a snapshot is taken."""
    header, *rows = (scenarios.root / "labels.csv").read_text().splitlines()
    (scenarios.root / "long-labels.csv").write_text("\n".join([header, *rows * 4]) + "\n")
    folder = scenarios.folder()
    args = SCENARIOS["classes"].args(folder, None)
    args[1] = "../long-labels.csv"
    ended = scenarios.forks.run([*args, *more.split()], folder)
    assert ended.code == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_run_killed_at_random_moments_leaves_the_same_bytes(
    scenarios: ScenarioRunner, name: str
) -> None:
    need_server(scenarios, name)
    scenarios.undisturbed(name)
    draw = random.Random(name)
    kills = 0
    while kills < HOW_MANY:
        kills += scenarios.kill(
            name, [drawn_moment(scenarios, name, draw) for _ in range(draw.randint(1, 6))]
        )
