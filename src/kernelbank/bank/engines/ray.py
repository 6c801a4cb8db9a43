"""The Ray engine in the driver: every shard of slots is a process of a Ray cluster.

The way of a block:

1. It is sent to the processes, and so are later ones, so that they can go ahead of the driver.
2. Each process learns it with a `ShardWorker` (`ray_worker.py`), and hands over what its learners
   have left behind: predictions, values on the window, norms.
3. The driver has a bank of the core whose learners copy these records. So it scores, weighs and
   mixes the slots by the code of every other bank.
4. A process that is lost is replaced: the new one gets an earlier snapshot and learns the blocks
   since. Sample numbers make sure that nothing is learned twice or left out.
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
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from ... import _core
from ...errors import KernelBankError, KernelBankWarning, ShardLost
from ...utils import validation as check
from ...utils.validation import Floats
from ...utils.whole_steps import defer_signals
from .base import Description, Engine, EngineBank, Models
from .ray_worker import (
    OutOfOrder,
    Samples,
    ShardWorker,
    Snapshot,
    build_fingerprint,
    describe_driver,
    describe_shard,
    has_c_function,
    partition,
    renumbered,
    with_models,
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


def _checked_address(name: str, address: object, owner: str) -> object:
    if address is None or (isinstance(address, str) and address):
        return address
    remedy = 'Give "auto" or the head node\'s host:port, or None for this machine.'
    raise check.refuse(name, "be a text or None", address, remedy, owner)


def _checked_permission(name: str, allowed: object, owner: str) -> object:
    if isinstance(allowed, bool):
        return allowed
    remedy = "Give True if nobody else can reach the cluster."
    raise check.refuse(name, "be True or False", allowed, remedy, owner)


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
    address: str | None = field(default=None, metadata={"rule": _checked_address})
    block: int | None = check.count_field(
        None, "Give 1 to 65536, or None to let it be chosen.", most=65536
    )
    retries: int = check.count_field(3, "Give 0 or more.", least=0)
    patience: float = check.number_field(60.0, "Give seconds, such as 60.", above=0)
    replay: int = check.count_field(16_384, "Give a number of samples, such as 16384.")
    cpus: float = check.number_field(0.0, "Give 0 or more, such as 1.", least=0)
    allow_unauthenticated: bool = field(default=False, metadata={"rule": _checked_permission})
    rows: ClassVar[int] = 2**16  # long calls: after each, the shards wait for the next one

    def open(
        self,
        settings: BankSettings,
        dimension: int,
        models: Models | None = None,
        most_bytes: int | None = None,
    ) -> RayBank:
        description = settings.describe(dimension, models)
        if most_bytes is not None:
            _core.Bank(description, most_bytes)  # refused, if it is too large
        return RayBank(self, description)

    def to_local(self, bank: EngineBank) -> _core.Bank:
        assert isinstance(bank, RayBank)
        return bank.to_local()

    def from_local(self, settings: BankSettings, dimension: int, bank: _core.Bank) -> RayBank:
        ray_bank = self.open(settings, dimension, models=bank.models())
        ray_bank.continue_from(bank)
        return ray_bank

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


@dataclass(eq=False)
class SentBlock:
    """A block of samples that was sent to the shards."""

    first: int  # the number of its first sample, counted from 0
    samples: Samples
    reference: Reference  # the samples in Ray's object store, or as they are if small
    with_snapshot: bool
    records: dict[ShardProcess, Reference] = field(default_factory=dict)  # what `learn` returns
    snapshots: dict[ShardProcess, Reference] = field(default_factory=dict)  # after the block


class ShardProcess:
    """The process of one shard, and what brings the shard back in another one."""

    def __init__(
        self,
        ray: RayModule,
        settings: Ray,
        label: str,
        packs: list[int],
        whole: Description,
        block: int,
    ) -> None:
        """`whole`: the bank, of which the shard has some packs; `block`: its longest block."""
        self.label = label
        self.packs = packs
        self.slots = np.concatenate([whole["packs"][number]["slots"] for number in packs])
        self.snapshot: Snapshot | None = None  # None: nothing learned
        self.process_id = 0
        self.actor: Reference = None
        self._ray = ray
        self._settings = settings
        self._description = ray.put(describe_shard(whole, packs, block))

    def start(self, idle: Reference = None) -> None:
        """Take a process, an idle one or a new one, which starts in the background."""
        if self.actor is not None:
            self._ray.kill(self.actor)
        cpus = self._settings.cpus
        remote = self._ray.remote(num_cpus=cpus, max_restarts=0, scheduling_strategy="SPREAD")
        self.actor = idle or remote(ShardWorker).remote()
        self._started = self.actor.check_build.remote(build_fingerprint())

    def open(self) -> Reference:
        """Wait until the process runs. Make a shard that has learned nothing; its reference."""
        patience = self._settings.patience
        ready, waiting = self._ray.wait([self._started], timeout=min(_WARN_AFTER, patience))
        if waiting:
            warnings.warn(
                f"{self.label} waits for a process in the Ray cluster, {patience:g} seconds at "
                "most. If no node has room for it, another one may join.",
                KernelBankWarning,
                stacklevel=2,
            )
            ready, _ = self._ray.wait(waiting, timeout=max(0.0, patience - _WARN_AFTER))
        if not ready:
            raise self.lost(f"it got no process within its patience of {patience:g} seconds")
        self.process_id = self._ray.get(self._started)
        return self.actor.open.remote(self._description)

    def load(self, learned: Sequence[SentBlock], in_flight: Sequence[SentBlock]) -> list[Reference]:
        """Make a shard that has learned these blocks after the snapshot; send it the others."""
        replies = [self.open()]
        if self.snapshot is not None:
            replies.append(self.call("load", self.snapshot))
        replies += [self.call("replay", block.first, block.reference) for block in learned]
        for block in in_flight:
            self.send(block)
        return replies

    def call(self, method: str, *arguments: object) -> Reference:
        """Call a method of the worker, after all earlier calls; the reference to its answer."""
        return getattr(self.actor, method).remote(*arguments)

    def send(self, block: SentBlock) -> None:
        """Let the worker learn a block, after all earlier calls."""
        block.records[self] = self.call("learn", block.first, block.reference)
        if block.with_snapshot:
            block.snapshots[self] = self.call("snapshot")

    def lost(self, reason: str) -> ShardLost:
        """The error to raise when the shard cannot be brought back."""
        return ShardLost(
            f"{self.label} is lost: {reason}. The bank stands after its last whole block: save it, "
            "or repair the cluster and go on with the next samples. Do all nodes have room, "
            "kernelbank, and the RAY_AUTH_MODE and token of this program? See docs/ray.md."
        )

    def rebuild(self, learned: Sequence[SentBlock]) -> ShardWorker:
        """The same shard in this process: from the snapshot, and the blocks since."""
        worker = ShardWorker()
        worker.open(self._ray.get(self._description))
        if self.snapshot is not None:
            worker.load(self.snapshot)
        for block in learned:
            worker.replay(block.first, block.samples)
        return worker

    def part_of(self, arrays: Mapping[str, np.ndarray], models: Models) -> Snapshot:
        """The shard's part of the state of the bank."""
        place = {number: i for i, number in enumerate(self.packs)}
        return renumbered(arrays, place), {i: models[n] for n, i in place.items() if n in models}


