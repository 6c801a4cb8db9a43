"""`--horizon` and `--known`: what they say, and the columns of forecasts in the predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import RunRefused
from .option_spec import option_text

if TYPE_CHECKING:
    from .options import RunOptions

LONGEST_HORIZON = 1000
"""The constant of `auto.config`, which the help must not import."""

FIELDS = {"forecast": "forecasts", "lower": "forecast_lower", "upper": "forecast_upper"}
"""How columns of the predictions begin, and the fields of a trace that are written there."""


def parsed_horizons(texts: Sequence[str]) -> tuple[int, ...]:
    """Rows ahead, ascending: one number N for 1 to N, several for themselves.

    >>> parsed_horizons(["3"]), parsed_horizons(["24", "1"])
    ((1, 2, 3), (1, 24))
    """
    found = sorted(map(int, texts))
    return tuple(range(1, found[0] + 1)) if len(found) == 1 else tuple(found)


def check_forecasts(options: RunOptions) -> None:
    """Refuse values of --horizon and --known that mean nothing."""
    texts = options.horizon
    whole = all(text.isascii() and text.isdecimal() and len(text) < 10 for text in texts)
    numbers = {int(text) for text in texts} if whole else set()
    fits = whole and all(1 <= number <= LONGEST_HORIZON for number in numbers)
    if not (fits and len(numbers) == len(texts)):
        raise RunRefused(
            f"--horizon must be a number of rows from 1 to {LONGEST_HORIZON}, or several different "
            f"ones, such as 1,6,24; got {option_text(texts)}."
        )
    if texts and options.task == "classification":
        raise RunRefused("--horizon is for numbers; with --task classification leave it out.")
    if options.known and not texts:
        raise RunRefused("--known needs --horizon: it names what forecasts know in advance.")


def check_known(known: Sequence[str], usable: Sequence[str]) -> None:
    """Refuse columns of --known that are not among the numeric inputs and the time."""
    for name in known:
        if name not in usable:
            raise RunRefused(
                f"--known: {name!r} is not a numeric input or the time. There are: "
                f"{', '.join(usable) or 'none'}."
            )


def forecast_columns(options: RunOptions) -> tuple[str, ...]:
    """The columns of forecasts in the predictions: forecast+1, lower+1, upper+1, ...

    None with --known: when a row is written, the known columns of the next rows have not been read.
    """
    horizons = () if options.known else options.horizons
    return tuple(f"{name}+{horizon}" for horizon in horizons for name in FIELDS)


def forecast_cells(arrays: Mapping[str, Any], options: RunOptions) -> list[tuple[Any, ...]]:
    """The cells of n rows from arrays (n, H) of a trace."""
    if options.known or not options.horizons:
        return [()] * len(next(iter(arrays.values()), ()))
    lists = [arrays[field].tolist() for field in FIELDS.values()]
    rows = zip(*lists, strict=True)
    return [tuple(cell for cells in zip(*row, strict=True) for cell in cells) for row in rows]
