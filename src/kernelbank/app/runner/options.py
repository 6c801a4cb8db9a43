"""The options of a run, declared once.

The click options of `kernelbank run`, its grouped help, the checks, and the options that the
checkpoint holds all follow from the fields of `RunOptions` and their metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from ...errors import FileRefused, RunRefused
from ...io.dialect import DECIMAL_RULE, DELIMITER_RULE, delimiter_character

REDIS_SCHEMES = ("redis://", "rediss://")
BROKER_SCHEMES = (*REDIS_SCHEMES, "kafka://")

ID = "id"
"""The column of the predictions with the id of each row of a broker, if `--keep` is given."""

LARGEST = 1e150
"""The largest number in data: `utils.validation.LARGEST`, which the help must not import."""

FIXED = "fixed"
"""Saved in the checkpoint; a resumed run must have the same value."""

FREE = "free"
"""Saved in the checkpoint; a resumed run may have another value."""


@dataclass(frozen=True)
class OptionSpec:
    """What is declared about one option, beside its name, type and default.

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
    bare_value: Any = None
    saved: str | None = None


def _option(group: str, text: str, default: Any = MISSING, **declared: Any) -> Any:
    return field(default=default, metadata={"option": OptionSpec(group, text, **declared)})


def _columns(text: str, default: Any = MISSING, **declared: Any) -> Any:
    return _option("Columns", text, default, **declared)


def _learning(text: str, default: Any, **declared: Any) -> Any:
    return _option("Learning", text, default, **declared)


def _results(text: str, default: Any, **declared: Any) -> Any:
    return _option("Results", text, default, **declared)


def _rows(text: str, default: Any, **declared: Any) -> Any:
    return _option("Rows", text, default, **declared)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """All options of a run, checked when it is made.

    >>> RunOptions(source="sensors.csv", target="load", lags=3).coverage
    0.9
    """

    source: str
    """A file, `-` for standard input, or the address of a broker."""

    target: str = _columns("Column to predict.", metavar="NAME", saved=FIXED)
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
        "Character between the cells of CSV, or the word tab.", ",", metavar="CHARACTER"
    )
    decimal: str = _columns(
        "Decimal point of the numbers in CSV: a point or a comma.", ".", metavar="CHARACTER"
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
        "with each: by 13 MB with 5 inputs, 60 MB with 50.",
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
        "Go on if a broker has deleted rows before they were read; they are counted.", False
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
            if not (optional and value is None) and not _fits(value, KINDS[name], spec):
                raise RunRefused(f"{flag(name)} must be {_allowed(name, spec)}; got {value!r}.")
        if delimiter_character(self.delimiter) is None:
            raise RunRefused(f"--delimiter must {DELIMITER_RULE}; got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise RunRefused(f"--decimal must {DECIMAL_RULE}; got {self.decimal!r}.")
        if self.ray_address is not None and self.engine != "ray":
            raise RunRefused("--ray-address needs --engine ray.")
        if self.ray_allow_unauthenticated and self.engine != "ray":
            raise RunRefused("--ray-allow-unauthenticated needs --engine ray.")
        if self.shards is not None and self.engine == "serial":
            raise RunRefused("--shards needs --engine threads or --engine ray.")
        if self.complete and self.follow:
            raise RunRefused(
                "--complete is for a source that does not grow, --follow for one that does. Give "
                "one of them."
            )
        self._check_bounds()
        self._check_classes()
        self._check_predictions()

    def _check_bounds(self) -> None:
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if bound is not None and self.task == "classification":
                raise RunRefused(
                    f"{flag(name)} is for numbers; with --task classification leave it out."
                )
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise RunRefused(
                f"--lower must be less than --upper; got {self.lower:g} and {self.upper:g}."
            )

    def _check_classes(self) -> None:
        for name in ("classes", "max_classes"):
            if getattr(self, name) is not None and self.task != "classification":
                raise RunRefused(f"{flag(name)} needs --task classification.")
        if self.classes is None:
            return
        if self.max_classes is not None:
            raise RunRefused(
                "--max-classes is for labels that are found in the stream; with --classes leave it "
                "out."
            )
        if len(self.labels or ()) < 2 or len(set(self.labels or ())) < len(self.labels or ()):
            raise RunRefused(
                f"--classes must name at least two labels, none twice; got {_shown(self.classes)}."
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

    def _check_predictions(self) -> None:
        address = self.predictions
        to_redis = address is not None and address.startswith(REDIS_SCHEMES)
        if self.redis_wait and not to_redis:
            raise RunRefused("--redis-wait needs --predictions redis://host:port/stream.")
        if self.redis_password_file and not (to_redis or self.source.startswith(REDIS_SCHEMES)):
            raise RunRefused("--redis-password-file needs a source or --predictions in Redis.")
        if address is None or to_redis:
            return
        if "://" in address or not address.endswith((".csv", ".parquet")):
            from ...io.addresses import without_password  # which the help must not import

            raise RunRefused(
                "--predictions must end with .csv or .parquet, or be redis://host:port/stream; "
                f"got {without_password(address)}."
            )

    # --- what follows from them -------------------------------------------------------------------

    @property
    def labels(self) -> list[str] | None:
        """The labels that --classes names, as they are in the rows."""
        return None if self.classes is None else [as_label(text) for text in self.classes]

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
            f"{flag(name)} was {_shown(earlier[name])}, now {_shown(value)}"
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


def _kind(hint: Any) -> type:
    """The type of an option's value, without None and type arguments."""
    if get_origin(hint) is tuple:
        return tuple
    return next((_kind(one) for one in get_args(hint) if one is not type(None)), hint)


KINDS: dict[str, type] = {
    name: _kind(hint) for name, hint in get_type_hints(RunOptions).items() if name in OPTIONS
}
"""The type of every option: str, int, float, bool, Path, or tuple for a list of names."""


_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def as_label(cell: str) -> str:
    """A label as text: 1.0 is the label 1, whether a file has whole numbers or others."""
    found = _WHOLE.fullmatch(cell)
    return cell if found is None else found[1]


def flag(name: str) -> str:
    """How an option is written in a command: `--max-rows`."""
    return f"--{name.replace('_', '-')}"


def listed_columns(columns: Sequence[str]) -> str:
    """The names of a source's columns for a message."""
    names = [n if n.isprintable() and "," not in n else repr(n) for n in columns[:20]]
    return (", ".join(names) + (", ..." if len(columns) > 20 else "")) or "none"


def _fits(value: Any, kind: type, spec: OptionSpec) -> bool:
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


def _allowed(name: str, spec: OptionSpec) -> str:
    if spec.choices:
        return " or ".join(spec.choices)
    words = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        Path: "a path",
        tuple: "labels" if name == "classes" else "column names",
    }[KINDS[name]]
    if spec.low is not None:
        words += f" {'above' if spec.open_range else 'from'} {spec.low:g}"
    if spec.high is not None:
        words += f" {'and below' if spec.open_range else 'to'} {spec.high:g}"
    return words


def _plain_default(name: str) -> Any:
    return None if DEFAULTS[name] is MISSING else _as_json(DEFAULTS[name])


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
