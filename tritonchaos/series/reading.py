"""Reads recorded series from lines: tells JSON lines, nvidia-smi's log and CSV apart by the first one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from tritonchaos.errors import UsageError
from tritonchaos.series import columns, json_lines, nvidia_smi
from tritonchaos.series.records import Expected, Series

_BLANK_LINES_LOOKED_AT = 1000
_NO_TEXT = "\0"  # in compressed files, run.db and UTF-16


def read_series(lines: Iterable[str], name: str, expected: Expected | None = None) -> Iterator[Series]:
    """Yield the series of a file, each to be read to its end before the next.

    Lines are taken one at a time as values are asked for, so that a log of any length takes no memory.

    Args:
        name: What a series is called that has no name of its own: the file's name.

    Raises:
        UsageError: It is empty, or none of the formats.
    """
    numbered = enumerate(lines, start=1)
    first = _first_line(numbered)
    if first is None:
        raise UsageError(f"{name} is empty", hint=_HINT)
    if _NO_TEXT in first[1]:
        raise UsageError(
            f"{name} is no UTF-8 text", hint=f"{_HINT}; what PowerShell writes with `>` is UTF-16: convert it"
        )
    rest = chain([first], numbered)
    expected = expected or Expected()
    text = first[1].lstrip()
    if text.startswith(("{", "[")):
        yield from json_lines.read(rest, name, expected)
    elif expected.column is None and nvidia_smi.is_log(text):
        yield nvidia_smi.read(rest, name, expected)
    else:
        yield columns.read(rest, name, expected)


_HINT = (
    "expected JSON lines with `values`, a CSV, or the log of "
    "`nvidia-smi --query-gpu=timestamp,memory.used --format=csv`"
)


def _first_line(numbered: Iterator[tuple[int, str]]) -> tuple[int, str] | None:
    for number, line in numbered:
        if line.strip():
            return number, line
        if number >= _BLANK_LINES_LOOKED_AT:
            break
    return None
