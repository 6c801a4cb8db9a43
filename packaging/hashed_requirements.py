"""Requirements with hashes for a wheel of kernelbank: pip then installs these files and no others.

    python packaging/hashed_requirements.py dist/kernelbank-*.whl --extras cli,redis > hashed.txt
    pip install --require-hashes --only-binary :all: --find-links dist --requirement hashed.txt

The versions are those of constraints.txt. The hashes are those of the files that pip chooses for
this Python and this system, so make the list where it is used, or on an equal machine; no address
is kept. The index of packages is trusted once, when the list is made.
"""

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def resolve(wheel, extras, python=sys.executable):
    """What pip would install: its report, as JSON data. Installs nothing."""
    what = f"{wheel.resolve()}[{extras}]" if extras else str(wheel.resolve())
    options = ["--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", "-"]
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *options]
    done = subprocess.run(
        [*command, "--constraint", CONSTRAINTS, what], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"pip cannot resolve {what}:\n{done.stderr}")
    return json.loads(done.stdout)


def requirement_lines(report, wheel, extras):
    """One line per package of a report, sorted: name, version and the hash of its file."""
    own = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        found = item["download_info"]["archive_info"].get("hashes", {}).get("sha256")
        if name == "kernelbank":
            name, found = f"kernelbank[{extras}]" if extras else name, own
        if not found:
            raise SystemExit(f"the index has no SHA-256 of {name} {version}: do not install it.")
        lines.append(f"{name}=={version} --hash=sha256:{found}")
    return sorted(lines, key=str.lower)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--extras", default="cli", help="such as cli,redis (default: cli)")
    given = parser.parse_args(arguments)
    where = f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}"
    print(f"# For {where}. Made by packaging/hashed_requirements.py.")
    lines = requirement_lines(resolve(given.wheel, given.extras), given.wheel, given.extras)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
