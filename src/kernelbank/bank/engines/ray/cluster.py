"""Start or join a Ray cluster, with safe defaults. Ray is imported only when a bank needs it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import os
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .... import __version__
from ....errors import KernelBankError
from ....utils.interrupts import defer_signals
from . import authentication
from .signals import defer_sigterm
from .watcher import start_watcher

_FIRST_VERSION = (2, 52)  # of Ray: older ones have no authentication
_SAFE_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing about this program leaves the machine
    authentication.MODE: "token",
}


def import_ray() -> Any:
    """Import `ray` with safe defaults, or explain how to install it."""
    first_import = "ray" not in sys.modules
    added = {name: value for name, value in _SAFE_DEFAULTS.items() if name not in os.environ}
    os.environ.update(added)  # Ray reads them when it is imported, and passes them on
    try:
        ray = _import_ray()
    except KernelBankError:
        for name in added:
            del os.environ[name]
        raise
    if not first_import and not ray.is_initialized():
        _read_settings_again(ray)
    return ray


def _import_ray() -> Any:
    try:
        import ray as module
    except ImportError:
        raise KernelBankError(
            "The engine Ray needs the package ray, which is not installed. "
            "Install it: pip install 'kernelbank[ray]'."
        ) from None
    ray: Any = module
    if tuple(map(int, re.findall(r"\d+", ray.__version__)[:2])) < _FIRST_VERSION:
        raise KernelBankError(
            f"The engine Ray needs ray 2.52 or newer; {ray.__version__} is installed. Older "
            "versions have no authentication: whoever reaches the cluster may run code on it. "
            "Install a newer one, on all nodes: pip install -U 'kernelbank[ray]'."
        )
    return ray


def _read_settings_again(ray: Any) -> None:
    """Let Ray read the environment, as it did when it was imported."""
    with suppress(AttributeError):
        ray._raylet.Config.initialize("")


# --- connecting -----------------------------------------------------------------------------------

_enforced: dict[str, bool] = {}
"""By `cluster_id`: whether the cluster refuses calls without its token."""


def connect(address: str | None, *, allow_unauthenticated: bool) -> Any:
    """Return `ray`, initialised: by the caller, or else by us, on this machine or at an address.

    Before anything of the bank is sent, the cluster has refused a call without its token; a
    cluster that does not is refused, unless it is allowed. What we start ends with this process;
    what was running before is left as it is.
    """
    ray = import_ray()
    if not ray.is_initialized() and address is not None:
        _join(ray, address, allow_unauthenticated=allow_unauthenticated)
    started = not ray.is_initialized()
    if started:
        _start(ray)
    try:
        _check(ray, allow_unauthenticated=allow_unauthenticated)
    except BaseException:
        if started:
            ray.shutdown()
        raise
    return ray


def _start(ray: Any) -> None:
    """Start a cluster of this machine alone."""
    authentication.ensure_token()
    start_watcher()
    with defer_signals():  # an interrupted start would leave processes that Ray does not know
        _init(ray, "local", include_dashboard=False)


def _join(ray: Any, address: str, *, allow_unauthenticated: bool) -> None:
    """Join a running cluster. Not even the token is sent to one that does not require it."""
    try:
        found = _resolve(ray, address)
        enforced = authentication.is_enforced(found)
        _refuse_unless(enforced or allow_unauthenticated, found)
        if enforced and os.environ.get(authentication.MODE) == "token":
            _require_token(address)
        before = os.environ[authentication.MODE]
        if not enforced:  # its processes have no token to answer with
            os.environ[authentication.MODE] = "disabled"
            _read_settings_again(ray)
        try:
            _init(ray, found)
        finally:
            os.environ[authentication.MODE] = before
    except OSError as error:  # ConnectionError is one
        raise KernelBankError(
            f"Cannot join a Ray cluster at {address}: {error}. Is it running, can it be reached, "
            "and is the token here the head node's? See docs/ray.md."
        ) from error
    _enforced[cluster_id(ray)] = enforced


def _resolve(ray: Any, address: str) -> str:
    """host:port of a cluster; "auto" means the one that runs on this machine."""
    try:
        found = ray._private.services.canonicalize_bootstrap_address(address)
    except ValueError as error:
        raise ConnectionError(str(error)) from None
    if found is None:
        raise ConnectionError("no running cluster was found on this machine")
    return str(found)


def _init(ray: Any, address: str, **options: Any) -> None:
    with defer_sigterm():
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)


def _require_token(address: str) -> None:
    if not authentication.has_token():
        raise KernelBankError(
            f"There is no token to join the cluster at {address}. Copy the head node's token to "
            f"{authentication.token_path()}, or name its file in RAY_AUTH_TOKEN_PATH; see "
            "docs/ray.md."
        )


def _check(ray: Any, *, allow_unauthenticated: bool) -> None:
    """Refuse a cluster that does not require a token, unless it is allowed."""
    cluster = cluster_id(ray)
    address = ray.get_runtime_context().gcs_address
    if cluster not in _enforced:
        _enforced[cluster] = authentication.is_enforced(address)
    _refuse_unless(_enforced[cluster] or allow_unauthenticated, address)


def _refuse_unless(acceptable: bool, address: str) -> None:
    if not acceptable:
        raise KernelBankError(
            f"The Ray cluster at {address} does not require a token: whoever reaches it may run "
            "code on it, and read what is sent to it. Nothing of the bank was sent. Start all its "
            "nodes with RAY_AUTH_MODE=token and the same token (docs/ray.md). If nobody else can "
            "reach it, Ray(allow_unauthenticated=True), or --ray-allow-unauthenticated, uses it "
            "as it is."
        )


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
