"""The long attack by hand: a failure is found, told and can be repeated."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PATH = Path(__file__).with_name("attack.py")


@pytest.fixture
def attack(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("attack", PATH)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "attack", module)
    spec.loader.exec_module(module)
    return module


def test_failure_is_in_the_table_with_its_command(attack, monkeypatch):
    def fails(count, seed):
        assert seed == 3, "bytes differ"
        return Counter(refused=count)

    monkeypatch.setitem(attack.KINDS, "forged", fails)
    results = [attack.work(attack.Piece("forged", 500, seed)) for seed in (3, 4)]
    assert "bytes differ" in results[1].failure
    table = attack.table(results)
    assert "repeat: python tests/attack.py --forged 500 --seed 4 --jobs 1" in table
    assert "refused 500" in table


@pytest.mark.slow
def test_attack_of_some_kills_and_faults_passes():
    command = [sys.executable, str(PATH), "--kills", "2", "--faults", "2", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills 2" in done.stdout
