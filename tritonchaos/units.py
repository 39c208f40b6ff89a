"""Sizes, times and rates as people write them, and back."""

from __future__ import annotations

import math
import re
from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3

_BYTE_UNITS: Final = {
    "": 1,
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
}
_SECOND_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_QUANTITY: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*\Z")


def _quantity(text: object, units: dict[str, float] | dict[str, int], expected: str) -> float:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"found {text!r}, expected {expected}")
    match = _QUANTITY.match(str(text))
    if match is None or match[2].lower() not in units:
        raise ValueError(f"found {text!r}, expected {expected}")
    value = float(match[1]) * units[match[2].lower()]
    if not math.isfinite(value):
        raise ValueError(f"found {text!r:.80}, expected {expected}")
    return value


def parse_bytes(text: object) -> int:
    """Read a size such as "64MiB", "1.5 GiB", "16KB" or a plain number of bytes.

    Raises:
        ValueError: Not a size, negative, or an unknown unit.
    """
    return round(_quantity(text, _BYTE_UNITS, 'a size in bytes such as "64MiB"'))


def parse_seconds(text: object) -> float:
    """Read a time such as "30s", "250ms", "2min", "1h" or a plain number of seconds.

    Raises:
        ValueError: Not a time, negative, or an unknown unit.
    """
    return _quantity(text, _SECOND_UNITS, 'a time such as "30s"')


def parse_rate(text: object) -> float:
    """Read a rate such as "50/s" or "10/min", in events per second.

    Raises:
        ValueError: Not a rate.
    """
    expected = 'a rate such as "50/s"'
    number, slash, unit = str(text).partition("/")
    if not slash or unit.strip() not in {"s", "min", "h"}:
        raise ValueError(f"found {text!r}, expected {expected}")
    return _quantity(number, {"": 1.0}, expected) / parse_seconds(f"1{unit.strip()}")


def format_bytes(count: float) -> str:
    """Print a number of bytes with a binary unit: "1.63 MiB", "-4 KiB", "0 B"."""
    for size, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(count) >= size:
            number = f"{count / size:.2f}".rstrip("0").rstrip(".")
            return f"{number} {unit}"
    return f"{count:.0f} B"


def format_seconds(seconds: float) -> str:
    """Print a time at a glance: "7 ms", "1.2 s", "2 min 05 s"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
