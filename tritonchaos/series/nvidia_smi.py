"""Logs of `nvidia-smi --query-gpu=timestamp,memory.used --format=csv`, with or without header and units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Final

from tritonchaos.errors import UsageError
from tritonchaos.post_unload import Channel
from tritonchaos.series.cells import Cells, is_unavailable
from tritonchaos.series.records import Expected, Series, SeriesFlaw, shown

# As nvidia-smi prints it: "2026/12/01 09:15:02.123".
_STAMP: Final = re.compile(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d")
_FORMATS: Final = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")
_UNIT: Final = re.compile(r"memory\.used(?:\s*\[(\w+)\])?\Z")
_PER_GPU: Final = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")


def is_log(first_line: str) -> bool:
    """Say whether a file with this first line is such a log."""
    cells = _split(first_line)
    is_header = "timestamp" in cells and any(_UNIT.match(cell) for cell in cells)
    return is_header or (len(cells) == 2 and _STAMP.match(cells[0]) is not None)


def read(numbered: Iterator[tuple[int, str]], name: str, expected: Expected) -> Series:
    """Return the series of used device memory, in bytes, one value per line.

    Raises:
        UsageError: The log tells several GPUs apart, of which only one can be judged.
    """
    first = next(numbered)
    cells = _split(first[1])
    if "timestamp" not in cells:
        numbered, cells = chain([first], numbered), ["timestamp", "memory.used [MiB]"]
    apart = [cell for cell in cells if cell in _PER_GPU]
    if apart:
        raise UsageError(
            f"{name} tells GPUs apart by {apart[0]}, expected the log of one GPU",
            hint="log one with `nvidia-smi --id=0 --query-gpu=timestamp,memory.used --format=csv -l 1`",
        )
    at = next(number for number, cell in enumerate(cells) if _UNIT.match(cell))
    unit = (_UNIT.match(cells[at]) or [None, None])[1]
    values = _values(numbered, cells.index("timestamp"), at, len(cells), unit or "MiB")
    return Series(name, values, "", expected.channel or Channel.DEVICE, expected.quantum)


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _values(numbered: Iterator[tuple[int, str]], stamp_at: int, at: int, columns: int, unit: str) -> Iterator[int]:
    cells, before, before_text = Cells(unit), datetime.min, ""
    for number, line in numbered:
        if not line.strip():
            continue
        row = _split(line)
        where = f"line {number}"
        if len(row) != columns:
            raise SeriesFlaw(f"{where}: found {shown(line.strip())}, expected {columns} columns as in the first line")
        now = _stamp(row[stamp_at], where)
        if now < before:
            raise SeriesFlaw(f"{where}: the time stamp jumps back, {row[stamp_at]} after {before_text}")
        before, before_text = now, row[stamp_at]
        if is_unavailable(row[at]):
            raise SeriesFlaw(f"{where}: found {row[at]}: the driver gave no reading of memory.used")
        yield cells.read(row[at], where)


def _stamp(text: str, where: str) -> datetime:
    plain = text.replace("-", "/").replace("T", " ")
    for form in _FORMATS:
        try:
            return datetime.strptime(plain, form)
        except ValueError:
            continue
    raise SeriesFlaw(f"{where}: found {shown(text)}, expected a time stamp such as 2026/12/01 09:15:02.123")
