"""The options of a run, declared once.

The click options of `kernelbank run`, its grouped help, the checks, and the options that the
checkpoint holds all follow from the fields of `RunOptions` and their metadata.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

from ..errors import FileRefused, RunRefused
from ..io.dialect import DECIMAL_RULE, DELIMITER_RULE, delimiter_character
from .forecast_options import check_forecasts, parsed_horizons
from .option_combinations import REDIS_SCHEMES, check_combinations
from .option_spec import (
    FIXED,
    FREE,
    OptionSpec,
    allowed,
    fits,
    flag,
    option,
    option_text,
    value_type,
)

LARGEST_PERIOD, MOST_PERIODS = 20_000, 4
"""Of --seasons: the constants of `auto.seasons`, which the help must not import."""

BROKER_SCHEMES = (*REDIS_SCHEMES, "kafka://")

ID = "id"
"""The column of the predictions with the id of each row of a broker, if `--keep` is given."""

LARGEST = 1e150
"""The largest number in data: `utils.validation.LARGEST`, which the help must not import."""


def _columns(text: str, default: Any = MISSING, **declared: Any) -> Any:
    return option("Columns", text, default, **declared)


def _learning(text: str, default: Any, **declared: Any) -> Any:
    return option("Learning", text, default, **declared)


def _results(text: str, default: Any, **declared: Any) -> Any:
    return option("Results", text, default, **declared)


def _rows(text: str, default: Any, **declared: Any) -> Any:
    return option("Rows", text, default, **declared)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """All options of a run, checked when it is made.

    >>> RunOptions(source="sensors.csv", target="load", lags=3).coverage
    0.9
    """

    source: str
    """A file, `-` for standard input, or the address of a broker."""

    target: str = _columns(
        "Column to predict; several columns of numbers: A,B,C.", metavar="NAME", saved=FIXED
    )
    features: tuple[str, ...] | None = _columns(
        "Numeric inputs; by default all other columns.", None, metavar="A,B,C", saved=FIXED
    )
    categorical: tuple[str, ...] = _columns(
        "Text inputs: categories, known by their mean target.", (), metavar="A,B", saved=FIXED
    )
    time: str | None = _columns(
        "Column of times (ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970): becomes "
        "the time of day, week and year.",
        None,
        metavar="NAME",
        saved=FIXED,
    )
    keep: tuple[str, ...] = _columns(
        "Columns that are copied into the predictions; with them the id of each row of a broker.",
        (),
        metavar="A,B",
        saved=FIXED,
    )
    delimiter: str = _columns(
        "Character between the cells of CSV, or the word tab.",
        ",",
        metavar="CHARACTER",
        saved=FIXED,
    )
    decimal: str = _columns(
        "Decimal point of the numbers in CSV: a point or a comma.",
        ".",
        metavar="CHARACTER",
        saved=FIXED,
    )

    task: str = _learning(
        "Whether the target is a number or a label.",
        "regression",
        choices=("regression", "classification"),
        saved=FIXED,
    )
    classes: tuple[str, ...] | None = _learning(
        "Labels that may occur; a row with another one is bad. By default they are found in the "
        "stream.",
        None,
        metavar="A,B,C",
        saved=FREE,
    )
    max_classes: int | None = _learning(
        "How many labels may be found in the stream, by default 100. Beyond two, the model grows "
        "with each.",
        None,
        metavar="N",
        low=2,
        high=10_000,
        saved=FREE,
    )
    lags: int = _learning(
        "Number of previous targets that are inputs too.",
        0,
        metavar="N",
        low=0,
        high=1000,
        saved=FIXED,
    )
    seasons: tuple[str, ...] = _learning(
        "Periods in rows after which the stream repeats, such as 24,168; or auto to find them.",
        (),
        metavar="N,N",
        saved=FIXED,
    )
    horizon: tuple[str, ...] = _learning(
        "Forecast so many rows ahead, after every row: 24 for 1 to 24, or some, such as 1,6,24.",
        (),
        metavar="N,N",
        saved=FIXED,
    )
    known: tuple[str, ...] = _learning(
        "Numeric columns, or the time, that forecasts may use of later rows: known in advance.",
        (),
        metavar="A,B",
        saved=FIXED,
    )
    delay: int = _learning(
        "Number of rows after which a target is known.",
        0,
        metavar="N",
        low=0,
        high=100_000,
        saved=FIXED,
    )
    preset: str = _learning(
        "Slots: AutoBank's default ones, or the twenty Gaussian kernels and the weights of the "
        "paper.",
        "auto",
        choices=("auto", "paper"),
        saved=FIXED,
    )
    size: str = _learning(
        "Number of slots, and so the time per row.",
        "default",
        choices=("small", "default", "large"),
        saved=FIXED,
    )
    coverage: float = _learning(
        "Share of the targets inside their intervals.",
        0.9,
        metavar="SHARE",
        low=0,
        high=1,
        open_range=True,
        saved=FIXED,
    )
    lower: float | None = _learning(
        "No target lies below this: predictions and intervals stay above, other rows are bad.",
        None,
        metavar="NUMBER",
        low=-LARGEST,
        high=LARGEST,
        saved=FIXED,
    )
    upper: float | None = _learning(
        "No target lies above this: predictions and intervals stay below, other rows are bad.",
        None,
        metavar="NUMBER",
        low=-LARGEST,
        high=LARGEST,
        saved=FIXED,
    )
    engine: str = _learning(
        "Where the slots run; the results are the same.",
        "serial",
        choices=("serial", "threads", "ray"),
    )
    ray_address: str | None = _learning(
        "Ray cluster for --engine ray; by default Ray is started on this machine.",
        None,
        metavar="HOST:PORT",
    )
    ray_allow_unauthenticated: bool = _learning(
        "Use a Ray cluster that does not require a token; whoever reaches it may run code on it.",
        False,
    )
    shards: int | None = _learning(
        "Processes for --engine ray, threads for --engine threads; by default one per processor.",
        None,
        metavar="N",
        low=1,
    )

    predictions: str | None = _results(
        "Where predictions are written: a .csv file, a .parquet folder, or "
        "redis://host:port/stream.",
        None,
        metavar="PLACE",
    )
    redis_password_file: Path | None = _results(  # noqa: RUF009
        "File with the password of Redis (source and predictions), which others may not read; or "
        "set KERNELBANK_REDIS_PASSWORD.",
        None,
        metavar="FILE",
    )
    redis_wait: int = _results(
        "Number of replicas of Redis that must have the predictions before a checkpoint.",
        0,
        metavar="N",
        low=0,
    )
    state: Path | None = _results(  # noqa: RUF009
        "Folder of the checkpoint: with it, the same command resumes after a crash, a kill or "
        "Ctrl-C.",
        None,
        metavar="FOLDER",
    )
    checkpoint_every: int = _results(
        "Rows between checkpoints. A kill costs the time since the last one, never results.",
        10_000,
        metavar="ROWS",
        low=1,
    )
    report: Path | None = _results(  # noqa: RUF009
        "Write a page with charts of the run to this .html file at the end.", None, metavar="FILE"
    )
    live: int | None = _results(
        "Serve that page during the run, at an address that is printed; by default at a free port.",
        None,
        metavar="[PORT]",
        low=0,
        high=65_535,
        bare_value=0,
    )
    live_host: str = _results(
        "Network address that the live page listens on.", "127.0.0.1", metavar="ADDRESS"
    )
    quiet: bool = _results("Print errors only.", False)
    log_json: bool = _results("Print everything as JSON, one object per line.", False)

    on_bad_row: str = _rows(
        "Stop at a row that cannot be used, or write it to the bad rows and go on.",
        "stop",
        choices=("stop", "skip"),
        saved=FREE,
    )
    allow_missing: bool = _rows("Inputs may be missing (empty, NaN, null).", False, saved=FREE)
    predict_missing: bool = _rows(
        "Rows without a target are predicted, not learned.", False, saved=FREE
    )
    allow_gaps: bool = _rows(
        "Go on where rows are lost: deleted by a broker before they were read (they are counted), "
        "or in a file of --follow that is gone or compressed.",
        False,
    )
    allow_empty: bool = _rows("A source without any row is not an error.", False)
    max_rows: int | None = _rows("Stop after this number of rows.", None, metavar="N", low=1)
    complete: bool = _rows(
        "Nothing more is written to the source: its last line is a row also without a line end.",
        False,
    )
    follow: bool = _rows(
        "Wait at the end of a .csv or .jsonl file for more rows, also when it is rotated.", False
    )
    stop_when_idle: float | None = _rows(
        "Stop when no row has come for this time (standard input, brokers, --follow).",
        None,
        metavar="SECONDS",
        low=0,
        open_range=True,
    )

    def __post_init__(self) -> None:
        for name, spec in OPTIONS.items():
            value = getattr(self, name)
            optional = DEFAULTS[name] is None
            if not (optional and value is None) and not fits(value, KINDS[name], spec):
                raise RunRefused(
                    f"{flag(name)} must be {allowed(name, KINDS[name], spec)}; got {value!r}."
                )
        if delimiter_character(self.delimiter) is None:
            raise RunRefused(f"--delimiter must {DELIMITER_RULE}; got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise RunRefused(f"--decimal must {DECIMAL_RULE}; got {self.decimal!r}.")
        self._check_targets()
        self._check_seasons()
        check_forecasts(self)
        check_combinations(self)

    def _check_targets(self) -> None:
        names = self.targets
        if not names:
            raise RunRefused(f"--target must name a column, or several: A,B; got {self.target!r}.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise RunRefused(f"--target: column {twice!r} is named twice. Use it once.")

    def _check_seasons(self) -> None:
        texts = self.seasons
        whole = all(text.isascii() and text.isdecimal() and len(text) < 10 for text in texts)
        periods = {int(text) for text in texts} if whole else set()
        fits_all = whole and all(2 <= period <= LARGEST_PERIOD for period in periods)
        if texts != ("auto",) and not (fits_all and len(texts) == len(periods) <= MOST_PERIODS):
            raise RunRefused(
                f"--seasons must be auto, or up to {MOST_PERIODS} different whole numbers of rows "
                f"from 2 to {LARGEST_PERIOD}, such as 24,168; got {option_text(texts)}."
            )

    def beyond_bounds(self, target: float | None) -> str:
        """Why a target is beyond --lower or --upper, as the end of a sentence; "" if it is not."""
        if target is None:
            return ""
        if self.lower is not None and target < self.lower:
            return f"is below --lower {self.lower:g}: correct it, or begin anew with a lower bound"
        if self.upper is not None and target > self.upper:
            return f"is above --upper {self.upper:g}: correct it, or begin anew with a higher bound"
        return ""

    # --- what follows from them -------------------------------------------------------------------

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The columns that --target names; a name that holds a comma stands in quotes, as in CSV.

        >>> RunOptions(source="sensors.csv", target="load,price").targets
        ('load', 'price')
        """
        text = self.target
        if "," not in text:
            return (text,) if text.strip() else ()
        try:
            rows = list(csv.reader([text], skipinitialspace=True, strict=True))
        except csv.Error:
            raise RunRefused(
                f"--target: {text!r} has a quote that is not closed, or text behind one. Write a "
                """name with a comma as in CSV: 'a,"b, c"'."""
            ) from None
        return tuple(name.strip() for row in rows for name in row if name.strip())

    @property
    def labels(self) -> list[str] | None:
        """The labels that --classes names, as they are in the rows."""
        return None if self.classes is None else [as_label(text) for text in self.classes]

    @property
    def periods(self) -> str | tuple[int, ...] | None:
        """What --seasons says, as for an AutoBank."""
        if self.seasons == ("auto",):
            return "auto"
        return tuple(sorted(map(int, self.seasons))) or None

    @property
    def horizons(self) -> tuple[int, ...]:
        """What --horizon says, as for an AutoBank."""
        return parsed_horizons(self.horizon) if self.horizon else ()

    @property
    def delimiter_character(self) -> str:
        """The delimiter as a character."""
        return delimiter_character(self.delimiter) or ","

    @property
    def is_broker(self) -> bool:
        """Whether the source is a broker, whose rows have ids."""
        return self.source.startswith(BROKER_SCHEMES)

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """The columns of the predictions that are copied from the source, an id first."""
        if not self.keep or not self.is_broker:
            return self.keep
        return (ID, *(name for name in self.keep if name != ID))

    # --- in the checkpoint ------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The saved options as JSON data."""
        values = {name: getattr(self, name) for name, spec in OPTIONS.items() if spec.saved}
        return {name: _as_json(value) for name, value in values.items()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> RunOptions:
        """The options that `to_json` wrote, checked; what is not saved has its default."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in saved.items()
        }
        if not values.keys() <= {name for name, spec in OPTIONS.items() if spec.saved}:
            raise FileRefused("its options are not the options of a run.")
        try:
            return cls(source="", **values)
        except TypeError:
            raise FileRefused("its options are not the options of a run.") from None
        except RunRefused as error:
            raise FileRefused(f"its options are wrong: {error}") from None

    def check_resumes(self, saved: Mapping[str, Any], folder: Path) -> None:
        """Refuse to resume a run with other options; the message says which ones differ."""
        mine = self.to_json()
        # An option that the file does not hold is younger than the file: it had its default.
        earlier = {name: saved.get(name, _plain_default(name)) for name in mine}
        different = [
            f"{flag(name)} was {option_text(earlier[name])}, now {option_text(value)}"
            for name, value in mine.items()
            if OPTIONS[name].saved == FIXED and value != earlier[name]
        ]
        if different:
            raise RunRefused(
                f"{folder} is the state of a run with other options: {'; '.join(different)}. "
                "Give the earlier options, or another --state."
            )


OPTIONS: dict[str, OptionSpec] = {
    one.name: one.metadata["option"] for one in fields(RunOptions) if one.metadata
}
"""Every option, in the order of the help."""

DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(RunOptions)}

KINDS: dict[str, type] = {
    name: value_type(hint) for name, hint in get_type_hints(RunOptions).items() if name in OPTIONS
}
"""The type of every option: str, int, float, bool, Path, or tuple for a list of names."""

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def as_label(cell: str) -> str:
    """A label as text: 1.0 is the label 1, whether a file has whole numbers or others."""
    found = _WHOLE.fullmatch(cell)
    return cell if found is None else found[1]


def _plain_default(name: str) -> Any:
    return None if DEFAULTS[name] is MISSING else _as_json(DEFAULTS[name])


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
