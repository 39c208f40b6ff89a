"""Many packed integers at once: what `packing.Cursor` reads one by one."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.store.packing import Cursor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BYTES: Final = 9  # of a number that surely fits into 64 bits with its sign


def unpack_all_series(packed: bytes, lengths: Sequence[int]) -> Sequence[int]:
    """Unpack series that lie one behind the other.

    Args:
        packed: What `write_series` wrote for each of them.
        lengths: How many numbers each has.

    Returns:
        The numbers of all; an array unless one of them needs more than 64 bits.

    Raises:
        ValueError: The bytes hold something else.
        IndexError: They end too early.
    """
    import numpy

    coded = _counts(numpy.frombuffer(packed, numpy.uint8))
    if coded is None:
        return _one_by_one(packed, lengths)
    sizes = numpy.asarray(lengths, numpy.int64)
    heads = numpy.cumsum(sizes + 1) - sizes - 1
    if len(coded) != int(sizes.sum()) + len(sizes) or (coded[heads] != sizes).any():
        raise ValueError(f"found {len(coded)} numbers, expected {len(sizes)} series of {int(sizes.sum())}")
    steps = numpy.delete(coded, heads)
    steps = (steps >> 1) ^ -(steps & 1)
    sums = numpy.cumsum(steps)
    # Each series begins anew: what was summed up before its first number does not belong to it. A sum that goes over
    # comes back by the subtraction, as both are modulo 2**64.
    firsts = (heads - numpy.arange(len(heads)))[sizes > 0]
    before = numpy.repeat(sums[firsts] - steps[firsts], sizes[sizes > 0])
    return array("q", (sums - before).astype(numpy.int64).tobytes())


def series_at(packed: bytes, at: int) -> tuple[NDArray[Any], int]:
    """Unpack the series that begins at a byte; return its numbers and the byte after it.

    Raises:
        IndexError: The bytes end too early.
        OverflowError: A number needs more than 64 bits.
    """
    import numpy

    length, at = count_at(packed, at)
    piece = numpy.frombuffer(packed, numpy.uint8, min(len(packed) - at, length * (_MOST_BYTES + 1)), at)
    ends = numpy.flatnonzero(piece < 0x80)[:length]
    if len(ends) < length:
        raise IndexError(f"{length} numbers announced, {len(ends)} left")
    size = int(ends[-1]) + 1 if length else 0
    coded = _counts(piece[:size])
    if coded is None:
        raise OverflowError("a stamp does not fit into 64 bits")
    return numpy.cumsum((coded >> 1) ^ -(coded & 1)), at + size


def count_at(packed: bytes, at: int) -> tuple[int, int]:
    """Read what `write_count` wrote at a byte; return it and the byte after it."""
    number = shift = 0
    while True:
        byte = packed[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def _counts(coded: NDArray[Any]) -> NDArray[Any] | None:
    """Read what `write_count` wrote, shape [numbers]; None if one takes more than 9 bytes."""
    import numpy

    ends = numpy.flatnonzero(coded < 0x80)
    if len(coded) and (not len(ends) or ends[-1] != len(coded) - 1):
        raise IndexError("the last number is cut short")
    starts = numpy.concatenate((numpy.zeros(min(1, len(ends)), numpy.int64), ends[:-1] + 1))
    sizes = ends - starts + 1
    longest = int(sizes.max(initial=0))
    if longest > _MOST_BYTES:
        return None
    numbers: NDArray[Any] = (coded[starts] & 0x7F).astype(numpy.int64)
    for place in range(1, longest):
        long = numpy.flatnonzero(sizes > place)
        numbers[long] |= (coded[starts[long] + place] & 0x7F).astype(numpy.int64) << (7 * place)
    return numbers


def _one_by_one(packed: bytes, lengths: Sequence[int]) -> Sequence[int]:
    cursor, numbers = Cursor(packed), []
    for length in lengths:
        series = cursor.series()
        if len(series) != length:
            raise ValueError(f"found a series of {len(series)} numbers, expected {length}")
        numbers += series
    return numbers
