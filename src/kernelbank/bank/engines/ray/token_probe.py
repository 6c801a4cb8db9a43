"""A script: call a Ray cluster as this process's environment says, and print how it answers.

It runs in a process of its own, because Ray reads its token and its settings once per process.
"""

import os
import sys
from typing import Any


def main(address: str) -> None:
    """Print "accepted" or "refused"; anything else that happens is an error of the process."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != folder]  # no top-level modules

    import ray._raylet as module
    from ray.exceptions import AuthenticationError

    raylet: Any = module
    try:
        client = raylet.GcsClient(address=address)
        client.internal_kv_get(b"kernelbank", namespace=b"kernelbank", timeout=10)
    except AuthenticationError:
        print("refused")
    else:
        print("accepted")


if __name__ == "__main__":
    main(sys.argv[1])
