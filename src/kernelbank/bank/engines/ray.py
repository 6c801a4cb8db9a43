"""The Ray engine in the driver: every shard of slots is a process of a Ray cluster.

The way of a block:

1. It is sent to the processes, and so are later ones, so that they can go ahead of the driver.
2. Each process learns it with a `ShardWorker` (`ray_worker.py`), and hands over what its learners
   have left behind: predictions, values on the window, norms.
3. The driver has a bank of the core whose learners copy these records. So it scores, weighs and
   mixes the slots by the code of every other bank.

There is one way back, from whatever has happened: a process that is lost gets another one, blocks
on their way are forgotten, and all shards begin with their last snapshots and learn the blocks that
the driver has learned since. It takes all of them the time that it takes one.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import signal
import socket
import threading
import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from ... import _core
from ...errors import KernelBankError, KernelBankWarning, ShardLost
from ...utils import validation as check
from ...utils.validation import Floats
from ...utils.whole_steps import defer_signals
from .base import Description, Engine, Models, Snapshot, bank_from
from .ray_worker import (
    OutOfOrder,
    Samples,
    ShardWorker,
    build_fingerprint,
    describe_driver,
    describe_shard,
    partition,
    renumbered,
)

if TYPE_CHECKING:
    from ..settings import BankSettings

Method = TypeVar("Method", bound=Callable[..., Any])

RayModule = Any
"""The package ray, which is imported late and has few types."""

Reference = Any
"""What refers to an answer or a value in the cluster, or to a process."""

_FIRST_VERSION = (2, 52)  # of Ray: older ones have no authentication
_BLOCK_BYTES = 64 * 2**20  # most memory of the records of a block, of which up to three are around
_LONGEST, _SHORTEST = 1024, 8  # samples of a block
_SMALL = 16_384  # bytes that travel faster with the call than through the object store
_WARN_AFTER = 5.0  # seconds of waiting for a process
_MAX_IDLE = 16  # processes


@dataclass(frozen=True)
class Ray(Engine):
    """Run the shards in processes of a Ray cluster. Same bits as `Serial`.

    The shards learn the next blocks while the driver computes the weights of this one. A process
    or node that is lost is replaced and learns the lost blocks again: the result is that of an
    undisturbed run. If Ray is already initialised in this process, it is used as it is. Else it is
    started here, with a token and without dashboard and usage statistics, or joined at `address`.
    Your own kernels, losses, learners and models are sent to the other processes by pickle.

    The engine is for `run` with many samples and slots. `learn_one` and `predict_one` take several
    milliseconds longer than on `Serial`.

    Parameters
    ----------
    shards : number of shards; by default the cluster's processors when the bank starts.
    address : of a cluster to join, such as "auto" or "10.0.0.1:6379"; None for this machine.
    block : samples per block; by default up to 1024, fewer where a block would fill the memory.
    retries : how often in a row a shard may be brought back within one call.
    patience : seconds that a shard may wait for a process, such as for a node that joins.
    replay : samples after which the driver fetches snapshots of the shards. After a fault at most
        these samples, and the blocks on their way, are learned again.
    cpus : processors that Ray reserves for each shard; 0 lets shards share them.
    allow_unauthenticated : use a cluster that does not require a token. Whoever reaches such a
        cluster may run code on it and read what is sent to it; by default it is refused.

    >>> import kernelbank as kb
    >>> engine = kb.engines.Ray(shards=4)  # nothing starts before a bank gets its first sample
    """

    shards: int | None = check.count_field(None, "Give 1 or more, or None for one per processor.")
    address: str | None = None
    block: int | None = check.count_field(
        None, "Give 1 to 65536, or None to let it be chosen.", most=65536
    )
    retries: int = check.count_field(3, "Give 0 or more.", least=0)
    patience: float = check.number_field(60.0, "Give seconds, such as 60.", above=0)
    replay: int = check.count_field(16_384, "Give a number of samples, such as 16384.")
    cpus: float = check.number_field(0.0, "Give 0 or more, such as 1.", least=0)
    allow_unauthenticated: bool = check.flag_field(
        False, "Give True if nobody else can reach the cluster."
    )
    rows: ClassVar[int] = 2**16  # long calls: after each, the shards wait for the next one

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.address is None or (isinstance(self.address, str) and self.address)):
            remedy = 'Give "auto" or the head node\'s host:port, or None for this machine.'
            raise self._refuse("address", "be a text or None", remedy)

    def open(
        self, settings: BankSettings, dimension: int, local: _core.Bank | None = None
    ) -> RayBank:
        # C functions are refused here: a description has their addresses only.
        import_ray().cloudpickle.dumps((settings.slots, settings.losses))
        return RayBank(self, settings.describe(dimension), local)

    def block_length(self, description: Description) -> int:
        """Samples that are sent at a time."""
        if self.block is not None:
            return self.block
        numbers = description["slots"] * len(description["losses"]) * (description["window"] + 3)
        return max(_SHORTEST, min(_LONGEST, int(_BLOCK_BYTES // (8 * numbers))))


# --- the cluster ----------------------------------------------------------------------------------


def import_ray() -> RayModule:
    """Ray, if it is installed and new enough."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    try:
        import ray

        version = ray.__version__
    except ImportError:
        version = "none"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _FIRST_VERSION:
        raise KernelBankError(
            "The engine Ray needs the package ray, 2.52 or newer: older ones have no "
            f"authentication. Installed: {version}. On all nodes: pip install -U 'kernelbank[ray]'."
        )
    return ray