_idle: list[tuple[str, Reference]] = []
"""Cluster and process of banks that are gone, for the next banks: cheaper than new ones."""


def _release(cluster: str, processes: list[ShardProcess]) -> None:
    """Keep the processes of a bank that is gone. (The garbage collector calls: ask Ray nothing.)"""
    _idle.extend((cluster, process.actor) for process in processes if process.actor is not None)
    del _idle[:-_MAX_IDLE]
    processes.clear()


# --- the bank -------------------------------------------------------------------------------------


def _in_turn(method: Method) -> Method:
    """One caller at a time; the core refuses a call from inside, as by a user's combiner."""

    @wraps(method)
    def call(bank: RayBank, *arguments: object) -> object:
        with bank._lock:
            _ = bank.samples
            return method(bank, *arguments)

    return cast(Method, call)


class RayBank:
    """A bank whose slots run in processes of a Ray cluster; methods are those of `EngineBank`."""

    def __init__(self, settings: Ray, description: Description) -> None:
        packs = description["packs"]
        if has_c_function([description["losses"], [[p["loss"], *p["kernels"]] for p in packs]]):
            rule = "be one of this process for a kernel or loss that is the address of a C function"
            remedy = 'Use engine="threads", or give a Python function.'
            raise check.refuse("engine", rule, settings, remedy)
        self._ray = ray = connect(settings)
        self._settings = settings
        self._description = description
        self._lock = threading.RLock()
        number = settings.shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
        shards = partition(packs, number)
        self._driver = driver = _core.Bank(describe_driver(description, shards))
        self.weights, self.weight_sums = driver.weights, driver.weight_sums
        self.clear_weight_sums, self.combiner_step = driver.clear_weight_sums, driver.combiner_step
        self.alerts = driver.alerts
        self._block = settings.block_length(description)
        length = min(_core.SLIDE_PERIOD, description["block"] * len(shards))
        self._processes = [
            ShardProcess(ray, settings, f"Shard {k} of {len(shards)}", packs, description, length)
            for k, packs in enumerate(shards)
        ]
        self._in_flight: deque[SentBlock] = deque()  # sent; the first is the driver's block
        self._learned: list[SentBlock] = []  # finished since the snapshots
        self._unsaved = 0  # samples sent since a snapshot was asked for
        self._unsent = 0  # the number of the next sample that is sent
        self._ahead = False  # shards have learned blocks that the driver will not finish
        shape = (len(description["losses"]), description["slots"])
        self._dropped, self._step_ratio = np.zeros(shape), np.zeros(shape)
        idle: list[Reference] = []
        if settings.cpus == 0:
            gc.collect()  # banks that are gone release their processes
            cluster = str(ray.get_runtime_context().get_node_id())
            weakref.finalize(self, _release, cluster, self._processes)
            idle = [actor for of, actor in _idle if of == cluster]
            _idle[:] = [(cluster, actor) for actor in idle[: -len(shards)]]
        for process, actor in zip_longest(self._processes, idle[-len(shards) :]):
            process.start(actor)
        for process in self._processes:
            self._answer(process, ShardProcess.open)

    # --- calls ------------------------------------------------------------------------------------

    def _answer(
        self,
        process: ShardProcess,
        ask: Callable[[ShardProcess], Reference],
        reference: Reference = None,
    ) -> Any:
        """What `ask` refers to, for one shard. If the shard is lost, bring it back and ask again.

        reference : what `ask` has returned, if it was called before.
        """
        failures = 0
        while True:
            try:
                if failures:
                    process.start()
                    self._ray.get(process.load(self._learned, self._in_flight))
                if failures or reference is None:
                    reference = ask(process)
                return self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", error)  # of one that was raised in the process
                if not isinstance(cause, (OutOfOrder, self._ray.exceptions.RayError)):
                    raise cause from None
                failures += 1
                if failures > self._settings.retries:
                    reason = f"its process ended {failures} times ({_first_line(error)})"
                    raise process.lost(reason) from error

    def _answers(self, ask: Callable[[ShardProcess], Reference]) -> list[Any]:
        """What `ask` refers to, for all shards."""
        references = [ask(process) for process in self._processes]
        try:
            return list(self._ray.get(references))  # one wait for all costs less
        except self._ray.exceptions.RayError:
            pairs = zip(self._processes, references, strict=True)
            return [self._answer(process, ask, reference) for process, reference in pairs]

    def _ask_slots(self, method: str, X: Floats) -> Floats:
        """(n, K, P): the answers of all shards, which are where the driver is, at inputs (n, d)."""
        self._synchronize()
        points = X.copy() if X.nbytes < _SMALL else self._ray.put(X)
        return self._by_slot(self._answers(lambda process: process.call(method, points)))

    def _by_slot(self, answers: Sequence[Floats]) -> Floats:
        """(..., P): the answers, (..., S of the shard) each, in the order of the bank's slots."""
        out = np.empty((*answers[0].shape[:-1], self._description["slots"]))
        for process, values in zip(self._processes, answers, strict=True):
            out[..., process.slots] = values
        return out

    # --- learning ---------------------------------------------------------------------------------

    @_in_turn
    def learn(self, X: Floats, y: Floats, past: Floats | None, trace: dict[str, Floats]) -> None:
        """Learn samples block by block; a block that fails is undone, those before it stay."""
        self._synchronize()
        length = self._block
        parts = [slice(start, start + length) for start in range(0, len(X), length)]
        upcoming = deque((X[rows], y[rows]) for rows in parts)
        self._unsent = self._driver.samples
        try:
            for rows in parts:
                self._send_blocks(upcoming, 2)
                block = self._in_flight[0]
                records = self._gather(block)
                self._send_blocks(upcoming, 3)  # for the time in which the driver works
                arrays = {name: array[rows] for name, array in trace.items()}
                self._finish(block, records, None if past is None else past[rows], arrays)
                self._fetch_snapshots(block)
        except BaseException:
            self._go_back()
            raise

    def _send_blocks(self, upcoming: deque[Samples], most: int) -> None:
        """Send blocks until so many are on their way."""
        while upcoming and len(self._in_flight) < most:
            X, y = upcoming.popleft()
            samples = X.copy(), y.copy()  # the caller may change his arrays
            self._unsaved += len(X)
            with_snapshot = self._unsaved >= self._settings.replay
            self._unsaved = 0 if with_snapshot else self._unsaved
            reference = samples if X.nbytes < _SMALL else self._ray.put(samples)
            block = SentBlock(self._unsent, samples, reference, with_snapshot)
            self._unsent += len(X)
            self._in_flight.append(block)
            for process in self._processes:
                process.send(block)

    def _gather(self, block: SentBlock) -> list[dict[str, Floats]]:
        return self._answers(lambda process: block.records[process])

    def _finish(
        self,
        block: SentBlock,
        records: Sequence[dict[str, Floats]],
        past: Floats | None,
        trace: dict[str, Floats],
    ) -> None:
        """Let the driver learn a block."""
        shards = [(p.packs, record) for p, record in zip(self._processes, records, strict=True)]
        with defer_signals():  # shards and driver must fit together
            self._driver.learn_elsewhere(*block.samples, past, trace, shards)
            self._dropped = self._by_slot([record["dropped"] for record in records])
            self._step_ratio = self._by_slot([record["step_ratio"] for record in records])
            block.records.clear()
            self._learned.append(self._in_flight.popleft())

    def _fetch_snapshots(self, block: SentBlock) -> None:
        """Take the snapshots after the last block, if it has some."""
        if not block.with_snapshot:
            return
        references = [block.snapshots.pop(process) for process in self._processes]
        try:
            self._keep(self._ray.get(references))
        except self._ray.exceptions.RayError:
            self._unsaved = self._settings.replay  # with the next block, then

    def _keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Let every shard begin with its snapshot from now on."""
        with defer_signals():  # snapshots and blocks must fit together
            for process, snapshot in zip(self._processes, snapshots, strict=True):
                process.snapshot = snapshot
            self._learned.clear()

    def _go_back(self) -> None:
        """Undo what the driver has not finished, in the shards at their next call."""
        self._in_flight.clear()
        self._ahead = True
        self._unsaved = sum(len(block.samples[0]) for block in self._learned)

    def _synchronize(self) -> None:
        """Let all shards be where the driver is."""
        if self._ahead:
            for process in self._processes:
                self._answer(process, lambda process: process.load(self._learned, ()))
            self._ahead = False

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
            self._synchronize()
            snapshots = self._answers(lambda process: process.call("snapshot"))
        except ShardLost:
            snapshots = [process.rebuild(self._learned).snapshot() for process in self._processes]
        arrays: dict[str, np.ndarray] = {}
        models: dict[int, list[object]] = {}
        for process, (shard_arrays, shard_models) in zip(self._processes, snapshots, strict=True):
            arrays |= renumbered(shard_arrays, dict(enumerate(process.packs)))
            models |= {process.packs[i]: of_pack for i, of_pack in shard_models.items()}
        driver = self._driver.state().items()
        return arrays | {n: a for n, a in driver if not n.startswith("pack")}, models

    def to_local(self) -> _core.Bank:
        """The same bank in this process."""
        arrays, models = self._parts()
        local = _core.Bank(with_models(self._description, models))
        local.restore(arrays)
        return local

    def continue_from(self, bank: _core.Bank) -> None:
        """Go on as a bank in this process with the same slots. (For a bank without callers.)"""
        arrays, models = bank.state(), bank.models()
        self._driver.restore({name: arrays[name] for name in self._driver.state()})
        self._dropped, self._step_ratio = bank.ledger()["dropped"], bank.step_ratio()
        self._keep([process.part_of(arrays, models) for process in self._processes])
        self._go_back()
        self._synchronize()

    def begin(self, *initial: Floats) -> None:
        local = _core.Bank(self._description)
        local.begin(*initial)
        self.continue_from(local)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        local = _core.Bank(self._description)
        local.restore(arrays)  # it checks everything, before a shard gets it
        self.continue_from(local)

    def copy(self) -> RayBank:
        local = self.to_local()
        other = RayBank(self._settings, with_models(self._description, local.models()))
        other.continue_from(local)
        return other
