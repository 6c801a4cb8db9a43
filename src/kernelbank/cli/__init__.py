"""The command `kernelbank`. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys

from .standard_streams import secure_standard_streams


def main() -> None:
    """Run the command line, or say what is missing."""
    secure_standard_streams()
    try:
        from .commands import run

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.exit("The command kernelbank needs click and rich: pip install 'kernelbank[cli]'")
