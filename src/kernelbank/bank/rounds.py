"""Rounds of the game: blocks are put on the workspace and played, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..kernels.sample_buffer import SampleBlock
from ..native.phases import Phases
from ..native.progress import progress
from ..native.workspace import SLIDE_PERIOD
from ..utils.interrupts import defer_sigint
from ..utils.validation import Floats
from . import state
from .trace import Trace
from .work import Work

if TYPE_CHECKING:
    from .bank import KernelBank


def opened(bank: KernelBank, first_input: Floats) -> Work:
    """The work in progress; it starts with the first sample, which tells the inputs' width."""
    if bank._work is None:
        with defer_sigint():  # compiling must not be interrupted: LLVM does not survive it
            Phases([]).run(0, 0)
            bank._work = Work(
                bank._objective,
                bank._layout,
                bank._combiner,
                bank._engine,
                bank._ledger,
                bank._weights,
                first_input,
                plain=not bank._choosy,
            )
            bank._dimension = len(first_input)
        progress.finished()
    elif bank._work.was_reset:
        bank._work.executor.start(first_input)
        bank._work.was_reset = False
    return bank._work


def announced(
    bank: KernelBank, points: Floats, targets: Floats, recorded: tuple[str, ...]
) -> Iterator[SampleBlock]:
    """The samples in blocks. The executor is told of all of them, so that it may work ahead."""
    work = opened(bank, points[0])
    blocks: list[SampleBlock] = []
    done, seen = 0, bank.samples
    while done < len(points):
        room = (
            SLIDE_PERIOD - (seen + done) % SLIDE_PERIOD
            if bank._engine.pages
            else work.workspace.size
        )
        end = min(done + min(room, work.workspace.size), len(points))
        blocks.append(SampleBlock(seen + done, points[done:end], targets[done:end]))
        done = end
    work.executor.prefetch(blocks, recorded)
    yield from blocks


def run_block(bank: KernelBank, X: Floats, y: Floats) -> None:
    """Rounds for a block. One that fails, by a user's own function or else, is undone."""
    work = opened(bank, X[0])
    work.workspace.points[: len(X)] = X
    work.workspace.new_targets[: len(X)] = y
    first, count = bank.samples, len(X)
    if not work.guarded:
        work.executor.run_block(first, count)
    elif not work.callbacks:  # nothing of the user's is inside: a Ctrl-C may come, and undoes it
        _run_or_undo(bank, work, first, count)
    else:
        with defer_sigint():
            _run_or_undo(bank, work, first, count)
    bank._diagnostics.look(bank._ledger, work.executor, first)


def _run_or_undo(bank: KernelBank, work: Work, first: int, count: int) -> None:
    before = state.driver_arrays(bank)
    kept = work.executor.snapshot(models=work.may_fail)
    bank._at_work = bool(work.callbacks)
    try:
        work.executor.run_block(first, count)
        work.check()
    except BaseException:
        with defer_sigint():
            if first == 0:
                bank._work = bank._dimension = None
            state.write_driver(bank, before)
            work.executor.rollback(kept)
        raise
    finally:
        bank._at_work = False


def record(bank: KernelBank, trace: Trace, row: int, count: int) -> None:
    """Write what the trace keeps of the block just played, from its row on."""
    assert bank._work is not None
    workspace = bank._work.workspace
    trace.write(
        row,
        weights=workspace.proposed[:count],
        slot_cost=workspace.slot_cost[:count],
        slot_loss=workspace.slot_loss[:count],
        slot_predictions=workspace.slot_predictions[:count],
        curvature=workspace.curvature[:count],
        window_loss=workspace.window_loss[:count],
        **bank._ledger.rows(workspace, count),
    )
