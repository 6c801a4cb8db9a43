"""The options of a run, declared once.

The click options of `kernelbank run`, its grouped help, the checks, and the options that the
checkpoint holds all follow from the fields of `RunOptions` and their metadata.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

from ..errors import FileRefused, RunRefused
from . import Saved

if TYPE_CHECKING:
    import numpy as np

LARGEST_PERIOD, MOST_PERIODS = 20_000, 4
"""Of --seasons: the constants of `auto.seasons`, which the help must not import."""

LONGEST_HORIZON = 1000
"""Of --horizon: the constant of `auto.config`, which the help must not import."""

REDIS_SCHEMES = ("redis://", "rediss://")
BROKER_SCHEMES = (*REDIS_SCHEMES, "kafka://")

ID = "id"
"""The column of the predictions with the id of each row of a broker, if `--keep` is given."""

LARGEST = 1e150
"""The largest number in data: `utils.validation.LARGEST`, which the help must not import."""

# --- how an option is declared ---

FIXED = "fixed"
"""Saved in the checkpoint; a resumed run must have the same value."""

FREE = "free"
"""Saved in the checkpoint; a resumed run may have another value."""


@dataclass(frozen=True)
class OptionSpec:
    """What is declared about one option, besides its name, type and default.

    Parameters
    ----------
    group : the heading of the help under which it stands.
    help : its line in the help.
    metavar : how its value is called in the help.
    choices : the allowed values.
    low, high : the range of a number; None for no bound.
    open_range : whether the bounds themselves are excluded.
    bare_value : the value if the option is given without one.
    saved : FIXED, FREE, or None if the checkpoint does not hold it.
    """

    group: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    open_range: bool = False
    bare_value: int | None = None
    saved: str | None = None


def option(
    group: str, text: str, default: object = MISSING, metavar: str | None = None, **declared: Any
) -> Any:
    """A field of a dataclass that is an option."""
    spec = OptionSpec(group, text, metavar, **declared)
    return field(default=default, metadata={"option": spec})


def flag(name: str) -> str:
    """How an option is written in a command: `--max-rows`."""
    return f"--{name.replace('_', '-')}"


def value_type(hint: Any) -> type:
    """The type of an option's value, without None and type arguments."""
    if get_origin(hint) is tuple:
        return tuple
    return next(
        (value_type(argument) for argument in get_args(hint) if argument is not type(None)), hint
    )


def fits(value: object, kind: type, spec: OptionSpec) -> bool:
    """Whether a value is of its type, and among the choices or in the range."""
    if kind is tuple:
        return isinstance(value, tuple) and all(isinstance(name, str) for name in value)
    if kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return False
    if spec.choices:
        return value in spec.choices
    if spec.low is None and spec.high is None:
        return True
    low = float("-inf") if spec.low is None else spec.low
    high = float("inf") if spec.high is None else spec.high
    number = float(value)  # type: ignore[arg-type]
    return low < number < high if spec.open_range else low <= number <= high


def allowed(name: str, kind: type, spec: OptionSpec) -> str:
    """The values that an option may have, in words."""
    if spec.choices:
        return " or ".join(spec.choices)
    words = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        Path: "a path",
        tuple: "labels" if name == "classes" else "column names",
    }[kind]
    if spec.low is not None:
        words += f" {'above' if spec.open_range else 'from'} {spec.low:g}"
    if spec.high is not None:
        words += f" {'and below' if spec.open_range else 'to'} {spec.high:g}"
    return words


def option_text(value: object) -> str:
    """An option's value in a message."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def column_names(text: str) -> tuple[str, ...]:
    """Names with commas between them; a name that holds commas stands in quotes, as in CSV.

    Raises ValueError for wrong quotes.
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise ValueError(
            f"{text!r} has a quote that is not closed, or text behind one. Write a name with a "
            """comma as in CSV: 'a,"b, c"'."""
        ) from None
    return tuple(name.strip() for row in rows for name in row if name.strip())


