"""What to do about a row or a header that cannot be used, in the options of the command.

Advice comes before skipping: it throws no row away.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

from ..auto.targets import MAX_CLASSES, nearest_label
from ..io.cells import MISSING, NOT_A_NUMBER, NOT_TEXT, parse_time, time_format
from ..io.lines import delimiter_character
from ..io.sources import RejectedRow, Source
from ..utils.validation import reads_as_number
from .options import RunOptions

_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}
"""Usual delimiters, each as it is written in a command."""

_LISTED = 8
"""The most columns that are listed in advice."""


def bad_row_advice(  # noqa: PLR0911  (one for each cause)
    rejected: RejectedRow, options: RunOptions, features: Sequence[str], source: Source, rows: int
) -> str:
    """What to do about a bad row, as sentences; "" if there is nothing to do but correct it.

    After `rows` good ones, a column that held numbers so far most likely has a wrong cell.
    """
    name = rejected.column
    if name is None or name == options.time:
        return ""
    if rejected.reason == MISSING:
        if name in options.targets:
            return "To predict rows without a target, use --predict-missing."
        return f"If inputs may be missing, use --allow-missing{_or_leave_out(name, features)}."
    if name in options.targets and options.task == "classification":
        return "" if rejected.reason == NOT_TEXT else _label_advice(rejected.value, options)
    if rejected.reason != NOT_A_NUMBER:
        return ""
    if source.is_csv:
        if options.decimal == "." and _DECIMAL_COMMA.fullmatch(rejected.value.strip()):
            return "If the comma is its decimal point, use --decimal ','."
        if options.decimal == "," and _DECIMAL_POINT.fullmatch(rejected.value.strip()):
            return "If the point is its decimal point, leave out --decimal ','."
    if name in options.targets:
        labels = "If the targets are labels, use --task classification."
        return "" if rows or len(options.targets) > 1 else labels
    categorical = f"--categorical {_listed([*options.categorical, name])}"
    if rows:
        other = "" if options.state is None else " and another --state"
        return f"If the whole column is text, begin anew with {categorical}{other}."
    ways = [f"if the column is text, use {categorical}"]
    if options.time is None and _is_time(rejected.value):
        ways.insert(0, f"if it is a time, use {_as_time(name, rejected.value)}")
    if _is_code(rejected.value):
        ways.append(f"if it means that there is no value, use --missing {rejected.value.strip()}")
    text = "; ".join(ways) + _or_leave_out(name, features)
    return f"{text[0].upper()}{text[1:]}."


def _label_advice(label: str, options: RunOptions) -> str:
    """What to do about a label that the model refuses; a resumed run may allow more labels."""
    if options.classes is None:
        most = options.max_classes or MAX_CLASSES
        other = "" if options.state is None else " and another --state"
        return (
            f"If the target is a number, begin anew with --task regression{other}; if there are "
            f"more labels, raise --max-classes ({most}), or name them all with --classes."
        )
    meant = nearest_label(label, options.labels or ())
    typo = "" if meant is None else f"Perhaps {meant!r} is meant. "
    few = len(options.classes) < _LISTED
    listed = (
        f"give --classes {_listed([*options.classes, label])}" if few else "add it to --classes"
    )
    return f"{typo}If it is a label of its own, {listed}."


def first_row_advice(cells: Mapping[str, str | None], options: RunOptions) -> str:
    """The options for all columns of a first row that are not numbers; "" for fewer than two.

    cells : the numeric columns and their cells, None where one is empty.
    """
    if options.decimal != ".":
        return ""
    texts = {
        name: cell for name, cell in cells.items() if cell is not None and not reads_as_number(cell)
    }
    if any(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in texts.values()):
        return ""
    empty = [name for name, cell in cells.items() if cell is None and not options.allow_missing]
    if len(texts) + len(empty) < 2:
        return ""
    times = [name for name, cell in texts.items() if _is_time(cell) and options.time is None][:1]
    others = [name for name in texts if name not in times]
    words = [_as_time(times[0], texts[times[0]])] if times else []
    words += [f"--categorical {_listed([*options.categorical, *others])}"] if others else []
    words += ["--allow-missing"] if empty else []
    names = ", ".join(repr(name) for name in [*texts, *empty][:_LISTED])
    return f"In this first row these columns are not numbers: {names}. Use {' '.join(words)}."


def header_advice(options: RunOptions, columns: Sequence[str], source: Source) -> str:
    """The delimiter that would make the target a column of a CSV header; "" without one."""
    targets = set(options.targets)
    if not source.is_csv or targets <= set(columns):
        return ""
    header = (delimiter_character(options.delimiter) or ",").join(columns)
    for character, written in _DELIMITERS.items():
        if targets <= {cell.strip() for cell in header.split(character)}:
            return f"The cells seem to be separated otherwise: use --delimiter {written}."
    return ""


def _or_leave_out(name: str, features: Sequence[str]) -> str:
    others = [feature for feature in features if feature != name]
    if name not in features or not others:
        return ""
    listed = f" {_listed(others)}" if len(others) <= _LISTED else ""
    return f"; to leave the column out, name the others: --features{listed}"


def _listed(names: Sequence[str]) -> str:
    """Names as an option takes them: with commas between them, in quotes as in CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    listed = text.getvalue()
    return listed if re.fullmatch(r"[\w,.:+/-]+", listed) else f"'{listed}'"


def _is_time(value: str) -> bool:
    try:
        parse_time(value)
    except ValueError:
        return bool(time_format(value))
    return True


def _as_time(name: str, value: str) -> str:
    """The options for a column of times, of which one is known."""
    likely = time_format(value)
    form = f" --time-format '{likely}'" if likely else ""
    return f"--time {_listed([name])}{form}"


def _is_code(value: str) -> bool:
    """Whether a text looks like a word for a missing value: ---, n.a., #VALUE!, ?"""
    return (
        re.fullmatch(
            r"[^\w\s,]{1,8}|#[A-Z/]{1,8}[!?]?|[nN]\.[aA]\.?|missing|unknown", value.strip()
        )
        is not None
    )
