"""Clusters and drivers in processes of their own: tokens, and signals to `kernelbank run` on Ray."""

import json
import signal

import numpy as np
import pytest

from support import ray_processes
from support.run_command import make_rows, read_state, succeed, write_csv

pytestmark = pytest.mark.slow

OPEN = ray_processes.environment(RAY_AUTH_MODE="disabled")


@pytest.fixture(scope="module")
def open_head():
    """A cluster without authentication."""
    with ray_processes.head(OPEN) as head:
        yield head


@pytest.fixture
def token(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef" * 4)
    return ray_processes.with_token(tmp_path)


def test_cluster_without_authentication_is_refused_before_anything_is_sent(open_head, token):
    for env in (token, OPEN):
        said = ray_processes.run_driver(env, address=open_head.address)
        assert said.startswith("refused: 'address' of Ray must be that of a cluster that requires")
        assert f"got '{open_head.address}, where RAY_AUTH_MODE is disabled'" in said
        assert "allow_unauthenticated=True" in said
        assert "\n" not in said
    assert open_head.ask()["actors"] == 0


def test_command_refuses_cluster_without_authentication(open_head, token, tmp_path):
    x, y = make_rows(100)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([x, y]))
    words = ["-m", "kernelbank", "run", source, "--target", "y", "--size", "small"]
    words += ["--engine", "ray", "--ray-address", open_head.address]
    refused = ray_processes.start(words, token, stderr=-1)
    _, message = refused.communicate(timeout=120)
    assert refused.returncode == 2
    assert "--ray-allow-unauthenticated" in message
    assert message.count("\n") == 1
    allowed = ray_processes.start([*words, "--ray-allow-unauthenticated"], OPEN, stderr=-1)
    allowed.communicate(timeout=120)
    assert allowed.returncode == 0


def test_cluster_started_without_authentication_is_refused():
    said = ray_processes.run_driver(OPEN)
    assert said.startswith("refused: 'address' of Ray must be that of a cluster that requires")
    assert ray_processes.run_driver(OPEN, allow_unauthenticated=True) == "same: True"


def test_cluster_started_by_engine_refuses_clients_without_its_token(token, tmp_path):
    driver = ray_processes.start_driver(ray_processes.environment(), "wait")
    try:
        assert driver.stdout.readline() == "same: True\n"
        address = driver.stdout.readline().strip()
        for env in (OPEN, token):
            said = ray_processes.run_driver(env, address=address)
            assert said.startswith(f"refused: Cannot join a Ray cluster at {address}")
    finally:
        ray_processes.end(driver)


def test_driver_without_token_of_the_cluster_is_refused(tmp_path, token):
    with ray_processes.head(token) as head:
        nowhere = str(tmp_path / "nowhere")
        stranger = ray_processes.environment(RAY_AUTH_TOKEN_PATH=nowhere)
        said = ray_processes.run_driver(stranger, address=head.address)
        assert said.startswith(f"refused: Cannot join a Ray cluster at {head.address}")
        assert "nowhere" in said
        assert head.ask()["jobs"] == 1
        assert ray_processes.run_driver(token, address=head.address) == "same: True"


def test_address_where_nobody_answers_is_refused(token):
    said = ray_processes.run_driver(token, address="127.0.0.1:1")
    assert said.startswith("refused: Cannot join a Ray cluster at 127.0.0.1:1")
    said = ray_processes.run_driver(token, address="no address")
    assert said.startswith("refused: Cannot join a Ray cluster at no address")


def test_sigterm_on_ray_commits_and_exits_with_143(token, tmp_path):
    x, y = make_rows(60_000)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([x, y]))
    words = ["-m", "kernelbank", "run", source, "--target", "y", "--size", "small", "--log-json"]
    words += ["--state", tmp_path / "state", "--predictions", tmp_path / "ray.csv"]
    words += ["--checkpoint-every", 10**6, "--engine", "ray", "--shards", 2]
    run = ray_processes.start(words, token, stderr=-1)
    try:
        assert any('"progress"' in line for line in run.stderr)
        run.send_signal(signal.SIGTERM)
        _, text = run.communicate(timeout=120)
    finally:
        ray_processes.end(run)
    said = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert run.returncode == 128 + signal.SIGTERM
    assert [line["event"] for line in said] == ["end", "stopped"]
    rows = read_state(tmp_path / "state")[0]["rows"]
    assert 0 < rows == said[0]["rows"] < 60_000
    serial = tmp_path / "serial.csv"
    succeed(source, "--target", "y", "--predictions", serial, "--max-rows", rows)
    assert (tmp_path / "ray.csv").read_bytes() == serial.read_bytes()
