"""The options of a run, declared once.

The click options of `kernelbank run`, its grouped help, the checks, and the options that the
checkpoint holds all follow from the fields of `RunOptions` and their metadata.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

from ..errors import FileRefused, RunRefused
from . import Saved

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
    """What is declared about one option, besides its name and type.

    Parameters
    ----------
    group : the heading of the help under which it stands.
    help : its line in the help.
    default : its value if it is not given; MISSING if it must be.
    metavar : how its value is called in the help; by default by its type.
    low, high : the range of a number; None for no bound.
    open_range : whether the bounds themselves are excluded.
    bare_value : the value if the option is given without one.
    saved : FIXED, FREE, or None if the checkpoint does not hold it.
    kind : its type: str, int, float, bool, Path, or tuple for a list of names.
    choices : the allowed values, if its type is Literal.
    """

    group: str
    help: str
    default: Any = MISSING
    metavar: str | None = None
    low: float | None = None
    high: float | None = None
    open_range: bool = False
    bare_value: int | None = None
    saved: str | None = None
    kind: type = str
    choices: tuple[str, ...] = ()

    def of_type(self, hint: Any) -> OptionSpec:
        """The same with the type of the field, of which None and type arguments do not count."""
        if get_origin(hint) is Literal:
            return replace(self, choices=get_args(hint))
        if get_origin(hint) is tuple:
            return replace(self, kind=tuple)
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return self.of_type(kinds[0]) if kinds else replace(self, kind=hint)

    @property
    def plain_default(self) -> object:
        """The default as JSON data; None if there is none."""
        return None if self.default is MISSING else _as_json(self.default)

    def fits(self, value: Any) -> bool:
        """Whether a value is of the type, and among the choices or in the range."""
        if value is None and self.default is None:
            return True
        if self.kind is tuple:
            return isinstance(value, tuple) and all(isinstance(name, str) for name in value)
        kinds = (int, float) if self.kind is float else (self.kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            return False
        if self.choices:
            return value in self.choices
        if self.low is None and self.high is None:
            return True
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        number = cast(float, value)
        return low < number < high if self.open_range else low <= number <= high

    def allowed(self) -> str:
        """The values that the option may have, in words."""
        if self.choices:
            return " or ".join(self.choices)
        words = KIND_WORDS[self.kind][1]
        if self.low is not None:
            words += f" {'above' if self.open_range else 'from'} {self.low:g}"
        if self.high is not None:
            words += f" {'and below' if self.open_range else 'to'} {self.high:g}"
        return words


KIND_WORDS = {
    int: ("N", "a whole number"),
    float: ("NUMBER", "a number"),
    str: ("NAME", "text"),
    bool: ("", "true or false"),
    Path: ("FILE", "a path"),
    tuple: ("A,B", "names with commas between them"),
}
"""How values of a type are called in the help, and in messages."""


def option(group: str, text: str, default: Any = MISSING, **declared: Any) -> Any:
    """A field of a dataclass that is an option."""
    spec = OptionSpec(group, text, default, **declared)
    return field(default=default, metadata={"option": spec})


def flag(name: str) -> str:
    """How an option is written in a command: `--max-rows`."""
    return f"--{name.replace('_', '-')}"


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
_share = partial(_learning, metavar="SHARE", low=0, high=1, open_range=True)
_bound = partial(_learning, low=-LARGEST, high=LARGEST)
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

    target: str = _columns("Column to predict; several columns of numbers: A,B,C.")
    features: tuple[str, ...] | None = _columns(
        "Numeric inputs; by default all other columns.", None, metavar="A,B,C"
    )
    categorical: tuple[str, ...] = _columns(
        "Text inputs: categories, known by their mean target.", ()
    )
    time: str | None = _columns(
        "Column of times (ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970): becomes "
        "the time of day, week and year.",
        None,
    )
    time_format: str | None = _columns(
        "Format of the times such as '%d.%m.%Y %H:%M', where it is not recognised.",
        None,
        metavar="FORMAT",
    )
    timezone: str | None = _columns(
        "Time zone of the clock that --time shows, such as Europe/Berlin; other times are "
        "converted to it.",
        None,
    )
    missing: tuple[str, ...] = _columns(
        "Values that mean that there is none, such as -999,NA. Inputs may then be missing.", ()
    )
    keep: tuple[str, ...] = _columns(
        "Columns that are copied into the predictions; with them the id of each row of a broker.",
        (),
    )
    delimiter: str = _columns(
        "Character between the cells of CSV, or the word tab.", ",", metavar="CHARACTER"
    )
    decimal: str = _columns(
        "Decimal point of the numbers in CSV: a point or a comma.", ".", metavar="CHARACTER"
    )

    task: Literal["regression", "classification"] = _learning(
        "Whether the target is a number or a label.", "regression"
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
        low=2,
        high=10_000,
        saved=FREE,
    )
    positive: str | None = _learning(
        "Label that is predicted when its probability is at least --threshold, such as a rare one.",
        None,
        metavar="LABEL",
    )
    threshold: float = _share("Probability from which --positive is predicted.", 0.5)
    lags: int = _learning("Number of previous targets that are inputs too.", 0, low=0, high=1000)
    seasons: tuple[str, ...] = _learning(
        "Periods in rows after which the stream repeats, such as 24,168; or auto to find them.",
        (),
        metavar="N,N",
    )
    horizon: tuple[str, ...] = _learning(
        "Forecast so many rows ahead, after every row: 24 for 1 to 24, or some, such as 1,6,24.",
        (),
        metavar="N,N",
    )
    known: tuple[str, ...] = _learning(
        "Numeric columns, or the time, that forecasts may use of later rows: known in advance.", ()
    )
    delay: int = _learning("Number of rows after which a target is known.", 0, low=0, high=100_000)
    preset: Literal["auto", "paper"] = _learning(
        "Slots: AutoBank's default ones, or the twenty Gaussian kernels and the weights of the "
        "paper.",
        "auto",
    )
    size: Literal["small", "default", "large"] = _learning(
        "Number of slots, and so the time per row.", "default"
    )
    coverage: float = _share("Share of the targets inside their intervals.", 0.9)
    lower: float | None = _bound(
        "No target lies below this: predictions and intervals stay above, other rows are bad.", None
    )
    upper: float | None = _bound(
        "No target lies above this: predictions and intervals stay below, other rows are bad.", None
    )
    engine: Literal["serial", "threads", "ray"] = _learning(
        "Where the slots run; the results are the same.", "serial", saved=None
    )
    ray_address: str | None = _learning(
        "Ray cluster for --engine ray; by default Ray is started on this machine.",
        None,
        metavar="HOST:PORT",
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
        low=1,
        saved=None,
    )

    predictions: str | None = _results(
        "Where predictions are written: a .csv file, a .parquet folder, or "
        "redis://host:port/stream.",
        None,
        metavar="PLACE",
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
    flush_every: float = _results(
        "Seconds after which predictions can be read where they are written (Parquet: at the end "
        "of a part).",
        1.0,
        metavar="SECONDS",
        low=0,
    )
    report: Path | None = _results(  # noqa: RUF009
        "Write a page with charts of the run to this .html file at the end.", None
    )
    live: int | None = _results(
        "Serve that page during the run, at an address that is printed; by default at a free port.",
        None,
        metavar="[PORT]",
        low=0,
        high=65_535,
        bare_value=0,
    )
    quiet: bool = _results("Print errors only.", False)
    log_json: bool = _results("Print everything as JSON, one object per line.", False)

    on_bad_row: Literal["stop", "skip"] = _rows(
        "Stop at a row that cannot be used, or write it to the bad rows and go on.",
        "stop",
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
    max_rows: int | None = _rows("Stop after this number of rows.", None, low=1)
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
            if not spec.fits(value := getattr(self, name)):
                raise RunRefused(f"{flag(name)} must be {spec.allowed()}; got {value!r}.")
        for problem in _problems(self):
            raise RunRefused(problem)

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

    def set_among(self, *names: object) -> list[str]:
        """Which of these options have another value than their default."""
        return [name for name in map(str, names) if getattr(self, name) != OPTIONS[name].default]

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
    def copied_columns(self) -> tuple[str, ...]:
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
        earlier = {name: saved.get(name, OPTIONS[name].plain_default) for name in mine}
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


_HINTS = get_type_hints(RunOptions)

OPTIONS: dict[str, OptionSpec] = {
    declared.name: declared.metadata["option"].of_type(_HINTS[declared.name])
    for declared in fields(RunOptions)
    if declared.metadata
}
"""Every option, in the order of the help."""

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def as_label(cell: str) -> str:
    """A label as text: 1.0 is the label 1, whether a file has whole numbers or others."""
    whole = _WHOLE.fullmatch(cell)
    return cell if whole is None else whole[1]


def _as_json(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


# --- options that exclude or need one another ---


def _problems(options: RunOptions) -> Iterator[str]:
    """Why options cannot be used, or do not go together; each relies on those before."""
    # Which the help must not import.
    from ..io.brokers import without_password
    from ..io.lines import DECIMAL_RULE, DELIMITER_RULE, delimiter_character

    if delimiter_character(options.delimiter) is None:
        yield f"--delimiter must {DELIMITER_RULE}; got {options.delimiter!r}."
    if options.decimal not in (".", ","):
        yield f"--decimal must {DECIMAL_RULE}; got {options.decimal!r}."
    labels, grows = options.task == "classification", options.is_broker or options.follow
    address = options.predictions
    to_redis = address is not None and address.startswith(REDIS_SCHEMES)
    needs: dict[str, tuple[object, ...]] = {
        "--engine ray": (options.engine == "ray", "ray_address", "ray_allow_unauthenticated"),
        "--engine threads or --engine ray": (options.engine != "serial", "shards"),
        "--time, which names the column": (options.time, "time_format", "timezone"),
        "--task classification": (labels, "classes", "max_classes", "positive"),
        "--positive, which names a label": (options.positive is not None, "threshold"),
        "--horizon: it names what forecasts know in advance": (options.horizon, "known"),
        "a source in Redis or Kafka, or --follow": (grows, "allow_gaps"),
    }
    for what, (fulfilled, *names) in needs.items():
        if not fulfilled:
            yield from (f"{flag(name)} needs {what}." for name in options.set_among(*names))
    if labels:
        for name in options.set_among("horizon", "lower", "upper"):
            yield f"{flag(name)} is for numbers; with --task classification leave it out."
    if options.complete and options.follow:
        yield (
            "--complete is for a source that does not grow, --follow for one that does. Give "
            "one of them."
        )
    targets, what = options.targets, f"--target names {len(options.targets)} columns"
    if not targets:
        yield f"--target must name a column, or several: A,B; got {options.target!r}."
    for name in targets:
        if targets.count(name) > 1:
            yield f"--target: column {name!r} is named twice. Use it once."
    if len(targets) > 1 and labels:
        yield f"{what}, which must be numbers; with --task classification name one."
    if len(targets) > 1:
        for name in options.set_among("seasons", "horizon", "preset"):
            yield f"{what}; with {flag(name)} name one, and run the others alone."
    periods = _whole_numbers(options.seasons, 2, LARGEST_PERIOD)
    if options.seasons != ("auto",) and (periods is None or len(periods) > MOST_PERIODS):
        yield (
            f"--seasons must be auto, or up to {MOST_PERIODS} different whole numbers of rows "
            f"from 2 to {LARGEST_PERIOD}, such as 24,168; got {option_text(options.seasons)}."
        )
    if _whole_numbers(options.horizon, 1, LONGEST_HORIZON) is None:
        yield (
            f"--horizon must be a number of rows from 1 to {LONGEST_HORIZON}, or several different "
            f"ones, such as 1,6,24; got {option_text(options.horizon)}."
        )
    lower, upper = options.lower, options.upper
    if lower is not None and upper is not None and not lower < upper:
        yield f"--lower must be less than --upper; got {lower:g} and {upper:g}."
    classes, listed = options.labels, option_text(options.classes)
    if classes is not None and options.max_classes is not None:
        yield (
            "--max-classes is for labels that are found in the stream; with --classes leave it out."
        )
    if classes is not None and (len(classes) < 2 or len(set(classes)) < len(classes)):
        yield f"--classes must name at least two labels, none twice; got {listed}."
    if classes is not None and options.positive is not None and options.rare not in classes:
        yield (
            f"--positive must be one of --classes; {options.positive!r} is not among {listed}. "
            "Add it to --classes, or correct it."
        )
    is_file = address is not None and "://" not in address
    if (
        address is not None
        and not to_redis
        and not (is_file and address.endswith((".csv", ".parquet")))
    ):
        yield (
            "--predictions must end with .csv or .parquet, or be redis://host:port/stream; "
            f"got {without_password(address)}."
        )
    if options.time_format is not None and not _is_time_format(options.time_format):
        yield (
            "--time-format must name at least day, month and year, such as "
            f"'%d.%m.%Y %H:%M'; got {options.time_format!r}."
        )
    try:
        options.zone  # noqa: B018  (an unknown one is refused)
    except (KeyError, ValueError, OSError):
        yield (
            "--timezone must be the name of a time zone of this system, such as "
            f"Europe/Berlin; got {options.timezone!r}."
        )


def _is_time_format(form: str) -> bool:
    """Whether a day is known from a time in this format."""
    day = datetime(2024, 12, 31)
    try:
        return datetime.strptime(day.strftime(form), form) == day
    except ValueError:
        return False


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


def parsed_horizons(texts: Sequence[str]) -> tuple[int, ...]:
    """Rows ahead, ascending: one number N for 1 to N, several for themselves.

    >>> parsed_horizons(["3"]), parsed_horizons(["24", "1"])
    ((1, 2, 3), (1, 24))
    """
    horizons = sorted(map(int, texts))
    return tuple(range(1, horizons[0] + 1)) if len(horizons) == 1 else tuple(horizons)


def forecast_columns(options: RunOptions) -> tuple[str, ...]:
    """The columns of forecasts in the predictions: forecast+1, lower+1, upper+1, ...

    None with --known: when a row is written, the known columns of the next rows have not been read.
    """
    horizons, names = () if options.known else options.horizons, ("forecast", "lower", "upper")
    return tuple(f"{name}+{horizon}" for horizon in horizons for name in names)
