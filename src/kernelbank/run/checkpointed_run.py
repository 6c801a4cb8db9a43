"""What a run has done so far, and its checkpoint: everything but the handling of rows.

`CheckpointedRun.commit` writes the checkpoint: first every sink makes its rows durable and says how
far it is, then one file is replaced atomically that holds the model, the position in the source and
how far every sink is. `CheckpointedRun.resume` goes back to that file.
"""

from __future__ import annotations

import time
from typing import Any

from .. import __version__
from ..auto import AutoBank
from ..auto.loading import DAMAGE
from ..errors import FileRefused, KernelBankError, RunRefused
from ..io.checkpoint import damage_text
from ..io.sinks import Sink
from ..io.sources import RowBlock, Source
from ..utils.validation import Floats
from .checkpoint_dir import CheckpointDir
from .feature_encoder import FeatureEncoder
from .history import History
from .kept_columns import KeptColumns
from .model_session import saved_count
from .options import RunOptions
from .rejected_rows import RejectedRows
from .several_targets import make_session
from .timings import CHECKPOINTS, Timings


class CheckpointedRun:
    """The state of a run: how far source, model and sinks are, and how to commit and resume it.

    Parameters
    ----------
    options : all options of the run.
    source : where rows are read.
    sinks : where predictions are written.
    bad_rows : where rejected rows are written, if anywhere.
    checkpoints : the folder of the checkpoint, if there is one.
    engine : where the slots run.
    """

    def __init__(
        self,
        options: RunOptions,
        source: Source,
        sinks: list[Sink],
        bad_rows: Sink | None,
        checkpoints: CheckpointDir | None,
        engine: Any = "serial",
    ) -> None:
        self.options = options
        self.source = source
        self.sinks = sinks
        self.bad_rows = bad_rows
        self.checkpoints = checkpoints
        self.encoder = FeatureEncoder(options)
        self._kept = KeptColumns(options)
        self.timings = Timings()
        self.rejected = RejectedRows()
        self.session = make_session(options, engine, self.timings)
        self.rows = 0
        """Rows that are predicted, over all processes of the run."""
        self.rows_before = 0
        """Rows that were predicted when this process started."""
        self.started = time.monotonic()
        self._position: Any = None
        self._uncommitted_rows = 0
        self._columns_known = False
        self._sinks_started = False
        self._is_whole = True
        """Whether model, sinks and position are those after the same row."""
        self._provisional = False
        """Whether rows have come whose end has not: nothing is committed from there on."""

    @property
    def bank(self) -> AutoBank:
        """The model."""
        return self.session.bank

    @property
    def history(self) -> History | None:
        """The history of the predictions, once there is one."""
        return self.session.history

    # --- committing -------------------------------------------------------------------------------

    def start(self) -> None:
        """Take the sinks of a new run, and commit that they are ours before any row is written."""
        for sink in self._all_sinks():
            sink.check_vacant()
        for sink in self._all_sinks():
            sink.start()
        if self._position is None:
            self._position = self.source.start
        self.commit()

    def _advance(self, block: RowBlock, row: int, count: int) -> None:
        """`count` more rows are done, up to row `row` of the block; commit if it is time."""
        if self._provisional:
            return
        self._position = block.position(row)
        self._uncommitted_rows += count
        self._is_whole = True
        if self._uncommitted_rows >= self.options.checkpoint_every:
            self.commit()

    def commit(self) -> None:
        """Write the checkpoint. Without a folder for it, only the sinks are made durable.

        After provisional rows the last checkpoint stays: it was written before them.
        """
        if self._provisional:
            return
        with self.timings.measure(CHECKPOINTS):
            self._is_whole = False
            self._uncommitted_rows = 0
            self._sinks_started = True
            commits = [sink.commit() for sink in self._all_sinks()]
            if self.checkpoints is not None:
                self._write_checkpoint(self.checkpoints, commits)
            self._is_whole = True

    def finish(self) -> None:
        """Commit. Pending targets stay pending: the source may have more rows one day."""
        if self._sinks_started:
            self.commit()
        else:
            self.start()

    def commit_whole_rows(self) -> bool:
        """After an error: commit the rows before it, unless it came in the midst of a batch.

        Then, or if this fails too, the last checkpoint remains. Returns whether it is committed.
        """
        if not (self._is_whole and self._sinks_started):
            return False
        try:
            self.commit()
        except (KernelBankError, OSError):
            return False
        return True

    def close(self, *, complete: bool) -> None:
        """Close the sinks; with `complete`, rows that they hold back are written."""
        for sink in self._all_sinks():
            sink.close(complete=complete)

    def _all_sinks(self) -> list[Sink]:
        return [*self.sinks, *([self.bad_rows] if self.bad_rows is not None else [])]

    def _write_checkpoint(self, checkpoints: CheckpointDir, commits: list[Any]) -> None:
        facts, arrays = self.session.describe()
        header = {
            "version": __version__,
            "options": self.options.to_json(),
            "source": self.source.fingerprint,
            "position": self._position,
            "rows": self.rows,
            "rejected_rows": self.rejected.to_json(),
            "missing_rows": self.source.missing_rows,
            "timings": self.timings.to_json(),
            "sinks": commits,
            "predictions": [sink.address for sink in self.sinks],
            "features": self.encoder.features if self._columns_known else None,
            **facts,
        }
        checkpoints.write(header, arrays)

    # --- resuming ---------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Go back to the last checkpoint; False if there is none. A refusal changes no file."""
        checkpoints = self.checkpoints
        found = None if checkpoints is None else checkpoints.read()
        if found is None or checkpoints is None:
            return False
        header, arrays = found
        try:
            if self._starts_again(header):
                return False
            self.options.check_resumes(header["options"], checkpoints.folder)
            self.source.verify(header["source"], header["position"])
            self._check_sinks(header["predictions"], checkpoints)
            self._restore(header, arrays)
            committed = list(zip(self._all_sinks(), header["sinks"], strict=True))
            for sink, commit in committed:
                sink.check(commit)
        except FileRefused:
            raise
        except DAMAGE as error:
            raise FileRefused(f"{checkpoints.path} is damaged: {damage_text(error)}.") from None
        for sink, commit in committed:
            sink.rewind(commit)
        return True

    def _starts_again(self, header: Any) -> bool:
        """Whether nothing was predicted, and the options or the source are others now.

        Then a new run in the same folder loses nothing: its outputs are emptied.
        """
        if header["rows"]:
            return False
        if self.options.to_json() == header["options"]:
            try:
                self.source.verify(header["source"], header["position"])
                return False
            except FileRefused:
                pass
        addresses = [*header["predictions"], None]  # the bad rows are in the folder of the state
        for address, commit in zip(addresses, header["sinks"], strict=False):
            for sink in self._all_sinks():
                if address == (None if sink is self.bad_rows else sink.address):
                    sink.check(commit)
                    sink.clear()
        return True

    def _check_sinks(self, earlier: list[str], checkpoints: CheckpointDir) -> None:
        now = [sink.address for sink in self.sinks]
        if earlier != now:
            raise RunRefused(
                f"{checkpoints.folder} is the state of a run with other outputs: --predictions "
                f"was {', '.join(earlier) or 'none'}, now {', '.join(now) or 'none'}. Give the "
                "earlier one, or another --state."
            )

    def _restore(self, header: Any, arrays: dict[str, Floats]) -> None:
        try:
            self.session.restore(header, arrays)
            self.session.allow_labels()
            self.rejected.restore(header["rejected_rows"])
            self.timings.restore(header["timings"])
        except FileRefused as error:
            raise ValueError(str(error)) from None  # `resume` adds the name of the file
        self._position = header["position"]
        self.rows = self.rows_before = saved_count(header["rows"], "rows")
        self._sinks_started = True
