"""Commands as a reader would type them."""

import os
import subprocess
import sys
from pathlib import Path


def run_script(script, folder):
    """Run a script of commands in a folder, with the package's own commands first; it must succeed."""
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"set -e\n{script}"],
        cwd=folder,
        env={**os.environ, "PATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
