"""The Ray engine in the driver: every shard of slots is a process of a Ray cluster.

The way of a block:

1. It is sent to the processes, and so are later ones, so that they can go ahead of the driver.
2. Each process learns it with a `ShardWorker` (`ray_worker.py`) and hands over the evidence.
3. The driver chooses the weights, and sends them. The processes return the parts of the bank's
   predictions that their leaves have.
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
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np

from ...errors import KernelBankError, KernelBankWarning, ShardLost
from ...kernels.sample_buffer import SampleBlock
from ...losses.objective import Objective
from ...native.workspace import SLIDE_PERIOD, Workspace
from ...utils import validation as check
from ...utils.interrupts import defer_signals
from ...utils.validation import Floats
from ..layout import Layout, Leaf
from .base import CombineStage, Engine, Executor, block_length, bytes_per_sample, partition
from .local import join_leaves
from .ray_worker import EVIDENCE, OutOfOrder, ShardActor, Snapshot, build_fingerprint

_FIRST_VERSION = (2, 52)  # of Ray: older ones have no authentication
_DRIVER_BYTES = 2**30  # most memory of a block in the driver
_SHARD_BYTES = 256 * 2**20  # most memory of a block in a shard, which has up to three of them
_LONGEST = 1024  # samples of a block
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

    shards: int | None = None
    address: str | None = None
    block: int | None = None
    retries: int = 3
    patience: float = 60.0
    replay: int = 16_384
    cpus: float = 0.0
    allow_unauthenticated: bool = False
    slide_aligned: ClassVar[bool] = False
    shares_outputs: ClassVar[bool] = False  # every output has processes of its own

    def __post_init__(self) -> None:
        if self.shards is not None:
            remedy = "Give 1 or more, or None for one per processor."
            check.count("shards", self.shards, "Ray", remedy)
        if self.address is not None and not (isinstance(self.address, str) and self.address):
            remedy = 'Give "auto" or the head node\'s host:port, or None for this machine.'
            raise check.refuse("address", "be a text or None", self.address, remedy, "Ray")
        if self.block is not None:
            remedy = "Give 1 to 65536, or None to let it be chosen."
            check.count("block", self.block, "Ray", remedy, most=65536)
        check.count("retries", self.retries, "Ray", "Give 0 or more.", least=0)
        check.number("patience", self.patience, "Ray", "Give seconds, such as 60.", above=0)
        check.count("replay", self.replay, "Ray", "Give a number of samples, such as 16384.")
        check.number("cpus", self.cpus, "Ray", "Give 0 or more, such as 1.", least=0)
        if not isinstance(allowed := self.allow_unauthenticated, bool):
            remedy, rule = "Give True if nobody else can reach the cluster.", "be True or False"
            raise check.refuse("allow_unauthenticated", rule, allowed, remedy, "Ray")

    def length(self, layout: Layout, objective: Objective, dimension: int) -> int:
        if self.block is not None:
            return self.block
        driver = 8 * (8 * len(layout.slots) + len(layout.leaves) * (objective.window + 3))
        evidence = 8 * len(EVIDENCE) * len(layout.slots)
        shard = (bytes_per_sample(layout, objective, dimension) + evidence) // (self.shards or 1)
        return max(8, min(_LONGEST, _DRIVER_BYTES // driver, _SHARD_BYTES // max(1, shard)))

    def open(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        leader: Executor | None = None,
    ) -> Executor:
        return RayExecutor(self, objective, layout, workspace, first_input)


# --- the cluster ----------------------------------------------------------------------------------


def import_ray() -> Any:
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


def connect(settings: Ray) -> Any:
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


def _initialise(ray: Any, settings: Ray) -> None:
    """Start Ray on this machine, with a token, or join the cluster at the address."""
    address = settings.address
    if address is None or not settings.allow_unauthenticated:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None and not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # a new one, in no file
    ray._raylet.Config.initialize("")  # reads the environment again
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
class SentBlock:
    """A block of samples that was sent to the shards."""

    samples: SampleBlock
    reference: Any
    """Inputs and targets as they are sent: in Ray's object store, or as they are if small."""
    with_snapshot: bool
    evidence: dict[ShardProcess, Any] = field(default_factory=dict)
    """References to what `ShardWorker.learn` returns."""
    snapshots: dict[ShardProcess, Any] = field(default_factory=dict)
    """References to the snapshots after the block, if they were asked for."""


