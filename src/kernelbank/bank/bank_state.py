"""Saving a KernelBank, and continuing from the state of another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from ..errors import FileRefused
from ..io import checkpoint
from ..io.specs import check_names
from ..utils.validation import Floats
from . import serialization
from .bank_predictions import BankPredictions
from .engines import Engine
from .exclusive import exclusive
from .outputs import make_runtime
from .revision import Selection
from .slot_history import SlotHistory


class BankState(BankPredictions):
    """The part of `KernelBank` that is saved and restored."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next sample depends on to one file, atomically.

        `kb.load(path)` continues bit for bit. The file holds arrays and JSON, no code.
        """
        header, arrays = self._describe()
        checkpoint.write(path, header, arrays)

    @exclusive
    def _describe(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Everything that the next sample depends on: settings as JSON data, and arrays."""
        remedy = "Save a bank without such slots, and keep the model yourself."
        self._settings.check_saveable("saved", remedy)
        pool = () if self._settings.dictionary is None else self._settings.dictionary.kernels
        check_names([self.loss, self.combiner, *self.slots, *pool])
        dimension, arrays = self._kept_state()
        header = {
            **serialization.describe_settings(self._settings),
            "dimension": dimension,
            "warned": sorted(self._runtime.warned),
            **self._settings.history.describe(),
        }
        return header, arrays

    def _kept_state(self) -> tuple[int | None, dict[str, Floats]]:
        """Columns of the inputs, and the arrays. Without samples it is the state of a new bank."""
        arrays = self._state()
        if self.samples:
            return self._runtime.dimension, arrays
        return None, {name: arrays[name] for name in self._runtime.array_specs(None)}

    @classmethod
    def _restored(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, Floats],
        engine: Engine,
        components: Mapping[str, Any],
        most_memory: int,
    ) -> Self:
        """The bank that `_describe` described, checked in every respect; see `kb.load`."""
        bank = cls(**serialization.parse_settings(header, arrays, components), engine=engine)
        dimension = header["dimension"]
        selection, dictionary = None, bank._settings.dictionary
        if dictionary is not None:
            selection = Selection.parse(header["selection"], len(dictionary.kernels))
            if len(selection.running) != dictionary.size:
                raise FileRefused("its selection of slots does not fit its dictionary.")
        bank._use_history(SlotHistory.parse(header, len(bank.slots)), selection)
        serialization.check_state(bank._settings, bank._runtime, dimension, arrays, most_memory)
        bank._settings.history.check(int(arrays["ledger/running"][-1]))
        bank._continue_from(dimension, (str(name) for name in header["warned"]), arrays, None)
        return bank

    def _use_history(self, history: SlotHistory, selection: Selection | None) -> None:
        """Take over the history of another bank, and its kernels of an adaptive dictionary."""
        settings = self._settings
        if selection is not None:
            settings = settings.with_selection(selection)
        settings = settings.with_history(history)
        self._use(settings, make_runtime(settings))

    def _state(self) -> dict[str, Floats]:
        """Copies of all arrays that the next sample depends on."""
        return self._runtime.arrays()

    def _continue_from(
        self,
        dimension: int | None,
        warned: Iterable[str],
        arrays: Mapping[str, Floats],
        models: Mapping[int, Any] | None,
    ) -> None:
        """Take over the state of another bank."""
        runtime = self._runtime
        if dimension is not None:
            runtime.open(np.zeros(dimension))
            if models is not None:
                runtime.restore_models(models)
        runtime.restore(arrays)
        runtime.warned = set(warned)
