"""Nothing of a bank goes to a Ray cluster that does not refuse strangers, unless it is allowed."""

import pytest

import kernelbank as kb
from kernelbank.bank.engines.ray import cluster as ray_setup
from support import ray_processes
from support.run_command import make_rows, write_csv

OPEN = ray_processes.environment(RAY_AUTH_MODE="disabled")


@pytest.fixture(scope="module")
def open_head():
    """A cluster without authentication."""
    with ray_processes.head(OPEN) as head:
        yield head


@pytest.fixture
def token(tmp_path):
    return ray_processes.with_token(tmp_path)


def test_version_of_ray_without_authentication_is_refused(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "__version__", "2.51.1")
    with pytest.raises(kb.errors.KernelBankError, match=r"ray 2\.52 or newer; 2\.51\.1 is inst"):
        ray_setup.import_ray()
    monkeypatch.setattr(ray, "__version__", "3.0.0.dev0")
    assert ray_setup.import_ray() is ray


@pytest.mark.slow
def test_cluster_without_authentication_is_refused_before_anything_is_sent(open_head):
    said = ray_processes.run_driver(OPEN, address=open_head.address)
    assert said.startswith(f"refused: The Ray cluster at {open_head.address} does not require a")
    assert "RAY_AUTH_MODE=token" in said
    assert "Ray(allow_unauthenticated=True)" in said
    found = open_head.ask()
    assert found["actors"] == 0
    assert found["jobs"] == 1  # the cluster's own: the driver has not even joined


@pytest.mark.slow
def test_cluster_without_authentication_may_be_allowed(open_head, token):
    for env in (token, ray_processes.environment(), OPEN):  # with a token, without, disabled
        said = ray_processes.run_driver(env, address=open_head.address, allow_unauthenticated=True)
        assert said == "same: True"
    assert open_head.ask()["actors"] == 6


@pytest.mark.slow
def test_command_refuses_cluster_without_authentication(open_head, token, tmp_path):
    x, y = make_rows(100)
    rows = [[*point, target] for point, target in zip(x, y, strict=True)]
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    words = ["-m", "kernelbank", "run", source, "--target", "y", "--size", "small"]
    words += ["--engine", "ray", "--ray-address", open_head.address]
    refused = ray_processes.start(words, token, stderr=-1)
    _, message = refused.communicate(timeout=120)
    assert refused.returncode == 2
    assert "--ray-allow-unauthenticated" in message
    assert message.count("\n") == 1
    allowed = ray_processes.start([*words, "--ray-allow-unauthenticated"], token, stderr=-1)
    allowed.communicate(timeout=120)
    assert allowed.returncode == 0


@pytest.mark.slow
def test_cluster_started_without_authentication_is_refused_and_ended():
    said = ray_processes.run_driver(OPEN)
    assert said.startswith("refused: The Ray cluster at")
    assert ray_processes.run_driver(OPEN, allow_unauthenticated=True) == "same: True"


@pytest.mark.slow
def test_driver_without_token_of_the_cluster_is_refused(tmp_path, token):
    (tmp_path / "token").write_text("0123456789abcdef" * 4)
    with ray_processes.head(token) as head:
        nowhere = str(tmp_path / "nowhere")
        stranger = ray_processes.environment(RAY_AUTH_TOKEN_PATH=nowhere)
        said = ray_processes.run_driver(stranger, address=head.address)
        assert said.startswith("refused: There is no token to join the cluster")
        assert head.ask()["jobs"] == 1
        assert ray_processes.run_driver(token, address=head.address) == "same: True"


@pytest.mark.slow
def test_address_where_nobody_answers_is_refused(token):
    said = ray_processes.run_driver(token, address="127.0.0.1:1")
    assert said.startswith("refused: Cannot join a Ray cluster at 127.0.0.1:1")
    said = ray_processes.run_driver(token, address="no address")
    assert said.startswith("refused: Cannot join a Ray cluster at no address")
