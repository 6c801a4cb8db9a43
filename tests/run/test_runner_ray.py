"""`kernelbank run --engine ray`: the same predictions, and a clear end when a shard cannot be had."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.run import session
from support.run_command import make_rows, one_slot_model, read_state, refusal, succeed, write_csv

X, Y = make_rows(300)


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))


def test_ray_options_without_ray_are_refused(source):
    for option, word in (("--ray-address", "--engine ray"), ("--shards", "--engine threads")):
        assert word in refusal(source, "--target", "y", option, 1)
    assert "--ray-address" in refusal(
        source, "--target", "y", "--engine", "threads", "--ray-address", "x:1"
    )
    allowed = "--ray-allow-unauthenticated"
    assert f"{allowed} needs --engine ray" in refusal(source, "--target", "y", allowed)
    succeed(source, "--target", "y", "--engine", "threads", "--shards", 2, "--max-rows", 9)


@pytest.fixture(scope="module")
def ray():
    import ray

    yield ray
    ray.shutdown()


@pytest.mark.slow
def test_ray_engine_gives_the_same_predictions(source, tmp_path, ray):
    found = []
    for words in (("serial",), ("ray", "--shards", 2)):
        out, state = tmp_path / f"{words[0]}.csv", tmp_path / words[0]
        options = ("--engine", *words, "--predictions", out, "--state", state)
        succeed(source, "--target", "y", *options, "--checkpoint-every", 120)
        _, arrays = read_state(state)
        found.append((out.read_bytes(), {name: a.tobytes() for name, a in arrays.items()}))
    assert found[0] == found[1]
    assert ray.is_initialized()


@pytest.mark.slow
def test_lost_shard_is_refused_and_loses_nothing(source, tmp_path, ray, monkeypatch):
    """The run stops with a clear message; from its last checkpoint the same command resumes."""
    monkeypatch.setattr(session, "make_model", one_slot_model)
    wanted, out = tmp_path / "wanted.csv", tmp_path / "out.csv"
    succeed(source, "--target", "y", "--predictions", wanted)
    options = ("--predictions", out, "--state", tmp_path / "state", "--checkpoint-every", 100)

    blocks = []
    plain = kb.AutoBank.run

    def lost(bank, *given, **named):
        blocks.append(1)
        if len(blocks) == 6:
            raise kb.errors.ShardLost("shard 1 was lost 3 times in a row.")
        return plain(bank, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(kb.AutoBank, "run", lost)
        message = refusal(source, "--target", "y", *options, "--engine", "ray")
    assert "shard 1" in message
    assert "Nothing is lost" in message
    assert 0 < read_state(tmp_path / "state")[0]["rows"] < len(X)
    succeed(source, "--target", "y", *options)
    assert out.read_bytes() == wanted.read_bytes()
