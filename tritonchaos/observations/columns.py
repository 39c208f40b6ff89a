"""Columns of integers, some of which may be absent."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

_WIDTH: Final = 1 << 63


@dataclass(slots=True)
class Column:
    """Integers, some of which may be absent.

    Attributes:
        values: Shape [cycles]; 0 where there is none.
        has: 1 for each that is there, else 0, shape [cycles]; None: all are.
    """

    values: array[int] = field(default_factory=lambda: array("q"))
    has: bytearray | None = None

    def append(self, value: int | None) -> None:
        """Take the next value."""
        if value is None and self.has is None:
            self.has = bytearray(b"\1") * len(self.values)
        if self.has is not None:
            self.has.append(value is not None)
        self._extend(array("q", [value or 0]) if -_WIDTH <= (value or 0) < _WIDTH else [value or 0])

    def _extend(self, values: array[int] | list[int]) -> None:
        """Take numbers; a list takes the place of the array where one of them is wider than 64 bits."""
        if isinstance(self.values, array) and isinstance(values, list):
            self.values = cast("array[int]", list(self.values))
        self.values.extend(values)

    def extend(self, other: Column) -> None:
        """Take the values of another column."""
        if other.has is not None and self.has is None:
            self.has = bytearray(b"\1") * len(self.values)
        if self.has is not None:
            self.has += bytearray(b"\1") * len(other.values) if other.has is None else other.has
        self._extend(other.values)

    def skip(self, count: int) -> None:
        """Take so many absent values."""
        if count:
            self.extend(Column(array("q", bytes(8 * count)), bytearray(count)))

    def part(self, start: int, end: int) -> Column:
        """Return a stretch of it."""
        return Column(self.values[start:end], None if self.has is None else self.has[start:end])

    def which(self, places: Sequence[int]) -> Sequence[int]:
        """Return those of some places that have a value."""
        has = self.has
        return places if has is None else [place for place in places if has[place]]

    def has_any(self, places: Sequence[int]) -> bool:
        """Say whether one of some places has a value."""
        has = self.has
        return len(places) > 0 if has is None else any(has[place] for place in places)

    def at(self, place: int) -> int | None:
        """Return one value."""
        return self.values[place] if self.has is None or self.has[place] else None
