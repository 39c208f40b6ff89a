"""Columns of integers as bytes that are unpacked without a loop: differences as an array of fixed width, deflated."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import accumulate, compress
from operator import sub
from typing import Final

from tritonchaos.observations.cycle_table import Column
from tritonchaos.store.packing import Cursor, write_count

_WIDTHS: Final = ((1 << 7, "b"), (1 << 15, "h"), (1 << 31, "i"), (1 << 63, "q"))
_HAS_GAPS: Final = 1
_IS_DIFFERENCES: Final = 2
_LONGEST: Final = 1 << 63


def pack_column(numbers: Sequence[int | None]) -> bytes:
    """Pack integers of 64 bits, some of which may be absent.

    The first byte says whether gaps come first and whether differences or the numbers themselves follow; the second is
    the width, as the letter that Python's `array` has for it; bytes are little-endian.
    """
    has = bytes(number is not None for number in numbers)
    there = [number for number in numbers if number is not None]
    steps = [*there[:1], *map(sub, there[1:], there)]
    is_differences = not any(not -_LONGEST <= step < _LONGEST for step in steps)
    packed = array(_width(steps if is_differences else there), steps if is_differences else there)
    if sys.byteorder == "big":
        packed.byteswap()
    out = bytearray((_HAS_GAPS * (0 in has) | _IS_DIFFERENCES * is_differences, ord(packed.typecode)))
    if 0 in has:
        gaps = zlib.compress(has)
        write_count(len(gaps), out)
        out += gaps
    return bytes(out) + zlib.compress(packed.tobytes())


def _width(numbers: Sequence[int]) -> str:
    most, least = max(numbers, default=0), min(numbers, default=0)
    return next(letter for limit, letter in _WIDTHS if -limit <= least and most < limit)


def unpack_column(packed: bytes) -> Column:
    """Undo `pack_column`.

    Raises:
        ValueError, IndexError: The bytes are not what it makes.
    """
    cursor = Cursor(packed)
    marks, letter = cursor.take(2)
    has = None
    try:
        if marks & _HAS_GAPS:
            has = bytearray(zlib.decompress(cursor.take(cursor.count())))
        found = array(chr(letter))
        found.frombytes(zlib.decompress(cursor.rest()))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if sys.byteorder == "big":
        found.byteswap()
    numbers = array("q", accumulate(found) if marks & _IS_DIFFERENCES else found)
    return Column(numbers if has is None else _spread(numbers, has), has)


def _spread(numbers: array[int], has: bytearray) -> array[int]:
    if has.count(1) != len(numbers):
        raise ValueError(f"{len(numbers)} numbers, expected {has.count(1)}")
    spread = array("q", bytes(8 * len(has)))
    for place, number in zip(compress(range(len(has)), has), numbers, strict=True):
        spread[place] = number
    return spread