def connect(settings: Ray) -> RayModule:
    """Return `ray`, initialised: by the caller, or else by us, on this machine or at an address.

    A cluster whose head does not require a token is refused before anything of a bank is sent.
    """
    ray = import_ray()
    was_initialised = ray.is_initialized()
    if not was_initialised:
        _initialise(ray, settings)
    if settings.allow_unauthenticated:
        return ray
    on_head = ray.remote(num_cpus=0, resources={"node:__internal_head__": 0.001})
    mode = ray.get(on_head(os.getenv).remote("RAY_AUTH_MODE"), timeout=settings.patience)
    if str(mode).lower() != "token":
        cluster = f"{ray.get_runtime_context().gcs_address}, where RAY_AUTH_MODE is {mode}"
        if not was_initialised:
            ray.shutdown()
        raise check.refuse(
            "address",
            "be that of a cluster that requires a token, else strangers may run code on it",
            cluster,
            "Start all its nodes with RAY_AUTH_MODE=token and one token (docs/ray.md). If nobody "
            "else can reach it: allow_unauthenticated=True, or --ray-allow-unauthenticated.",
            "Ray",
        )
    return ray


def _initialise(ray: RayModule, settings: Ray) -> None:
    """Start Ray on this machine, with a token, or join the cluster at the address."""
    address = settings.address
    if address is None or not settings.allow_unauthenticated:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None and not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # a new one, in no file
    from ray._raylet import Config  # type: ignore[attr-defined]

    Config.initialize("")  # reads the environment again
    local = {} if address else {"include_dashboard": False}
    host, _, port = (address or "").rpartition(":")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        if port.isdecimal():  # if nobody answers there, Ray tries for minutes
            socket.create_connection((host.strip("[]"), int(port)), settings.patience).close()
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **local)
    except (OSError, ValueError, ray.exceptions.AuthenticationError) as error:
        raise KernelBankError(
            f"Cannot join a Ray cluster at {address} ({_first_line(error)}). Is it running, can it "
            "be reached, and is the token here that of the head node? See docs/ray.md."
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)  # Ray's would end a run without its checkpoint


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# --- the processes --------------------------------------------------------------------------------


