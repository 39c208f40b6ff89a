"""Reads cells of a CSV: numbers, with or without a unit, the same one all the way."""

from __future__ import annotations

import math
import re
from typing import Final

from tritonchaos.series.records import SeriesFlaw, shown, whole
from tritonchaos.units import GIB, KIB, MIB

_UNITS: Final = {"": 1, "b": 1, "kib": KIB, "mib": MIB, "gib": GIB, "kb": 1000, "mb": 1000**2, "gb": 1000**3}
_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)"
_CELL: Final = re.compile(rf"\s*({_NUMBER})\s*([a-z]*)\s*\Z", re.IGNORECASE)
_NOT_AVAILABLE: Final = re.compile(r"\s*\[.*\]\s*\Z|\s*n/?a\s*\Z", re.I)


class Cells:
    """Reads the cells of one column, top to bottom.

    Args:
        unit: Unit of cells that name none, such as "MiB"; "": bytes, or a count.
    """

    def __init__(self, unit: str = "") -> None:
        self._scale = _UNITS[unit.lower()]
        self._unit: str | None = None

    def read(self, cell: str, where: str) -> int:
        """Return the cell's number of bytes.

        Raises:
            SeriesFlaw: It is not a number, not available, negative, or its unit is not that of the cells above.
        """
        if cell.isdigit() and self._unit == "" and len(cell) < 19:
            return int(cell) * self._scale
        match = _CELL.match(cell)
        if match is None or match[2].lower() not in _UNITS:
            raise SeriesFlaw(_no_number(cell, where))
        if self._unit is None:
            self._unit = match[2]
        if match[2] != self._unit:
            above = self._unit or "none"
            raise SeriesFlaw(f"{where}: found {shown(cell)}, mixed units; the cells above have the unit {above}")
        scale = _UNITS[match[2].lower()] if match[2] else self._scale
        number = float(match[1])
        if not math.isfinite(number):
            return whole(number, where)
        return whole(int(match[1]) * scale if match[1].isdigit() and len(match[1]) < 19 else number * scale, where)


def is_number(cell: str) -> bool:
    """Say whether a cell reads as a number, with or without a unit."""
    match = _CELL.match(cell)
    return match is not None and match[2].lower() in _UNITS


def is_unavailable(cell: str) -> bool:
    """Say whether a cell says that there was no reading, as nvidia-smi's "[N/A]"."""
    return _NOT_AVAILABLE.match(cell) is not None


def _no_number(cell: str, where: str) -> str:
    if is_unavailable(cell):
        return f"{where}: found {cell.strip()}, no reading; expected a number of bytes"
    return f"{where}: found {shown(cell.strip())}, expected a number of bytes"
