"""What a run was told, as plain data that a later process can compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...auto import AutoBank
from ...bank.layout import Slot
from ...combiners import Simplex
from ...errors import FileRefused, RunRefused
from ...kernels.dictionary import gaussian_grid
from ...learners import Norma

PRESETS = ("auto", "paper")

FREE = ("on_bad_row", "allow_missing", "predict_missing")
"""What may change: a run that has stopped at a bad row can go on and skip it."""


@dataclass(frozen=True)
class Settings:
    """What a run was told.

    Everything on which an answer depends must stay the same when it goes on; what is done with rows
    that are not as they should be may change.
    """

    target: str
    task: str = "regression"
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    time: str | None = None
    lags: int = 0
    delay: int = 0
    preset: str = "auto"
    size: str = "default"
    coverage: float = 0.9
    on_bad_row: str = "stop"
    allow_missing: bool = False
    predict_missing: bool = False

    def bank(self, engine: Any) -> AutoBank:
        """A bank that has learned nothing."""
        own: dict[str, Any] = {}
        if self.preset == "paper":
            kernels = gaussian_grid(0.1, 10, 20)
            own = {
                "slots": [Slot(kernel, Norma()) for kernel in kernels],
                "combiner": Simplex(),
                "window": 10,
                "regularization": 0.01,
            }
        return AutoBank(self.task, self.lags, self.size, engine=engine, **own)

    def plain(self) -> dict[str, Any]:
        """As what JSON can hold."""
        own = asdict(self)
        for name in ("features", "categorical"):
            own[name] = None if own[name] is None else list(own[name])
        return own

    @classmethod
    def told(cls, plain: Mapping[str, Any]) -> Settings:
        """What `plain` said. Nothing of it is believed before it is looked at."""
        own = dict(plain)
        for name in ("features", "categorical"):
            own[name] = None if own[name] is None else tuple(map(str, own[name]))
        settings = cls(**own)
        for name, default in asdict(cls("")).items():
            value = own[name]
            known = value is None if default is None else type(value) is type(default)
            if not known and not (default is None and isinstance(value, (str, tuple))):
                raise FileRefused(f"its settings claim {value!r} for {name}.")
        if not 0 < settings.coverage < 1 or settings.preset not in PRESETS:
            raise FileRefused("its settings cannot be those of a run.")
        return settings

    def compare(self, before: Mapping[str, Any], folder: Any) -> None:
        """Refuse to go on with a state of other settings; the message says what differs."""
        mine = self.plain()
        different = [
            f"--{name.replace('_', '-')} was {_word(before.get(name))}, now {_word(mine[name])}"
            for name in mine
            if name not in FREE and mine[name] != before.get(name)
        ]
        if different:
            raise RunRefused(
                f"{folder} is the state of a run with other settings: {'; '.join(different)}. "
                "Give those of then, or another --state."
            )


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