class ShardProcess:
    """The process of one shard, and what brings the shard back in another one."""

    def __init__(
        self, ray: Any, settings: Ray, label: str, leaves: list[Leaf], shared: Any, first: Floats
    ) -> None:
        """`shared`: a reference to the arguments that all workers of the bank have in common."""
        self.label = label
        self.leaves = np.array(sorted(leaf.number for leaf in leaves))
        self.slots = np.array(sorted(slot for leaf in leaves for slot in leaf.slots))
        self.first_input = first
        self.snapshot: Snapshot | None = None  # None: nothing learned
        self.process_id = 0
        self.actor: Any = None
        self._ray = ray
        self._settings = settings
        self._shared = shared

    def start(self, idle: Any = None) -> None:
        """Take a process, an idle one or a new one, which starts in the background."""
        if self.actor is not None:
            self._ray.kill(self.actor)
        cpus = self._settings.cpus
        remote = self._ray.remote(num_cpus=cpus, max_restarts=0, scheduling_strategy="SPREAD")
        self.actor = idle or remote(ShardActor).remote()
        self._started = self.actor.check_build.remote(build_fingerprint())

    def open(self) -> Any:
        """Wait until the process runs. Make a worker that has learned nothing; its reference."""
        patience = self._settings.patience
        ready, _ = self._ray.wait([self._started], timeout=min(_WARN_AFTER, patience))
        if not ready:
            warnings.warn(
                f"{self.label} waits for a process in the Ray cluster, {patience:g} seconds at "
                "most. If no node has room for it, another one may join.",
                KernelBankWarning,
                stacklevel=2,
            )
            ready, _ = self._ray.wait([self._started], timeout=max(0.0, patience - _WARN_AFTER))
        if not ready:
            raise self.lost(f"it got no process within its patience of {patience:g} seconds")
        self.process_id = self._ray.get(self._started)
        return self.actor.open.remote(self._shared, self.leaves.tolist(), self.first_input)

    def load(self, learned: Sequence[SentBlock], in_flight: Sequence[SentBlock]) -> list[Any]:
        """Make a worker that has learned these blocks after the snapshot; send it the others."""
        replies = [self.open()]
        if self.snapshot is not None:
            replies.append(self.call("continue_from", self.snapshot))
        replies += [self.call("replay", each.samples.first, each.reference) for each in learned]
        for block in in_flight:
            self.send(block)
        return replies

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the worker, after all earlier calls; the reference to its answer."""
        return self.actor.call.remote(method, *arguments)

    def send(self, block: SentBlock) -> None:
        """Let the worker learn a block, after all earlier calls."""
        block.evidence[self] = self.call("learn", block.samples.first, block.reference)
        if block.with_snapshot:
            block.snapshots[self] = self.call("take_snapshot")

    def lost(self, reason: str) -> ShardLost:
        """The error to raise when the shard cannot be brought back."""
        return ShardLost(
            f"{self.label} is lost: {reason}. The bank stands after its last whole block: save it, "
            "or repair the cluster and go on with the next samples. Do all nodes have room, "
            "kernelbank, and the RAY_AUTH_MODE and token of this program? See docs/ray.md."
        )

    def rebuild(self, learned: Sequence[SentBlock]) -> ShardActor:
        """The same shard in this process: from the snapshot, and the blocks since."""
        actor = ShardActor()
        actor.open(self._ray.get(self._shared), self.leaves.tolist(), self.first_input)
        if self.snapshot is not None:
            actor.call("continue_from", self.snapshot)
        for samples in (block.samples for block in learned):
            actor.call("replay", samples.first, (samples.points, samples.targets))
        return actor


_idle: list[tuple[str, Any]] = []
"""Cluster and process of banks that are gone, for the next banks: cheaper than new ones."""


def _release(cluster: str, processes: list[ShardProcess]) -> None:
    """Keep the processes of a bank that is gone. (The garbage collector calls: ask Ray nothing.)"""
    _idle.extend((cluster, process.actor) for process in processes if process.actor is not None)
    del _idle[:-_MAX_IDLE]
    processes.clear()


# --- the executor ---------------------------------------------------------------------------------


class RayExecutor(Executor):
    """Shards in processes of a Ray cluster, on this machine or others."""

    fallible = True

    def __init__(
        self,
        settings: Ray,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
    ) -> None:
        self._ray = ray = connect(settings)
        self._settings = settings
        self._workspace = workspace
        number = settings.shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
        shards = partition(layout.dependency_groups(layout.leaves), number)
        length = block_length(layout, objective, len(first_input)) * len(shards)
        shared = ray.put((objective, layout, min(SLIDE_PERIOD, length), workspace.needs))
        self._processes = [
            ShardProcess(ray, settings, f"Shard {k} of {len(shards)}", leaves, shared, first_input)
            for k, leaves in enumerate(shards)
        ]
        self._upcoming: deque[SampleBlock] = deque()  # not sent yet
        self._in_flight: deque[SentBlock] = deque()  # sent; the first is the driver's block
        self._learned: list[SentBlock] = []  # finished since the snapshots
        self._unsaved = 0  # samples sent since a snapshot was asked for
        self._ahead = False  # shards have learned blocks that the driver will not finish
        self._step_ratio: Floats | None = None
        idle: list[Any] = []
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

    def connect(self, stage: CombineStage) -> None:
        self._stage = stage

    # --- calls ------------------------------------------------------------------------------------

    def _answer(
        self, process: ShardProcess, ask: Callable[[ShardProcess], Any], reference: Any = None
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

    def _answers(self, ask: Callable[[ShardProcess], Any]) -> list[Any]:
        """What `ask` refers to, for all shards."""
        references = [ask(process) for process in self._processes]
        try:
            return list(self._ray.get(references))  # one wait for all costs less
        except self._ray.exceptions.RayError:
            pairs = zip(self._processes, references, strict=True)
            return [self._answer(process, ask, reference) for process, reference in pairs]

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all workers when they are where the driver is."""
        self._synchronize()
        return self._answers(lambda process: process.call(method, *arguments))

    def _ask_slots(self, method: str, *arguments: Any) -> Floats:
        """The answers, (..., P of the shard) each, in the order of the bank's slots."""
        return self._by_slot(self._ask(method, *arguments))

    def _by_slot(self, answers: list[Floats]) -> Floats:
        out = np.empty((*answers[0].shape[:-1], self._workspace.slots))
        for process, values in zip(self._processes, answers, strict=True):
            out[..., process.slots] = values
        return out

    # --- blocks -----------------------------------------------------------------------------------

    def prefetch(self, blocks: Sequence[SampleBlock]) -> None:
        self._synchronize()
        self._upcoming = deque(blocks)

    def _synchronize(self) -> None:
        """Expect no blocks, and let all shards go back to where the driver is."""
        self._upcoming.clear()
        self._ahead = self._ahead or bool(self._in_flight)
        self._in_flight.clear()
        if self._ahead:
            for process in self._processes:
                self._answer(process, lambda process: process.load(self._learned, ()))
            self._ahead = False

    def run_block(self, first: int, count: int) -> None:
        workspace = self._workspace
        block = self._begin_block(
            SampleBlock(first, workspace.points[:count], workspace.new_targets[:count])
        )
        self._gather(block, count)
        self._stage.weight_phases.run(first, count)
        self._mix(block, count)
        self._send_blocks(3)
        self._stage.cost_phases.run(first, count)
        block.evidence.clear()
        self._learned.append(self._in_flight.popleft())

    def _begin_block(self, block: SampleBlock) -> SentBlock:
        """Send the driver's block, unless it was sent ahead as expected, and the next one."""
        sent = self._in_flight
        expected = sent[0].samples if sent else next(iter(self._upcoming), None)
        if expected is None or not (
            expected.first == block.first
            and np.array_equal(expected.points, block.points)
            and np.array_equal(expected.targets, block.targets)
        ):
            self._synchronize()
            self._upcoming.append(block)
        self._send_blocks(2)
        return self._in_flight[0]

    def _send_blocks(self, most: int) -> None:
        """Send blocks until so many are on their way."""
        while self._upcoming and len(self._in_flight) < most:
            block = self._upcoming.popleft()
            samples = block.points.copy(), block.targets.copy()  # the caller may change his arrays
            reference = samples if samples[0].nbytes < _SMALL else self._ray.put(samples)
            self._unsaved += len(samples[0])
            with_snapshot = self._unsaved >= self._settings.replay
            if with_snapshot:
                self._unsaved = 0
            sent = SentBlock(SampleBlock(block.first, *samples), reference, with_snapshot)
            self._in_flight.append(sent)
            for process in self._processes:
                process.send(sent)

    def _gather(self, block: SentBlock, count: int) -> None:
        """Phase 1: write the evidence of all slots to the workspace."""
        answers = self._answers(lambda process: block.evidence[process])
        for process, (evidence, _) in zip(self._processes, answers, strict=True):
            for name, array in evidence.items():
                getattr(self._workspace, name)[:count, ..., process.slots] = array
        self._step_ratio = self._by_slot([ratio for _, ratio in answers])

    def _mix(self, block: SentBlock, count: int) -> None:
        """Phase 2: send the weights, and write the leaves' parts of the predictions."""
        first, weights, sums = block.samples.first, self._workspace.proposed, self._workspace.sums
        answers = self._answers(
            lambda process: process.call("mix", first, weights[:count, process.slots])
        )
        sums[:, :count] = 0.0
        for process, (leaves, samples, rows) in zip(self._processes, answers, strict=True):
            sums[process.leaves[leaves], samples] = rows

    def snapshot(self, *, models: bool) -> int:
        """Fetch the snapshots after the last block, if it has some; the number of blocks since."""
        if self._learned and (snapshots := self._learned[-1].snapshots):
            references = [snapshots.pop(process) for process in self._processes]
            try:
                self._keep(self._ray.get(references))
            except self._ray.exceptions.RayError:
                self._unsaved = self._settings.replay  # with the next block, then
        return len(self._learned)

    def _keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Let every shard begin with its snapshot from now on."""
        with defer_signals():  # snapshots and blocks must fit together
            for process, snapshot in zip(self._processes, snapshots, strict=True):
                process.snapshot = snapshot
            self._learned.clear()

    def rollback(self, snapshot: int) -> None:
        """Keep so many blocks since the snapshots; undo the others at the next call."""
        del self._learned[snapshot:]
        self._upcoming.clear()
        self._in_flight.clear()
        self._ahead = True
        self._unsaved = sum(len(block.samples.points) for block in self._learned)
        self._step_ratio = None

    # --- predictions ------------------------------------------------------------------------------

    def predict_query(self, seen: int) -> None:
        point = self._workspace.query_point.copy()
        self._workspace.slot_values[:] = self._ask_slots("predict_slots", seen, point)
        self._stage.combine_query.run(seen, 1)

    def forget_query(self) -> None:
        self._ask("forget_query")

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        return self._ask_slots("evaluate", seen, self._ray.put(points), wanted)

    def variance(self, seen: int, points: Floats) -> Floats:
        return self._ask_slots("variance", seen, points)

    def step_ratio(self) -> Floats:
        if self._step_ratio is None:
            self._step_ratio = self._ask_slots("step_ratio")
        return self._step_ratio

    def dropped(self) -> Floats:
        return self._ask_slots("dropped")

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        samples, slots = zip(*self._parts(), strict=True)
        return {name: array.copy() for name, array in samples[0].items()} | join_leaves(slots)

    def _parts(self) -> list[Any]:
        """What `ShardWorker.parts` returns; if a shard is lost, from what the driver has."""
        try:
            return self._ask("parts")
        except ShardLost:
            return [process.rebuild(self._learned).call("parts") for process in self._processes]

    def restore(self, state: Mapping[str, Floats]) -> None:
        arrays = {name: np.array(array) for name, array in state.items()}
        self._load((arrays, self.copy_models()))

    def restore_models(self, models: Mapping[int, Any]) -> None:
        self._load((self.state(), dict(models)))

    def copy_models(self) -> dict[int, Any]:
        return {n: model for part in self._ask("copy_models") for n, model in part.items()}

    def _load(self, snapshot: Snapshot) -> None:
        """Let every shard continue from a snapshot of the bank."""
        self._keep([snapshot] * len(self._processes))
        self.rollback(0)
        self._synchronize()
