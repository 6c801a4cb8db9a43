"""`make release`: build the source archive and the wheel, check both, and install and try each.

The wheel is built from the source archive, so the archive holds all that is needed. Nothing is
published: the files are in dist/.
"""

import email
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from trove_classifiers import classifiers

import check_wheel
import hashed_requirements

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
NOT_IN_ARCHIVE = (".ci/", ".github/", ".gitignore")
"""Tracked files that a source archive does not need."""

MADE = ("PKG-INFO",)
"""Files that the build adds to a source archive."""

PLACEHOLDER = "https://example.org/"


def build_archive():
    """Build the source archive; returns its path."""
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the source archive cannot be built:\n{done.stdout}{done.stderr}")
    return max(DIST.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)


def check_archive(archive):
    """The archive holds what the repository holds, and nothing else."""
    with tarfile.open(archive) as tar:
        names = {n.partition("/")[2] for n in tar.getnames() if tar.getmember(n).isfile()}
    names = {name for name in names if not name.startswith(MADE)}
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB, {len(names)} files")
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return
    command = ["git", "-C", ROOT, "ls-files"]
    tracked = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    wanted = {n for n in tracked.splitlines() if not n.startswith(NOT_IN_ARCHIVE)}
    if wanted - names:
        raise SystemExit(
            f"not in the archive; see sdist.exclude in pyproject.toml: {sorted(wanted - names)}"
        )
    if names - wanted:
        raise SystemExit(f"in the archive, but not in git: {sorted(names - wanted)[:8]}")


def check_metadata(wheel, version):
    """Names, classifiers, licences and types are as an index of packages wants them."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(place)
    metadata = Metadata.from_email(text, validate=True)
    problems = []
    if str(metadata.version) != version:
        problems.append(f"the wheel has version {metadata.version}, the package {version}")
    if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M):
        problems.append(f"CHANGELOG.md has no section {version}")
    unknown = set(metadata.classifiers or ()) - set(classifiers)
    if unknown:
        problems.append(f"unknown classifiers: {sorted(unknown)}")
    if not metadata.license_expression:
        problems.append("there is no licence expression (PEP 639)")
    folder = place.removesuffix("METADATA")
    licences = [f"{folder}licenses/{name}" for name in metadata.license_files or ()]
    if not licences or set(licences) - set(names):
        problems.append(f"licence files are missing: {sorted(set(licences) - set(names))}")
    if "kernelbank/py.typed" not in names:
        problems.append("kernelbank/py.typed is missing: type checkers would ignore the types")
    if (
        metadata.description_content_type != "text/markdown"
        or not email.message_from_bytes(text).get_payload()
    ):
        problems.append("the description is not README.md")
    foreign = [n for n in names if not n.startswith(("kernelbank/", folder))]
    if foreign:
        problems.append(f"files outside the package: {foreign[:5]}")
    if problems:
        raise SystemExit("metadata: " + "; ".join(problems))
    print(f"  metadata: version {version}, {metadata.license_expression}, {len(licences)} licences")
    places = [f"{k} = {v}" for k, v in (metadata.project_urls or {}).items() if PLACEHOLDER in v]
    if places:
        print(
            f"  before publishing, replace the placeholders in pyproject.toml: {'; '.join(places)}"
        )
        print(
            "  and write the links of README.md in full: an index of packages has no docs/ folder"
        )


def try_commands(python):
    """Without its extra the command says what is missing; with it the demo runs."""
    command = python.parent / "kernelbank"
    environment = check_wheel.without_python_paths()
    told = subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=False, env=environment
    )
    if told.returncode == 0 or "kernelbank[cli]" not in told.stderr:
        raise SystemExit(f"without click, kernelbank must name its extra; it said {told.stderr!r}")
    check_wheel.pip(python, "install", "kernelbank[cli]")  # as the message says
    demo = subprocess.run(
        [command, "demo"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=python.parents[1],
    )
    if demo.returncode or not (python.parents[1] / "demo/report.html").exists():
        raise SystemExit(f"kernelbank demo failed:\n{demo.stdout}{demo.stderr}")
    print("kernelbank demo: " + next(line for line in demo.stderr.splitlines() if "RMSE" in line))


def check_hashes(wheel, folder):
    """The list of `hashed_requirements.py` is complete: pip installs by it alone."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    report = hashed_requirements.resolve(wheel, "cli", python)
    lines = hashed_requirements.requirement_lines(report, wheel, "cli")
    listed = folder / "hashed.txt"
    listed.write_text("\n".join(lines) + "\n")
    only = ("--require-hashes", "--only-binary", ":all:", "--find-links", wheel.parent)
    check_wheel.pip(python, "install", *only, "--requirement", listed)
    subprocess.run(
        [python.parent / "kernelbank", "--version"],
        check=True,
        env=check_wheel.without_python_paths(),
    )
    print(f"  {len(lines)} packages by their hashes")


def main():
    start = time.perf_counter()

    def say(text):
        print(f"[{time.perf_counter() - start:.0f} s] {text}", flush=True)

    sys.path.insert(0, str(ROOT / "src"))
    from kernelbank import __version__

    say("building the source archive")
    archive = build_archive()
    check_archive(archive)
    say("building the wheel from the source archive, for all levels of processors")
    wheel = check_wheel.build_wheel(archive, DIST, platform.machine())
    check_wheel.inspect_wheel(wheel, platform.machine())
    check_metadata(wheel, __version__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("installing the wheel into a new environment")
        python = check_wheel.install(wheel, folder / "wheel")
        check_wheel.try_out(python, check_wheel.own_levels())
        try_commands(python)
        say("installing the wheel with pinned versions, by their hashes")
        check_hashes(wheel, folder / "hashed")
        say("installing the source archive into a new environment, for this processor")
        python = check_wheel.install(
            archive, folder / "archive", "--config-settings=cmake.define.KERNELBANK_LEVELS=own"
        )
        check_wheel.try_out(python, [""])
    say(f"ready in {DIST.relative_to(ROOT)}/: {archive.name}, {wheel.name}")


if __name__ == "__main__":
    main()