@dataclass
class Shard:
    """Some packs of a bank, and the process in which they are."""

    ray: RayModule
    settings: Ray
    label: str
    packs: list[int]
    slots: Any  # (S,): those of the packs
    description: Description
    snapshot: Snapshot | None = None  # None: nothing learned
    process_id: int = 0
    actor: Reference = None
    started: Reference = None

    def start(self, idle: Reference = None) -> None:
        """Take a process, an idle one or a new one, which starts in the background."""
        if self.actor is not None:
            self.ray.kill(self.actor)
        cpus = self.settings.cpus
        remote = self.ray.remote(num_cpus=cpus, max_restarts=0, scheduling_strategy="SPREAD")
        self.actor = idle or remote(ShardWorker).remote()
        self.started = self.actor.check_build.remote(build_fingerprint())

    def wait(self) -> Reference:
        """Wait until the process runs, or has failed to; the reference to its number."""
        patience = self.settings.patience
        ready, waiting = self.ray.wait([self.started], timeout=min(_WARN_AFTER, patience))
        if waiting:
            warnings.warn(
                f"{self.label} waits for a process in the Ray cluster, {patience:g} seconds at "
                "most. If no node has room for it, another one may join.",
                KernelBankWarning,
                stacklevel=2,
            )
            ready, _ = self.ray.wait(waiting, timeout=max(0.0, patience - _WARN_AFTER))
        if not ready:
            raise self.lost(f"it got no process within its patience of {patience:g} seconds")
        return self.started

    def lost(self, reason: str) -> ShardLost:
        """The error to raise when the shard cannot be brought back."""
        return ShardLost(
            f"{self.label} is lost: {reason}. The bank stands after its last whole block: save it, "
            "or repair the cluster and go on with the next samples. Do all nodes have room, "
            "kernelbank, and the RAY_AUTH_MODE and token of this program? See docs/ray.md."
        )

    def part_of(self, arrays: Mapping[str, np.ndarray], models: Models) -> Snapshot:
        """The shard's part of the state of the bank."""
        place = {number: i for i, number in enumerate(self.packs)}
        return renumbered(arrays, place), {i: models[n] for n, i in place.items() if n in models}


SentBlock = tuple[Samples, list[Reference]]
"""The samples of a block, and what `ShardWorker.learn` returns for it, of every shard."""

_idle: dict[str, list[Reference]] = {}
"""By cluster: processes of banks that are gone, for the next banks. Cheaper than new ones."""


def _release(idle: list[Reference], shards: list[Shard]) -> None:
    """Keep the processes of a bank that is gone. (The garbage collector calls: ask Ray nothing.)"""
    idle.extend(shard.actor for shard in shards)
    del idle[:-_MAX_IDLE]
    shards.clear()


# --- the bank -------------------------------------------------------------------------------------


def _in_turn(method: Method) -> Method:
    """One caller at a time; the core refuses a call from inside, as by a user's combiner."""

    @wraps(method)
    def call(bank: RayBank, *arguments: object) -> object:
        with bank._lock:
            _ = bank.samples
            bank._failures.clear()
            return method(bank, *arguments)

    return cast(Method, call)


