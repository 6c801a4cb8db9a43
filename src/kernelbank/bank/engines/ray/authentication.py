"""The token of a Ray cluster, and whether a cluster refuses whoever does not have it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ....errors import KernelBankError

MODE = "RAY_AUTH_MODE"
_PROBE = Path(__file__).with_name("token_probe.py")
_PATIENCE = 60.0  # seconds that a cluster may take to answer


def token_path() -> Path:
    """The file in which Ray looks for the token that all processes of a cluster share."""
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(path) if path else Path.home() / ".ray" / "auth_token"


def has_token() -> bool:
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or token_path().exists()


def ensure_token() -> None:
    """Write a token if there is none, readable by this user only (Ray's own is world-readable)."""
    if os.environ.get(MODE) != "token" or has_token():
        return
    path = token_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):  # another process was faster
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(32))


def is_enforced(address: str) -> bool:
    """Whether the cluster at host:port refuses calls without a token and with a wrong one.

    Raises OSError if nobody answers there.
    """
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    strangers = (
        {MODE: "disabled"},
        {MODE: "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)},
    )
    with ThreadPoolExecutor(len(strangers)) as pool:
        answers = list(pool.map(lambda settings: probe(address, settings), strangers))
    return all(answer == "refused" for answer in answers)


def probe(address: str, settings: Mapping[str, str]) -> str:
    """How the cluster answers a process with these settings: "accepted" or "refused"."""
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("RAY_AUTH_")}
    try:
        ended = subprocess.run(
            [sys.executable, str(_PROBE), address],
            env={**inherited, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            start_new_session=True,  # Ctrl-C is for the driver
            check=False,
        )
        answer = (ended.stdout.splitlines() or [""])[-1]
        problem = (ended.stderr.splitlines() or [f"exit code {ended.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        answer, problem = "", f"no answer within {_PATIENCE:g} seconds"
    if answer not in ("accepted", "refused"):
        raise KernelBankError(
            f"Cannot find out whether the Ray cluster at {address} requires a token: {problem}. "
            "Nothing was sent to it. Do the cluster and this program have the same version of Ray?"
        )
    return answer
