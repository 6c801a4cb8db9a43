"""Rounds of the game: blocks are put on the board and played, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import state
from ._hot.progress import line
from ._hot.table import Phases
from ._validate import Floats
from .engines.base import Coming
from .interrupts import held_interrupts
from .setting import PAGE
from .trace import Trace
from .work import Work

if TYPE_CHECKING:
    from .bank import KernelBank


def opened(bank: KernelBank, first_input: Floats) -> Work:
    """The work in progress; it starts with the first sample, which tells the inputs' width."""
    if bank._work is None:
        with held_interrupts():  # compiling must not be interrupted: LLVM does not survive it
            Phases([]).run(0, 0)
            bank._work = Work(
                bank._setting,
                bank._layout,
                bank._combiner,
                bank._engine,
                bank._ledger,
                bank._weights,
                first_input,
                plain=not bank._choosy,
            )
            bank._dimension = len(first_input)
        line.finished()
    elif bank._work.was_reset:
        bank._work.crew.begin(first_input)
        bank._work.was_reset = False
    return bank._work


def announced(
    bank: KernelBank, points: Floats, targets: Floats, recorded: tuple[str, ...]
) -> Iterator[Coming]:
    """The samples in blocks. The crew is told of all of them, so that it may work ahead."""
    work = opened(bank, points[0])
    blocks: list[Coming] = []
    done, seen = 0, bank.samples
    while done < len(points):
        room = PAGE - (seen + done) % PAGE if bank._engine.pages else work.board.size
        end = min(done + min(room, work.board.size), len(points))
        blocks.append(Coming(seen + done, points[done:end], targets[done:end]))
        done = end
    work.crew.expect(blocks, recorded)
    yield from blocks


def play_block(bank: KernelBank, X: Floats, y: Floats) -> None:
    """Rounds for a block. One that fails, by a user's own function or else, is undone."""
    work = opened(bank, X[0])
    work.board.points[: len(X)] = X
    work.board.new_targets[: len(X)] = y
    first, count = bank.samples, len(X)
    if not work.guarded:
        work.crew.play(first, count)
    elif not work.callbacks:  # nothing of the user's is inside: a Ctrl-C may come, and undoes it
        _play_or_undo(bank, work, first, count)
    else:
        with held_interrupts():
            _play_or_undo(bank, work, first, count)
    bank._notices.look(bank._ledger, work.crew, first)


def _play_or_undo(bank: KernelBank, work: Work, first: int, count: int) -> None:
    before = state.driver_arrays(bank)
    kept = work.crew.keep(models=work.may_fail)
    bank._at_work = bool(work.callbacks)
    try:
        work.crew.play(first, count)
        work.check()
    except BaseException:
        with held_interrupts():
            if first == 0:
                bank._work = bank._dimension = None
            state.write_driver(bank, before)
            work.crew.undo(kept)
        raise
    finally:
        bank._at_work = False


def record(bank: KernelBank, trace: Trace, row: int, count: int) -> None:
    """Write what the trace keeps of the block just played, from its row on."""
    assert bank._work is not None
    board = bank._work.board
    trace.write(
        row,
        weights=board.proposed[:count],
        slot_cost=board.slot_cost[:count],
        slot_loss=board.slot_loss[:count],
        slot_predictions=board.slot_predictions[:count],
        curvature=board.curvature[:count],
        window_loss=board.window_loss[:count],
        **bank._ledger.rows(board, count),
    )
