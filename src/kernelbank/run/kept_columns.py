"""`--keep`: columns of the source, and the ids of a broker's rows, beside the predictions."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import RunRefused
from ..io.sinks import Row
from ..io.sources import RowBlock
from .feature_encoder import listed_columns
from .model_session import prediction_columns
from .options import ID, RunOptions


class KeptColumns:
    """Copies columns of the source as text, unchanged; missing values are None."""

    def __init__(self, options: RunOptions) -> None:
        self._columns = prediction_columns(options)
        self._names = options.keep
        self._with_ids = bool(options.keep) and options.is_broker
        if self._with_ids:
            self._names = tuple(name for name in options.keep if name != ID)

    def check(self, columns: Sequence[str]) -> None:
        """Refuse columns that do not exist, or would stand in the predictions twice."""
        taken = [*self._columns, *([ID] if self._with_ids else [])]
        for name in self._names:
            if name not in columns:
                raise RunRefused(
                    f"--keep: there is no column {name!r}. There are: {listed_columns(columns)}."
                )
            if name in taken:
                raise RunRefused(
                    f"--keep: the predictions have a column {name!r} already. Leave it out of "
                    "--keep, or rename it in the source."
                )
            taken.append(name)

    def cells(self, block: RowBlock) -> list[Row]:
        """For every row of a block, what is copied into its prediction."""
        cells = block.copied(self._names)
        if self._with_ids:
            return [(block.identifier(row), *some) for row, some in enumerate(cells)]
        return cells
