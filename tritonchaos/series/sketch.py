"""Keeps the outline of a series of any length in a few numbers, for a plot."""

from __future__ import annotations

from typing import Final

_COLUMNS: Final = 128


class Sketch:
    """The largest values of equal shares of a series; shares double in length when there are too many."""

    def __init__(self) -> None:
        self._columns: list[int] = []
        self._share = 1
        self._in_last = 0

    def add(self, value: int) -> None:
        """Take the next value."""
        if self._columns and self._in_last < self._share:
            self._columns[-1] = max(self._columns[-1], value)
        else:
            if len(self._columns) == _COLUMNS:
                self._columns = [max(pair) for pair in zip(self._columns[::2], self._columns[1::2], strict=True)]
                self._share *= 2
            self._columns.append(value)
            self._in_last = 0
        self._in_last += 1

    def columns(self) -> list[int]:
        """Return the outline, at most 128 values."""
        return list(self._columns)
