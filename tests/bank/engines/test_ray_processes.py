"""Signals to a driver on Ray, and what is left of its processes."""

import json
import os
import signal

import numpy as np
import pytest

from kernelbank.bank.engines.ray.signals import defer_sigterm
from support import ray_processes
from support.ray_processes import descendants, is_running, wait_for
from support.run_command import make_rows, read_state, succeed, write_csv

AGENTS = {"gcs_server", "raylet", "ray::DashboardA", "ray::RuntimeEnv"}


@pytest.fixture
def token(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef" * 4)
    return ray_processes.with_token(tmp_path)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    x, y = make_rows(60_000)
    folder = tmp_path_factory.mktemp("rows")
    return write_csv(folder / "s.csv", ["a", "b", "y"], np.column_stack([x, y]))


def start_run(token, source, folder, *more):
    """`kernelbank run` on Ray, which commits at its end only."""
    words = ["-m", "kernelbank", "run", source, "--target", "y", "--size", "small", "--log-json"]
    words += ["--state", folder / "state", "--predictions", folder / "ray.csv"]
    words += ["--checkpoint-every", 10**6, "--engine", "ray", "--shards", 2, *more]
    return ray_processes.start(words, token, stderr=-1)


def lines_after(run):
    """All that a run still says, as objects, until it has ended."""
    _, text = run.communicate(timeout=120)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def assert_all_end(processes, seconds=10.0):
    wait_for(lambda: not any(map(is_running, processes)), seconds)


def test_sigterm_is_deferred_and_its_handler_stays():
    received = []
    before = signal.signal(signal.SIGTERM, lambda *_: received.append(1))
    ours = signal.getsignal(signal.SIGTERM)
    try:
        with defer_sigterm():  # as `ray.init` does it, in Python and in C
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
            signal.alarm(3)
            signal.raise_signal(signal.SIGTERM)
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
            assert not received
        assert received == [1]
        assert signal.getsignal(signal.SIGTERM) is ours
        with defer_sigterm():
            pass
        assert received == [1]
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
def test_sigterm_on_ray_commits_and_exits_with_143(token, source, tmp_path):
    run = start_run(token, source, tmp_path)
    try:
        assert any('"progress"' in line for line in run.stderr)
        processes = descendants(run.pid)
        run.send_signal(signal.SIGTERM)
        said = lines_after(run)
    finally:
        ray_processes.end(run)
    assert run.returncode == 128 + signal.SIGTERM
    assert [line["event"] for line in said] == ["end", "stopped"]
    assert set(processes.values()) >= AGENTS
    assert_all_end(processes)
    rows = read_state(tmp_path / "state")[0]["rows"]
    assert 0 < rows == said[0]["rows"] < 60_000
    serial = tmp_path / "serial.csv"
    succeed(source, "--target", "y", "--predictions", serial, "--max-rows", rows)
    assert (tmp_path / "ray.csv").read_bytes() == serial.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["gcs_server", "raylet", "ray::IDLE"])
def test_signal_while_ray_starts_ends_the_run_after_its_first_block(
    token, source, tmp_path, number, moment
):
    run = start_run(token, source, tmp_path)
    try:
        wait_for(lambda: run.poll() is not None or moment in descendants(run.pid).values())
        processes = descendants(run.pid)
        run.send_signal(number)
        said = lines_after(run)
    finally:
        ray_processes.end(run)
    assert run.returncode == 128 + number
    assert [line["event"] for line in said][-2:] == ["end", "stopped"]
    assert_all_end(processes)
    assert read_state(tmp_path / "state")[0]["rows"] == said[-2]["rows"]


@pytest.mark.slow
def test_killed_driver_leaves_no_process_behind(token):
    driver = ray_processes.start_driver(token, "forever")
    try:
        assert driver.stdout.readline() == "same: True\n"
        processes = descendants(driver.pid)
    finally:
        ray_processes.end(driver)
    assert set(processes.values()) >= AGENTS
    assert any(name.startswith("ray::kernelbank") for name in processes.values())
    assert_all_end(processes)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["gcs_server", "raylet", "ray::RuntimeEnv", "ray::kernelbank"])
def test_driver_killed_while_ray_starts_leaves_no_process_behind(token, moment):
    driver = ray_processes.start_driver(token, "forever")
    seen = {}

    def begun():
        seen.update(descendants(driver.pid))
        return any(name.startswith(moment) for name in seen.values())

    try:
        wait_for(begun)
    finally:
        ray_processes.end(driver)
    assert_all_end(seen)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_driver_that_ends_on_another_cluster_takes_its_actors_only(token, number):
    with ray_processes.head(token) as head:
        before = descendants(head.process.pid)
        driver = ray_processes.start_driver(token, "forever", address=head.address)
        try:
            assert driver.stdout.readline() == "same: True\n"
            assert head.ask()["living"] == ["kernelbank.Actor"] * 2
            shards = {
                process
                for process, name in descendants(head.process.pid).items()
                if name.startswith("ray::kernelbank")
            }
            assert len(shards) == 2
            os.kill(driver.pid, number)
            driver.wait(30)
        finally:
            ray_processes.end(driver)
        assert driver.returncode == -number  # Ray has left the handler of SIGTERM as it was
        assert_all_end(shards)
        wait_for(lambda: not head.ask()["living"], 10.0)
        still = {process: name for process, name in before.items() if name in AGENTS}
        assert len(still) == len(AGENTS)
        assert all(map(is_running, still))
        assert head.ask()["sum"] == 3
