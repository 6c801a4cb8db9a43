"""The list of requirements with hashes, and that pip installs by it."""

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "packaging"))

import hashed_requirements  # noqa: E402


def make_wheel(folder, name, requires=""):
    """A wheel without code."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(path, "w") as archive:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
        archive.writestr(f"{info}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A folder of wheels that pip uses in place of an index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path / "wheels"


def install(lines, folder):
    (folder / "hashed.txt").write_text("\n".join(lines))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command += ["--require-hashes", "--only-binary", ":all:", "--no-compile"]
    command += ["--target", str(folder / "target"), "--requirement", str(folder / "hashed.txt")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_pip_installs_what_the_list_says_and_nothing_else(offline, tmp_path):
    helper = make_wheel(offline, "somehelper")
    wheel = make_wheel(offline, "kernelbank", "somehelper")
    report = hashed_requirements.resolve(wheel, "")
    lines = hashed_requirements.requirement_lines(report, wheel, "")
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, helper)]
    names = ("kernelbank==1.0", "somehelper==1.0")
    assert lines == [f"{n} --hash=sha256:{d}" for n, d in zip(names, digests, strict=True)]
    assert "file:" not in "".join(lines)
    done = install(lines, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target/somehelper-1.0.dist-info").is_dir()
    with zipfile.ZipFile(helper, "a") as archive:
        archive.writestr("somehelper.py", "import os")
    assert "DO NOT MATCH" in install(lines, tmp_path).stderr


def test_file_without_a_hash_is_not_listed(tmp_path):
    wheel = make_wheel(tmp_path / "wheels", "kernelbank")
    item = {"metadata": {"name": "x", "version": "1"}, "download_info": {"archive_info": {}}}
    with pytest.raises(SystemExit, match="no SHA-256 of x 1"):
        hashed_requirements.requirement_lines({"install": [item]}, wheel, "")


def test_constraints_pin_every_package_once_and_keep_no_address():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    lines = [line.partition("  # ")[0] for line in lines]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    names = [line.partition("==")[0].lower() for line in lines]
    assert len(set(names)) == len(names)
