"""A series in one column of a CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from tritonchaos.errors import UsageError
from tritonchaos.series.cells import Cells, is_number, is_unavailable
from tritonchaos.series.guessing import find_channel
from tritonchaos.series.records import Expected, Series, SeriesFlaw
from tritonchaos.series.times import Times

_DELIMITERS: Final = ",;\t"
_TIMES: Final = ("timestamp", "time", "date", "datetime", "time_s", "time_ms", "time_ns", "t_ns")
_SHOWN_COLUMNS: Final = 12
_SHOWN_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns are that matter.

    Attributes:
        at: Of the values.
        stamp_at: Of time stamps; None: there is none.
        count: Of all.
    """

    at: int
    stamp_at: int | None
    count: int


def read(numbered: Iterator[tuple[int, str]], name: str, expected: Expected) -> Series:
    """Return the series of a column: the only one, or the one that was named, by its name or its number from 1.

    Raises:
        UsageError: There is no such column, or several and none was named.
    """
    first = next(numbered)
    delimiter = max(_DELIMITERS, key=first[1].count)
    row = _split(first[1], delimiter)
    has_names = not any(is_number(cell) or is_unavailable(cell) for cell in row)
    at = _column(row, has_names, name, expected.column)
    rest = numbered if has_names else chain([first], numbered)
    title = row[at] if has_names else ""
    stamp_at = next((number for number, cell in enumerate(row) if cell.lower() in _TIMES and number != at), None)
    cells = _values(rest, delimiter, Columns(at, stamp_at, len(row)))
    values, channel = find_channel(_some(cells, title, first[0]), title or name, expected)
    return Series(name, values, "", channel, expected.quantum)


def _some(values: Iterator[int], title: str, line: int) -> Iterator[int]:
    """Yield the values; a file that holds nothing but a line of text is no series."""
    value = next(values, None)
    if value is None:
        raise SeriesFlaw(f"line {line}: found {title[:_SHOWN_TITLE]!r} and no value below it")
    yield from chain([value], values)


def _split(line: str, delimiter: str) -> list[str]:
    line = line.rstrip("\r\n")
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def _column(row: Sequence[str], has_names: bool, name: str, wanted: str | None) -> int:
    shown = ", ".join(row[:_SHOWN_COLUMNS]) if has_names else f"1 to {len(row)}"
    if wanted is None:
        if len(row) > 1:
            raise UsageError(f"{name} has {len(row)} columns ({shown})", hint="name one with --column")
        return 0
    if has_names and wanted in row:
        return row.index(wanted)
    if wanted.isdigit() and 1 <= int(wanted) <= len(row):
        return int(wanted) - 1
    raise UsageError(f"{name} has no column {wanted!r}; expected one of {shown}", hint="name one with --column")


def _values(numbered: Iterator[tuple[int, str]], delimiter: str, columns: Columns) -> Iterator[int]:
    cells, times = Cells(), Times()
    empty_line = 0
    for number, line in numbered:
        if not line.strip():
            empty_line = empty_line or number
            continue
        if empty_line:
            raise SeriesFlaw(f"line {empty_line} is empty, expected a number of bytes")
        if columns.count == 1:
            yield cells.read(line.strip().strip('"'), f"line {number}")
            continue
        row = _split(line, delimiter)
        if len(row) != columns.count:
            raise SeriesFlaw(f"line {number}: found {len(row)} columns, expected {columns.count} as in the first line")
        if columns.stamp_at is not None:
            times.see(row[columns.stamp_at], f"line {number}")
        yield cells.read(row[columns.at], f"line {number}")
