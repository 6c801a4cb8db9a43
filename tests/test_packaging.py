"""What is said about the package in several files agrees, and examples are well formed."""

import configparser
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

import kernelbank as kb
from kernelbank.cli.commands import run_command

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOLS = SETTINGS["project"], SETTINGS["tool"]
EXAMPLES = ROOT / "packaging/examples"


def test_version_is_the_same_in_package_citation_and_changelog():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == kb.__version__ == sections[0]


def test_wheel_that_pages_name_has_this_version():
    for page in ("README.md", "docs/deploy.md"):
        text = (ROOT / page).read_text()
        assert set(re.findall(r"kernelbank-([\d.]+\d)-\*", text)) == {kb.__version__}


def test_citation_has_what_the_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= citation.keys()
    (paper,) = citation["references"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Ruiz-Moreno", "Beferull-Lozano"]
    assert (paper["journal"], paper["volume"], paper["year"]) == (
        "IEEE Signal Processing Letters",
        31,
        2024,
    )
    assert paper["doi"] == "10.48550/arXiv.2308.10101"  # the preprint's


def test_paper_is_cited_with_its_venue_wherever_it_is_named():
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    cited = 0
    for path in sources:
        for found in re.finditer("Beferull-Lozano", path.read_text(encoding="utf-8")):
            after = path.read_text(encoding="utf-8")[found.end() : found.end() + 250]
            text = " ".join(after.replace(">", " ").split())
            assert "IEEE Signal Processing Letters" in text, path
            assert "arXiv:2308.10101" in text or "arXiv:2308.10101" in after, path
            cited += 1
    assert cited >= 8


def test_public_ci_runs_the_commands_of_this_repository_on_each_supported_python():
    flow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    prefix = "Programming Language :: Python :: 3."
    supported = [f"3.{c.removeprefix(prefix)}" for c in PROJECT["classifiers"] if prefix in c]
    for job in ("test", "wheel"):
        assert flow["jobs"][job]["strategy"]["matrix"]["python"] == supported
    commands = [step.get("run", "") for job in flow["jobs"].values() for step in job["steps"]]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = {word for line in commands if line.startswith("make ") for word in line.split()[1:]}
    assert made == {"lint", "test", "wheel", "release"}
    assert made <= targets


def test_users_install_nothing_that_only_developers_need():
    recipe = (ROOT / "Makefile").read_text().partition("\n.venv/ready:")[2].partition("\n\n")[0]
    (extras,) = re.findall(r'--editable "\.\[([\w,]+)\]"', recipe)
    for_users = {one for name in extras.split(",") for one in _names(name)}
    assert not for_users & {"ray", "river", "scikit-learn", "polars", "playwright", "pytest"}
    assert not for_users & _names("lint")
    assert {"click", "matplotlib"} <= for_users


def test_workflow_of_wheels_builds_every_platform_and_says_that_it_is_untried():
    text = (ROOT / ".github/workflows/wheels.yml").read_text()
    assert text.startswith("# UNTRIED")
    job = yaml.safe_load(text)["jobs"]["wheels"]
    platforms = {
        (one["os"].split("-")[0], one["arch"]) for one in job["strategy"]["matrix"]["include"]
    }
    assert platforms == {
        ("ubuntu", "x86_64"), ("ubuntu", "aarch64"),
        ("macos", "x86_64"), ("macos", "arm64"), ("windows", "AMD64"),
    }  # fmt: skip
    (built,) = (step["env"]["CIBW_BUILD"] for step in job["steps"] if "env" in step)
    oldest = PROJECT["requires-python"].removeprefix(">=3.")
    stable = TOOLS["scikit-build"]["wheel"]["py-api"]
    assert built.split() == [f"cp3{oldest}-*", f"{stable}-*"]


def test_what_compiles_the_core_is_pinned():
    pinned = {
        line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert {"nanobind", "scikit_build_core", "cmake", "ninja", "ziglang"} <= pinned


def _names(extra):
    needed = PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w-]+", requirement)[0] for requirement in needed}


def test_extras_that_the_readme_names_exist():
    text = (ROOT / "README.md").read_text()
    (sentence,) = re.findall(r"In brackets are extras: (.*?)\. If one is missing", text, re.DOTALL)
    named = set(re.findall(r"`(\w+)`", sentence))
    internal = {"test", "test-all", "lint", "bench"}
    offered = {name for name in PROJECT["optional-dependencies"] if name not in internal}
    assert named <= offered
    assert named == offered - {"docs"}


@pytest.mark.parametrize("command", ["make run", "make test"])
def test_readme_names_the_two_commands(command):
    assert f"    {command} " in (ROOT / "README.md").read_text()


def test_unit_of_systemd_starts_a_command_with_known_options_and_a_state():
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read_string((EXAMPLES / "kernelbank.service").read_text().replace("\\\n", ""))
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[0].endswith("/bin/kernelbank")
    context = run_command.make_context("run", words[2:])
    assert context.params["state"] is not None
    assert unit["Service"]["SuccessExitStatus"] == "143"


def test_container_installs_extras_that_exist_and_starts_the_command():
    text = (EXAMPLES / "Dockerfile").read_text()
    (extras,) = re.findall(r"'kernelbank\[([\w,]+)\]'", text)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert 'ENTRYPOINT ["kernelbank"]' in text
