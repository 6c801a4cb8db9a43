"""What is said about the package in several files agrees, and examples are well formed."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import kernelbank as kb
from kernelbank import _core
from kernelbank.cli.commands import run_command

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOLS = SETTINGS["project"], SETTINGS["tool"]
EXAMPLES = ROOT / "packaging/examples"


def test_version_and_paper_are_the_same_in_package_citation_changelog_and_pages():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == kb.__version__ == sections[0]
    for page in ("README.md", "docs/deploy.md"):
        text = (ROOT / page).read_text()
        assert set(re.findall(r"kernelbank-([\d.]+\d)-\*", text)) == {kb.__version__}
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    (paper,) = citation["references"]
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
    wheels = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]["wheels"]
    (built,) = (step["env"]["CIBW_BUILD"] for step in wheels["steps"] if "env" in step)
    oldest, stable = supported[0].replace(".", ""), TOOLS["scikit-build"]["wheel"]["py-api"]
    assert built.split() == [f"cp{oldest}-*", f"{stable}-*"]
    for job in ("test", "wheel"):
        assert flow["jobs"][job]["strategy"]["matrix"]["python"] == supported
    commands = [step.get("run", "") for job in flow["jobs"].values() for step in job["steps"]]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = {word for line in commands if line.startswith("make ") for word in line.split()[1:]}
    assert made == {"lint", "test", "wheel", "release"}
    assert made <= targets


def _names(extra):
    needed = PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w-]+", requirement)[0] for requirement in needed}


def test_users_install_nothing_that_only_developers_need():
    recipe = (ROOT / "Makefile").read_text().partition("\n.venv/ready:")[2].partition("\n\n")[0]
    (extras,) = re.findall(r'--editable "\.\[([\w,]+)\]"', recipe)
    for_users = {one for name in extras.split(",") for one in _names(name)}
    assert not for_users & {"ray", "river", "scikit-learn", "polars", "playwright", "pytest"}
    assert not for_users & _names("lint")
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.partition("  # ")[0] for line in lines]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    container = (EXAMPLES / "Dockerfile").read_text()
    (extras,) = re.findall(r"'kernelbank\[([\w,]+)\]'", container)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_readme_names_the_two_commands_and_extras_that_exist():
    text = (ROOT / "README.md").read_text()
    assert "    make run " in text
    assert "    make test " in text
    (sentence,) = re.findall(r"In brackets are extras: (.*?)\. If one is missing", text, re.DOTALL)
    named = set(re.findall(r"`(\w+)`", sentence))
    internal = {"test", "test-all", "lint", "bench"}
    offered = {name for name in PROJECT["optional-dependencies"] if name not in internal}
    assert named <= offered
    assert named == offered - {"docs"}


def test_unit_of_systemd_starts_a_command_with_known_options_and_a_state():
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read_string((EXAMPLES / "kernelbank.service").read_text().replace("\\\n", ""))
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[0].endswith("/bin/kernelbank")
    context = run_command.make_context("run", words[2:])
    assert context.params["state"] is not None
    assert unit["Service"]["SuccessExitStatus"] == "143"


# --- the file that chooses among builds of the core ------------------------------------------------

PACKAGE = Path(__file__).parents[1] / "src/kernelbank"
BUILT = Path(_core.__file__)


@pytest.fixture
def package(tmp_path):
    """A package with the choosing file alone; `builds` are copies of the compiled core."""

    def make(level=None, builds=()):
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "__init__.py").touch()
        shutil.copy(PACKAGE / "_core.py", folder)
        if level is not None:
            (folder / "_processor.py").write_text(f"level = {level}\n")
        for build in builds:
            shutil.copy(BUILT, folder / f"_core_{build}{''.join(BUILT.suffixes)}")
        return tmp_path

    return make


def load(folder, asked="", python=sys.executable):
    """Import the core of a package in a new process; what it prints, and its error."""
    code = "from other import _core; print(_core.__file__, _core.Bank.__module__, _core.__name__)"
    environment = {"KERNELBANK_LEVEL": asked, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("level", "asked", "chosen"), [(3, "", "v3"), (2, "", "v2"), (3, "v2", "v2")]
)
def test_highest_level_of_the_processor_is_loaded_unless_another_is_asked_for(
    package, level, asked, chosen
):
    told, error = load(package(level, ["v2", "v3"]), asked)
    path, module, name = told.split() if told else pytest.fail(error)
    assert Path(path).name.startswith(f"_core_{chosen}.")
    assert module == name == "other._core"


@pytest.mark.parametrize(
    ("level", "asked", "message"),
    [
        (None, "", "no compiled core for Python 3."),
        (1, "", "needs a processor of level x86-64-v2"),
        (2, "v3", "KERNELBANK_LEVEL must be one of v2 on this processor; got 'v3'"),
        (3, "fast", "KERNELBANK_LEVEL must be one of v2, v3"),
    ],
)
def test_core_that_cannot_be_loaded_is_refused_with_the_reason(package, level, asked, message):
    assert message in load(package(level, ["v2", "v3"]), asked)[1]


def test_level_whose_build_is_missing_is_refused(package):
    assert "has no file _core_v3" in load(package(3, ["v2"]))[1]


def test_stub_of_the_bindings_is_up_to_date(tmp_path):
    pytest.importorskip("nanobind")
    stub = tmp_path / "_core.pyi"
    command = [sys.executable, PACKAGE.parents[1] / "packaging/write_stub.py", stub]
    subprocess.run(
        command, check=True, capture_output=True, env={"PYTHONPATH": str(PACKAGE.parent)}
    )
    assert stub.read_text() == (PACKAGE / "_core.pyi").read_text()
