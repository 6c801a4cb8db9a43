"""Start or join a Ray cluster, with safe defaults. Ray is imported only when a bank needs it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import os
import secrets
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .... import __version__
from ....errors import KernelBankError

_SAFE_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing about this program leaves the machine
    "RAY_AUTH_MODE": "token",
}


def import_ray() -> Any:
    """Import `ray` with safe defaults, or explain how to install it."""
    first_import = "ray" not in sys.modules
    added = {name: value for name, value in _SAFE_DEFAULTS.items() if name not in os.environ}
    os.environ.update(added)  # Ray reads them when it is imported, and passes them on
    try:
        import ray as module
    except ImportError:
        for name in added:
            del os.environ[name]
        raise KernelBankError(
            "The engine Ray needs the package ray, which is not installed. "
            "Install it: pip install 'kernelbank[ray]'."
        ) from None
    ray: Any = module
    if not first_import and not ray.is_initialized():
        with suppress(AttributeError):  # imported before: let it read the variables again
            ray._raylet.Config.initialize("")
    return ray


def token_path() -> Path:
    """The file in which Ray looks for the token that all processes of a cluster share."""
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(path) if path else Path.home() / ".ray" / "auth_token"


def ensure_token() -> None:
    """Write a token if there is none, readable by this user only (Ray's own is world-readable)."""
    if os.environ.get("RAY_AUTH_MODE") != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = token_path()
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):  # another process was faster
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(32))


def connect(address: str | None) -> Any:
    """Return `ray`, initialised: by the caller, or else by us, on this machine or at an address.

    What we start ends with this process; what was running before is left as it is.
    """
    ray = import_ray()
    if ray.is_initialized():
        return ray
    if address is None:
        ensure_token()
    elif os.environ.get("RAY_AUTH_MODE") == "token" and not (
        os.environ.get("RAY_AUTH_TOKEN") or token_path().exists()
    ):
        raise KernelBankError(
            f"There is no token to join the cluster at {address}. Copy the head node's token to "
            f"{token_path()}, or name its file in RAY_AUTH_TOKEN_PATH; see docs/ray.md."
        )
    options = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(
            address="local" if address is None else address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **options,
        )
    except ConnectionError as error:
        raise KernelBankError(
            f"Cannot join a Ray cluster at {address}: {error}. Is it running, can it be reached, "
            "and is the token here the head node's? See docs/ray.md."
        ) from error
    return ray


def cpu_count(ray: Any) -> int:
    """The processors of the cluster as it is now."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def cluster_id(ray: Any) -> str:
    """A text that no two clusters have in common."""
    return str(ray.get_runtime_context().get_node_id())


@cache
def build_fingerprint() -> str:
    """Versions that must be equal on all nodes, so that all compute the same bits."""
    package = Path(__file__).parents[3]
    files = sorted(package.rglob("*.py"))
    sources = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    return f"kernelbank {__version__} ({sources}), numpy {importlib.metadata.version('numpy')}"
