"""What `AutoBank.forecast` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import KernelBankError
from ...utils.validation import Floats

if TYPE_CHECKING:
    import pandas

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Of the quantiles of a forecast."""


@dataclass(frozen=True)
class Forecast:
    """Forecasts of the next targets, one for every horizon.

    Parameters
    ----------
    samples : how many rows had been learned.
    horizons : how many rows ahead each forecast is.
    point, lower, upper : (H,), the forecasts and the ends of their intervals.
    coverage : of the intervals.
    quantiles : (H,) by level, 0.05 to 0.95; they do not cross.
    history : the last targets, the newest last, for drawings.

    >>> import numpy as np, kernelbank as kb
    >>> y = np.sin(np.arange(300) / 4)
    >>> bank = kb.AutoBank(lags=8, horizons=(1, 4), size="small")
    >>> trace = bank.run(np.zeros((300, 1)), y)
    >>> forecast = bank.forecast()
    >>> forecast.horizons, forecast.point.shape
    ((1, 4), (2,))
    >>> bool((forecast.lower <= forecast.point).all())
    True
    """

    samples: int
    horizons: tuple[int, ...]
    point: Floats
    lower: Floats
    upper: Floats
    coverage: float
    quantiles: Mapping[float, Floats]
    history: Floats

    def __len__(self) -> int:
        return len(self.horizons)

    def to_frame(self) -> pandas.DataFrame:
        """A data frame with one row per horizon: point, lower, upper and the quantiles."""
        try:
            import pandas
        except ImportError:
            raise KernelBankError(
                "to_frame() needs pandas, which is not installed. Install it with: "
                "pip install pandas"
            ) from None
        columns = {"point": self.point, "lower": self.lower, "upper": self.upper}
        columns |= {f"quantile {level:g}": values for level, values in self.quantiles.items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.horizons, name="horizon"))

    def __repr__(self) -> str:
        lines = [f"Forecast(after {self.samples:,} rows, intervals of {self.coverage:.0%})"]
        shown = zip(self.horizons, self.point, self.lower, self.upper, strict=True)
        for number, (horizon, point, lower, upper) in enumerate(shown):
            if number == 12 and len(self) > 13:
                lines.append(f"  ... and {len(self) - 12} more")
                break
            lines.append(f"  +{horizon:<4} {point:.6g}  [{lower:.6g}, {upper:.6g}]")
        return "\n".join(lines)


def ordered(quantiles: Floats) -> Floats:
    """(H, levels): quantiles in the order of their levels, so that none cross."""
    return np.sort(quantiles, axis=1)
