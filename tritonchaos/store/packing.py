"""Compact bytes for integers and their series: variable-length integers, zigzag signs, differences.

A variable-length integer has seven bits in each byte, lowest first, and the top bit set on all but the last byte (the
form that Protocol Buffers documents as "Base 128 Varints"). Zigzag maps 0, -1, 1, -2 to 0, 1, 2, 3. Python's integers
have no width, so neither have these.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

# Below this, deflate costs more bytes than it saves.
_WORTH_SQUEEZING: Final = 96


def write_count(number: int, out: bytearray) -> None:
    """Append a number that is never negative."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def write_integer(number: int, out: bytearray) -> None:
    """Append an integer of either sign."""
    write_count(2 * number if number >= 0 else -2 * number - 1, out)


def write_series(numbers: Sequence[int], out: bytearray) -> None:
    """Append integers as their count, the first one, and the differences."""
    write_count(len(numbers), out)
    previous = 0
    for number in numbers:
        write_integer(number - previous, out)
        previous = number


def write_gapped_series(numbers: Sequence[int | None], out: bytearray) -> None:
    """Append integers some of which are None: where the gaps are, then the rest as a series."""
    gaps = [place for place, number in enumerate(numbers) if number is None]
    write_series(gaps, out)
    write_series([number for number in numbers if number is not None], out)


class Cursor:
    """Reads packed bytes from front to back.

    Raises:
        IndexError: The bytes end before what they announce.
    """

    __slots__ = ("_at", "_packed")

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        """Everything has been read."""
        return self._at >= len(self._packed)

    def count(self) -> int:
        """Read what `write_count` wrote."""
        number = shift = 0
        while True:
            byte = self._packed[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def integer(self) -> int:
        """Read what `write_integer` wrote."""
        number = self.count()
        return -(number + 1) // 2 if number & 1 else number // 2

    def series(self) -> list[int]:
        """Read what `write_series` wrote."""
        numbers = []
        number = 0
        for _ in range(self.count()):
            number += self.integer()
            numbers.append(number)
        return numbers

    def gapped_series(self) -> list[int | None]:
        """Read what `write_gapped_series` wrote."""
        gaps = self.series()
        numbers: list[int | None] = list(self.series())
        for place in gaps:
            numbers.insert(place, None)
        return numbers

    def take(self, length: int) -> bytes:
        """Read so many bytes."""
        end = self._at + length
        if end > len(self._packed):
            raise IndexError(f"{length} bytes announced, {len(self._packed) - self._at} left")
        taken = self._packed[self._at : end]
        self._at = end
        return taken

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(len(self._packed) - self._at)


def squeeze(packed: bytes) -> bytes:
    """Put a mark in front, and deflate where that makes it smaller."""
    if len(packed) >= _WORTH_SQUEEZING:
        deflated = zlib.compress(packed, 1)
        if len(deflated) < len(packed):
            return b"\x01" + deflated
    return b"\x00" + packed


def unsqueeze(stored: bytes) -> bytes:
    """Undo `squeeze`.

    Raises:
        ValueError: The bytes are not what `squeeze` makes.
    """
    mark, packed = stored[:1], stored[1:]
    if mark == b"\x00":
        return packed
    if mark != b"\x01":
        raise ValueError(f"found mark {mark!r}, expected 0 or 1")
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(str(error)) from error
