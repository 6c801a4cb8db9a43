"""The command that builds the compiled library."""

import pytest

from kernelbank.native import build


def test_build_on_a_processor_without_library_says_so_and_succeeds(monkeypatch, capsys):
    monkeypatch.setattr(build, "processor_level", lambda: None)
    monkeypatch.setattr("sys.argv", ["build"])
    build.main()
    assert "compiles just in time" in capsys.readouterr().out


def test_build_for_an_unknown_level_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("sys.argv", ["build", "--level", "x86-64-v9"])
    with pytest.raises(SystemExit, match=r"--level must be x86-64-v3, .*; got x86-64-v9"):
        build.main()