class RayBank:
    """A bank whose slots run in processes of a Ray cluster; methods are those of `EngineBank`."""

    def __init__(
        self, settings: Ray, description: Description, local: _core.Bank | None = None
    ) -> None:
        """local : a bank in this process with the same slots, from which this one goes on."""
        self._ray = ray = connect(settings)
        self._settings = settings
        self._description = description
        self._lock = threading.RLock()
        number = settings.shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
        shards = partition(description["packs"], number)
        self._driver = driver = _core.Bank(describe_driver(description, shards))
        self.weights, self.weight_sums = driver.weights, driver.weight_sums
        self.clear_weight_sums, self.alerts = driver.clear_weight_sums, driver.alerts
        self._block = settings.block_length(description)
        length, self._shards = min(_core.SLIDE_PERIOD, description["block"] * len(shards)), []
        for k, packs in enumerate(shards):
            slots = np.concatenate([description["packs"][number]["slots"] for number in packs])
            part = describe_shard(description, packs, length)
            label = f"Shard {k} of {len(shards)}"
            self._shards.append(Shard(ray, settings, label, packs, slots, part))
        self._learned: list[Samples] = []  # by the driver, since the snapshots
        self._apart = True  # shards may not have learned what the driver has
        self._failures: Counter[str] = Counter()  # of shards in a row, by label
        shape = (len(description["losses"]), description["slots"])
        self._dropped, self._step_ratio = np.zeros(shape), np.zeros(shape)
        idle: list[Reference] = []
        if settings.cpus == 0:
            gc.collect()  # banks that are gone release their processes
            idle = _idle.setdefault(str(ray.get_runtime_context().get_node_id()), idle)
            weakref.finalize(self, _release, idle, self._shards)
        for shard in self._shards:
            shard.start(idle.pop() if idle else None)
        if local is not None:
            arrays, models = local.state(), local.models()
            driver.restore({name: arrays[name] for name in driver.state()})
            self._dropped, self._step_ratio = local.ledger()["dropped"], local.step_ratio()
            self._begin_with([shard.part_of(arrays, models) for shard in self._shards])

    # --- calls ------------------------------------------------------------------------------------

    def _collect(self, references: Sequence[Reference]) -> list[Any] | None:
        """The answers of all shards. None if a shard was lost, which then has another process."""
        try:
            return list(self._ray.get(list(references)))  # one wait for all costs less
        except self._ray.exceptions.RayError:
            self._apart = True
        for shard, reference in zip(self._shards, references, strict=True):
            try:
                self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", error)  # of one that was raised in the process
                if not isinstance(cause, (OutOfOrder, self._ray.exceptions.RayError)):
                    raise cause from None
                self._failures[shard.label] += 1
                failures = self._failures[shard.label]
                if failures > self._settings.retries:
                    reason = f"its process ended {failures} times ({_first_line(error)})"
                    raise shard.lost(reason) from error
                shard.start()
        return None

    def _synchronize(self) -> None:
        """Let all shards be where the driver is."""
        samples = self._ray.put(self._since_snapshots()) if self._apart else None
        while self._apart:
            numbers = self._collect([shard.wait() for shard in self._shards])
            if numbers is None:
                continue
            for shard, number in zip(self._shards, numbers, strict=True):
                shard.process_id = number
            opening = [
                s.actor.open.remote(s.description, s.snapshot, samples) for s in self._shards
            ]
            self._apart = self._collect(opening) is None

    def _since_snapshots(self) -> Samples | None:
        """The samples that the driver has learned since the snapshots, if any."""
        if not self._learned:
            return None
        X, y = zip(*self._learned, strict=True)
        return np.concatenate(X), np.concatenate(y)

    def _ask(self, method: str, *arguments: object) -> list[Any]:
        """What a method of the workers returns, of every shard, which are where the driver is."""
        while True:
            self._synchronize()
            calls = [getattr(shard.actor, method) for shard in self._shards]
            answers = self._collect([call.remote(*arguments) for call in calls])
            if answers is not None:
                return answers

    def _ask_slots(self, method: str, X: Floats) -> Floats:
        """(n, K, P): what a method of the workers returns for inputs (n, d)."""
        points = X.copy() if X.nbytes < _SMALL else self._ray.put(X)
        return self._by_slot(self._ask(method, points))

    def _by_slot(self, answers: Sequence[Floats]) -> Floats:
        """(..., P): the answers, (..., S of the shard) each, in the order of the bank's slots."""
        out = np.empty((*answers[0].shape[:-1], self._description["slots"]))
        for shard, values in zip(self._shards, answers, strict=True):
            out[..., shard.slots] = values
        return out

    # --- learning ---------------------------------------------------------------------------------

    @_in_turn
    def learn(
        self,
        X: Floats,
        y: Floats,
        past: Floats | None,
        trace: dict[str, Floats],
        delay: float = 0.0,
    ) -> None:
        """Learn samples block by block; a block that fails is undone, those before it stay."""
        blocks = [slice(start, start + self._block) for start in range(0, len(X), self._block)]
        done, first = 0, self._driver.samples
        sent: deque[SentBlock] = deque()

        def send(most: int) -> None:
            """Send blocks until so many are on their way."""
            for rows in blocks[done + len(sent) : done + most]:
                sent.append(self._send(first + rows.start, X[rows], y[rows]))

        try:
            while done < len(blocks):
                if self._apart:
                    sent.clear()
                    self._synchronize()
                send(2)
                answers = self._collect(sent[0][1])
                if answers is None:
                    continue
                send(3)  # for the time in which the driver works
                rows, (samples, _) = blocks[done], sent.popleft()
                arrays = {name: array[rows] for name, array in trace.items()}
                self._finish(samples, answers, None if past is None else past[rows], arrays, delay)
                done += 1
        except BaseException:
            self._apart = True
            raise

    def _send(self, first: int, X: Floats, y: Floats) -> SentBlock:
        """Let all shards learn a block, whose first sample has this number, counted from 0."""
        samples = X.copy(), y.copy()  # the caller may change his arrays
        reference = samples if X.nbytes < _SMALL else self._ray.put(samples)
        replay = self._settings.replay
        with_snapshot = first // replay < (first + len(X)) // replay
        answers = [s.actor.learn.remote(first, reference, with_snapshot) for s in self._shards]
        return samples, answers

    def _finish(
        self,
        samples: Samples,
        answers: Sequence[tuple[dict[str, Floats], Snapshot | None]],
        past: Floats | None,
        trace: dict[str, Floats],
        delay: float,
    ) -> None:
        """Let the driver learn a block."""
        records, snapshots = zip(*answers, strict=True)
        packs = [shard.packs for shard in self._shards]
        with defer_signals():  # shards and driver must fit together
            self._driver.learn_elsewhere(
                *samples, past, trace, list(zip(packs, records, strict=True)), delay
            )
            self._dropped = self._by_slot([record["dropped"] for record in records])
            self._step_ratio = self._by_slot([record["step_ratio"] for record in records])
            self._failures.clear()
            self._learned.append(samples)
            if None not in snapshots:
                self._begin_with(snapshots)

    def _begin_with(self, snapshots: Sequence[Snapshot]) -> None:
        """Let every shard begin with its snapshot, of now, from now on."""
        with defer_signals():  # snapshots and blocks must fit together
            for shard, snapshot in zip(self._shards, snapshots, strict=True):
                shard.snapshot = snapshot
            self._learned.clear()

    def learn_one(self, x: object, y: object) -> int:
        return 0  # every sample is checked before it is sent

    # --- predicting -------------------------------------------------------------------------------

    def predict_one(self, x: object) -> Any:
        return None

    @_in_turn
    def predict_slots_one(self, x: Floats) -> tuple[Floats, Floats]:
        slots = self._ask_slots("predict_slots", x[None])
        return self._driver.combine(slots)[0], slots[0]

    @_in_turn
    def predict(self, X: Floats) -> Floats:
        return self._driver.combine(self._ask_slots("predict_slots", X))

    @_in_turn
    def predict_slots(self, X: Floats) -> Floats:
        return self._ask_slots("predict_slots", X)

    @_in_turn
    def variance_slots(self, X: Floats) -> Floats:
        return self._ask_slots("variance_slots", X)

    # --- what the driver knows --------------------------------------------------------------------

    @property
    def samples(self) -> int:
        return self._driver.samples

    @property
    def bytes(self) -> int:
        return _core.Bank(self._description).bytes

    def ledger(self) -> dict[str, Floats]:
        return self._driver.ledger() | {"dropped": self._dropped.copy()}

    def step_ratio(self) -> Floats:
        return self._step_ratio.copy()

    # --- state ------------------------------------------------------------------------------------

    def state(self, begin: str = "") -> dict[str, np.ndarray]:
        return {name: a for name, a in self._parts()[0].items() if name.startswith(begin)}

    def models(self) -> dict[int, list[object]]:
        return self._parts()[1]

    @_in_turn
    def _parts(self) -> tuple[dict[str, np.ndarray], dict[int, list[object]]]:
        """The arrays and models, as those of a bank in one process: those of packs are the shards'.

        If a shard is lost, the driver learns it again.
        """
        try:
            snapshots = self._ask("snapshot")
        except ShardLost:
            samples, worker, snapshots = self._since_snapshots(), ShardWorker(), []
            for shard in self._shards:
                worker.open(shard.description, shard.snapshot, samples)
                snapshots.append(worker.snapshot())
        arrays: dict[str, np.ndarray] = {}
        models: dict[int, list[object]] = {}
        for shard, (shard_arrays, shard_models) in zip(self._shards, snapshots, strict=True):
            arrays |= renumbered(shard_arrays, dict(enumerate(shard.packs)))
            models |= {shard.packs[i]: of_pack for i, of_pack in shard_models.items()}
        driver = self._driver.state().items()
        return arrays | {n: a for n, a in driver if not n.startswith("pack")}, models

    def to_local(self) -> _core.Bank:
        """The same bank in this process."""
        return bank_from(self._description, self._parts())

    def copy(self) -> RayBank:
        return RayBank(self._settings, self._description, self.to_local())
