"""AutoBank as a forecaster of `make forecasts`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from forecast_streams import ForecastStream
from forecasters import Forecaster, Forecasts, Task

import kernelbank as kb

LAGS = 24


class AutoBankForecaster:
    """Runs an AutoBank with lags, horizons and the periods of the stream.

    - lags: how many of the last targets are inputs
    - more: further arguments of `kb.AutoBank`
    """

    def __init__(self, lags: int = LAGS, **more: Any) -> None:
        self.lags = lags
        self.more = more

    def settings(self, stream: ForecastStream, horizons: tuple[int, ...]) -> dict[str, Any]:
        """The arguments of `kb.AutoBank`; horizons 1, ..., H as the number H."""
        whole = horizons == tuple(range(1, len(horizons) + 1))
        found: dict[str, Any] = {
            "lags": self.lags,
            "horizons": len(horizons) if whole else horizons,
            "seasons": stream.periods or None,
        }
        if stream.known:
            found["known"] = list(stream.known)
        return found | self.more

    def __call__(self, task: Task) -> Forecasts:
        stream = task.stream
        bank = kb.AutoBank(**self.settings(stream, task.horizons))
        began = time.perf_counter()
        trace = bank.run(stream.X, stream.y)
        seconds = time.perf_counter() - began
        parts = (trace.forecasts, trace.forecast_lower, trace.forecast_upper)
        values, lower, upper = (np.asarray(part, dtype=float) for part in parts)
        for name, part in zip(("forecasts", "forecast_lower", "forecast_upper"), parts):
            expected = (len(stream), len(task.horizons))
            if np.shape(part) != expected:
                raise ValueError(
                    f"trace.{name}: must have one row per sample and one column per horizon, "
                    f"{expected}, not {np.shape(part)}. Ask AutoBank for these horizons."
                )
        return Forecasts(values, lower, upper, seconds=seconds)


AUTO = Forecaster(
    "autobank",
    AutoBankForecaster(),
    f"kernelbank: AutoBank with {LAGS} lags and the periods of the stream",
)


def can_forecast() -> bool:
    """Whether the installed AutoBank takes horizons."""
    import inspect

    return "horizons" in inspect.signature(kb.AutoBank).parameters
