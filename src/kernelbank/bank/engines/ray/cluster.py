"""The way to Ray: imported late, started with safe settings, and seats for shards in it."""

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
from .shard_worker import OutOfStep, Station

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing about this program leaves the machine
    "RAY_AUTH_MODE": "token",
}


def imported() -> Any:
    """The module `ray`, or a polite refusal."""
    early = "ray" not in sys.modules
    fresh = {name: value for name, value in _QUIET.items() if name not in os.environ}
    os.environ.update(fresh)  # Ray reads them when it is imported, and hands them to its processes
    try:
        import ray as found
    except ImportError:
        for name in fresh:
            del os.environ[name]
        raise KernelBankError(
            "The engine Ray needs the package ray, which is not installed. "
            "Install it: pip install 'kernelbank[ray]'."
        ) from None
    ray: Any = found
    if not early and not ray.is_initialized():
        with suppress(AttributeError):  # imported before: let it read them again
            ray._raylet.Config.initialize("")
    return ray


def token_file() -> Path:
    """Where Ray looks for the token with which its processes know each other."""
    given = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(given) if given else Path.home() / ".ray" / "auth_token"


def ensure_token() -> None:
    """Make the token if there is none, readable for this user only (Ray's own is for everybody)."""
    if os.environ.get("RAY_AUTH_MODE") != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = token_file()
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):  # another process was quicker
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(32))


def connected(address: str | None) -> Any:
    """Ray, initialised: as the caller has done it, or else by us, on this machine or at an address.

    What we start ends with this process; what was there before is left as it is.
    """
    ray = imported()
    if ray.is_initialized():
        return ray
    if address is None:
        ensure_token()
    elif os.environ.get("RAY_AUTH_MODE") == "token" and not (
        os.environ.get("RAY_AUTH_TOKEN") or token_file().exists()
    ):
        raise KernelBankError(
            f"There is no token to join the cluster at {address} with. Copy the head node's to "
            f"{token_file()}, or name its file in RAY_AUTH_TOKEN_PATH; see docs/ray.md."
        )
    own = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(
            address="local" if address is None else address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **own,
        )
    except ConnectionError as error:
        raise KernelBankError(
            f"No Ray cluster lets us in at {address}: {error}. Is it running, can it be reached, "
            "and is the token here the head node's? See docs/ray.md."
        ) from error
    return ray


@cache
def edition() -> str:
    """What must be equal where shards of one bank work, so that they compute the same bits."""
    package = Path(__file__).parents[3]
    files = sorted(package.rglob("*.py"))
    sources = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    names = ("numba", "numpy")
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    return f"kernelbank {__version__} ({sources}), {found}"


def processors(ray: Any) -> int:
    """The processors of the cluster as it is now."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


class Seat:
    """A process of Ray's that holds a station. It can be given another one."""

    def process(self, expected: str) -> int:
        """The number of the process, if its packages are those of the driver."""
        if edition() != expected:
            raise KernelBankError(
                f"A node of the cluster has {edition()}, and the driver {expected}. "
                "Install the same versions on all nodes, so that all compute the same bits."
            )
        return os.getpid()

    def open(
        self, epoch: int, recipe: tuple[Any, ...], numbers: list[int], first_input: Any
    ) -> None:
        """Make the station. Questions aside that were meant for the one before are refused."""
        self._epoch = epoch
        objective, layout, size, values = recipe
        self._station = Station(objective, layout, numbers, size, first_input, values=values)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the station, in the order of the calls."""
        return getattr(self._station, name)(*arguments)

    def ask_aside(self, epoch: int, name: str, *arguments: Any) -> Any:
        """The same, beside what is going on: for blocks that are put aside."""
        if epoch != self._epoch:
            raise OutOfStep("this question was meant for a station that is gone")
        return getattr(self._station, name)(*arguments)


@cache
def _seat_class() -> Any:
    ray = imported()

    class Remote(Seat):
        ask_aside = ray.method(concurrency_group="aside")(Seat.ask_aside)

    Remote.__name__ = Remote.__qualname__ = "kernelbank.Seat"
    return ray.remote(concurrency_groups={"aside": 1})(Remote)


_idle: list[tuple[str, Any]] = []
_MOST_IDLE = 16


def release(cluster: str, cpus: float, seats: list[Any]) -> None:
    """A bank needs them no more: they wait for the next one, or end.

    Called whenever a bank is collected, so nothing is asked of Ray here. It ends a process by
    itself when nobody has a handle of it.
    """
    if cpus == 0:
        _idle.extend((cluster, seat) for seat in seats[: _MOST_IDLE - len(_idle)])
    seats.clear()


def cluster_name(ray: Any) -> str:
    """Something that no two clusters have in common."""
    return str(ray.get_runtime_context().get_node_id())


def idle_seat(cluster: str, cpus: float) -> Any:
    """A process that another bank has left, or None."""
    while _idle and cpus == 0:
        known, seat = _idle.pop()
        if known == cluster:
            return seat
    return None


def new_seat(cpus: float) -> Any:
    """A new process for a shard, on whichever node has most room; it starts in the background."""
    options = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
    return _seat_class().options(**options).remote()


def lost(ray: Any) -> tuple[type[Exception], ...]:
    """What Ray raises when a process, a node, or a result on it is gone."""
    errors = ray.exceptions
    return (
        errors.RayActorError,
        errors.ObjectLostError,
        errors.WorkerCrashedError,
        errors.NodeDiedError,
        errors.OutOfMemoryError,
        OutOfStep,
    )
