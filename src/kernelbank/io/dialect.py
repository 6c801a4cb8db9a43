"""How a CSV file is written: the delimiter of its cells, the decimal point of its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidArgument

DELIMITER_RULE = "be one character, or the word tab"
DECIMAL_RULE = "be '.' or ','"

_WORDS = {"tab": "\t", "\\t": "\t"}


def delimiter_character(delimiter: object) -> str | None:
    """The character that a delimiter is given as; None if it cannot be one."""
    character = _WORDS.get(delimiter, delimiter) if isinstance(delimiter, str) else None
    valid = isinstance(character, str) and len(character) == 1 and character not in '"\r\n {'
    return character if valid else None


@dataclass(frozen=True)
class CsvDialect:
    """The delimiter and the decimal point.

    >>> CsvDialect.of("tab", ",")
    CsvDialect(delimiter='\\t', decimal=',')
    """

    delimiter: str = ","
    decimal: str = "."

    @classmethod
    def of(cls, delimiter: object, decimal: object) -> CsvDialect:
        """The checked dialect."""
        character = delimiter_character(delimiter)
        if character is None:
            raise InvalidArgument(
                f"'delimiter' must {DELIMITER_RULE}; got {delimiter!r}. Give what stands between "
                "the cells, such as ',' or ';'."
            )
        if decimal not in (".", ","):
            raise InvalidArgument(
                f"'decimal' must {DECIMAL_RULE}; got {decimal!r}. Give what stands before the "
                "fraction of a number."
            )
        return cls(character, decimal)