_columns = partial(option, "Columns", saved=FIXED)
_learning = partial(option, "Learning", saved=FIXED)
_results = partial(option, "Results")
_rows = partial(option, "Rows")
"""Declare an option under a heading of the help."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """All options of a run, checked when it is made.

    >>> RunOptions(source="sensors.csv", target="load", lags=3).coverage
    0.9
    """

    source: str
    """A file, `-` for standard input, or the address of a broker."""

    target: str = _columns("Column to predict; several columns of numbers: A,B,C.", metavar="NAME")
    features: tuple[str, ...] | None = _columns(
        "Numeric inputs; by default all other columns.", None, "A,B,C"
    )
    categorical: tuple[str, ...] = _columns(
        "Text inputs: categories, known by their mean target.", (), "A,B"
    )
    time: str | None = _columns(
        "Column of times (ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970): becomes "
        "the time of day, week and year.",
        None,
        "NAME",
    )
    time_format: str | None = _columns(
        "Format of the times such as '%d.%m.%Y %H:%M', where it is not recognised.", None, "FORMAT"
    )
    timezone: str | None = _columns(
        "Time zone of the clock that --time shows, such as Europe/Berlin; other times are "
        "converted to it.",
        None,
        "NAME",
    )
    missing: tuple[str, ...] = _columns(
        "Values that mean that there is none, such as -999,NA. Inputs may then be missing.",
        (),
        "A,B",
    )
    keep: tuple[str, ...] = _columns(
        "Columns that are copied into the predictions; with them the id of each row of a broker.",
        (),
        "A,B",
    )
    delimiter: str = _columns(
        "Character between the cells of CSV, or the word tab.", ",", "CHARACTER"
    )
    decimal: str = _columns(
        "Decimal point of the numbers in CSV: a point or a comma.", ".", "CHARACTER"
    )

    task: str = _learning(
        "Whether the target is a number or a label.",
        "regression",
        choices=("regression", "classification"),
    )
    classes: tuple[str, ...] | None = _learning(
        "Labels that may occur; a row with another one is bad. By default they are found in the "
        "stream.",
        None,
        "A,B,C",
        saved=FREE,
    )
    max_classes: int | None = _learning(
        "How many labels may be found in the stream, by default 100. Beyond two, the model grows "
        "with each.",
        None,
        "N",
        low=2,
        high=10_000,
        saved=FREE,
    )
    positive: str | None = _learning(
        "Label that is predicted when its probability is at least --threshold, such as a rare one.",
        None,
        "LABEL",
    )
    threshold: float = _learning(
        "Probability from which --positive is predicted.",
        0.5,
        "SHARE",
        low=0,
        high=1,
        open_range=True,
    )
    lags: int = _learning(
        "Number of previous targets that are inputs too.", 0, "N", low=0, high=1000
    )
    seasons: tuple[str, ...] = _learning(
        "Periods in rows after which the stream repeats, such as 24,168; or auto to find them.",
        (),
        "N,N",
    )
    horizon: tuple[str, ...] = _learning(
        "Forecast so many rows ahead, after every row: 24 for 1 to 24, or some, such as 1,6,24.",
        (),
        "N,N",
    )
    known: tuple[str, ...] = _learning(
        "Numeric columns, or the time, that forecasts may use of later rows: known in advance.",
        (),
        "A,B",
    )
    delay: int = _learning(
        "Number of rows after which a target is known.", 0, "N", low=0, high=100_000
    )
    preset: str = _learning(
        "Slots: AutoBank's default ones, or the twenty Gaussian kernels and the weights of the "
        "paper.",
        "auto",
        choices=("auto", "paper"),
    )
    size: str = _learning(
        "Number of slots, and so the time per row.",
        "default",
        choices=("small", "default", "large"),
    )
    coverage: float = _learning(
        "Share of the targets inside their intervals.", 0.9, "SHARE", low=0, high=1, open_range=True
    )
    lower: float | None = _learning(
        "No target lies below this: predictions and intervals stay above, other rows are bad.",
        None,
        "NUMBER",
        low=-LARGEST,
        high=LARGEST,
    )
    upper: float | None = _learning(
        "No target lies above this: predictions and intervals stay below, other rows are bad.",
        None,
        "NUMBER",
        low=-LARGEST,
        high=LARGEST,
    )
    engine: str = _learning(
        "Where the slots run; the results are the same.",
        "serial",
        choices=("serial", "threads", "ray"),
        saved=None,
    )
    ray_address: str | None = _learning(
        "Ray cluster for --engine ray; by default Ray is started on this machine.",
        None,
        "HOST:PORT",
        saved=None,
    )
    ray_allow_unauthenticated: bool = _learning(
        "Use a Ray cluster that does not require a token; whoever reaches it may run code on it.",
        False,
        saved=None,
    )
    shards: int | None = _learning(
        "Processes for --engine ray, threads for --engine threads; by default one per processor.",
        None,
        "N",
        low=1,
        saved=None,
    )

    predictions: str | None = _results(
        "Where predictions are written: a .csv file, a .parquet folder, or "
        "redis://host:port/stream.",
        None,
        "PLACE",
    )
    redis_password_file: Path | None = _results(  # noqa: RUF009
        "File with the password of Redis (source and predictions), which others may not read; or "
        "set KERNELBANK_REDIS_PASSWORD.",
        None,
        "FILE",
    )
    redis_wait: int = _results(
        "Number of replicas of Redis that must have the predictions before a checkpoint.",
        0,
        "N",
        low=0,
    )
    state: Path | None = _results(  # noqa: RUF009
        "Folder of the checkpoint: with it, the same command resumes after a crash, a kill or "
        "Ctrl-C.",
        None,
        "FOLDER",
    )
    checkpoint_every: int = _results(
        "Rows between checkpoints. A kill costs the time since the last one, never results.",
        10_000,
        "ROWS",
        low=1,
    )
    flush_every: float = _results(
        "Seconds after which predictions can be read where they are written (Parquet: at the end "
        "of a part).",
        1.0,
        "SECONDS",
        low=0,
    )
    report: Path | None = _results(  # noqa: RUF009
        "Write a page with charts of the run to this .html file at the end.", None, "FILE"
    )
    live: int | None = _results(
        "Serve that page during the run, at an address that is printed; by default at a free port.",
        None,
        "[PORT]",
        low=0,
        high=65_535,
        bare_value=0,
    )
    live_host: str = _results(
        "Network address that the live page listens on.", "127.0.0.1", "ADDRESS"
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
    max_rows: int | None = _rows("Stop after this number of rows.", None, "N", low=1)
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
        "SECONDS",
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
        # Which the help must not import.
        from ..io.lines import DECIMAL_RULE, DELIMITER_RULE, delimiter_character

        if delimiter_character(self.delimiter) is None:
            raise RunRefused(f"--delimiter must {DELIMITER_RULE}; got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise RunRefused(f"--decimal must {DECIMAL_RULE}; got {self.decimal!r}.")
        check_combinations(self)
        self._check_times()

    def _check_times(self) -> None:
        if self.time_format is not None:
            day = datetime(2024, 12, 31)
            try:
                fits = datetime.strptime(day.strftime(self.time_format), self.time_format) == day
            except ValueError:
                fits = False
            if not fits:
                raise RunRefused(
                    "--time-format must name at least day, month and year, such as "
                    f"'%d.%m.%Y %H:%M'; got {self.time_format!r}."
                )
        try:
            self.zone  # noqa: B018  (an unknown one is refused)
        except (KeyError, ValueError, OSError):
            raise RunRefused(
                "--timezone must be the name of a time zone of this system, such as "
                f"Europe/Berlin; got {self.timezone!r}."
            ) from None

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
        if "," not in self.target:
            return (self.target,) if self.target.strip() else ()
        try:
            return column_names(self.target)
        except ValueError as error:
            raise RunRefused(f"--target: {error}") from None

    @cached_property
    def zone(self) -> ZoneInfo | None:
        """What --timezone names."""
        return None if self.timezone is None else ZoneInfo(self.timezone)

    @property
    def labels(self) -> list[str] | None:
        """The labels that --classes names, as they are in the rows."""
        return None if self.classes is None else [as_label(text) for text in self.classes]

    @property
    def rare(self) -> str | None:
        """The label that --positive names, as it is in the rows."""
        return None if self.positive is None else as_label(self.positive)

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

    def to_json(self) -> dict[str, object]:
        """The saved options as JSON data."""
        values = {name: getattr(self, name) for name, spec in OPTIONS.items() if spec.saved}
        return {name: _as_json(value) for name, value in values.items()}

    @classmethod
    def from_json(cls, saved: Saved) -> RunOptions:
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

    def check_resumes(self, saved: Saved, folder: Path) -> None:
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

DEFAULTS: dict[str, object] = {one.name: one.default for one in fields(RunOptions)}

KINDS: dict[str, type] = {
    name: value_type(hint) for name, hint in get_type_hints(RunOptions).items() if name in OPTIONS
}
"""The type of every option: str, int, float, bool, Path, or tuple for a list of names."""

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def as_label(cell: str) -> str:
    """A label as text: 1.0 is the label 1, whether a file has whole numbers or others."""
    whole = _WHOLE.fullmatch(cell)
    return cell if whole is None else whole[1]


def _plain_default(name: str) -> object:
    return None if DEFAULTS[name] is MISSING else _as_json(DEFAULTS[name])


def _as_json(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


# --- options that exclude or need one another ---


def check_combinations(options: RunOptions) -> None:
    """Refuse options that do not go together."""
    labels, grows = options.task == "classification", options.is_broker or options.follow
    address, from_redis = options.predictions, options.source.startswith(REDIS_SCHEMES)
    to_redis = address is not None and address.startswith(REDIS_SCHEMES)
    needs: dict[str, tuple[object, ...]] = {
        "--engine ray": (options.engine == "ray", "ray_address", "ray_allow_unauthenticated"),
        "--engine threads or --engine ray": (options.engine != "serial", "shards"),
        "--time, which names the column": (options.time, "time_format", "timezone"),
        "--task classification": (labels, "classes", "max_classes", "positive"),
        "--positive, which names a label": (options.positive is not None, "threshold"),
        "--horizon: it names what forecasts know in advance": (options.horizon, "known"),
        "a source in Redis or Kafka, or --follow": (grows, "allow_gaps"),
        "--predictions redis://host:port/stream": (to_redis, "redis_wait"),
        "a source or --predictions in Redis": (to_redis or from_redis, "redis_password_file"),
    }
    for what, (fulfilled, *names) in needs.items():
        for name in map(str, names):
            if not fulfilled and getattr(options, name) != DEFAULTS[name]:
                raise RunRefused(f"{flag(name)} needs {what}.")
    for name in ("horizon", "lower", "upper"):
        if labels and getattr(options, name) != DEFAULTS[name]:
            raise RunRefused(
                f"{flag(name)} is for numbers; with --task classification leave it out."
            )
    if options.complete and options.follow:
        raise RunRefused(
            "--complete is for a source that does not grow, --follow for one that does. Give "
            "one of them."
        )
    _check_targets(options)
    periods = _whole_numbers(options.seasons, 2, LARGEST_PERIOD)
    if options.seasons != ("auto",) and (periods is None or len(periods) > MOST_PERIODS):
        raise RunRefused(
            f"--seasons must be auto, or up to {MOST_PERIODS} different whole numbers of rows "
            f"from 2 to {LARGEST_PERIOD}, such as 24,168; got {option_text(options.seasons)}."
        )
    if _whole_numbers(options.horizon, 1, LONGEST_HORIZON) is None:
        raise RunRefused(
            f"--horizon must be a number of rows from 1 to {LONGEST_HORIZON}, or several different "
            f"ones, such as 1,6,24; got {option_text(options.horizon)}."
        )
    lower, upper = options.lower, options.upper
    if lower is not None and upper is not None and not lower < upper:
        raise RunRefused(f"--lower must be less than --upper; got {lower:g} and {upper:g}.")
    classes = options.labels
    if classes is not None and options.max_classes is not None:
        raise RunRefused(
            "--max-classes is for labels that are found in the stream; with --classes leave it out."
        )
    if classes is not None and (len(classes) < 2 or len(set(classes)) < len(classes)):
        raise RunRefused(
            "--classes must name at least two labels, none twice; got "
            f"{option_text(options.classes)}."
        )
    if classes is not None and options.positive is not None and options.rare not in classes:
        raise RunRefused(
            f"--positive must be one of --classes; {options.positive!r} is not among "
            f"{option_text(options.classes)}. Add it to --classes, or correct it."
        )
    if address is None or to_redis:
        return
    if "://" in address or not address.endswith((".csv", ".parquet")):
        from ..io.brokers import without_password  # which the help must not import

        raise RunRefused(
            "--predictions must end with .csv or .parquet, or be redis://host:port/stream; "
            f"got {without_password(address)}."
        )


def _check_targets(options: RunOptions) -> None:
    targets, what = options.targets, f"--target names {len(options.targets)} columns"
    if not targets:
        raise RunRefused(f"--target must name a column, or several: A,B; got {options.target!r}.")
    for name in targets:
        if targets.count(name) > 1:
            raise RunRefused(f"--target: column {name!r} is named twice. Use it once.")
    if len(targets) > 1 and options.task == "classification":
        raise RunRefused(f"{what}, which must be numbers; with --task classification name one.")
    for name in ("seasons", "horizon", "preset"):
        if len(targets) > 1 and getattr(options, name) != DEFAULTS[name]:
            raise RunRefused(f"{what}; with {flag(name)} name one, and run the others alone.")


def _whole_numbers(texts: Sequence[str], least: int, most: int) -> set[int] | None:
    """Different whole numbers in a range; None if the texts are not."""
    if not all(text.isascii() and text.isdecimal() and len(text) < 10 for text in texts):
        return None
    numbers = {int(text) for text in texts}
    fit = len(numbers) == len(texts) and all(least <= number <= most for number in numbers)
    return numbers if fit else None


# --- columns of the predictions ---


REGRESSION_COLUMNS = ("row", "prediction", "lower", "upper", "target")
CLASSIFICATION_COLUMNS = ("row", "prediction", "probability", "target")


PROBABILITY, OTHER = "probability:", "other"
"""How columns of probabilities begin; that of all labels without one of their own ends so."""


def prediction_columns(options: RunOptions, labels: Sequence[str] | None = None) -> tuple[str, ...]:
    """The columns of the predictions, without those that are copied from the source.

    Of several targets those of each have its name. `labels` have a column each for their
    probability, all others one together; None in runs of earlier versions, which have none.
    """
    if options.task == "classification":
        more = () if labels is None else (*labels, OTHER)
        return (*CLASSIFICATION_COLUMNS, *(f"{PROBABILITY}{name}" for name in more))
    if len(options.targets) == 1:
        return (*REGRESSION_COLUMNS, *forecast_columns(options))
    row, *each = REGRESSION_COLUMNS
    return (row, *(f"{column}:{name}" for name in options.targets for column in each))


FIELDS = {"forecast": "forecasts", "lower": "forecast_lower", "upper": "forecast_upper"}
"""How columns of the predictions begin, and the fields of a trace that are written there."""


def parsed_horizons(texts: Sequence[str]) -> tuple[int, ...]:
    """Rows ahead, ascending: one number N for 1 to N, several for themselves.

    >>> parsed_horizons(["3"]), parsed_horizons(["24", "1"])
    ((1, 2, 3), (1, 24))
    """
    horizons = sorted(map(int, texts))
    return tuple(range(1, horizons[0] + 1)) if len(horizons) == 1 else tuple(horizons)


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


def forecast_cells(
    arrays: Mapping[str, np.ndarray], options: RunOptions
) -> list[tuple[object, ...]]:
    """The cells of n rows from arrays (n, H) of a trace."""
    if options.known or not options.horizons:
        return [()] * len(next(iter(arrays.values()), ()))
    lists = [arrays[field].tolist() for field in FIELDS.values()]
    rows = zip(*lists, strict=True)
    return [tuple(cell for cells in zip(*row, strict=True) for cell in cells) for row in rows]
