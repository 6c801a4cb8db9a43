"""The command `kernelbank`. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what is missing."""
    try:
        from .commands import run
    except ImportError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit("The command line needs click and rich: pip install 'kernelbank[cli,plot]'")
    run()
